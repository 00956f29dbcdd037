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
func List[T any](ctx context.Context, s *Store, r *rows.Select) (items []T, err error) {
	err = listInto(ctx, s, r, &items)
	return items, err
}

func listInto(ctx context.Context, s *Store, r *rows.Select, list any) error {
	s.gate.RLock() // Close waits for running calls
	defer s.gate.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	return conn.Explain(r.Fill(ctx, s.db, list, projections.MaxPageBytes), s.path)
}

// One is List for a reading that finds one row, or store.ErrNotFound.
func One[T any](ctx context.Context, s *Store, r *rows.Select) (T, error) {
	items, err := List[T](ctx, s, r)
	return rows.One(items, err, store.ErrNotFound)
}
