package runtime

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// carrying keeps what messages bring along where turns look first. An old snapshot does
// no harm there: the cache has the newer one, or the commit is refused.
type carrying struct {
	store.Receiver
	cache  turn.Cache
	strays *strays
}

// Receive implements store.Receiver.
func (c carrying) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := c.Receiver.Receive(ctx, q, func(m store.Message) {
		c.strays.came()
		if arrived != nil {
			arrived(m)
		}
	})
	if brought, ok := d.(store.Carrier); ok && err == nil {
		if snap, encoded := brought.Carried(); snap != nil {
			c.cache.Put(snap, encoded)
		}
	}
	return d, err
}
