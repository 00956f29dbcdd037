package oracle

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var (
	bulkColumns     = rows.ColumnsOf[backend.Bulk]()
	bulkItemColumns = rows.ColumnsOf[backend.BulkItem]()
)

// MakeBulk implements backend.BulkPlans.
func (s bulk) MakeBulk(ctx context.Context, b backend.Bulk) error {
	err := rows.Fit(&b)
	if err == nil {
		err = runStatement(ctx, s.Store, &op{name: "bulk_insert", args: bulkColumns.Named(statements["bulk_insert"].binds, &b, values, nil)})
	}
	return wrap("plan "+b.ID, err)
}

// SelectBulk implements backend.BulkPlans: all of it in one statement, of one moment.
func (s bulk) SelectBulk(ctx context.Context, id string, q backend.BulkSelection, limit int) (count int, more bool, err error) {
	if err := s.enter(); err != nil {
		return 0, false, wrap("plan "+id, err)
	}
	defer s.leave()
	r := selection(id, &q, limit+1)
	err = change(ctx, s.Store, nil, func(session *aq.Session) error {
		if err := session.Begin(ctx); err != nil {
			return err
		}
		res, err := session.ExecContext(ctx, r.Text(), r.Args...)
		if err != nil {
			return explain(err)
		}
		n, err := res.RowsAffected()
		if count, more = int(n), n > int64(limit); err != nil || !more {
			return err
		}
		count = limit
		w := &work{}
		w.add(nil, "bulk_item_beyond", id, limit)
		return execute(ctx, session, w, false)
	})
	return count, more, wrap("plan "+id, err)
}

// selection is the statement that gives a plan its items.
func selection(id string, q *backend.BulkSelection, limit int) *rows.Select {
	r := dialect.Select("")
	r.Add("insert into WF_BULK_ITEMS (PLAN_ID, ITEM_NO, TARGET_ID, TARGET_VERSION, TARGET_KIND)\nselect ?, T.ITEM_NO, T.TARGET_ID, T.TARGET_VERSION, T.TARGET_KIND\nfrom (", id)
	by := "I.STARTED_ON_UTC desc, I.INSTANCE_ID desc"
	if q.DeadLetters != nil {
		by = "L.LETTER_NO"
		r.Add(text("bulk_dead_letters"))
		(&lists.Filter{Alias: "L.", Time: moment}).DeadLetters(r, q.DeadLetters, definitionOfDeadLetter)
	} else {
		r.Add(text("bulk_instances"))
		if i := q.Instances; i.Live && i.Definition != "" { // as the index has it
			r.Where("CASE WHEN I.ENDED_ON_UTC IS NULL THEN I.DEFINITION END = ?", i.Definition)
		}
		(&lists.Filter{Alias: "I.", Key: "INSTANCE_ID", Time: moment}).Where(r, q.Instances)
	}
	r.Order(by, limit)
	r.Add(") T")
	return r
}

// ChangeBulk implements backend.BulkPlans.
func (s bulk) ChangeBulk(ctx context.Context, b backend.Bulk, by ...store.Audit) error {
	what := "plan " + b.ID
	err := rows.Fit(&b)
	if err == nil {
		err = rows.Fit(&store.Change{Audit: by})
	}
	if err == nil {
		err = s.enter()
	}
	if err != nil {
		return wrap(what, err)
	}
	defer s.leave()
	w := &work{}
	w.add(store.ErrStale, "bulk_update", bulkColumns.Named(statements["bulk_update"].binds, &b, values, map[string]any{"EXPECTED_VERSION": b.Version - 1})...)
	w.audit(by)
	return wrap(what, change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) }))
}

// SettleBulk implements backend.BulkPlans.
func (s bulk) SettleBulk(ctx context.Context, id string, settled []backend.BulkItem, by ...store.Audit) error {
	what, w := "plan "+id, &work{}
	for i := range settled {
		if err := rows.Fit(&settled[i]); err != nil {
			return wrap(what, err)
		}
		w.add(nil, "bulk_item_settle", bulkItemColumns.Named(statements["bulk_item_settle"].binds, &settled[i], values, map[string]any{"PLAN_ID": id})...)
	}
	if err := rows.Fit(&store.Change{Audit: by}); err != nil {
		return wrap(what, err)
	}
	w.audit(by)
	if err := s.enter(); err != nil {
		return wrap(what, err)
	}
	defer s.leave()
	return wrap(what, change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) }))
}

// Bulk implements backend.BulkReader.
func (s bulk) Bulk(ctx context.Context, id string) (backend.Bulk, error) {
	r := read("bulk_select")
	r.Where("B.PLAN_ID = ?", id)
	b, err := single[backend.Bulk](ctx, s.Store, r)
	return b, wrap("plan "+id, err)
}

// Bulks implements backend.BulkReader.
func (s bulk) Bulks(ctx context.Context, after string, limit int) (p backend.Page[backend.Bulk], err error) {
	r := read("bulk_select")
	if err := newer(r, "B.CREATED_ON_UTC", "B.PLAN_ID", after); err != nil {
		return p, wrap("plans", err)
	}
	limit = projections.Bounded(limit)
	r.Order("B.CREATED_ON_UTC desc, B.PLAN_ID desc", limit+1)
	found, err := list[backend.Bulk](ctx, s.Store, r)
	return lists.Page(found, limit, lists.BulkMark), wrap("plans", err)
}

// BulkItems implements backend.BulkReader.
func (s bulk) BulkItems(ctx context.Context, q backend.BulkItemQuery) (p backend.Page[backend.BulkItem], err error) {
	r := read("bulk_item_select")
	if err := lists.BulkItemsWhere(r, &q); err != nil {
		return p, wrap("items of plan "+q.ID, err)
	}
	found, err := list[backend.BulkItem](ctx, s.Store, r)
	return lists.Page(found, projections.Bounded(q.Limit), lists.BulkItemMark), wrap("items of plan "+q.ID, err)
}

// BulkCounts implements backend.BulkReader.
func (s bulk) BulkCounts(ctx context.Context, id string) ([]backend.BulkCount, error) {
	found, err := list[backend.BulkCount](ctx, s.Store, read("bulk_counts", id))
	return found, wrap("plan "+id, err)
}

// BulkKinds implements backend.BulkReader.
func (s bulk) BulkKinds(ctx context.Context, id string) ([]backend.BulkKind, error) {
	found, err := list[backend.BulkKind](ctx, s.Store, read("bulk_kinds", id, backend.MaxBulkKinds))
	return found, wrap("plan "+id, err)
}

// bulkBatch is how many items of a plan are deleted at once.
const bulkBatch = 2000

// purgeBulk deletes a part of a plan that is past its window, the items first, and
// returns how many rows that were. What somebody has locked is passed over.
func (s jobs) purgeBulk(ctx context.Context, before time.Time, limit int, by backend.Purger) (int, error) {
	over, err := list[struct {
		ID    string `db:"PLAN_ID"`
		First int64  `db:"FIRST_NO"`
	}](ctx, s.Store, read("purge_bulk_list", stamp(before), limit))
	if err != nil {
		return 0, wrap("purge plans", err)
	}
	if err := s.enter(); err != nil {
		return 0, wrap("purge plans", err)
	}
	defer s.leave()
	for _, p := range over {
		var gone int64
		w := &work{}
		if p.First > 0 {
			w.ops = append(w.ops, op{name: "purge_bulk_items", args: []any{p.ID, p.First + bulkBatch}, count: &gone})
		} else {
			w.ops = append(w.ops, op{name: "purge_bulk", args: []any{p.ID}, count: &gone, refuse: store.ErrNotFound})
			w.audit([]store.Audit{by(p.ID)})
		}
		err := change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) })
		switch {
		case isLocked(err), errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return 0, wrap("purge plans", err)
		}
		return int(gone), nil
	}
	return 0, nil
}
