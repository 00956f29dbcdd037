package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// The expressions of the index on what is due.
const (
	dueKey      = "(CASE WHEN RUNTIME_STATUS IN ('waiting', 'running') THEN WAITING_UNTIL_UTC END)"
	dueInstance = "(CASE WHEN RUNTIME_STATUS IN ('waiting', 'running') AND WAITING_UNTIL_UTC IS NOT NULL THEN INSTANCE_ID END)"
)

// overdueRow is an instance and its place among those that are due.
type overdueRow struct {
	ID  string    `db:"INSTANCE_ID"`
	Due time.Time `db:"DUE_ON_UTC"`
}

// Overdue implements backend.Overdue.
func (s overdue) Overdue(ctx context.Context, before time.Time, after string, limit int) (p backend.Page[string], err error) {
	r := read("overdue_select")
	limit = projections.Bounded(limit)
	r.Where(dueKey+" < CAST(? AS TIMESTAMP(6))", stamp(before))
	if after != "" {
		us, id, err := rows.Mark(after)
		if err != nil {
			return p, wrap("overdue", err)
		}
		behind(r, dueKey, ">", "CAST(? AS TIMESTAMP(6))", stamp(time.UnixMicro(us).UTC()), dueInstance, id)
	}
	r.Order(dueKey+", "+dueInstance, limit+1)
	found, err := list[overdueRow](ctx, s.Store, r)
	mark := func(r overdueRow) string { return fmt.Sprintf("%d.%s", r.Due.UnixMicro(), r.ID) }
	return lists.Cut(found, limit, func(r overdueRow) string { return r.ID }, mark), wrap("overdue", err)
}

// sentFetch is how many rows of the queues a round trip brings: of each its tokens.
const sentFetch = 500

// Sent implements backend.Overdue. What a session has dequeued and not committed is in
// the view of the queue still, and so is what the database gave up. The walk ends
// with the last token that is looked for.
func (s overdue) Sent(ctx context.Context, tokens []string, due time.Time) (sent []string, err error) {
	if err := s.enter(); err != nil {
		return nil, wrap("sent", err)
	}
	defer s.leave()
	wanted := make(map[string]bool, len(tokens))
	for _, token := range tokens {
		wanted[token] = true
	}
	found, err := s.db.QueryContext(ctx, text("overdue_sent"), stamp(due), godror.FetchArraySize(sentFetch))
	if err != nil {
		return nil, wrap("sent", explain(err))
	}
	defer found.Close()
	for len(wanted) > 0 && found.Next() {
		var one, several sql.NullString
		if err := found.Scan(&one, &several); err != nil {
			return nil, wrap("sent", explain(err))
		}
		named := []string{one.String}
		if several.String != "" && jsonv2.Unmarshal([]byte(several.String), &named) != nil {
			continue // no list of tokens
		}
		for _, token := range named {
			if wanted[token] {
				sent = append(sent, token)
				delete(wanted, token)
			}
		}
	}
	return sent, wrap("sent", explain(found.Err()))
}
