package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var damageCases = map[string]func(*testCase){
	"a damaged entry is refused":                                    damagedEntries,
	"a damaged task is refused":                                     damagedTasks,
	"a damaged task is not given out":                               damagedClaims,
	"a damaged event of a task is refused":                          damagedEvents,
	"what has no checksum is accepted, and has one of what changes": withoutChecksums,
}

// damage changes a row; false means that the store is a model, which keeps no
// bytes of such rows.
func (k *testCase) damage(table, column, instanceID string) bool {
	k.Helper()
	if k.h.Damage == nil {
		k.Skip("the harness cannot damage a row")
	}
	err := k.h.Damage(table, column, instanceID)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	if err != nil {
		k.Fatalf("%s of %s: %v", column, table, err)
	}
	return true
}

// damagedEntries: a byte that is another in an entry is told, whoever reads it;
// what changes in the life of an entry is no damage.
func damagedEntries(k *testCase) {
	for i, column := range []string{"DATA", "METADATA", "TYPE", "SIGNAL_ID", ""} {
		id := fmt.Sprint("i-", i)
		c := turn(id, 1)
		open := false
		c.Rows.Stream = []projections.Entry{{InstanceID: id, Position: 1, Kind: "command", Direction: "out", Type: "Call-é", SignalID: "s-1",
			Data: []byte(`{"target":"é"}`), Metadata: []byte(`{"pointer":"/do/0"}`), CreatedAt: at, Processed: &open}}
		k.commit(c)
		k.commit(store.Change{Claims: []store.Claim{{InstanceID: id, Position: 1, Owner: "node-a", Attempts: 1, NextAt: at, Error: "late"}}})
		if _, err := k.s.Streams.Stream(k.ctx, id, 0, 10); err != nil {
			k.Fatal("before the damage: ", err)
		}
		if column == "" {
			continue
		}
		if !k.damage("WF_STREAM", column, id) {
			continue
		}
		_, err := k.s.Streams.Stream(k.ctx, id, 0, 10)
		equal(k, problem.CodeOf(err), "stream.corrupt")
		_, err = k.s.Streams.Pending(k.ctx, id, 10)
		equal(k, problem.CodeOf(err), "stream.corrupt")
	}
	pending, err := k.s.Streams.Pending(k.ctx, "i-4", 10)
	k.ok(err)
	equal(k, len(pending), 1)
}

// taskLives are what a task may have come to, each a change of one that is made.
var taskLives = []struct {
	name   string
	change func(task *projections.Task) store.Change
}{
	{"ready", func(*projections.Task) store.Change { return store.Change{} }},
	{"claimed", func(t *projections.Task) store.Change {
		return store.Change{Tasks: []store.TaskEdit{{ID: t.ID, Version: 1, Status: projections.TaskReserved, Assignee: "ann", Role: "clerks"}}}
	}},
	{"escalated", func(t *projections.Task) store.Change {
		return store.Change{Tasks: []store.TaskEdit{{ID: t.ID, Version: 1, Status: projections.TaskReady,
			Event:      projections.TaskEvent{InstanceID: t.InstanceID, Event: "escalated", At: at},
			Escalation: &store.Escalation{CandidateUsers: "[]", CandidateGroups: `["boss"]`, At: at}}}}
	}},
	{"completed", func(t *projections.Task) store.Change {
		return store.Change{Rows: projections.Rows{TaskEnds: []projections.TaskEnd{
			{ID: t.ID, Status: projections.TaskCompleted, By: "ann", At: at.Add(time.Second), Outcome: "yes", Output: []byte(`{"fine":true}`)}}}}
	}},
}

// liveTask commits an instance with a task that has come to life's change, and
// returns the task as it is read.
func (k *testCase) liveTask(id string, lives int) projections.Task {
	k.Helper()
	t := projections.Task{ID: "t-" + id, InstanceID: id, Definition: "a/b", BusinessKey: "k", Name: "ask", Title: "Ask, please", Status: projections.TaskReady,
		CandidateUsers: `["ann"]`, CandidateGroups: `["clerks"]`, ExcludedUsers: `["eve"]`, Outcomes: `["yes","no"]`, Priority: 5, Token: "tok", Version: 1,
		Payload: []byte(`{"n":1}`), Form: []byte(`{"type":"object"}`), EscalateTo: `["boss"]`, CreatedAt: at, DueAt: at.Add(time.Hour)}
	c := turn(id, 1)
	c.Rows.Tasks = []projections.Task{t}
	c.Rows.TaskEvents = []projections.TaskEvent{{TaskID: t.ID, InstanceID: id, Event: "created", Actor: "ann", Data: []byte(`{}`), At: at}}
	k.commit(c)
	if lives > 0 {
		k.commit(taskLives[lives].change(&t))
	}
	t, err := k.s.Tasks.Task(k.ctx, t.ID)
	k.ok(err)
	return t
}

// otherwise is an assignment, in SQL that every dialect has, that gives the
// column of a field another value.
func otherwise(f reflect.StructField, other string) string {
	column := f.Tag.Get("db")
	switch {
	case f.Name == "InstanceID":
		return column + " = 'elsewhere'"
	case f.Type.Kind() == reflect.String:
		return column + " = case when " + column + " is null then 'x' else " + column + " || 'x' end"
	case f.Type == reflect.TypeFor[time.Time](), f.Type == reflect.TypeFor[[]byte]():
		return column + " = case when " + column + " is null then " + other + " end"
	}
	return column + " = case when " + column + " is null then 7 else " + column + " + 1 end"
}

// damagedTasks: whatever is another in any column of a task is told, whatever the
// task has come to, and so is what makes it look like another that could be.
func damagedTasks(k *testCase) {
	k.commit(turn("elsewhere", 1))
	columns := append(reflect.VisibleFields(reflect.TypeFor[projections.Task]()), reflect.VisibleFields(reflect.TypeFor[backend.TaskSums]())...)
	for i, life := range taskLives {
		var sets []string
		for _, f := range columns {
			other := "CREATED_ON_UTC"
			if f.Type == reflect.TypeFor[[]byte]() {
				other = "FORM"
			}
			sets = append(sets, otherwise(f, other))
		}
		for set, is := range map[string]string{
			"STATUS = 'ready'": "ready escalated", "STATUS = 'reserved'": "claimed", "STATUS = 'completed'": "completed", "STATUS = 'cancelled'": "",
			"STATUS = 'completed', ENDED_ON_UTC = CREATED_ON_UTC": "", "STATUS = 'ready', ASSIGNEE = null, ASSIGNED_AS = null": "ready escalated",
			"STATUS = 'reserved', ASSIGNEE = 'eve'": "", "CANDIDATE_USERS = '[\"eve\"]'": "",
			"STATUS = 'ready', ENDED_ON_UTC = null, ENDED_BY = null, OUTCOME = null, OUTPUT = null": "ready escalated",
		} {
			if !strings.Contains(is, life.name) {
				sets = append(sets, set)
			}
		}
		for j, set := range sets {
			id := fmt.Sprintf("i-%d-%d", i, j)
			task := k.liveTask(id, i)
			if !k.damage("WF_TASKS", set, id) {
				return
			}
			_, err := k.s.Tasks.Task(k.ctx, task.ID)
			if code := problem.CodeOf(err); code != "task.corrupt" && (!strings.HasPrefix(set, "TASK_ID") || !errors.Is(err, store.ErrNotFound)) {
				k.Errorf("%s, and %s: the task is read with %v", life.name, set, err)
			}
			page, err := k.s.Tasks.Tasks(k.ctx, backend.TaskQuery{InstanceID: id})
			if code := problem.CodeOf(err); code != "task.corrupt" && (!strings.HasPrefix(set, "INSTANCE_ID") || err != nil || len(page.Items) > 0) {
				k.Errorf("%s, and %s: tasks are listed with %v", life.name, set, err)
			}
		}
	}
}

// withoutChecksums: a task of an older program, or one mended by hand.
func withoutChecksums(k *testCase) {
	task := k.liveTask("i", 0)
	none := "CHECKSUM = null, ASSIGNED_CHECKSUM = null, CANDIDATES_CHECKSUM = null, END_CHECKSUM = null, TITLE = 'by hand', ASSIGNEE = 'bob', STATUS = 'reserved'"
	if !k.damage("WF_TASKS", none, "i") {
		return
	}
	k.damage("WF_TASK_EVENTS", "CHECKSUM = null, ACTOR = 'bob'", "i")
	task, err := k.s.Tasks.Task(k.ctx, task.ID)
	k.ok(err)
	events, err := k.s.Tasks.TaskEvents(k.ctx, task.ID)
	k.ok(err)
	equal(k, task.Title+" "+task.Assignee+" "+events[0].Actor, "by hand bob bob")
	k.commit(taskLives[2].change(&task))
	task, err = k.s.Tasks.Task(k.ctx, task.ID)
	k.ok(err)
	equal(k, task.Assignee+" "+task.CandidateGroups, ` ["boss"]`)
	k.damage("WF_TASKS", "CANDIDATE_GROUPS = '[]'", "i")
	_, err = k.s.Tasks.Task(k.ctx, task.ID)
	equal(k, problem.CodeOf(err), "task.corrupt")
	k.damage("WF_TASKS", "CANDIDATE_GROUPS = '[\"boss\"]', ASSIGNEE = 'eve'", "i")
	_, err = k.s.Tasks.Task(k.ctx, task.ID)
	equal(k, problem.CodeOf(err), "task.corrupt")
}

// damagedClaims: what is given out next is what was written, or nothing is.
func damagedClaims(k *testCase) {
	task := k.liveTask("i-1", 1)
	if !k.damage("WF_TASKS", "STATUS = 'ready', ASSIGNEE = null, ASSIGNED_AS = null", "i-1") {
		return
	}
	_, err := k.s.Tasks.ClaimNext(k.ctx, backend.NextClaim{User: "bob", Groups: []string{"clerks"}, Limit: 1, Event: "claimed", At: at})
	equal(k, problem.CodeOf(err), "task.corrupt")
	_, err = k.s.Tasks.Task(k.ctx, task.ID) // and it was not made whole by that
	equal(k, problem.CodeOf(err), "task.corrupt")
}

// damagedEvents: the same of each thing that happened to a task.
func damagedEvents(k *testCase) {
	k.commit(turn("elsewhere", 1))
	for i, f := range append(reflect.VisibleFields(reflect.TypeFor[projections.TaskEvent]()), reflect.StructField{Name: "Sum", Type: reflect.TypeFor[int64](), Tag: `db:"CHECKSUM"`}) {
		if f.Name == "TaskID" || f.Name == "InstanceID" { // of which it is found
			continue
		}
		for j := range 2 {
			id := fmt.Sprintf("i-%d-%d", i, j)
			task := k.liveTask(id, 2*j)
			if _, err := k.s.Tasks.TaskEvents(k.ctx, task.ID); err != nil {
				k.Fatal("before the damage: ", err)
			}
			other := map[string]string{"At": "DUE_ON_UTC", "Data": "FORM"}[f.Name]
			if !k.damage("WF_TASK_EVENTS", otherwise(f, "(select "+other+" from WF_TASKS where TASK_ID = 't-"+id+"')"), id) {
				return
			}
			_, err := k.s.Tasks.TaskEvents(k.ctx, task.ID)
			if problem.CodeOf(err) != "task.corrupt" {
				k.Errorf("%s: events are read with %v", f.Name, err)
			}
		}
	}
}
