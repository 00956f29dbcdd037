package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// nodeCases have two nodes on one database.
var nodeCases = map[string]func(*testCase){
	"a claim is made over the next attempt that it was decided on": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, ""), command("a", 2, "")}
		k.commit(c)
		first, second := at.Add(time.Hour+7*time.Microsecond), at.Add(2*time.Hour)
		claim := func(m store.Claim) error {
			m.InstanceID = "a"
			return k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}})
		}
		k.ok(claim(store.Claim{Position: 1, NextAt: first})) // over whichever
		k.is(claim(store.Claim{Position: 1, NextAt: second, ExpectNext: second}), store.ErrTaken)
		k.is(claim(store.Claim{Position: 1, NextAt: second, ExpectNext: first.Add(time.Microsecond), Any: true}), store.ErrTaken)
		k.is(claim(store.Claim{Position: 2, NextAt: second, ExpectNext: first}), store.ErrTaken) // it has none
		k.ok(claim(store.Claim{Position: 1, NextAt: second, ExpectNext: first}))
		k.is(claim(store.Claim{Position: 1, NextAt: second, ExpectNext: first}), store.ErrTaken)
		k.is(claim(store.Claim{Position: 1, Expect: "node-a", ExpectNext: second}), store.ErrTaken)
		k.ok(claim(store.Claim{Position: 1, Owner: "node-a", ExpectNext: second, Any: true}))
		k.is(claim(store.Claim{Position: 1, ExpectNext: second, Any: true}), store.ErrTaken)
		k.ok(claim(store.Claim{Position: 1, Expect: "node-a", ExpectNext: second, Done: true})) // for which it does not count
		got, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		equal(k, got, []projections.Entry{command("a", 2, "")})
	},
	"a claim is made over the attempts that it was decided on, and before its command is settled": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, ""), command("a", 2, "")}
		k.commit(c)
		claim := func(m store.Claim) error {
			m.InstanceID, m.Position = "a", 1
			return k.s.Writer.Commit(k.ctx, store.Change{Claims: []store.Claim{m}})
		}
		k.is(claim(store.Claim{Seen: true, Attempts: 1}), store.ErrTaken)
		k.ok(claim(store.Claim{Seen: true}))
		k.ok(claim(store.Claim{Seen: true, Owner: "node-a"})) // where it waits
		k.ok(claim(store.Claim{Seen: true, Expect: "node-a", Owner: "node-a"}))
		k.ok(claim(store.Claim{Expect: "node-a", Owner: "node-a", Attempts: 1}))
		for _, attempts := range []int{0, 1} { // it is under way
			k.is(claim(store.Claim{Seen: true, Any: true, Attempts: attempts}), store.ErrTaken)
		}
		k.ok(claim(store.Claim{Expect: "node-a", Attempts: 1}))
		k.is(claim(store.Claim{Seen: true}), store.ErrTaken)
		k.ok(claim(store.Claim{Seen: true, Attempts: 1}))
		end := turn("a", 2)
		end.Claims = []store.Claim{{InstanceID: "a", Position: 1, Seen: true}}
		end.Rows.Settled = []engine.Settled{{Position: 1}}
		k.is(k.s.Writer.Commit(k.ctx, end), store.ErrTaken)
		end.Claims[0].Attempts = 1
		end.Claims = append(end.Claims, store.Claim{InstanceID: "a", Position: 1, Owner: "node-a"}) // which is for one that is open then
		k.is(k.s.Writer.Commit(k.ctx, end), store.ErrTaken)
		end.Claims = end.Claims[:1]
		k.commit(end)
		got, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		equal(k, got, []projections.Entry{command("a", 2, "")})
	},
	"nodes are known while they are on the database": func(k *testCase) {
		members := func() map[string]backend.Node {
			list, err := k.s.Members.Members(k.ctx)
			k.ok(err)
			all := map[string]backend.Node{}
			for _, n := range list {
				if all[n.Name] = n; n.StartedAt.IsZero() || time.Since(n.SeenAt).Abs() > time.Minute {
					k.Errorf("%+v has no start, or is not seen", n)
				}
			}
			return all
		}
		before := len(members())
		b, err := k.h.Open(k.ctx, "node-b")
		k.ok(err)
		all := members()
		if _, there := all["node-b"]; !there || len(all) != before+1 || before != 1 {
			k.Errorf("%+v", all)
		}
		list, err := b.Parts().Members.Members(k.ctx)
		k.ok(err)
		equal(k, len(list), 2)
		k.ok(b.Close())
		if all := members(); len(all) != 1 {
			k.Errorf("who has left is still there: %+v", all)
		}
	},
	"a message wakes a receiver on another node": func(k *testCase) {
		b := k.open("node-b")
		for i := range 5 {
			got := make(chan string, 1)
			go func() {
				d, err := b.Queue.Receive(k.ctx, store.Signals, nil)
				if err != nil {
					got <- err.Error()
					return
				}
				if err := d.Commit(k.ctx, store.Change{}); err != nil {
					k.Error(err)
				}
				got <- string(d.Message().Body)
			}()
			k.send(sig(fmt.Sprint(i)))
			equal(k, <-got, fmt.Sprint(i))
		}
	},
	"a node that joins gets what nobody works on": func(k *testCase) {
		k.send(sig("first"), sig("second"))
		k.take(store.Signals, "first")
		k.s = k.open("node-b")
		k.take(store.Signals, "second")
	},
	"two nodes share the work and double nothing": func(k *testCase) {
		const messages = 300
		b := k.open("node-b")
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		done := make(chan struct{})
		for _, s := range []*opened{k.s, b, k.s, b} {
			wg.Go(func() {
				for {
					d, err := s.Queue.Receive(k.ctx, store.Signals, nil)
					if err != nil {
						k.Error(err)
						return
					}
					body := string(d.Message().Body)
					if body == "stop" {
						if err := d.Commit(k.ctx, store.Change{}); err != nil {
							k.Error(err)
						}
						return
					}
					if err := d.Commit(k.ctx, turn(body, 1)); err != nil {
						k.Error(err)
					}
					mu.Lock()
					if seen[body]++; len(seen) == messages {
						close(done)
					}
					mu.Unlock()
				}
			})
		}
		for i := range messages {
			k.send(sig(fmt.Sprint("m-", i)))
		}
		select {
		case <-done:
		case <-k.ctx.Done():
			k.Errorf("%d of %d messages came", len(seen), messages)
		}
		k.send(sig("stop"), sig("stop"), sig("stop"), sig("stop"))
		wg.Wait()
		for body, n := range seen {
			if n != 1 {
				k.Errorf("%s came %d times", body, n)
			}
		}
	},
	"versions guard across nodes": func(k *testCase) {
		b := k.open("node-b")
		k.commit(turn("a", 1))
		k.ok(b.Writer.Commit(k.ctx, turn("a", 2)))
		k.is(k.s.Writer.Commit(k.ctx, turn("a", 2)), store.ErrStale)
		k.commit(turn("a", 3))
		got, err := b.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 3)
	},
	"a killed node's messages come back at once": func(k *testCase) {
		k.send(sig("a"), sig("b"))
		held := k.receive(k.s, store.Signals)
		entered := k.receive(k.s, store.Signals)
		k.s.Ledger.Enter(entered)
		b := k.open("node-b")
		k.crash(k.s)
		k.is(held.Commit(k.ctx, store.Change{}), store.ErrClosed)
		k.s = b
		m := k.take(store.Signals, "a")
		equal(k, [2]int{m.Attempts, m.Crashes}, [2]int{0, 0})
		m = k.take(store.Signals, "b")
		equal(k, [2]int{m.Attempts, m.Crashes}, [2]int{0, 1})
	},
	"a restart finds what was held": func(k *testCase) {
		k.send(sig("a"), sig("b"))
		k.receive(k.s, store.Signals)
		entered := k.receive(k.s, store.Signals)
		k.s.Ledger.Enter(entered)
		k.crash(k.s)
		k.s = k.open("node-a")
		m := k.take(store.Signals, "a")
		equal(k, [2]int{m.Attempts, m.Crashes}, [2]int{0, 0})
		m = k.take(store.Signals, "b")
		equal(k, [2]int{m.Attempts, m.Crashes}, [2]int{0, 1})
	},
	"what was left is no crash": func(k *testCase) {
		k.send(sig("a"))
		d := k.receive(k.s, store.Signals)
		k.s.Ledger.Enter(d)
		k.s.Ledger.Leave(d)
		k.crash(k.s)
		k.s = k.open("node-a")
		equal(k, k.take(store.Signals, "a").Crashes, 0)
	},
	"a killed node's commands are announced again": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, "node-a")}
		c.Rows.Stream[0].Attempts = 1
		k.commit(c)
		b := k.open("node-b")
		k.crash(k.s)
		k.s = b
		n, err := 0, error(nil)
		for n == 0 && err == nil { // who is just being looked at by another may still seem to live
			n, err = k.s.Nodes.Orphans(k.ctx, 10)
		}
		k.ok(err)
		equal(k, n, 1)
		announced(k, "a", 1)
	},
	"a node's name is its own": func(k *testCase) {
		if s, err := k.h.Open(k.ctx, "node-a"); err == nil {
			k.ok(s.Close())
			k.Fatal("a second live node has the same name")
		}
		k.empty(store.Signals)
	},
}
