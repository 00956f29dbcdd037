package runtime

import (
	"context"
	"testing"

	"github.com/aqueduct-engine/aqueduct/runtime/cache"
	"github.com/aqueduct-engine/aqueduct/store"
)

// dropping is a queue whose messages nobody gets, and counts the looks for them.
type dropping struct {
	store.Receiver
	looks int
}

func (q *dropping) Receive(_ context.Context, _ store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	arrived(store.Message{})
	return nil, context.Canceled
}

func (q *dropping) Strays(context.Context, func(string) bool) (int, error) {
	q.looks++
	return 0, nil
}

// A message that came and that no worker got is looked for, twice as a stray is, also
// by a node that had nothing to do before.
func TestAQuietNodeLooksForWhatCame(t *testing.T) {
	q := &dropping{}
	h := newStrays(q)
	look := func(times int) (looks int) {
		before := q.looks
		for range times {
			if err := h.giveBack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return q.looks - before
	}
	look(5)
	if n := look(3); n != 0 {
		t.Errorf("%d looks of a node to which nothing comes", n)
	}
	_, _ = carrying{q, cache.New(1, 0), h}.Receive(t.Context(), store.Signals, func(store.Message) {}) // no worker has it
	if n := look(5); n < 2 {
		t.Errorf("%d looks for what came", n)
	}
}
