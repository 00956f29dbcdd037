package embedded

import (
	"context"
	"fmt"
	"math"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// overdue says what should have happened.
type overdue struct{ *sqlite.Store }

// overdueRow is an instance and its place among those that are due.
type overdueRow struct {
	ID  string `db:"INSTANCE_ID"`
	No  int64  `db:"INSTANCE_NO"`
	Due int64  `db:"DUE"`
}

// Overdue implements backend.Overdue.
func (s overdue) Overdue(ctx context.Context, before time.Time, after string, limit int) (p backend.Page[string], err error) {
	due, no := int64(math.MinInt64), int64(0)
	if after != "" {
		if due, no, err = rows.Marks(after); err != nil {
			return p, wrap("overdue", err)
		}
	}
	limit = projections.Bounded(limit)
	found, err := sqlite.List[overdueRow](ctx, s.Store, read("overdue_select", due, no, before.UnixMicro(), limit+1))
	mark := func(r overdueRow) string { return fmt.Sprintf("%d.%d", r.Due, r.No) }
	return lists.Cut(found, limit, func(r overdueRow) string { return r.ID }, mark), wrap("overdue", err)
}

// Sent implements backend.Overdue: one walk over the messages that are due.
func (s overdue) Sent(ctx context.Context, tokens []string, due time.Time) ([]string, error) {
	wanted, err := jsonv2.Marshal(tokens)
	if err != nil {
		return nil, wrap("sent", err)
	}
	found, err := sqlite.List[struct {
		Token string `db:"TOKEN"`
	}](ctx, s.Store, read("overdue_sent", string(wanted), due.UnixMicro()))
	sent := make([]string, len(found))
	for i := range found {
		sent[i] = found[i].Token
	}
	return sent, wrap("sent", err)
}
