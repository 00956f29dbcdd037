package storetest

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var backlogCases = map[string]func(*testCase){
	"queues tell depth and age": func(k *testCase) {
		k.send(sig("a"), sig("b"), sig("c"), store.Send{Queue: store.Schedule, Body: []byte("t"), Due: time.Now().Add(time.Hour)})
		held := k.receive(k.s, store.Signals)
		queues, err := k.s.Backlog.Queues(k.ctx)
		k.ok(err)
		found := map[string]backend.Queue{}
		for _, q := range queues {
			found[q.Name] = q
		}
		q := found["signal"]
		if q.Ready != 2 || q.Leased != 1 || q.Delayed != 0 || q.OldestAt.IsZero() {
			k.Fatalf("%+v", q)
		}
		equal(k, found["schedule"], backend.Queue{Name: "schedule", Delayed: 1})
		equal(k, found["command"], backend.Queue{Name: "command"})
		k.ok(held.Commit(k.ctx, store.Change{}))
	},
	"dead letters are counted by reason": func(k *testCase) {
		for i := range 7 {
			k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: fmt.Sprint("l-", i), Queue: []string{"signal", "command"}[i/6], InstanceID: fmt.Sprint("a-", i%2),
				Envelope: []byte("e"), Reason: []string{"few", "many", "many"}[i%3], Detail: fmt.Sprint("no ", i), EnqueuedAt: at, DiedAt: at.Add(time.Duration(i) * time.Second)}})
		}
		for _, c := range []struct {
			q    backend.DeadLetterQuery
			want []backend.ReasonCount
		}{
			{backend.DeadLetterQuery{Limit: 1}, []backend.ReasonCount{{Reason: "many", Rows: 4}, {Reason: "few", Rows: 3}}},
			{backend.DeadLetterQuery{Queue: "command"}, []backend.ReasonCount{{Reason: "few", Rows: 1}}},
			{backend.DeadLetterQuery{Before: at.Add(2 * time.Second)}, []backend.ReasonCount{{Reason: "few", Rows: 1}, {Reason: "many", Rows: 1}}},
			{backend.DeadLetterQuery{InstanceID: "a-1", Text: "no 5"}, []backend.ReasonCount{{Reason: "many", Rows: 1}}},
			{backend.DeadLetterQuery{Scope: backend.Scope{"shop"}}, nil},
			{backend.DeadLetterQuery{Reason: "none"}, nil},
		} {
			counts, more, err := k.s.Backlog.Reasons(k.ctx, c.q)
			k.ok(err)
			equal(k, counts, c.want)
			equal(k, more, false)
		}
	},
	"gaps are counted while they are open": func(k *testCase) {
		for i, ahead := range []int{2, 0, 5} {
			c := turn(fmt.Sprint("g-", i), 1)
			c.Rows.Instance.Ahead = ahead
			k.commit(c)
		}
		gaps, err := k.s.Backlog.Gaps(k.ctx)
		k.ok(err)
		equal(k, gaps, backend.Gaps{Instances: 2, Signals: 7})
		for i, ahead := range []int{0, 4, 5} {
			c := turn(fmt.Sprint("g-", i), 2)
			c.Rows.Instance.Ahead = ahead
			k.commit(c)
			row, err := k.s.Instances.Instance(k.ctx, fmt.Sprint("g-", i))
			k.ok(err)
			equal(k, row.Ahead, ahead)
		}
		gaps, err = k.s.Backlog.Gaps(k.ctx)
		k.ok(err)
		equal(k, gaps, backend.Gaps{Instances: 2, Signals: 9})
	},
	"what has not ended is counted": func(k *testCase) {
		counts := func() map[backend.Count]int {
			list, err := k.s.Backlog.Counts(k.ctx)
			k.ok(err)
			all := map[backend.Count]int{}
			for _, c := range list {
				if c.Rows > 0 {
					all[backend.Count{What: c.What, Name: c.Name}] = c.Rows
				}
			}
			return all
		}
		equal(k, counts(), map[backend.Count]int{})
		for i, status := range []snapshot.Status{snapshot.Waiting, snapshot.Waiting, snapshot.Suspended, snapshot.Faulted, snapshot.Completed} {
			c := turn(fmt.Sprint("c-", i), 1)
			c.Rows.Instance.Status = string(status)
			if status == snapshot.Completed {
				c.Rows.Instance.EndedAt = c.Rows.Instance.StartedAt
			}
			for j, of := range []string{projections.TaskReady, projections.TaskReserved, projections.TaskCompleted} {
				t := task(fmt.Sprint("c-", i, j), c.Rows.Instance.ID)
				t.Status = of
				c.Rows.Tasks = append(c.Rows.Tasks, t)
			}
			k.commit(c)
			k.ok(k.s.Writer.Commit(k.ctx, store.Change{DeadLetter: &projections.DeadLetter{
				ID: fmt.Sprint("l-", i), Queue: "command", Envelope: []byte("{}"), Reason: "signal.not-json", Detail: "why", DiedAt: at, EnqueuedAt: at,
			}}))
		}
		equal(k, counts(), map[backend.Count]int{
			{What: backend.CountInstances, Name: "waiting"}: 2, {What: backend.CountInstances, Name: "suspended"}: 1, {What: backend.CountInstances, Name: "faulted"}: 1,
			{What: backend.CountTasks, Name: "open"}: 10, {What: backend.CountDeadLetters, Name: "command"}: 5,
		})
	},
}
