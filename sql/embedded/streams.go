package embedded

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// streams reads streams.
type streams struct{ *sqlite.Store }

// Stream implements projections.StreamReader.
func (s streams) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	behind(r, id, after, limit)
	found, err := sqlite.List[projections.EntryRow](ctx, s.Store, r)
	return rows.Items(found, projections.EntryRow.Item), wrap("stream of "+id, err)
}

// behind selects the entries of an instance behind a position, in their order.
func behind(r *rows.Select, id string, after int64, limit int) {
	r.Where("R.INSTANCE_ID = ?", id)
	r.Where("S.ENTRY_NO > (R.INSTANCE_NO << 24) + ?", min(max(after, -1), 1<<sqlite.PositionBits-1))
	r.Where("S.ENTRY_NO < (R.INSTANCE_NO + 1) << 24")
	r.Order("S.ENTRY_NO", projections.Bounded(limit))
}

// exists is a row that says nothing but that there is one.
type exists struct {
	Found int `db:"FOUND"`
}

// Recorded implements projections.StreamReader.
func (s streams) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	found, err := sqlite.List[exists](ctx, s.Store, read("stream_recorded", id, signalID))
	return len(found) > 0, wrap("signal "+signalID+" of "+id, err)
}

// Repeated implements backend.Repeats.
func (s streams) Repeated(ctx context.Context, id, signalID string) error {
	return wrap("repeat of "+signalID+" at "+id, s.Write(ctx, func(t sqlite.Tx) error {
		return t.Guard(store.ErrNotFound, "stream_repeated", id, signalID)
	}))
}

// Pending implements backend.StreamReader.
func (s streams) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
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

// Commands implements backend.StreamReader.
func (s streams) Commands(ctx context.Context, q backend.CommandQuery) (backend.Page[projections.Entry], error) {
	r, err := commandsOf(&q)
	if err != nil {
		return backend.Page[projections.Entry]{}, err
	}
	found, err := sqlite.List[projections.EntryRow](ctx, s.Store, r)
	return lists.Cut(found, projections.Bounded(q.Limit), projections.EntryRow.Item, lists.CommandMark), wrap("commands", err)
}

func commandsOf(q *backend.CommandQuery) (*rows.Select, error) {
	r := read("stream_select")
	r.Where("S.PROCESSED = 0")
	r.Equals("R.INSTANCE_ID", q.InstanceID)
	lists.OfInstanceWithin(r, "I.INSTANCE_NO = R.INSTANCE_NO", q.Scope)
	lists.CommandsWhere(r, q, func(path string) string {
		return "case when json_valid(cast(S.DATA as text)) then json_extract(cast(S.DATA as text), '" + path + "') end"
	})
	if !q.Before.IsZero() {
		r.Where("S.CREATED_ON_UTC < ?", conn.Micros(q.Before))
	}
	if q.Error != "" {
		r.Where("substr(S.LAST_ERROR, 1, length(?)) = ?", q.Error, q.Error)
	}
	if q.After != "" {
		position, id, err := rows.Mark(q.After)
		if err != nil {
			return nil, err
		}
		r.Where("(R.INSTANCE_ID > ? or R.INSTANCE_ID = ? and S.POSITION > ?)", id, id, position)
	}
	r.Order("R.INSTANCE_ID, S.POSITION", projections.Bounded(q.Limit)+1)
	return r, nil
}

// Received implements backend.StreamReader.
func (s streams) Received(ctx context.Context, id, signalID string) (projections.Entry, error) {
	r := read("stream_select")
	r.Where("S.INSTANCE_NO = (select X.INSTANCE_NO from WF_STATES X where X.INSTANCE_ID = ?)", id)
	r.Where("S.SIGNAL_ID = ?", signalID)
	found, err := sqlite.List[projections.EntryRow](ctx, s.Store, r)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return projections.Entry{}, wrap("signal "+signalID+" of "+id, err)
	}
	return found[0].Item(), nil
}
