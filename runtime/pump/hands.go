package pump

import (
	"context"
	"sync"

	"github.com/aqueduct-engine/aqueduct/store"
)

// hands are the deliveries that the workers of this node have. A message that
// the node has locked and that is in nobody's hands would stay so for as long as
// the node lives.
type hands struct {
	mu    sync.Mutex
	held  map[store.Delivery]struct{}
	taken bool // since the last look
	quiet int  // looks since a delivery was taken
}

func (h *hands) take(d store.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[store.Delivery]struct{}{}
	}
	h.held[d] = struct{}{}
	h.taken = true
}

func (h *hands) leave(d store.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, d)
}

// look returns the ids of what is held. worth is false when nothing was taken
// for so long that there is nothing new to find.
func (h *hands) look() (ids map[string]bool, worth bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quiet++; h.taken {
		h.taken, h.quiet = false, 0
	}
	ids = make(map[string]bool, len(h.held))
	for d := range h.held {
		ids[d.Message().ID] = true
	}
	return ids, h.quiet <= 2 // a stray is one when it is seen twice
}

// Strays gives back the messages that this node has locked and nobody works on.
func (u *Pump) Strays(ctx context.Context) error {
	ids, worth := u.hands.look()
	if !worth {
		return nil
	}
	n, err := u.Ledger.Strays(ctx, func(id string) bool { return ids[id] })
	u.metrics.strays.Add(float64(n))
	return err
}
