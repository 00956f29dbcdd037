package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var partCases = map[string]func(*testCase){
	"what comes again is counted on the entry that has recorded it": func(k *testCase) {
		for _, id := range []string{"a", "b"} {
			c := turn(id, 1)
			c.Rows.Stream = []projections.Entry{
				{InstanceID: id, Position: 1, Kind: "event", Direction: "in", Type: "AckRepeated", SignalID: "s"},
				{InstanceID: id, Position: 2, Kind: "event", Direction: "in", Type: "AckRepeated", SignalID: "other"},
			}
			k.commit(c)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for { // who finds the row locked comes again
					err := k.s.Repeats.Repeated(k.ctx, "a", "s")
					if problem.CodeOf(err) != "store.locked" {
						k.ok(err)
						return
					}
				}
			})
		}
		all.Wait()
		for _, none := range [][2]string{{"a", "none"}, {"c", "s"}, {"a", ""}} {
			k.is(k.s.Repeats.Repeated(k.ctx, none[0], none[1]), store.ErrNotFound)
		}
		for id, want := range map[string][]int{"a": {3, 0}, "b": {0, 0}} {
			entries, err := k.s.Streams.Stream(k.ctx, id, 0, 0)
			k.ok(err)
			var got []int
			for _, e := range entries {
				got = append(got, e.Attempts)
			}
			equal(k, got, want)
		}
	},
	"commands that are not processed are found by how their last error begins": func(k *testCase) {
		for i, id := range []string{"a", "b"} {
			c := turn(id, 1)
			for p := int64(1); p <= 3; p++ {
				e := command(id, p, "")
				e.CreatedAt = at.Add(time.Duration(i) * time.Hour)
				c.Rows.Stream = append(c.Rows.Stream, e)
			}
			k.commit(c)
		}
		for p, said := range []string{"Unsent: no sink", "unsent", "it is Unsent"} {
			for _, id := range []string{"a", "b"} {
				k.commit(store.Change{Claims: []store.Claim{{InstanceID: id, Position: int64(p) + 1, Error: said}}})
			}
		}
		list := func(q backend.CommandQuery) (found []string) {
			for q.Error = "Unsent"; ; {
				p, err := k.s.Streams.Commands(k.ctx, q)
				k.ok(err)
				for _, e := range p.Items {
					found = append(found, fmt.Sprint(e.InstanceID, e.Position))
				}
				if q.After = p.Next; p.Next == "" {
					return found
				}
			}
		}
		equal(k, list(backend.CommandQuery{Limit: 1}), []string{"a1", "b1"})
		equal(k, list(backend.CommandQuery{InstanceID: "b"}), []string{"b1"})
		equal(k, list(backend.CommandQuery{Before: at.Add(time.Hour)}), []string{"a1"})
		k.commit(store.Change{Claims: []store.Claim{{InstanceID: "a", Position: 1, Done: true}}})
		equal(k, list(backend.CommandQuery{}), []string{"b1"})
	},
	"a probe is a commit, and says when there is none": func(k *testCase) {
		k.ok(k.s.Prober.Probe(k.ctx))
		k.ok(k.s.Prober.Probe(k.ctx))
		b := k.open("node-b")
		k.ok(b.Prober.Probe(k.ctx))
		k.ok(b.Close())
		k.is(b.Prober.Probe(k.ctx), store.ErrClosed)
		k.empty(store.Signals)
	},
	"replay sends the same bytes with no attempts": func(k *testCase) {
		body := []byte("\x00 as it was Ω")
		k.send(store.Send{Queue: store.Schedule, Body: body, Priority: 3})
		d := k.receive(k.s, store.Schedule)
		k.ok(d.Release(k.ctx, nil))
		d = k.receive(k.s, store.Schedule)
		k.ok(d.Commit(k.ctx, store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Queue: "schedule", Envelope: body, Reason: "r", Attempts: 1}}))
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l", 0, nil))
		m := k.take(store.Schedule, string(body))
		equal(k, m.Attempts, 0)
		equal(k, m.Priority, 3)
		_, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.is(err, store.ErrNotFound)
		k.is(k.s.DeadLetters.Replay(k.ctx, "l", 0, nil), store.ErrNotFound)
		k.empty(store.Schedule)
	},
	"discard removes a dead letter for good": func(k *testCase) {
		k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Queue: "signal", Envelope: []byte("e"), Reason: "r"}})
		k.ok(k.s.DeadLetters.Discard(k.ctx, "l", backend.AnyEdit, nil))
		_, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.is(err, store.ErrNotFound)
		k.is(k.s.DeadLetters.Discard(k.ctx, "l", backend.AnyEdit, nil), store.ErrNotFound)
		k.empty(store.Signals)
	},
	"discard settles a command with the dead letter, or neither": func(k *testCase) {
		open := false
		c := turn("i", 1)
		c.Rows.Stream = []projections.Entry{{InstanceID: "i", Position: 1, Kind: "command", Direction: "out", Type: "f", Processed: &open, Data: []byte("{}")}}
		c.DeadLetter = &projections.DeadLetter{ID: "l", Queue: "command", Envelope: []byte("e"), Reason: "r"}
		k.commit(c)
		settle := []store.Claim{{InstanceID: "i", Position: 1, Done: true, Unknown: true, GivenUp: at}}
		done := func() bool {
			p, err := k.s.Streams.Pending(k.ctx, "i", 0)
			k.ok(err)
			return len(p) == 0
		}
		k.is(k.s.DeadLetters.Discard(k.ctx, "none", backend.AnyEdit, settle), store.ErrNotFound)
		equal(k, done(), false)
		taken := []store.Claim{settle[0]}
		taken[0].Expect = "another"
		k.is(k.s.DeadLetters.Discard(k.ctx, "l", backend.AnyEdit, taken), store.ErrTaken)
		_, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.ok(err)
		k.ok(k.s.DeadLetters.Discard(k.ctx, "l", backend.AnyEdit, settle))
		equal(k, done(), true)
	},
	"a lock is one node's until it ends": func(k *testCase) {
		b := k.open("node-b")
		lock := func(s *opened, ttl time.Duration, want bool) {
			k.Helper()
			got, err := s.Locks.Lock(k.ctx, "job", ttl)
			k.ok(err)
			equal(k, got, want)
		}
		lock(k.s, time.Hour, true)
		lock(k.s, time.Hour, true)
		lock(b, time.Hour, false)
		k.ok(b.Locks.Unlock(k.ctx, "job"))
		lock(b, time.Hour, false)
		k.ok(k.s.Locks.Unlock(k.ctx, "job"))
		lock(b, 0, true) // over at once
		lock(k.s, time.Hour, true)
	},
	"the key is made once": func(k *testCase) {
		first, err := k.s.Identity.Key(k.ctx)
		k.ok(err)
		equal(k, len(first), 32)
		second, err := k.open("node-b").Identity.Key(k.ctx)
		k.ok(err)
		equal(k, second, first)
	},
	"an epoch is 1 in a new database and raised by a restore": func(k *testCase) {
		epoch := func(s *opened, want int64) {
			k.Helper()
			got, err := s.Identity.Epoch(k.ctx)
			k.ok(err)
			equal(k, got, want)
		}
		raise := func(s *opened, last int64) int64 {
			k.Helper()
			begun := s.Clock.Now()
			from, to, err := s.Identity.Raise(k.ctx)
			k.ok(err)
			equal(k, from, last)
			if to <= from || to < begun.UnixMilli() {
				k.Fatalf("raised from %d to %d: a restore of the same backup would come to it again", from, to)
			}
			return to
		}
		epoch(k.s, 1)
		first := raise(k.s, 1)
		epoch(k.s, first)
		second := raise(k.s, first)
		b := k.open("node-b")
		epoch(b, second)
		for _, s := range []*opened{k.s, b} {
			_, _, err := s.Identity.Raise(k.ctx)
			var p *problem.Error
			if !errors.As(err, &p) || p.Code != "store.in-use" {
				k.Fatalf("raised beside another node: %v", err)
			}
		}
		epoch(b, second)
		k.ok(k.s.Close())
		raise(b, second)
	},
	"purge removes what is over and nothing else": purge,
	"the ledger costs nothing when nothing happens": func(k *testCase) {
		k.send(sig("a"))
		d := k.receive(k.s, store.Signals)
		k.s.Ledger.Enter(d)
		k.s.Ledger.Leave(d)
		k.s.Ledger.Leave(d)
		k.ok(d.Release(k.ctx, nil))
		equal(k, k.take(store.Signals, "a").Crashes, 0)
	},
	"a live node's commands are no orphans": func(k *testCase) {
		equal(k, k.s.Nodes.Node(), "node-a")
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a"), command("a", 2, "")}
		k.commit(c)
		b := k.open("node-b")
		for _, s := range []*opened{k.s, b} {
			n, err := s.Nodes.Orphans(k.ctx, 10)
			k.ok(err)
			equal(k, n, 0)
		}
		k.empty(store.Commands)
	},
	"a closed node's commands are announced again": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a"), command("a", 2, "node-a"), command("a", 3, "node-a")}
		for i := range c.Rows.Stream {
			c.Rows.Stream[i].Attempts = 1
		}
		k.commit(c)
		k.ok(k.s.Close())
		k.s = k.open("node-b")
		n, err := k.s.Nodes.Orphans(k.ctx, 2)
		k.ok(err)
		equal(k, n, 2)
		n, err = k.s.Nodes.Orphans(k.ctx, 2)
		k.ok(err)
		equal(k, n, 1)
		n, err = k.s.Nodes.Orphans(k.ctx, 2)
		k.ok(err)
		equal(k, n, 0)
		announced(k, "a", 1, 2, 3)
	},
	"a restarted node's own commands are orphans": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a")}
		c.Rows.Stream[0].Attempts = 1
		k.commit(c)
		k.ok(k.s.Close())
		k.s = k.open("node-a")
		n, err := k.s.Nodes.Orphans(k.ctx, 10)
		k.ok(err)
		equal(k, n, 1)
		announced(k, "a", 1)
		k.ok(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{{InstanceID: "a", Position: 1, Owner: "node-a", Attempts: 1}}}))
		n, err = k.s.Nodes.Orphans(k.ctx, 10)
		k.ok(err)
		equal(k, n, 0)
	},
	"the backlog does not change what is delivered": func(k *testCase) {
		var far []store.Send
		for i := range 2000 {
			far = append(far, store.Send{Queue: store.Signals, Body: fmt.Append(nil, i), Due: time.Now().Add(time.Hour), Priority: 1})
		}
		k.send(far...)
		for i := range 50 {
			k.send(sig(fmt.Sprint(i)))
			k.take(store.Signals, fmt.Sprint(i))
		}
		k.empty(store.Signals)
	},
}

// announced consumes the announcements of commands and checks that they are
// free, with the attempt that its claim has counted.
func announced(k *testCase, id string, positions ...int64) {
	k.Helper()
	left := map[int64]bool{}
	for _, p := range positions {
		left[p] = true
	}
	for range positions {
		d := k.receive(k.s, store.Commands)
		e, err := signal.Decode(d.Message().Body)
		k.ok(err)
		p, err := signal.CommandPosition(e.Payload)
		k.ok(err)
		if e.InstanceID != id || !left[p] {
			k.Fatalf("announced %s/%d", e.InstanceID, p)
		}
		delete(left, p)
		k.ok(d.Commit(k.ctx, store.Change{}))
	}
	pending, err := k.s.Streams.Pending(k.ctx, id, 0)
	k.ok(err)
	for _, e := range pending {
		if e.ClaimedBy != "" || e.Attempts != 1 {
			k.Fatalf("%+v", e)
		}
	}
	k.empty(store.Commands)
}

// passesOn: a run may yet end, of which an instance that kept its schedule is to hear: it
// passes it on, and is kept.
func passesOn(k *testCase) {
	for i, id := range []string{"schedule.d.1", "run"} {
		c := turn(id, 1)
		c.Rows.Instance.Definition = "d"
		if c.Rows.Instance.Status = "cancelled"; i == 1 {
			c.Rows.Instance.Status, c.Rows.Instance.ParentID = "waiting", "schedule.d.0"
		} else {
			c.Rows.Instance.EndedAt = at
		}
		k.commit(c)
	}
	n, err := k.s.Retention.Purge(k.ctx, at.Add(4*time.Second), 10)
	k.ok(err)
	equal(k, n, 0)
}

func purge(k *testCase) {
	open := false
	for i, status := range []string{"completed", "cancelled", "faulted", "waiting", "completed", "completed", "compensated"} {
		id := fmt.Sprint(status, "-", i)
		c := turn(id, 1)
		c.Rows.Stream = []projections.Entry{{InstanceID: id, Position: 1, Kind: "event", SignalID: "s"}}
		c.Rows.Tasks = []projections.Task{task("t-"+id, id)}
		c.Rows.TaskEvents = []projections.TaskEvent{{TaskID: "t-" + id, InstanceID: id, Event: "created", At: at}}
		c.Rows.Waits = []projections.Wait{{Token: "w-" + id, InstanceID: id, EventType: "paid", Spec: "spec", KeyHash: id}}
		c.Rows.Instance.Status = status
		if i == 5 { // told somebody something, who has not got it yet
			c.Rows.Stream[0] = projections.Entry{InstanceID: id, Position: 1, Kind: "command", Direction: "out", Type: "f", Processed: &open, Data: []byte("{}")}
		}
		if status != "waiting" {
			c.Rows.Instance.EndedAt = at.Add(time.Duration(i%5) * time.Second)
		}
		c.Send = []store.Send{sig("of " + id)}
		k.commit(c)
	}
	n, err := k.s.Retention.Purge(k.ctx, at.Add(2*time.Second), 1)
	k.ok(err)
	equal(k, n, 1)
	n, err = k.s.Retention.Purge(k.ctx, at.Add(4*time.Second), 10)
	k.ok(err)
	equal(k, n, 2)
	_, err = k.s.Writer.Load(k.ctx, "completed-5")
	k.ok(err)
	for _, id := range []string{"completed-0", "cancelled-1", "compensated-6"} {
		_, err := k.s.Writer.Load(k.ctx, id)
		k.is(err, store.ErrNotFound)
		_, err = k.s.Instances.Instance(k.ctx, id)
		k.is(err, store.ErrNotFound)
		_, err = k.s.Tasks.Task(k.ctx, "t-"+id)
		k.is(err, store.ErrNotFound)
		entries, err := k.s.Streams.Stream(k.ctx, id, 0, 0)
		k.ok(err)
		equal(k, len(entries), 0)
		waits, err := k.s.Waits.Waits(k.ctx, "paid", "spec", id, projections.Wait{}, 0)
		k.ok(err)
		equal(k, len(waits), 0)
	}
	for _, id := range []string{"faulted-2", "waiting-3", "completed-4"} {
		_, err := k.s.Writer.Load(k.ctx, id)
		k.ok(err)
		_, err = k.s.Tasks.Task(k.ctx, "t-"+id)
		k.ok(err)
	}
	for _, id := range []string{"completed-0", "cancelled-1", "faulted-2", "waiting-3", "completed-4"} {
		k.take(store.Signals, "of "+id)
	}
	k.commit(store.Change{Claims: []store.Claim{{InstanceID: "completed-5", Position: 1, Done: true}}})
	n, err = k.s.Retention.Purge(k.ctx, at.Add(4*time.Second), 10)
	k.ok(err)
	equal(k, n, 1)
	passesOn(k)
	// What was purged may begin again, and has no past.
	c := turn("completed-0", 1)
	c.Rows.Stream = []projections.Entry{{InstanceID: "completed-0", Position: 1, Kind: "event", SignalID: "s"}}
	k.commit(c)
}
