package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
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
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
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

// received takes the next signal of a store.
func received(t *testing.T, s *Store) *delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	d, err := s.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*delivery)
}

// The number of a row is used again: a delivery does not release the message that has it now.
func TestWhoReleasesALostMessageLeavesItsSuccessor(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	if err := put(t.Context(), s, "m"); err != nil {
		t.Fatal(err)
	}
	d := received(t, s)
	err := s.Write(t.Context(), func(t Tx) error { return t.Conn().Script("update WF_MESSAGES set ENQ_AT = ENQ_AT + 1") })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Release(t.Context(), nil); !errors.Is(err, store.ErrLost) {
		t.Error(err)
	}
}

// When the outcome of a group is unknown, the message of a member that it has refused
// comes again as well: nobody else knows that this node has it.
func TestUnknownCommitRedeliversWhatWasRefused(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	if err := put(t.Context(), s, "m"); err != nil {
		t.Fatal(err)
	}
	d := received(t, s)
	stale := store.Change{Snapshot: &snapshot.Snapshot{InstanceID: "i", Version: 5, Status: snapshot.Running}}
	var good *conn.Stmt
	err := d.finish(t.Context(), "commit", func(tx *tx) error {
		good = tx.w.c.Replace("commit", must(tx.w.c.Prepare("rollback to NOBODY")))
		return tx.change(d, &stale)
	})
	if !errors.Is(err, store.ErrUnknown) {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), func(tx *tx) error { return tx.w.c.Replace("commit", good).Close() }); err != nil {
		t.Fatal(err)
	}
	if got := received(t, s); string(got.m.Body) != "m" {
		t.Errorf("%+v", got.m)
	}
}

// When one of the messages that a node has claimed beforehand cannot be returned, those
// before it are rolled back with it: the next transaction returns all.
func TestPrefetchedMessagesAreReturnedAfterAFailure(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	for _, body := range []string{"a", "b"} {
		if err := put(t.Context(), s, body); err != nil {
			t.Fatal(err)
		}
	}
	a, b := received(t, s), received(t, s)
	err := s.do(t.Context(), func(tx *tx) error {
		s.mu.Lock()
		s.queue(store.Signals).put(a)
		s.queue(store.Signals).put(b)
		s.mu.Unlock()
		return tx.w.c.Script(fmt.Sprintf("create temp trigger T before update on WF_MESSAGES when old.MSG_ID = %d begin select raise(abort, 'no'); end", b.id))
	})
	if err != nil {
		t.Fatal(err)
	}
	first := store.Change{Send: []store.Send{{Queue: store.Signals, Priority: 1, Body: []byte("first")}}}
	if err := s.Commit(t.Context(), first); err == nil {
		t.Fatal("the trigger did not stop it")
	}
	err = s.do(t.Context(), func(tx *tx) error { return tx.w.c.Script("drop trigger T") })
	if err != nil {
		t.Fatal(err)
	}
	got := string(received(t, s).m.Body) + string(received(t, s).m.Body)
	if got != "ab" {
		t.Errorf("%q", got)
	}
}
