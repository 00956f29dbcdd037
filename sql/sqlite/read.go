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

func read(name string, args ...any) *rows.Select { return Dialect.Select(statement(name), args...) }

// Statements are those of the store.
//
//go:embed query/*.sql
var Statements embed.FS

// statement returns the text of a file of query/.
func statement(name string) string { return conn.Statement(name, Statements) }

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

// Stream implements projections.StreamReader.
func (s *Store) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	after = min(max(after, -1), 1<<PositionBits-1)
	r.Where("R.INSTANCE_ID = ?", id)
	r.Where("S.ENTRY_NO > (R.INSTANCE_NO << 24) + ?", after)
	r.Where("S.ENTRY_NO < (R.INSTANCE_NO + 1) << 24")
	r.Order("S.ENTRY_NO", projections.Bounded(limit))
	found, err := List[projections.EntryRow](ctx, s, r)
	return rows.Items(found, projections.EntryRow.Item), wrap("stream of "+id, err)
}

// exists is a row that says nothing but that there is one.
type exists struct {
	Found int `db:"FOUND"`
}

// Recorded implements projections.StreamReader.
func (s *Store) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	found, err := List[exists](ctx, s, read("stream_recorded", id, signalID))
	return len(found) > 0, wrap("signal "+signalID+" of "+id, err)
}
