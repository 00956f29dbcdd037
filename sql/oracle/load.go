package oracle

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
)

// querier is a pool or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Load implements store.Writer.
func (s *Store) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	if err := s.enter(); err != nil {
		return snapshot.Snapshot{}, wrap("load "+id, err)
	}
	defer s.leave()
	snap, err := load(ctx, s.db, id)
	for range readTries {
		if aq.Classify(err) != aq.Reconnect || ctx.Err() != nil {
			break
		}
		snap, err = load(ctx, s.db, id)
	}
	return snap, wrap("load "+id, err)
}

func load(ctx context.Context, q querier, id string) (snapshot.Snapshot, error) {
	var sum int64
	var raw []byte
	// One row is asked for: the driver would make room for a hundred.
	row := q.QueryRowContext(ctx, text("state_load"), id, godror.FetchArraySize(1), godror.PrefetchCount(2))
	err := row.Scan(&rows.Into{To: &sum}, &rows.Into{To: &raw})
	if errors.Is(err, sql.ErrNoRows) {
		return snapshot.Snapshot{}, store.ErrNotFound
	}
	if err != nil {
		return snapshot.Snapshot{}, explain(err)
	}
	if sum != projections.Sum(raw) {
		return snapshot.Snapshot{}, problem.New(problem.Internal, "snapshot.corrupt", "the snapshot does not have its checksum")
	}
	return snapshot.Decode(raw)
}

// clip shortens a text to what a column holds.
func clip(s string) string {
	if len(s) > textMax {
		s = strings.ToValidUTF8(s[:textMax], "")
	}
	return s
}
