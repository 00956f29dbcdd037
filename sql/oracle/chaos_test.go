package oracle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

const (
	chaosTokens  = 12
	chaosTurns   = 40
	chaosWorkers = 4 // of each node
)

// Two nodes pass tokens around; each delivery is a turn of the token's instance
// and sends the token again. Meanwhile the database kills every session, again
// and again, whenever a turn was made: one that is interrupted makes its queue pause, the
// longer the more often. In the end every instance has made every turn exactly once.
func TestKilledSessionsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	ctx := t.Context()
	nodes := []*Store{opened(t, Options{DSN: d.DSN(), Node: "a"}), opened(t, Options{DSN: d.DSN(), Node: "b"})}
	for i := range chaosTokens {
		if err := nodes[0].Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: fmt.Appendf(nil, "i-%d", i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	working, done := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var turns atomic.Int64
	for _, s := range nodes {
		for range chaosWorkers {
			wg.Go(func() { chaosWork(working, s, &turns) })
		}
	}
	kills := 0
	for !chaosDone(ctx, nodes[0]) {
		if _, err := d.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		kills++
		before := turns.Load()
		pause(ctx, 150*time.Millisecond)
		for w := (await.Wait{}); turns.Load() == before && !chaosDone(ctx, nodes[0]); {
			if !w.Again(20*time.Millisecond, nil) {
				t.Fatalf("no turn is made any more, after %d", before)
			}
		}
	}
	done()
	wg.Wait()
	t.Logf("report: sessions: all were killed %d times in %d turns", kills, chaosTokens*chaosTurns)
	verify(t, nodes[0])
}

// chaosWork makes turns until the end.
func chaosWork(ctx context.Context, s *Store, turns *atomic.Int64) {
	for ctx.Err() == nil {
		d, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		s.ledger.Enter(d)
		switch err := chaosTurn(context.WithoutCancel(ctx), d); {
		case err == nil:
			turns.Add(1)
		case !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrUnknown):
			release(ctx, d, err)
		}
		s.ledger.Leave(d)
	}
}

func chaosTurn(ctx context.Context, d store.Delivery) error {
	id := string(d.Message().Body)
	snap, err := d.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		snap, err = snapshot.Snapshot{InstanceID: id, Status: snapshot.Running}, nil
	}
	if err != nil {
		return err
	}
	if snap.Version == chaosTurns {
		return d.Commit(ctx, store.Change{})
	}
	snap.Version++
	c := store.Change{Snapshot: &snap, Send: []store.Send{{Queue: store.Signals, Body: d.Message().Body}},
		Rows: projections.Rows{Stream: []projections.Entry{{InstanceID: id, Position: snap.Version, Kind: "event",
			SignalID: fmt.Sprint("s-", snap.Version), CreatedAt: time.Now()}}}}
	return d.Commit(ctx, c)
}

func chaosDone(ctx context.Context, s *Store) bool {
	for i := range chaosTokens {
		if snap, err := s.Load(ctx, fmt.Sprint("i-", i)); err != nil || snap.Version != chaosTurns {
			return false
		}
	}
	return true
}

// verify checks what is there when the tokens are through: every turn once,
// and at most one message of each token, on its way to be consumed.
func verify(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for i := range chaosTokens {
		id := fmt.Sprint("i-", i)
		var entries []projections.Entry
		for range 20 { // the last kill may have come after the last turn
			var err error
			if entries, err = s.Parts().Streams.Stream(ctx, id, 0, projections.MaxLimit); err == nil {
				break
			}
		}
		if len(entries) != chaosTurns || entries[len(entries)-1].Position != chaosTurns {
			t.Errorf("%s has %d entries", id, len(entries))
		}
	}
	seen := map[string]bool{}
	for n := messages(t, s); n > 0; n-- {
		d, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body := string(d.Message().Body); seen[body] {
			t.Errorf("%s is there twice", body)
		} else {
			seen[body] = true
		}
		if err := d.Commit(ctx, store.Change{}); err != nil {
			t.Fatal(err)
		}
	}
}
