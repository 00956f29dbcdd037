package sqlite

import (
	"context"
	"embed"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Dialect is SQLite's.
var Dialect = rows.Dialect{Bind: func(int) string { return "?" }, Limit: "limit ?"}

// Statements are those of the store.
//
//go:embed query/*.sql
var Statements embed.FS

// List runs a reading.
func List[T any](ctx context.Context, s *Store, r *rows.Select) ([]T, error) {
	s.gate.RLock() // Close waits for running calls
	defer s.gate.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	found, err := s.db.QueryContext(ctx, r.Text(), r.Args...)
	if err != nil {
		return nil, conn.Explain(err, s.path)
	}
	items, err := rows.All[T](found, projections.MaxPageBytes)
	return items, conn.Explain(err, s.path)
}

// One is List for a reading that finds one row, or store.ErrNotFound.
func One[T any](ctx context.Context, s *Store, r *rows.Select) (one T, err error) {
	items, err := List[T](ctx, s, r)
	if err == nil && len(items) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return one, err
	}
	return items[0], nil
}
