package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// dead is a change that makes a dead letter.
func dead(id string) store.Change {
	return store.Change{DeadLetter: &projections.DeadLetter{
		ID: id, Queue: "signal", InstanceID: "a", Reason: "signal.foreign", Detail: "Ω", Attempts: 2, Node: "node-a", DiedAt: at, Envelope: []byte(id),
	}}
}

// told waits for the next notice, compares it, and has it told.
func (k *testCase) told(s *opened, deadLetter string) {
	k.Helper()
	n, err := s.Notices.Next(k.ctx, time.Minute)
	k.ok(err)
	again, err := s.Notices.Next(k.ctx, time.Minute)
	k.ok(err)
	equal(k, again, n)
	ref := n.Ref
	n.Ref = ""
	equal(k, n, backend.Notice{
		DeadLetterID: deadLetter, Queue: "signal", InstanceID: "a", Reason: "signal.foreign", Detail: "Ω", Attempts: 2, Node: "node-a", DiedAt: at,
	})
	n.Ref = ref
	k.ok(s.Notices.Told(k.ctx, n))
	k.ok(s.Notices.Told(k.ctx, n))
}

var noticeCases = map[string]func(*testCase){
	"a notice of a dead letter stays until it is told": func(k *testCase) {
		k.commit(dead("l1"))
		k.commit(dead("l2"))
		k.ok(k.s.DeadLetters.Discard(k.ctx, "l2", backend.AnyEdit, nil)) // the notice says what was
		k.told(k.s, "l1")
		b := k.open("node-b")
		k.told(b, "l2")
		k.send(sig("x"))
		d := k.receive(k.s, store.Signals)
		c := dead("l3")
		c.DeadLetter.Queue, c.DeadLetter.Envelope = "", nil // of the delivery
		k.ok(d.Commit(k.ctx, c))
		k.ok(k.s.Close())
		k.told(b, "l3")
	},
	"a dead letter that is not committed has no notice": func(k *testCase) {
		c := dead("l1")
		c.Claims = []store.Claim{{InstanceID: "nobody", Position: 1, Owner: "node-a"}}
		k.is(k.s.Writer.Commit(k.ctx, c), store.ErrTaken)
		k.send(sig("x"))
		d := k.receive(k.s, store.Signals)
		c.DeadLetter.ID = "l2"
		k.is(d.Commit(k.ctx, c), store.ErrTaken)
		k.commit(dead("l3"))
		k.told(k.s, "l3")
		k.ok(d.Release(k.ctx, nil))
	},
	"who waits for a notice hears of another node's letter": func(k *testCase) {
		_, err := k.s.Notices.Next(k.ctx, 0)
		k.is(err, store.ErrNotFound)
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		if _, err := k.s.Notices.Next(ctx, time.Minute); !errors.Is(err, context.Canceled) {
			k.Fatalf("a wait that nobody has: %v", err)
		}
		got := make(chan error, 1)
		go func() {
			n, err := k.s.Notices.Next(k.ctx, time.Minute)
			if err == nil && n.DeadLetterID != "l1" {
				err = errors.New("it is " + n.DeadLetterID)
			}
			got <- err
		}()
		b := k.open("node-b")
		k.ok(b.Writer.Commit(k.ctx, dead("l1")))
		k.ok(<-got)
	},
	"a wait for a notice ends with the store": func(k *testCase) {
		ended := make(chan error, 1)
		b := k.open("node-b")
		go func() {
			_, err := b.Notices.Next(k.ctx, time.Minute)
			ended <- err
		}()
		k.ok(b.Close())
		k.is(<-ended, store.ErrClosed)
	},
}
