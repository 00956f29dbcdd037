package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

var commitCases = map[string]func(*testCase){
	"a snapshot comes back as it was": func(k *testCase) {
		s := snap("a-Ω", 1)
		s.Waits = []snapshot.Wait{{Kind: snapshot.WaitTask, Token: "t", Pointer: "/do/0", Until: at, TaskID: "task"}}
		k.commit(store.Change{Snapshot: s, Encoded: encode(s)})
		got, err := k.s.Writer.Load(k.ctx, "a-Ω")
		k.ok(err)
		equal(k, got, *s)
	},
	"a snapshot of 1 MiB comes back":                   largeSnapshot,
	"what was committed is its caller's to write upon": reusedBytes,
	"load of nothing is not found": func(k *testCase) {
		_, err := k.s.Writer.Load(k.ctx, "a")
		k.is(err, store.ErrNotFound)
	},
	"a damaged snapshot is refused": func(k *testCase) {
		k.commit(turn("a", 1))
		k.damage("WF_RUNTIME_STATES", "STATE_JSON", "a")
		_, err := k.s.Writer.Load(k.ctx, "a")
		equal(k, problem.CodeOf(err), "snapshot.corrupt")
	},
	"a version follows its predecessor only": func(k *testCase) {
		k.is(k.s.Writer.Commit(k.ctx, turn("a", 2)), store.ErrStale)
		k.commit(turn("a", 1))
		k.is(k.s.Writer.Commit(k.ctx, turn("a", 3)), store.ErrStale)
		k.commit(turn("a", 2))
		k.is(k.s.Writer.Commit(k.ctx, turn("a", 2)), store.ErrStale)
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 2)
	},
	"a change of several signals is written over the version it was decided on": func(k *testCase) {
		several := func(over, version int64) store.Change {
			c := turn("a", version)
			c.Over = over
			return c
		}
		k.commit(turn("a", 1))
		k.is(k.s.Writer.Commit(k.ctx, several(2, 4)), store.ErrStale)
		k.commit(several(1, 4))
		k.is(k.s.Writer.Commit(k.ctx, several(1, 5)), store.ErrStale)
		k.is(k.s.Writer.Commit(k.ctx, several(3, 5)), store.ErrStale)
		k.commit(several(4, 5))
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 5)
	},
	"of two changes from one version exactly one wins": func(k *testCase) {
		k.commit(turn("a", 1))
		for version := int64(2); version < 12; version++ {
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				wg.Go(func() { errs[i] = retryCommit(k, turn("a", version)) })
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else {
					k.is(err, store.ErrStale)
				}
			}
			equal(k, won, 1)
		}
	},
	"a stale delivery may decide again": func(k *testCase) {
		c := turn("a", 1)
		c.Send = []store.Send{sig("m")}
		k.commit(c)
		d := k.receive(k.s, store.Signals)
		k.commit(turn("a", 2))
		stale := turn("a", 2)
		stale.Send = []store.Send{sig("never")}
		k.is(d.Commit(k.ctx, stale), store.ErrStale)
		got, err := d.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 2)
		k.ok(d.Commit(k.ctx, turn("a", 3)))
		k.empty(store.Signals)
	},
	"an instance starts once": func(k *testCase) {
		k.commit(turn("a", 1))
		again := turn("a", 1)
		again.Send = []store.Send{sig("never")}
		k.is(k.s.Writer.Commit(k.ctx, again), store.ErrDuplicate)
		k.empty(store.Signals)
	},
	"a start key starts once": func(k *testCase) {
		start := func(id, definition, business, key string) error {
			c := turn(id, 1)
			c.Rows.Instance.Definition, c.Rows.Instance.BusinessKey, c.Rows.Instance.StartKey = definition, business, key
			return k.s.Writer.Commit(k.ctx, c)
		}
		k.ok(start("a", "d", "b", "k"))
		k.is(start("b", "d", "b", "k"), store.ErrDuplicate)
		_, err := k.s.Writer.Load(k.ctx, "b")
		k.is(err, store.ErrNotFound)
		k.ok(start("c", "d", "other", "k"))
		k.ok(start("d", "other", "b", "k"))
		k.ok(start("e", "d", "", "k"))
		k.is(start("f", "d", "", "k"), store.ErrDuplicate)
		k.ok(start("g", "d", "b", ""))
		k.ok(start("h", "d", "b", ""))
	},
	"a refused change leaves nothing, and the others stand": func(k *testCase) {
		// Refused after it has written: the repeated signal is found last.
		k.commit(turn("a", 1))
		first := turn("a", 2)
		first.Rows.Stream = []projections.Entry{{InstanceID: "a", Position: 1, Kind: "event", SignalID: "same"}}
		k.commit(first)
		var wg sync.WaitGroup
		errs := make([]error, 40)
		for i := range errs {
			wg.Go(func() {
				if i%2 == 0 {
					errs[i] = k.s.Writer.Commit(k.ctx, turn(fmt.Sprint("good-", i), 1))
					return
				}
				c := turn("a", 3)
				c.Rows.Stream = []projections.Entry{{InstanceID: "a", Position: 2, Kind: "event", SignalID: "same"}}
				c.Send = []store.Send{sig("never")}
				errs[i] = retryCommit(k, c)
			})
		}
		wg.Wait()
		for i, err := range errs {
			if i%2 == 0 {
				k.ok(err)
				_, err := k.s.Writer.Load(k.ctx, fmt.Sprint("good-", i))
				k.ok(err)
				continue
			}
			k.is(err, store.ErrDuplicate)
		}
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 2)
		k.empty(store.Signals)
	},
	"a repeated signal id is recorded once in an instance": func(k *testCase) {
		entry := func(id string, position int64) projections.Entry {
			return projections.Entry{InstanceID: id, Position: position, Kind: "event", Direction: "in", SignalID: "s"}
		}
		for _, id := range []string{"a", "b"} {
			c := turn(id, 1)
			c.Rows.Stream = []projections.Entry{entry(id, 1)}
			k.commit(c)
		}
		k.send(sig("m"))
		d := k.receive(k.s, store.Signals)
		c := turn("a", 2)
		c.Rows.Stream = []projections.Entry{entry("a", 2)}
		k.is(d.Commit(k.ctx, c), store.ErrDuplicate)
		k.ok(d.Commit(k.ctx, store.Change{})) // still held
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 1)
	},
	"a refused claim or settle leaves the delivery held": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-b")}
		k.commit(c)
		done := turn("b", 1)
		done.Rows.Stream = []projections.Entry{command("b", 1, "")}
		*done.Rows.Stream[0].Processed = true
		k.commit(done)
		settle := turn("b", 2)
		settle.Rows.Settled = []engine.Settled{{Position: 1}}
		settle.Send = []store.Send{sig("never")}
		for name, refused := range map[string]store.Change{
			"claim of another":  {Claims: []store.Claim{{InstanceID: "a", Position: 1, Owner: "node-a"}}, Send: []store.Send{sig("never")}},
			"claim of nothing":  {Claims: []store.Claim{{InstanceID: "a", Position: 7, Owner: "node-a"}}},
			"end of another":    {Claims: []store.Claim{{InstanceID: "a", Position: 1, Expect: "node-a", Done: true}}},
			"claim of no one's": {Claims: []store.Claim{{InstanceID: "none", Position: 1, Owner: "node-a"}}},
			"settle":            settle,
		} {
			k.send(sig(name))
			d := k.receive(k.s, store.Signals)
			equal(k, string(d.Message().Body), name)
			for range 2 {
				err := d.Commit(k.ctx, refused)
				k.is(err, store.ErrTaken)
				if errors.Is(err, store.ErrLost) {
					k.Fatalf("%s: the delivery is told lost: %v", name, err)
				}
			}
			k.ok(d.Commit(k.ctx, store.Change{}))
			k.is(d.Commit(k.ctx, store.Change{}), store.ErrLost)
			k.empty(store.Signals)
		}
		k.send(sig("released"))
		d := k.receive(k.s, store.Signals)
		k.is(d.Commit(k.ctx, settle), store.ErrTaken)
		k.ok(d.Release(k.ctx, nil))
		k.take(store.Signals, "released")
		got, err := k.s.Writer.Load(k.ctx, "b")
		k.ok(err)
		equal(k, got.Version, 1)
	},
	"a command is settled once": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a")}
		k.commit(c)
		c = turn("a", 2)
		c.Rows.Settled = []engine.Settled{{Position: 1}}
		k.commit(c)
		c = turn("a", 3)
		c.Rows.Settled = []engine.Settled{{Position: 1}}
		k.is(k.s.Writer.Commit(k.ctx, c), store.ErrTaken)
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 2)
		entries, err := k.s.Streams.Stream(k.ctx, "a", 0, 0)
		k.ok(err)
		if len(entries) != 1 || !*entries[0].Processed || entries[0].ProcessedAt.IsZero() || entries[0].ClaimedBy != "" {
			k.Fatalf("%+v", entries)
		}
		pending, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		equal(k, len(pending), 0)
	},
	"a claim goes from whom it is expected of": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "")}
		k.commit(c)
		claim := func(m store.Claim) error {
			m.InstanceID, m.Position = "a", 1
			return k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}})
		}
		k.is(claim(store.Claim{Expect: "node-b", Owner: "node-a"}), store.ErrTaken)
		k.ok(claim(store.Claim{Owner: "node-a"}))
		k.is(claim(store.Claim{Owner: "node-b"}), store.ErrTaken)
		k.ok(claim(store.Claim{Expect: "node-a", Owner: "node-b", Attempts: 2, NextAt: at, Error: "no"}))
		got, err := k.s.Streams.Pending(k.ctx, "", 0)
		k.ok(err)
		want := command("a", 1, "node-b")
		want.Attempts, want.NextAttemptAt, want.LastError = 2, at, "no"
		equal(k, got, []projections.Entry{want})
		k.ok(claim(store.Claim{Expect: "node-b"}))
		k.is(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{{InstanceID: "a", Position: 7}}}), store.ErrTaken)
		c = turn("a", 2)
		c.Rows.Settled = []engine.Settled{{Position: 1}}
		k.commit(c)
		k.is(claim(store.Claim{Owner: "node-a"}), store.ErrTaken)
	},
	"a claim says when a command was delivered, and how often": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a"), command("a", 2, "node-a")}
		c.Rows.Stream[1].DeliveredAt, c.Rows.Stream[1].Deliveries = at, 7
		k.commit(c)
		m := store.Claim{InstanceID: "a", Position: 1, Expect: "node-a", NextAt: at.Add(time.Minute), Delivered: at.Add(time.Microsecond), Deliveries: 1}
		k.ok(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}}))
		k.is(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}}), store.ErrTaken)
		got, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		first, second := command("a", 1, ""), command("a", 2, "node-a")
		first.NextAttemptAt, first.DeliveredAt, first.Deliveries = at.Add(time.Minute), at.Add(time.Microsecond), 1
		second.DeliveredAt, second.Deliveries = at, 7
		equal(k, got, []projections.Entry{first, second})
		k.ok(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{{InstanceID: "a", Position: 1, Deliveries: 2}}}))
		got, err = k.s.Streams.Pending(k.ctx, "a", 1)
		k.ok(err)
		if !got[0].DeliveredAt.IsZero() || got[0].Deliveries != 2 {
			k.Fatalf("%+v", got[0])
		}
		k.ok(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{{InstanceID: "a", Position: 2, Expect: "node-a", Delivered: at, Deliveries: 8}}}))
		done := turn("a", 2)
		done.Rows.Settled = []engine.Settled{{Position: 2}}
		k.commit(done)
		entries, err := k.s.Streams.Stream(k.ctx, "a", 1, 1)
		k.ok(err)
		if !*entries[0].Processed || !entries[0].DeliveredAt.Equal(at) || entries[0].Deliveries != 8 {
			k.Fatalf("%+v", entries[0])
		}
	},
	"a command has its key, and a claim says whether its outcome is known": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a")}
		c.Rows.Stream[0].Data, c.Rows.Stream[0].Key = []byte(`{"target":"x","key":"INC/1/do/0/x/0/0/d"}`), "INC/1/do/0/x/0/0/d"
		k.commit(c)
		for _, unknown := range []bool{true, false, true} {
			m := store.Claim{InstanceID: "a", Position: 1, Any: true, Unknown: unknown}
			k.ok(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}}))
			got, err := k.s.Streams.Stream(k.ctx, "a", 0, 1)
			k.ok(err)
			if len(got) != 1 || got[0].Key != "INC/1/do/0/x/0/0/d" || got[0].Unknown != unknown {
				k.Fatalf("%+v, want unknown %v", got, unknown)
			}
		}
	},
	"a settled command says whether its outcome is known": func(k *testCase) {
		c := turn("a", 1)
		for i := range int64(10) {
			c.Rows.Stream = append(c.Rows.Stream, command("a", i+1, "node-a"))
		}
		k.commit(c)
		state := func(position int64, m store.Claim) {
			m.InstanceID, m.Position, m.Any = "a", position, true
			k.ok(k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}}))
		}
		under, lost, known := store.Claim{Owner: "node-a", Attempts: 1}, store.Claim{Attempts: 2, Unknown: true}, store.Claim{Attempts: 1}
		waits := store.Claim{Owner: "node-a"} // in line, not begun
		next := turn("a", 2)
		want := map[int64]bool{}
		for i, s := range []struct {
			before           store.Claim
			received, result bool
		}{{under, false, true}, {under, true, false}, {lost, false, true}, {lost, true, false}, {known, false, false}, {waits, false, false}} {
			position := int64(i + 1)
			state(position, s.before)
			next.Rows.Settled = append(next.Rows.Settled, engine.Settled{Position: position, Unknown: !s.received})
			want[position] = s.result
		}
		k.commit(next)
		for position, m := range map[int64]store.Claim{7: under, 8: lost, 9: lost, 10: waits} {
			state(position, m)
			want[position] = position == 7 || position == 8
			state(position, store.Claim{Done: true, Unknown: position != 9})
		}
		got, err := k.s.Streams.Stream(k.ctx, "a", 0, 10)
		k.ok(err)
		for _, e := range got {
			if e.Unknown != want[e.Position] || !*e.Processed {
				k.Errorf("command %d is processed with unknown %v, want %v", e.Position, e.Unknown, want[e.Position])
			}
		}
	},
	"a claim of any owner asks only that the command is open": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a"), command("a", 2, ""), command("a", 3, "node-b"), command("a", 4, "")}
		k.commit(c)
		claim := func(m store.Claim) error {
			m.InstanceID, m.Any = "a", true
			return k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}})
		}
		k.ok(claim(store.Claim{Position: 1, Expect: "node-b"})) // which does not count
		k.ok(claim(store.Claim{Position: 1, Owner: "node-b"}))
		k.ok(claim(store.Claim{Position: 2, Attempts: 3}))
		k.ok(claim(store.Claim{Position: 3, Done: true}))
		k.ok(claim(store.Claim{Position: 4, Done: true}))
		for _, p := range []int64{3, 4, 9} {
			k.is(claim(store.Claim{Position: p}), store.ErrTaken)
			k.is(claim(store.Claim{Position: p, Done: true}), store.ErrTaken)
		}
		got, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		open := []projections.Entry{command("a", 1, "node-b"), command("a", 2, "")}
		open[1].Attempts = 3
		equal(k, got, open)
	},
	"a command without a wait is done once, by who claimed it": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a"), command("a", 2, "")}
		k.commit(c)
		done := func(position int64, by string) error {
			m := store.Claim{InstanceID: "a", Position: position, Expect: by, Done: true}
			return k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}})
		}
		k.is(done(1, ""), store.ErrTaken)
		k.is(done(1, "node-b"), store.ErrTaken)
		k.ok(done(1, "node-a"))
		k.is(done(1, "node-a"), store.ErrTaken)
		k.is(done(2, "node-a"), store.ErrTaken)
		k.ok(done(2, ""))
		entries, err := k.s.Streams.Stream(k.ctx, "a", 0, 0)
		k.ok(err)
		for _, e := range entries {
			if !*e.Processed || e.ProcessedAt.IsZero() || e.ClaimedBy != "" {
				k.Fatalf("%+v", e)
			}
		}
		pending, err := k.s.Streams.Pending(k.ctx, "", 0)
		k.ok(err)
		equal(k, len(pending), 0)
	},
	"a dead letter can be written without a message": func(k *testCase) {
		k.ok(k.s.Writer.Commit(k.ctx, store.Change{DeadLetter: &projections.DeadLetter{
			ID: "d", Queue: "command", InstanceID: "a", Envelope: []byte("{}"), Reason: "r", EnqueuedAt: at, DiedAt: at,
		}}))
		got, err := k.s.DeadLetters.DeadLetter(k.ctx, "d")
		k.ok(err)
		equal(k, string(got.Envelope), "{}")
	},
	"a task is edited at its version": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Tasks = []projections.Task{task("t", "a")}
		k.commit(c)
		edit := func(version int64, who string) error {
			return k.s.Writer.Commit(k.ctx, store.Change{Tasks: []store.TaskEdit{{ID: "t", Version: version, Status: projections.TaskReserved, Assignee: who,
				Event: projections.TaskEvent{TaskID: "t", InstanceID: "a", Event: "claimed", Actor: who, At: at}}}})
		}
		k.ok(edit(1, "ann"))
		k.is(edit(1, "bob"), store.ErrStale)
		got, err := k.s.Tasks.Task(k.ctx, "t")
		k.ok(err)
		want := task("t", "a")
		want.Status, want.Assignee, want.Version = projections.TaskReserved, "ann", 2
		equal(k, got, want)
		events, err := k.s.Tasks.TaskEvents(k.ctx, "t")
		k.ok(err)
		equal(k, events, []projections.TaskEvent{{TaskID: "t", InstanceID: "a", Event: "claimed", Actor: "ann", At: at}})
	},
	"a task ends once": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Tasks = []projections.Task{task("t", "a")}
		k.commit(c)
		end := projections.TaskEnd{ID: "t", Status: projections.TaskCompleted, By: "ann", At: at, Outcome: "yes", Output: []byte(`{}`)}
		c = turn("a", 2)
		c.Rows.TaskEnds = []projections.TaskEnd{end}
		k.commit(c)
		c = turn("a", 3)
		c.Rows.TaskEnds = []projections.TaskEnd{end}
		k.is(k.s.Writer.Commit(k.ctx, c), store.ErrStale)
		k.is(k.s.Writer.Commit(k.ctx, store.Change{Tasks: []store.TaskEdit{{ID: "t", Version: 2, Status: projections.TaskReady}}}), store.ErrStale)
		got, err := k.s.Tasks.Task(k.ctx, "t")
		k.ok(err)
		if got.Status != "completed" || got.EndedBy != "ann" || !got.EndedAt.Equal(at) || got.Outcome != "yes" || string(got.Output) != "{}" {
			k.Fatalf("%+v", got)
		}
	},
	"a dead letter keeps the envelope byte for byte": func(k *testCase) {
		body := []byte("not JSON \x00\xff Ω")
		k.send(store.Send{Queue: store.Signals, Body: body})
		d := k.receive(k.s, store.Signals)
		l := projections.DeadLetter{ID: "l", Queue: "signal", InstanceID: "a", Envelope: body, Reason: "signal.not-json", Detail: "why",
			Attempts: 3, Node: "node-a", EnqueuedAt: at, DiedAt: at.Add(time.Microsecond)}
		l.Priority = store.DefaultPriority // of the message
		k.ok(d.Commit(k.ctx, store.Change{DeadLetter: &l}))
		got, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.ok(err)
		equal(k, got, l)
		k.empty(store.Signals)
	},
	"close and open loses nothing": func(k *testCase) {
		c := turn("a", 1)
		c.Send = []store.Send{sig("m"), {Queue: store.Schedule, Body: []byte("later"), Due: time.Now().Add(200 * time.Millisecond)}}
		k.commit(c)
		k.ok(k.s.Close())
		k.s = k.open("node-a")
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got, *snap("a", 1))
		k.take(store.Signals, "m")
		k.take(store.Schedule, "later")
	},
	"the same entry twice is refused": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{{InstanceID: "a", Position: 1, Kind: "event"}}
		k.commit(c)
		c = turn("a", 2)
		c.Rows.Stream = []projections.Entry{{InstanceID: "a", Position: 1, Kind: "event"}}
		if err := k.s.Writer.Commit(k.ctx, c); !errors.Is(err, store.ErrStale) && !errors.Is(err, store.ErrDuplicate) {
			k.Fatalf("got %v", err)
		}
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 1)
	},
	"the entry that is the instance's input reads back as it": func(k *testCase) {
		for i, input := range []string{`{"a":1,"text":"grün"}`, `"text"`, `null`, `[1,2]`} {
			id := fmt.Sprint("in-", i)
			c := turn(id, 1)
			c.Snapshot.State.Input, c.Encoded = []byte(input), nil
			c.Rows.Stream = []projections.Entry{{InstanceID: id, Position: 1, Kind: "event", Data: []byte(input), IsInput: true}}
			k.commit(c)
			c = turn(id, 2) // the snapshot moves on and keeps the input
			c.Snapshot.State.Input, c.Encoded = []byte(input), nil
			k.commit(c)
			entries, err := k.s.Streams.Stream(k.ctx, id, 0, 0)
			k.ok(err)
			equal(k, string(entries[0].Data), input)
		}
	},
	"large data in a stream survives": largeEntry,
}
