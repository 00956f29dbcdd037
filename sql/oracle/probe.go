package oracle

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/store"
)

// Probe implements store.Prober: this node says once more that it lives.
func (s *Store) Probe(ctx context.Context) error {
	err := s.statement(ctx, &op{name: "node_beat", refuse: store.ErrNotFound, args: []any{
		s.heldOf(store.Signals), s.heldOf(store.Schedule), s.heldOf(store.Commands), s.run,
	}})
	return wrap("probe", explain(err))
}
