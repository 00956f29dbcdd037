package embedded

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// streams reads streams; the store below knows them by instance.
type streams struct{ *sqlite.Store }

// Pending implements backend.StreamReader.
func (s streams) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	r := sqlite.Dialect.Select(conn.Statement("stream_select", sqlite.Statements))
	r.Where("S.PROCESSED = 0")
	if id != "" {
		r.Where("R.INSTANCE_ID = ?", id)
		r.Where("S.ENTRY_NO between R.INSTANCE_NO << 24 and (R.INSTANCE_NO << 24) + 16777215")
		r.Order("S.ENTRY_NO", projections.Bounded(limit))
	} else {
		r.Order("S.CLAIMED_BY, S.ENTRY_NO", projections.Bounded(limit))
	}
	found, err := sqlite.List[projections.EntryRow](ctx, s.Store, r)
	return rows.Items(found, projections.EntryRow.Item), wrap("pending", err)
}
