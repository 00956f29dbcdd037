package storetest

import (
	"errors"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// damage changes a row; false means that the store is a model, which keeps no
// bytes of such rows.
func (k *kase) damage(table, column, instanceID string) bool {
	k.Helper()
	if k.h.Damage == nil {
		k.Skip("the harness cannot damage a row")
	}
	err := k.h.Damage(table, column, instanceID)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	k.ok(err)
	return true
}

// damagedEntries: a byte that is another in an entry is told, whoever reads it;
// what changes in the life of an entry is no damage.
func damagedEntries(k *kase) {
	for i, column := range []string{"DATA", "METADATA", "TYPE", "SIGNAL_ID", ""} {
		id := fmt.Sprint("i-", i)
		c := turn(id, 1)
		open := false
		c.Rows.Stream = []projections.Entry{{InstanceID: id, Position: 1, Kind: "command", Direction: "out", Type: "Call-é", SignalID: "s-1",
			Data: []byte(`{"target":"é"}`), Metadata: []byte(`{"pointer":"/do/0"}`), CreatedAt: at, Processed: &open}}
		k.commit(c)
		k.commit(store.Change{Claims: []store.Claim{{InstanceID: id, Position: 1, Owner: "node-a", Attempts: 1, NextAt: at, Error: "late"}}})
		if _, err := k.s.Stream(k.ctx, id, 0, 10); err != nil {
			k.Fatal("before the damage: ", err)
		}
		if column == "" {
			continue
		}
		if !k.damage("WF_STREAM", column, id) {
			continue
		}
		_, err := k.s.Stream(k.ctx, id, 0, 10)
		equal(k, problem.CodeOf(err), "stream.corrupt")
		_, err = k.s.Pending(k.ctx, id, 10)
		equal(k, problem.CodeOf(err), "stream.corrupt")
	}
	pending, err := k.s.Pending(k.ctx, "i-4", 10)
	k.ok(err)
	equal(k, len(pending), 1)
}

// damagedTasks: the same of what a task was made with, and of how it has ended.
func damagedTasks(k *kase) {
	for i, column := range []string{"PAYLOAD", "FORM", "TITLE", "OUTCOMES", "EXCLUDED_USERS", "WAITING_TOKEN", "OUTPUT", "OUTCOME", "ENDED_BY", ""} {
		id := fmt.Sprint("i-", i)
		task := projections.Task{ID: "t-" + id, InstanceID: id, Definition: "a/b", BusinessKey: "k", Name: "ask", Title: "Ask, please", Status: projections.TaskReady,
			CandidateUsers: `["ann"]`, CandidateGroups: "[]", ExcludedUsers: `["eve"]`, Outcomes: `["yes","no"]`, Priority: 5, Token: "tok", Version: 1,
			Payload: []byte(`{"n":1}`), Form: []byte(`{"type":"object"}`), EscalateTo: `["boss"]`, CreatedAt: at, DueAt: at}
		c := turn(id, 1)
		c.Rows.Tasks = []projections.Task{task}
		k.commit(c)
		k.commit(store.Change{Tasks: []store.TaskEdit{{ID: task.ID, Version: 1, Status: projections.TaskReserved, Assignee: "ann",
			Escalation: &store.Escalation{CandidateUsers: "[]", CandidateGroups: `["boss"]`, At: at}}}})
		k.commit(store.Change{Rows: projections.Rows{TaskEnds: []projections.TaskEnd{
			{ID: task.ID, Status: projections.TaskCompleted, By: "ann", At: at, Outcome: "yes", Output: []byte(`{"fine":true}`)}}}})
		got, err := k.s.Task(k.ctx, task.ID)
		k.ok(err)
		equal(k, got.Outcome+got.CandidateGroups, `yes["boss"]`)
		if column == "" {
			continue
		}
		if !k.damage("WF_TASKS", column, id) {
			continue
		}
		_, err = k.s.Task(k.ctx, task.ID)
		equal(k, problem.CodeOf(err), "task.corrupt")
		_, err = k.s.Tasks(k.ctx, projections.TaskQuery{InstanceID: id})
		equal(k, problem.CodeOf(err), "task.corrupt")
	}
	page, err := k.s.Tasks(k.ctx, projections.TaskQuery{InstanceID: "i-9"})
	k.ok(err)
	equal(k, len(page.Items), 1)
}
