package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store"
)

// apart is a queue whose commits consume one delivery each. The first timer's commit
// waits until three more have been received, so that they have a turn together;
// the commit of that fails as fail says.
type apart struct {
	store.Receiver
	fail     func(d store.Delivery, c store.Change) error
	received atomic.Int64
	gathered chan struct{}
	once     sync.Once
	turns    atomic.Int64 // of several signals
}

type apartDelivery struct {
	store.Delivery
	q     *apart
	first bool
}

func (q *apart) Receive(ctx context.Context, name store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := q.Receiver.Receive(ctx, name, arrived)
	if err != nil || name != store.Schedule {
		return d, err
	}
	n := q.received.Add(1)
	if n == 4 {
		close(q.gathered)
	}
	return &apartDelivery{d, q, n == 1}, nil
}

func (d *apartDelivery) Commit(ctx context.Context, c store.Change) error {
	if d.first {
		<-d.q.gathered
	}
	if len(c.Also) > 0 {
		return fmt.Errorf("a commit of %d deliveries", len(c.Also)+1)
	}
	if c.Snapshot == nil || c.Snapshot.Version-c.Over < 2 {
		return d.Delivery.Commit(ctx, c)
	}
	d.q.turns.Add(1)
	var err error
	d.q.once.Do(func() { err = d.q.fail(d.Delivery, c) })
	if err != nil {
		return err
	}
	return d.Delivery.Commit(ctx, c)
}

// Where a commit consumes one delivery, a turn takes the signals of the others, too,
// and each of them ends its own. What becomes of the commit, no signal is lost and
// none is applied twice.
func TestATurnTakesSignalsOfDeliveriesThatItCannotConsume(t *testing.T) {
	t.Parallel()
	const branches = 12
	sleepers := doc("sleepers", "\n  - all:\n      fork:\n        branches:\n"+strings.Repeat("          - b: {wait: PT0.2S}\n", branches))
	for i := range branches { // timers of one moment would share a message
		sleepers = strings.Replace(sleepers, "- b: {wait: PT0.2S}", fmt.Sprintf("- b%d: {wait: PT0.2%02dS}", i, i), 1)
	}
	for name, fail := range map[string]func(store.Delivery, store.Change) error{
		"it is made": func(store.Delivery, store.Change) error { return nil },
		"nobody knows, and it was": func(d store.Delivery, c store.Change) error {
			if err := d.Commit(context.Background(), c); err != nil {
				return err
			}
			return store.ErrUnknown
		},
		"nobody knows, and it was not": func(d store.Delivery, _ store.Change) error {
			return fmt.Errorf("%w: %w", store.ErrUnknown, d.Release(context.Background(), nil))
		},
		"the delivery is lost": func(d store.Delivery, _ store.Change) error {
			return fmt.Errorf("%w: %w", store.ErrLost, d.Release(context.Background(), nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &apart{fail: fail, gathered: make(chan struct{})}
			n := startSet(t, testdb.OnFile(t)(), func(c *runtime.Config) {
				q.Receiver, c.Store.Queue, c.Store.Joins = c.Store.Queue, q, false
				c.StraysEvery = 10 * time.Second // on a busy machine one may be held for a while before somebody works on it
			}, nil, sleepers)
			n.begin(t, "z", "t/sleepers", nil)
			n.until(t, "z", status("completed"))
			n.quiet(t)
			if q.turns.Load() == 0 {
				t.Error("no turn took several signals")
			}
			if got := n.counted(t, "aqueduct_messages_stray_total")[""]; got > 0 {
				t.Errorf("%d messages were held, and nobody worked on them", got)
			}
			entries, err := n.store.Streams.Stream(t.Context(), "z", 0, projections.MaxLimit)
			if err != nil {
				t.Fatal(err)
			}
			applied := 0
			for _, e := range entries {
				if e.Type == "TimerDue" && e.SignalID == "" { // an id says that it was ignored
					applied++
				}
			}
			if applied != branches {
				t.Errorf("%d timers were applied", applied)
			}
		})
	}
}
