package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if where := os.Getenv(holdEnv); where != "" {
			if err := holder(path, where); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, child(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// A peer's death is told without a query.
func TestPeerFailureIsNotified(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := open(t, path), open(t, path)
	a.Abandon()
	select {
	case <-b.PeerFailures():
	case <-time.After(5 * time.Minute):
		t.Fatal("nothing was told")
	}
}

// Receivers that wait for nothing cost no transaction.
func TestIdleStoreIsIdle(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	wait := func(d time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if _, err := s.Receive(ctx, store.Signals, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	wait(100 * time.Millisecond) // it looks once
	var before, after Stats
	for range 20 { // which comes later on a busy machine
		before = s.Stats()
		wait(300 * time.Millisecond)
		if after = s.Stats(); after == before {
			return
		}
	}
	t.Fatalf("from %+v to %+v", before, after)
}

// A change that fails after it wrote is answered alone; its group stands.
func TestGroupSurvivesAMemberThatWrote(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	start := func(id, signal string) store.Change {
		return store.Change{Snapshot: &snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Running}, Rows: projections.Rows{
			Stream: []projections.Entry{{InstanceID: id, Position: 1, SignalID: signal}, {InstanceID: id, Position: 2, SignalID: "twice"}}}}
	}
	hold := make(chan struct{})
	first := make(chan error, 1)
	go func() { first <- s.do(t.Context(), func(*tx) error { <-hold; return nil }) }()
	errs := make(chan error, 20)
	for i := range 20 {
		signal := "once"
		if i%4 == 0 {
			signal = "twice"
		}
		c := start(fmt.Sprint("i-", i), signal)
		if i == 4 { // SQLite takes no JSON of such a depth, and has no code to say so
			c = start("i-4", "once")
			c.Snapshot.State.Input = []byte(strings.Repeat("[", 2000) + strings.Repeat("]", 2000))
		}
		go func() { errs <- s.Commit(t.Context(), c) }()
	}
	close(hold)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 20 {
		switch err := <-errs; {
		case errors.Is(err, store.ErrDuplicate), problem.CodeOf(err) == "store.value":
			refused++
		case err != nil:
			t.Fatal(err)
		}
	}
	if refused != 5 || s.Stats().Regrouped == 0 {
		t.Fatalf("%d refused, %+v", refused, s.Stats())
	}
	for i := range 20 {
		if _, err := s.Load(t.Context(), fmt.Sprint("i-", i)); (err == nil) == (i%4 == 0) {
			t.Errorf("i-%d: %v", i, err)
		}
	}
}

// A member that ends the transaction of its group, and does not even say so, is answered alone.
func TestGroupSurvivesAMemberThatEndsItsTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	hold := make(chan struct{})
	first := make(chan error, 1)
	go func() { first <- s.do(t.Context(), func(*tx) error { <-hold; return nil }) }()
	good, bad := make(chan error, 10), make(chan error, 2)
	for i := range 10 {
		go func() { good <- s.Commit(t.Context(), crumb(fmt.Sprint("i-", i))) }()
	}
	for range 2 {
		go func() {
			bad <- s.Write(t.Context(), func(t Tx) error { return t.Conn().Script("rollback") })
		}()
	}
	close(hold)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := <-good; err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := <-bad; err == nil || errors.Is(err, store.ErrUnknown) {
			t.Errorf("of its own: %v", err)
		}
	}
	for i := range 10 {
		if _, err := s.Load(t.Context(), fmt.Sprint("i-", i)); err != nil {
			t.Errorf("i-%d: %v", i, err)
		}
	}
}
