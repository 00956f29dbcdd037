package oracle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// faultCalls is more client calls than a turn makes.
const faultCalls = 16

// Every client call of a turn fails, in each way in which a call can fail; the
// state is in the end as if nothing had happened.
func TestEveryCallOfATurnMayFail(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	for _, action := range []string{"error=1555", "error=60", "error_after=1013", "cut", "cut_after", "error_after=3113", "error=12899", "error=942"} {
		for k := 1; k <= faultCalls; k++ {
			faulty(t, s, action, k)
		}
	}
	if n := s.Sessions(); n > 4 {
		t.Errorf("%d sessions are left", n)
	}
}

// faulty runs a turn under a fault until it is through, and compares what is
// there with an undisturbed run's.
func faulty(t *testing.T, s *Store, action string, k int) {
	t.Helper()
	fault := fmt.Sprintf("%s-%d", action, k)
	id := fault
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	snap := &snapshot.Snapshot{InstanceID: id, Status: snapshot.Running}
	first := storetest.Step(snap, "n")
	first.Send = []store.Send{{Queue: store.Signals, Body: []byte("go")}}
	if err := s.Commit(ctx, first); err != nil {
		t.Fatal(fault, err)
	}
	arm(t, s, action, k)
	dones := 0
	for dones == 0 {
		d, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal(fault, err)
			}
			continue
		}
		if string(d.Message().Body) == "done" {
			err := d.Commit(ctx, store.Change{})
			if err == nil || errors.Is(err, store.ErrUnknown) && messages(t, s) == 0 {
				dones++
			} else if !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrUnknown) {
				release(ctx, d, err)
			}
			continue
		}
		turnUnderFault(ctx, t, s, d, id, fault)
	}
	s.pool.dropIdle()
	got, err := s.Load(ctx, id)
	entries, errStream := s.Parts().Streams.Stream(ctx, id, 0, 0)
	if err != nil || errStream != nil || got.Version != 2 || len(entries) != 4 {
		t.Fatalf("%s: version %d, %d entries, %v, %v", fault, got.Version, len(entries), err, errStream)
	}
	if n := messages(t, s); n != 0 {
		t.Fatalf("%s: %d messages are left", fault, n)
	}
}

// messages counts what is in the queue of signals.
func messages(t *testing.T, s *Store) int {
	t.Helper()
	depth, err := s.Parts().Backlog.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return depth[0].Ready + depth[0].Leased + depth[0].Delayed
}

// turnUnderFault is what a worker does with a delivery.
func turnUnderFault(ctx context.Context, t *testing.T, s *Store, d store.Delivery, id, fault string) {
	t.Helper()
	s.ledger.Enter(d)
	defer s.ledger.Leave(d)
	snap, err := d.Load(ctx, id)
	if err != nil {
		release(ctx, d, err)
		return
	}
	c := store.Change{}
	if snap.Version == 1 {
		c = storetest.Step(&snap, "n")
		c.Rows.Instance = &projections.Instance{ID: id, Status: "waiting", Version: 2, StartedAt: c.Runtime.ExecutedAt}
		c.Send = []store.Send{{Queue: store.Signals, Body: []byte("done")}}
	}
	err = d.Commit(ctx, c)
	switch {
	case err == nil, errors.Is(err, store.ErrLost), errors.Is(err, store.ErrUnknown):
	default:
		release(ctx, d, err)
	}
}

// release gives a message back as the runtime does: it keeps trying.
func release(ctx context.Context, d store.Delivery, cause error) {
	for {
		err := d.Release(ctx, cause)
		if err == nil || errors.Is(err, store.ErrLost) || ctx.Err() != nil {
			return
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// arm lets the next session that a worker takes fail: a new one, the only one
// that waits for work. Its own rollback is the first call that is counted.
func arm(t *testing.T, s *Store, action string, k int) {
	t.Helper()
	s.pool.dropIdle()
	session, err := s.pool.take(t.Context())
	if err == nil {
		err = session.Begin(t.Context())
	}
	if err == nil {
		_, err = session.ExecContext(t.Context(), fmt.Sprintf("alter session set ocisim_fault = 'any:%d:%s'", k+1, action))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.pool.giveBack(session)
}

// TestADataErrorOfASendLeavesNoRows: the rows of a turn are written before its
// messages. When the database does not take a message, what commits on that
// delivery next would commit the rows, too: the delivery is over instead.
func TestADataErrorOfASendLeavesNoRows(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n", Apart: true})
	ctx := t.Context()
	snap := &snapshot.Snapshot{InstanceID: "i", Status: snapshot.Running}
	first := storetest.Step(snap, "n")
	first.Send = []store.Send{{Queue: store.Signals, Body: []byte("go")}}
	if err := s.Commit(ctx, first); err != nil {
		t.Fatal(err)
	}
	d, err := s.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := d.Load(ctx, "i")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.(*delivery).session.ExecContext(ctx, "alter session set ocisim_fault = 'aqenq:1:error=12899'"); err != nil {
		t.Fatal(err)
	}
	c := storetest.Step(&loaded, "n")
	c.Send = []store.Send{{Queue: store.Signals, Body: []byte("done")}}
	if err := d.Commit(ctx, c); !errors.Is(err, store.ErrLost) {
		t.Fatalf("got %v", err)
	}
	if err := d.Commit(ctx, store.Change{DeadLetter: &projections.DeadLetter{Reason: "x"}}); !errors.Is(err, store.ErrLost) {
		t.Errorf("a dead letter on the same delivery: %v", err)
	}
	got, err := s.Load(ctx, "i")
	if entries, errStream := s.Parts().Streams.Stream(ctx, "i", 0, 0); err != nil || errStream != nil || got.Version != 1 || len(entries) != 2 {
		t.Errorf("version %d, %d entries, %v, %v", got.Version, len(entries), err, errStream)
	}
	if again, err := s.Receive(ctx, store.Signals, nil); err != nil || string(again.Message().Body) != "go" {
		t.Errorf("%v, %v", again, err)
	}
}
