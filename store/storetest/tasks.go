package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// answerSizes are on each side of what a bind, a RAW and PL/SQL take.
var answerSizes = []int{100, 2_000, 2_001, 4_000, 4_001, 32_767, 32_768, 200_000}

// taskCases are about human tasks while they are open.
var taskCases = map[string]func(*testCase){
	"an escalated task has further candidates": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Tasks = []projections.Task{task("t", "a")}
		k.commit(c)
		k.commit(store.Change{Tasks: []store.TaskEdit{{ID: "t", Version: 1, Status: projections.TaskReserved, Assignee: "carl", Role: "clerks"}}})
		got, err := k.s.Tasks.Task(k.ctx, "t")
		k.ok(err)
		equal(k, got.Role, "clerks")
		late := at.Add(time.Hour)
		edit := store.TaskEdit{
			ID: "t", Version: 2, Status: projections.TaskReady, Event: projections.TaskEvent{InstanceID: "a", Event: "escalated", At: late},
			Escalation: &store.Escalation{CandidateUsers: `["ann","carl"]`, CandidateGroups: `["clerks","leads"]`, At: late},
		}
		k.commit(store.Change{Tasks: []store.TaskEdit{edit}})
		k.is(k.s.Writer.Commit(k.ctx, store.Change{Tasks: []store.TaskEdit{edit}}), store.ErrStale)
		got, err = k.s.Tasks.Task(k.ctx, "t")
		k.ok(err)
		want := task("t", "a")
		want.CandidateUsers, want.CandidateGroups, want.EscalatedAt, want.Version = `["ann","carl"]`, `["clerks","leads"]`, late, 3
		equal(k, got, want)
		for user, groups := range map[string][]string{"ann": nil, "carl": nil, "dora": {"leads"}, "eve": {"clerks"}} {
			p, err := k.s.Tasks.Tasks(k.ctx, backend.TaskQuery{User: user, Groups: groups})
			k.ok(err)
			equal(k, len(p.Items), 1)
		}
		p, err := k.s.Tasks.Tasks(k.ctx, backend.TaskQuery{User: "bob", Groups: []string{"leads"}})
		k.ok(err)
		equal(k, len(p.Items), 0)
	},
	"the events of a task are in the order of their commits, whichever node": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Tasks = []projections.Task{task("t", "a")}
		k.commit(c)
		nodes := []*opened{k.s, k.open("node-b")}
		for i := range 6 {
			edit := store.TaskEdit{ID: "t", Version: int64(i + 1), Status: projections.TaskReady, Event: projections.TaskEvent{TaskID: "t", InstanceID: "a", Event: "released", Actor: fmt.Sprint(i), At: at}}
			k.ok(nodes[i%2].Writer.Commit(k.ctx, store.Change{Tasks: []store.TaskEdit{edit}}))
		}
		events, err := k.s.Tasks.TaskEvents(k.ctx, "t")
		k.ok(err)
		for i, e := range events {
			equal(k, e.Actor, fmt.Sprint(i))
		}
		equal(k, len(events), 6)
	},
	"an answer of any size is kept, and so is its event": func(k *testCase) {
		c := turn("a", 1)
		for i, n := range answerSizes {
			c.Rows.Tasks = append(c.Rows.Tasks, task(fmt.Sprint("t", i), "a"), task(fmt.Sprint("u", n), "a"))
			c.Rows.Tasks[2*i].Token, c.Rows.Tasks[2*i+1].Token = fmt.Sprint("t", i), fmt.Sprint("u", i)
		}
		k.commit(c)
		for i, n := range answerSizes {
			answer := []byte(`{"data":"` + strings.Repeat("x", n-11) + `"}`)
			c := store.Change{Rows: projections.Rows{
				TaskEnds:   []projections.TaskEnd{{ID: fmt.Sprint("t", i), Status: projections.TaskCompleted, By: "ann", At: at, Output: answer}},
				TaskEvents: []projections.TaskEvent{{TaskID: fmt.Sprint("t", i), InstanceID: "a", Event: "completed", Actor: "ann", Data: answer, At: at}},
			}}
			k.commit(c)
			// One statement alone, and several at once, are bound in different ways.
			k.commit(store.Change{Rows: projections.Rows{TaskEvents: []projections.TaskEvent{{TaskID: fmt.Sprint("u", n), InstanceID: "a", Event: "noted", Data: answer, At: at}}}})
			got, err := k.s.Tasks.Task(k.ctx, fmt.Sprint("t", i))
			k.ok(err)
			k.same(got.Output, answer)
			for _, id := range []string{fmt.Sprint("t", i), fmt.Sprint("u", n)} {
				events, err := k.s.Tasks.TaskEvents(k.ctx, id)
				k.ok(err)
				equal(k, len(events), 1)
				k.same(events[0].Data, answer)
				equal(k, events[0].InstanceID, "a")
			}
		}
		lost := projections.TaskEvent{TaskID: "nobody's", InstanceID: "a", Event: "noted", At: at}
		k.is(k.s.Writer.Commit(k.ctx, store.Change{Rows: projections.Rows{TaskEvents: []projections.TaskEvent{lost}}}), store.ErrNotFound)
	},
	"the next tasks go to one of many callers each": claimNext,
	"the next tasks are those that one may claim, the most urgent first": func(k *testCase) {
		c := turn("a", 1)
		for i, change := range []func(*projections.Task){
			func(t *projections.Task) { t.Priority = 9 },
			func(t *projections.Task) { t.Priority = 1 },
			func(t *projections.Task) { t.ExcludedUsers = `["carl"]` },
			func(t *projections.Task) { t.CandidateGroups = `["others"]` },
			func(t *projections.Task) { t.Status, t.Assignee = projections.TaskReserved, "ann" },
			func(t *projections.Task) { t.CandidateUsers, t.CandidateGroups = `[]`, `[]` },
		} {
			t := task(string(rune('a'+i)), "a")
			change(&t)
			c.Rows.Tasks = append(c.Rows.Tasks, t)
		}
		k.commit(c)
		claim := func(user string, groups []string, limit int) (ids []string) {
			got, err := k.s.Tasks.ClaimNext(k.ctx, backend.NextClaim{User: user, Groups: groups, Limit: limit, Event: "claimed", At: at})
			k.ok(err)
			for _, t := range got {
				ids = append(ids, t.ID+" "+t.Role)
				equal(k, [3]any{t.Status, t.Assignee, t.Version}, [3]any{projections.TaskReserved, user, int64(2)})
			}
			return ids
		}
		equal(k, claim("eve", nil, 1), []string{"f "})
		equal(k, claim("carl", []string{"x", "clerks"}, 2), []string{"b clerks", "a clerks"})
		equal(k, claim("carl", []string{"x", "clerks"}, 2), nil)
		events, err := k.s.Tasks.TaskEvents(k.ctx, "b")
		k.ok(err)
		equal(k, events, []projections.TaskEvent{{TaskID: "b", InstanceID: "a", Event: "claimed", Actor: "carl", At: at}})
	},
}

// claimNext has many callers on two nodes take tasks until none is left: every
// task goes to one of them.
func claimNext(k *testCase) {
	const tasks, callers = 40, 8
	c := turn("a", 1)
	for i := range tasks {
		c.Rows.Tasks = append(c.Rows.Tasks, task(fmt.Sprintf("t%d", i), "a"))
	}
	k.commit(c)
	nodes := []*opened{k.s, k.open("node-b")}
	var mu sync.Mutex
	holders := map[string]string{}
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			user := fmt.Sprintf("user-%d", i)
			for idle := 0; idle < 3; {
				got, err := nodes[i%len(nodes)].Tasks.ClaimNext(k.ctx, backend.NextClaim{User: user, Groups: []string{"clerks"}, Limit: 3, Event: "claimed", At: at})
				if err != nil {
					k.Error(err)
					return
				}
				if idle++; len(got) > 0 {
					idle = 0
				}
				mu.Lock()
				for _, t := range got {
					if holders[t.ID] != "" || t.Assignee != user {
						k.Errorf("%s has %s, whose assignee is %s, and so has %s", user, t.ID, t.Assignee, holders[t.ID])
					}
					holders[t.ID] = user
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(holders) != tasks {
		k.Errorf("%d of %d tasks were claimed", len(holders), tasks)
	}
}

func task(id, instance string) projections.Task {
	return projections.Task{ID: id, InstanceID: instance, Definition: "default/d", Name: "review", Title: "Prüfen", Status: projections.TaskReady,
		CandidateUsers: `["ann"]`, CandidateGroups: `["clerks"]`, ExcludedUsers: `["bob"]`, Outcomes: `["yes","no"]`, Priority: 5,
		Payload: []byte(`{"p":1}`), Form: []byte(`{"f":1}`), Token: "tok-" + id, Version: 1, CreatedAt: at, DueAt: at.Add(time.Hour),
		EscalateTo: `["leads"]`}
}
