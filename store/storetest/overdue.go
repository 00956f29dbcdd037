package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
)

var overdueCases = map[string]func(*testCase){
	"what is overdue is found, the longest overdue first": func(k *testCase) {
		after := func(d time.Duration) time.Time { return at.Add(d) }
		k.waits("timer", after(3*time.Second))
		k.waits("beside", after(2*time.Second))
		k.waits("next", at)
		k.waits("later", after(time.Minute))
		k.waits("event", time.Time{})
		equal(k, k.overdue(after(10*time.Second), 100), []string{"next", "beside", "timer"})
		equal(k, k.overdue(after(10*time.Second), 1), []string{"next", "beside", "timer"})
		equal(k, k.overdue(after(3*time.Second), 100), []string{"next", "beside"}) // before, not at
		c := turn("beside", 2)
		c.Runtime.Due = after(5 * time.Second)
		k.commit(c)
		k.commit(turn("next", 2))
		equal(k, k.overdue(after(10*time.Second), 100), []string{"timer", "beside"})
	},
	"what is due at one moment comes a page at a time": func(k *testCase) {
		var want []string
		for i := range 7 {
			want = append(want, fmt.Sprint("i-", i))
			k.waits(want[i], at)
		}
		got := k.overdue(at.Add(time.Second), 3)
		slices.Sort(got)
		equal(k, got, want)
	},
	"a message is found by its tokens": func(k *testCase) {
		now := k.s.Clock.Now()
		one := func(q store.Queue, due time.Time, token string) store.Send {
			return store.Send{Queue: q, Due: due, Body: []byte(`{"signalId":"s","signalType":"TimerDue","waitingToken":"` + token + `"}`)}
		}
		k.commit(store.Change{Send: []store.Send{
			one(store.Schedule, time.Time{}, "held"),
			one(store.Schedule, now.Add(time.Hour), "soon"), one(store.Schedule, now.Add(24*time.Hour), "far"),
			one(store.Signals, now.Add(24*time.Hour), "continue"),
			{Queue: store.Signals, Due: now.Add(time.Hour), Body: []byte(`{"signalId":"s","signalType":"TimerDueAll","payload":{"tokens":["first","second"]}}`)},
			{Queue: store.Signals, Due: now.Add(time.Hour), Body: []byte(`{"signalId":"s","payload":{"tokens":{"no":"list"}}}`)},
			sig("no envelope"),
		}})
		d := k.receive(k.s, store.Schedule)
		sent := func(tokens ...string) []string {
			got, err := k.s.Overdue.Sent(k.ctx, tokens, now.Add(2*time.Hour))
			k.ok(err)
			slices.Sort(got)
			return slices.DeleteFunc(got, func(token string) bool { return token == "far" }) // which may be left out
		}
		all := []string{"held", "soon", "far", "continue", "first", "second", "none", "s"}
		equal(k, sent(all...), []string{"continue", "first", "held", "second", "soon"})
		equal(k, sent("second", "none"), []string{"second"})
		equal(k, len(sent("none")), 0)
		equal(k, len(sent()), 0)
		k.ok(d.Commit(k.ctx, store.Change{}))
		equal(k, sent(all...), []string{"continue", "first", "second", "soon"})
	},
}

// waits commits an instance that waits for a moment.
func (k *testCase) waits(id string, due time.Time) {
	k.Helper()
	c := turn(id, 1)
	c.Runtime.Due = due
	k.commit(c)
}

// overdue are all instances that are, read in pages.
func (k *testCase) overdue(before time.Time, limit int) (all []string) {
	k.Helper()
	for after := ""; ; {
		p, err := k.s.Overdue.Overdue(k.ctx, before, after, limit)
		k.ok(err)
		if all = append(all, p.Items...); p.Next == "" {
			return all
		}
		after = p.Next
	}
}
