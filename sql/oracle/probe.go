package oracle

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/store"
)

// Probe implements backend.Prober: this node says once more that it lives.
func (s *Store) Probe(ctx context.Context) error {
	err := runStatement(ctx, s, &op{name: "node_beat", refuse: store.ErrNotFound, args: []any{
		receivers{s}.heldOf(store.Signals), receivers{s}.heldOf(store.Schedule), receivers{s}.heldOf(store.Commands), s.run,
	}})
	return wrap("probe", explain(err))
}
