package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

var queueCases = map[string]func(*testCase){
	"messages arrive in the order in which they were committed": func(k *testCase) {
		const messages = 60
		var mu sync.Mutex
		var order []string
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for {
					var told store.Message
					d, err := k.s.Queue.Receive(k.ctx, store.Signals, func(m store.Message) {
						mu.Lock()
						defer mu.Unlock()
						told = m
						order = append(order, string(m.Body))
					})
					if err != nil || string(d.Message().Body) == "end" {
						return
					}
					if told.ID != d.Message().ID {
						k.Errorf("told of %s, got %s", told.ID, d.Message().ID)
					}
					if err := d.Commit(k.ctx, store.Change{}); err != nil {
						k.Error(err)
					}
				}
			})
		}
		for i := range messages {
			k.send(sig(fmt.Sprint(i)))
		}
		k.send(sig("end"), sig("end"), sig("end"), sig("end"))
		workers.Wait()
		for i := range messages {
			equal(k, order[i], fmt.Sprint(i))
		}
	},
	"a commit consumes several deliveries, where the store joins them": func(k *testCase) {
		k.send(sig("a"), sig("b"), sig("c"))
		a, b := k.receive(k.s, store.Signals), k.receive(k.s, store.Signals)
		err := a.Commit(k.ctx, store.Change{Also: []store.Message{b.Message()}})
		if !k.s.Joins {
			if err == nil {
				k.Fatal("a store that does not join has joined")
			}
			return
		}
		k.ok(err)
		k.is(b.Commit(k.ctx, store.Change{}), store.ErrLost)
		k.take(store.Signals, "c")
		k.empty(store.Signals)
	},
	"a commit's messages arrive with what they were sent with": func(k *testCase) {
		before := time.Now().Add(-time.Second)
		k.send(store.Send{Queue: store.Commands, Body: []byte("b"), Priority: 3})
		d := k.receive(k.s, store.Commands)
		m := d.Message()
		if m.ID == "" || m.EnqueuedAt.Before(before) || m.EnqueuedAt.After(time.Now().Add(time.Second)) {
			k.Fatalf("id %q, enqueued at %v", m.ID, m.EnqueuedAt)
		}
		m.ID, m.EnqueuedAt = "", time.Time{}
		equal(k, m, store.Message{Queue: store.Commands, Body: []byte("b"), Priority: 3})
		k.ok(d.Commit(k.ctx, store.Change{}))
	},
	"a message says its default priority": func(k *testCase) {
		k.send(sig("a"))
		equal(k, k.take(store.Signals, "a").Priority, store.DefaultPriority)
	},
	"a waiting receiver gets what is committed later": func(k *testCase) {
		got := make(chan string, 1)
		go func() {
			d, err := k.s.Queue.Receive(k.ctx, store.Signals, nil)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(d.Message().Body)
		}()
		k.send(sig("later"))
		equal(k, <-got, "later")
	},
	"queues do not mix": func(k *testCase) {
		k.send(sig("s"), store.Send{Queue: store.Schedule, Body: []byte("t")}, store.Send{Queue: store.Commands, Body: []byte("c")})
		k.take(store.Commands, "c")
		k.take(store.Schedule, "t")
		k.take(store.Signals, "s")
	},
	"release redelivers with one attempt more": func(k *testCase) {
		k.send(sig("a"))
		first := k.receive(k.s, store.Signals)
		k.ok(first.Release(k.ctx, errors.New("because")))
		second := k.receive(k.s, store.Signals)
		equal(k, second.Message().Attempts, 1)
		equal(k, second.Message().ID, first.Message().ID)
		k.ok(second.Release(k.ctx, problem.New(problem.Unavailable, "store.full", "no room"))) // it says nothing of the message
		third := k.receive(k.s, store.Signals)
		equal(k, third.Message().Attempts, 1)
		k.ok(third.Release(k.ctx, nil))
		equal(k, k.take(store.Signals, "a").Attempts, 2)
	},
	"a message that nobody works on is given back": func(k *testCase) {
		strays := func(held ...string) int {
			k.Helper()
			n, err := k.s.Strays.Strays(k.ctx, func(id string) bool { return slices.Contains(held, id) })
			k.ok(err)
			return n
		}
		k.send(sig("a"), sig("b"), sig("c"))
		lost := k.receive(k.s, store.Signals)
		first := lost.Message()
		held := k.receive(k.s, store.Signals)
		equal(k, strays(held.Message().ID), 0) // just received: on its way to its worker
		late := k.receive(k.s, store.Signals)
		equal(k, strays(held.Message().ID), 1)
		k.ok(late.Commit(k.ctx, store.Change{}))
		k.ok(held.Commit(k.ctx, store.Change{}))
		m := k.take(store.Signals, "a")
		equal(k, [2]any{m.ID, m.Attempts}, [2]any{first.ID, 0})
		k.is(lost.Commit(k.ctx, turn("never", 1)), store.ErrLost)
		equal(k, strays(), 0)
		equal(k, strays(), 0)
		k.empty(store.Signals)
	},
	"what is in hand is no stray": func(k *testCase) {
		k.send(sig("a"))
		d := k.receive(k.s, store.Signals)
		for range 3 {
			n, err := k.s.Strays.Strays(k.ctx, func(id string) bool { return id == d.Message().ID })
			k.ok(err)
			equal(k, n, 0)
		}
		k.ok(d.Commit(k.ctx, store.Change{}))
		k.empty(store.Signals)
	},
	"a second commit is lost": func(k *testCase) {
		k.send(sig("a"))
		d := k.receive(k.s, store.Signals)
		k.ok(d.Commit(k.ctx, store.Change{}))
		k.is(d.Commit(k.ctx, store.Change{Send: []store.Send{sig("never")}}), store.ErrLost)
		k.is(d.Release(k.ctx, nil), store.ErrLost)
		k.empty(store.Signals)
	},
	"a commit after a release is lost": func(k *testCase) {
		k.send(sig("a"))
		d := k.receive(k.s, store.Signals)
		k.ok(d.Release(k.ctx, nil))
		k.is(d.Commit(k.ctx, turn("never", 1)), store.ErrLost)
		k.is(d.Release(k.ctx, nil), store.ErrLost)
		_, err := k.s.Writer.Load(k.ctx, "never")
		k.is(err, store.ErrNotFound)
		k.take(store.Signals, "a")
		k.empty(store.Signals)
	},
	"a message sent with attempts behind it keeps them": func(k *testCase) {
		again, later := sig("again"), sig("later")
		again.Attempts = 3
		later.Attempts, later.Due = 4, time.Now().Add(30*time.Millisecond)
		k.send(again, later)
		for _, want := range []int{3, 4} {
			d := k.receive(k.s, store.Signals)
			if got := d.Message().Attempts; got != want {
				k.Errorf("%s has %d attempts, want %d", d.Message().Body, got, want)
			}
			k.ok(d.Commit(k.ctx, store.Change{}))
		}
	},
	"receive ends with its context while others commit": func(k *testCase) {
		for range 30 {
			ctx, cancel := context.WithCancel(k.ctx)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for {
						d, err := k.s.Queue.Receive(ctx, store.Signals, nil)
						if err != nil {
							return
						}
						if d.Message().Attempts == 0 { // what comes back makes the store look for more
							err = d.Release(k.ctx, nil)
						} else {
							err = d.Commit(k.ctx, store.Change{})
						}
						if err != nil {
							k.Error(err)
						}
					}
				})
			}
			for i := range 10 {
				k.send(sig(fmt.Sprint(i)))
			}
			cancel()
			ended := make(chan struct{})
			go func() { wg.Wait(); close(ended) }()
			select {
			case <-ended:
			case <-k.ctx.Done():
				k.Fatal("a receiver whose context has ended still waits")
			}
		}
	},
	"an empty commit consumes": func(k *testCase) {
		k.send(sig("a"))
		k.take(store.Signals, "a")
		k.empty(store.Signals)
	},
	"two receivers never hold the same message": func(k *testCase) {
		const messages, receivers = 200, 8
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(k.ctx)
		defer cancel()
		for range receivers {
			wg.Go(func() {
				for {
					d, err := k.s.Queue.Receive(ctx, store.Signals, nil)
					if err != nil {
						return
					}
					mu.Lock()
					seen[string(d.Message().Body)]++
					mu.Unlock()
					if err := d.Commit(k.ctx, store.Change{}); err != nil {
						k.Error(err)
					}
					mu.Lock()
					if len(seen) == messages {
						cancel()
					}
					mu.Unlock()
				}
			})
		}
		for i := range messages {
			k.send(sig(fmt.Sprint(i)))
		}
		wg.Wait()
		for body, n := range seen {
			if n != 1 {
				k.Errorf("message %s was delivered %d times", body, n)
			}
		}
		equal(k, len(seen), messages)
		k.empty(store.Signals)
	},
	"one receiver sees the order of the commits": func(k *testCase) {
		for i := range 20 {
			k.send(sig(fmt.Sprintf("%d a", i)), sig(fmt.Sprintf("%d b", i)))
		}
		for i := range 20 {
			k.take(store.Signals, fmt.Sprintf("%d a", i))
			k.take(store.Signals, fmt.Sprintf("%d b", i))
		}
	},
	"the smaller priority comes first": func(k *testCase) {
		for _, p := range []int{7, 1, 5, 1} {
			k.send(store.Send{Queue: store.Signals, Body: fmt.Appendf(nil, "p%d", p), Priority: p})
		}
		for _, body := range []string{"p1", "p1", "p5", "p7"} {
			k.take(store.Signals, body)
		}
	},
	"a worker that asks for the next gets the most urgent": func(k *testCase) {
		k.send(sig("first"), sig("second"), sig("third"))
		k.take(store.Signals, "first")
		k.send(store.Send{Queue: store.Signals, Body: []byte("urgent"), Priority: 1})
		k.take(store.Signals, "urgent")
		k.take(store.Signals, "second")
		k.take(store.Signals, "third")
		k.empty(store.Signals)
	},
	"what comes back comes again, and holds up nothing": func(k *testCase) {
		k.send(sig("first"), sig("second"), sig("third"))
		first, second := k.receive(k.s, store.Signals), k.receive(k.s, store.Signals)
		k.ok(first.Commit(k.ctx, store.Change{}))
		k.ok(second.Release(k.ctx, nil))
		got := map[string]int{} // an Oracle queue puts it behind the others
		for range 2 {
			d := k.receive(k.s, store.Signals)
			got[string(d.Message().Body)]++
			k.ok(d.Commit(k.ctx, store.Change{}))
		}
		equal(k, got, map[string]int{"second": 1, "third": 1})
		k.empty(store.Signals)
	},
	"a delayed message is never early": func(k *testCase) {
		var list []store.Send
		due := time.Now().Add(30 * time.Millisecond)
		for i := range 20 {
			list = append(list, store.Send{Queue: store.Schedule, Body: fmt.Append(nil, i), Due: due.Add(time.Duration(i) * 1_234_567)})
		}
		k.send(list...)
		for i := range list {
			d := k.receive(k.s, store.Schedule)
			if now := time.Now(); now.Before(list[i].Due) {
				k.Fatalf("due at %v, delivered %v early", list[i].Due, list[i].Due.Sub(now))
			}
			if got := d.Message().DueAt; got.Before(list[i].Due) || got.Sub(list[i].Due) > time.Microsecond {
				k.Fatalf("due at %v, the message says %v", list[i].Due, got)
			}
			equal(k, string(d.Message().Body), fmt.Sprint(i))
			k.ok(d.Commit(k.ctx, store.Change{}))
		}
	},
	"a message due in the past is due now": func(k *testCase) {
		k.send(store.Send{Queue: store.Signals, Body: []byte("a"), Due: at})
		equal(k, k.take(store.Signals, "a").DueAt.UTC(), at)
	},
	"a delayed message does not hold up others": func(k *testCase) {
		k.send(store.Send{Queue: store.Signals, Body: []byte("far"), Due: time.Now().Add(time.Hour), Priority: 1}, sig("now"))
		k.take(store.Signals, "now")
		k.empty(store.Signals)
	},
	"many messages due at one moment all come": func(k *testCase) {
		const n = 1200
		due := time.Now().Add(100 * time.Millisecond)
		list := make([]store.Send, n)
		for i := range list {
			list[i] = store.Send{Queue: store.Schedule, Body: fmt.Append(nil, i), Due: due}
		}
		k.send(list...)
		for i := range n {
			k.take(store.Schedule, fmt.Sprint(i))
		}
		k.empty(store.Schedule)
	},
	"receive ends with its context": func(k *testCase) {
		ctx, cancel := context.WithCancelCause(k.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := k.s.Queue.Receive(ctx, store.Signals, nil)
			done <- err
		}()
		cancel(nil)
		k.is(<-done, context.Canceled)
		k.send(sig("a")) // and nothing is lost to the receiver that left
		k.take(store.Signals, "a")
	},
	"receive with an ended context takes nothing": func(k *testCase) {
		k.send(sig("a"))
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		_, err := k.s.Queue.Receive(ctx, store.Signals, nil)
		k.is(err, context.Canceled)
		k.take(store.Signals, "a")
	},
	"receivers that leave while messages come lose none": func(k *testCase) {
		const n = 100
		var wg sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for i := range n {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(k.ctx, time.Duration(i)*50*time.Microsecond)
				defer cancel()
				d, err := k.s.Queue.Receive(ctx, store.Signals, nil)
				if err != nil {
					return
				}
				mu.Lock()
				got++
				mu.Unlock()
				if err := d.Commit(k.ctx, store.Change{}); err != nil {
					k.Error(err)
				}
			})
			wg.Go(func() {
				if err := k.s.Writer.Commit(k.ctx, store.Change{Send: []store.Send{sig("m")}}); err != nil {
					k.Error(err)
				}
			})
		}
		wg.Wait()
		for ; got < n; got++ {
			k.take(store.Signals, "m")
		}
		k.empty(store.Signals)
	},
	"bodies survive as they are": func(k *testCase) {
		big := bytes.Repeat([]byte("0123456789abcdef"), 2000) // 32,000 bytes
		for _, body := range [][]byte{{}, []byte("Ω ≠ 漢字 😀"), {0, 1, 0xff, 0}, big} {
			k.send(store.Send{Queue: store.Signals, Body: body})
			k.take(store.Signals, string(body))
			// And when it was in the database meanwhile.
			k.send(store.Send{Queue: store.Signals, Body: body}, sig("next"))
			k.take(store.Signals, string(body))
			k.take(store.Signals, "next")
		}
	},
	"close gives back and wakes": func(k *testCase) {
		k.send(sig("a"))
		held := k.receive(k.s, store.Signals)
		woken := make(chan error, 1)
		go func() {
			_, err := k.s.Queue.Receive(k.ctx, store.Schedule, nil)
			woken <- err
		}()
		k.ok(k.s.Close())
		k.is(<-woken, store.ErrClosed)
		k.is(held.Commit(k.ctx, store.Change{}), store.ErrClosed)
		k.is(k.s.Writer.Commit(k.ctx, store.Change{}), store.ErrClosed)
		_, err := k.s.Writer.Load(k.ctx, "a")
		k.is(err, store.ErrClosed)
		_, err = k.s.Queue.Receive(k.ctx, store.Signals, nil)
		k.is(err, store.ErrClosed)
		k.ok(k.s.Close())

		k.s = k.open("node-a")
		equal(k, k.take(store.Signals, "a").Attempts, 0)
	},
}
