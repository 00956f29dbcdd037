package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// mortal is a store whose node dies at one of what retention writes to give up an instance:
// nothing that it asks for is done from then on.
type mortal struct {
	handing
	backend.DeadLetterStore
	at    int // which one; 0 = it does not die
	after bool

	mu   sync.Mutex
	done int
	dead bool
}

func (m *mortal) wraps(whole backend.Parts) backend.Parts {
	m.DeadLetterStore = whole.DeadLetters
	whole = m.over(whole, m, func(d store.Delivery) store.Delivery { return d })
	whole.DeadLetters = m
	return whole
}

func (m *mortal) write(counts bool, op func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return store.ErrClosed
	}
	if !counts {
		return op()
	}
	m.done++
	m.dead = m.done == m.at
	if m.dead && !m.after {
		return store.ErrClosed
	}
	err := op()
	if m.dead {
		return store.ErrClosed
	}
	return err
}

func (m *mortal) Commit(ctx context.Context, c store.Change) error {
	cancels := len(c.Audit) == 1 && c.Audit[0].Action == "cancel"
	return m.write(cancels, func() error { return m.Writer.Commit(ctx, c) })
}

func (m *mortal) Discard(ctx context.Context, id string, edit int64, settle []store.Claim, by ...store.Audit) error {
	return m.write(true, func() error { return m.DeadLetterStore.Discard(ctx, id, edit, settle, by...) })
}

func (m *mortal) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// TestGivingUpOutlivesEachCrash: an instance that nobody touches is cancelled, the command of
// its dead letter is given up, the dead letter discarded. Whichever the node dies at, the
// next one leaves nothing; and the dead letter of an instance that somebody has cancelled stays.
func TestGivingUpOutlivesEachCrash(t *testing.T) {
	t.Parallel()
	document := doc("tells", `
  - pay: {emit: {event: {with: {type: paid}}}}
  - wait: {listen: {to: {one: {with: {type: go}}}}}
  - lost: {raise: {error: {type: 'urn:lost', status: 500}}}
`)
	gone := func(context.Context, json.RawMessage) (any, error) {
		return nil, activity.Permanent(errors.New("gone"))
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for at := 1; at <= 2; at++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d after %t", at, after), func(t *testing.T) {
					place := fresh()
					n, err := open(context.Background(), place, nil, gone, document)
					if err != nil {
						t.Fatal(err)
					}
					for _, id := range []string{"mine", "yours"} {
						n.begin(t, id, "t/tells", nil)
						n.deadLetter(t, id)
					}
					if _, err := n.rt.Operate(t.Context(), "yours", "cancel", nil, "ann"); err != nil {
						t.Fatal(err)
					}
					n.event(t, json.RawMessage(`{"specversion":"1.0","id":"e-1","source":"s","type":"go"}`), 1)
					n.until(t, "mine", status("faulted"))
					if err := n.close(); err != nil {
						t.Fatal(err)
					}
					window := func(c *runtime.Config) {
						c.RetentionEvery, c.RetentionKeep, c.Windows.Faulted = 20*time.Millisecond, time.Millisecond, time.Millisecond
					}
					m := &mortal{at: at, after: after}
					n, err = openSet(context.Background(), place, func(c *runtime.Config) { window(c); c.Store = m.wraps(c.Store) }, gone, document)
					if err != nil {
						t.Fatal(err)
					}
					eventually(t, "the node dies", m.died)
					_ = n.close() // it is dead
					n = retainingOf(t, place, window, gone, document)
					eventually(t, "nothing of it is left", func() bool {
						p, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{InstanceID: "mine"})
						_, missing := n.store.Writer.Load(t.Context(), "mine")
						return err == nil && len(p.Items) == 0 && errors.Is(missing, store.ErrNotFound)
					})
					n.deadLetter(t, "yours")
				})
			}
		}
	})
}
