package runtime

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// strays knows the deliveries that the workers of this node have. A message that
// the node has locked and that is in nobody's hands would stay so for as long as
// the node lives.
type strays struct {
	store backend.Strays // nil = it cannot tell
	given prometheus.Counter

	mu    sync.Mutex
	held  map[store.Delivery]struct{}
	some  bool // a message came since the last look
	quiet int  // looks since one came
}

func newStrays(store backend.Strays) *strays {
	return &strays{store: store, given: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "aqueduct_messages_stray_total", Help: "Messages that a node had locked and nobody worked on, given back.",
	})}
}

// came notes that this node has locked a message, whether a worker takes it or not.
func (h *strays) came() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.some = true
}

// Take implements pump.Hands.
func (h *strays) Take(d store.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[store.Delivery]struct{}{}
	}
	h.held[d] = struct{}{}
}

// Leave implements pump.Hands.
func (h *strays) Leave(d store.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, d)
}

// look returns the ids of what is held. worth is false when nothing came for so long
// that there is nothing new to find.
func (h *strays) look() (ids map[string]bool, worth bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quiet++; h.some {
		h.some, h.quiet = false, 0
	}
	ids = make(map[string]bool, len(h.held))
	for d := range h.held {
		ids[d.Message().ID] = true
	}
	return ids, h.quiet <= 2 // a stray is one when it is seen twice
}

// giveBack gives back the messages that this node has locked and nobody works on.
func (h *strays) giveBack(ctx context.Context) error {
	if h.store == nil {
		return nil
	}
	ids, worth := h.look()
	if !worth {
		return nil
	}
	n, err := h.store.Strays(ctx, func(id string) bool { return ids[id] })
	h.given.Add(float64(n))
	return err
}
