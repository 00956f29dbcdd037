package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A receiver may give up in the moment between the writer's taking it and the
// end of the transaction, which then has nothing for it.
func TestReceiverThatLeavesDuringATransactionIsAnswered(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: filepath.Join(t.TempDir(), "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	gone, stays := &waiter{ch: make(chan reception, 1)}, &waiter{ch: make(chan reception, 1)}
	q := &queue{}
	out := outbox{tx: &tx{w: &writer{s: s}}, wanting: []*wanting{{name: store.Signals, q: q, waiters: []*waiter{gone, stays}}}}
	if s.unwait(q, gone) {
		t.Fatal("the writer has it, and unwait says it was waiting")
	}
	out.handOver(true)
	select {
	case h := <-gone.ch:
		if h.d != nil || h.err != nil {
			t.Errorf("answered with %+v", h)
		}
	default:
		t.Error("nobody will ever answer it")
	}
	if len(q.waiters) != 1 || q.waiters[0] != stays {
		t.Errorf("%d wait again", len(q.waiters))
	}
}

// A commit may come between a peer's joining and this node's hearing of it: it
// writes no wake-up file, and the peer's receiver has looked already.
func TestPeerIsNotifiedOfWhatWasCommittedBeforeItWasKnown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	for range 20 {
		a, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got := make(chan error, 1)
		go func() {
			d, err := b.Receive(ctx, store.Signals, nil)
			if err == nil {
				err = d.Commit(ctx, store.Change{})
			}
			got <- err
		}()
		if err := a.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("x")}}}); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Errorf("receive: %v", err)
		}
		cancel()
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	}
}
