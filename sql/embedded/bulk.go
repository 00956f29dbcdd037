package embedded

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// bulk keeps what operators do to many at once.
type bulk struct{ *sqlite.Store }

// bulkColumns are inserted of a plan.
var bulkColumns = rows.ColumnsOf[backend.Bulk]()

// MakeBulk implements backend.BulkPlans.
func (s bulk) MakeBulk(ctx context.Context, b backend.Bulk) error {
	return wrap("plan "+b.ID, s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(&b); err != nil {
			return err
		}
		_, _, err := t.Exec("bulk_insert", bulkColumns.Append(nil, &b, values)...)
		return conn.Unique(err, store.ErrDuplicate)
	}))
}

// foundRow is something that is found for a plan, with what its page ends by.
type foundRow struct {
	Mark int64 `db:"MARK"`
	backend.BulkItem
}

// SelectBulk implements backend.BulkPlans. What there is is looked for beside the writer,
// which is held up by a page at most.
func (s bulk) SelectBulk(ctx context.Context, id string, q backend.BulkSelection, limit int) (count int, more bool, err error) {
	mark := int64(0) // of the last that was found
	for {
		want := min(projections.MaxLimit, limit-count+1)
		r, by := read("bulk_instances"), "WF_INSTANCES.INSTANCE_NO"
		if q.DeadLetters != nil {
			r, by = read("bulk_dead_letters"), "LETTER_NO"
			(&lists.Filter{Time: microseconds}).DeadLetters(r, q.DeadLetters, definitionOfDeadLetter)
			r.Where(by+" > ?", mark)
			r.Order(by, want)
		} else {
			(&lists.Filter{Alias: "WF_INSTANCES.", Key: "INSTANCE_NO", Time: microseconds}).Where(r, q.Instances)
			if mark > 0 {
				r.Where(by+" < ?", mark)
			}
			r.Order(by+" desc", want)
		}
		found, err := sqlite.List[foundRow](ctx, s.Store, r)
		if err != nil || len(found) == 0 {
			return count, false, wrap("plan "+id, err)
		}
		mark = found[len(found)-1].Mark
		last := len(found) < want
		if more = count+len(found) > limit; more {
			found = found[:limit-count]
		}
		if err := s.add(ctx, id, int64(count), found); err != nil {
			return count, false, wrap("plan "+id, err)
		}
		count += len(found)
		if more || last {
			return count, more, nil
		}
	}
}

func (s bulk) add(ctx context.Context, id string, no int64, found []foundRow) error {
	return s.Write(ctx, func(t sqlite.Tx) error {
		for i := range found {
			f := &found[i]
			if _, _, err := t.Exec("bulk_item_insert", id, no+int64(i)+1, f.Target, f.Version, conn.Text(f.Kind)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ChangeBulk implements backend.BulkPlans.
func (s bulk) ChangeBulk(ctx context.Context, b backend.Bulk, by ...store.Audit) error {
	return wrap("plan "+b.ID, s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(&b); err != nil {
			return err
		}
		err := t.Guard(store.ErrStale, "bulk_update", b.Status, b.Version, int64(b.More), conn.Micros(b.UpdatedAt), conn.Text(b.RunBy), conn.Micros(b.EndedAt), b.ID, b.Version-1)
		if err != nil {
			return err
		}
		return writeAudit(t, by)
	}))
}

// SettleBulk implements backend.BulkPlans.
func (s bulk) SettleBulk(ctx context.Context, id string, settled []backend.BulkItem, by ...store.Audit) error {
	return wrap("plan "+id, s.Write(ctx, func(t sqlite.Tx) error {
		for i := range settled {
			x := &settled[i]
			if err := rows.Fit(x); err != nil {
				return err
			}
			if _, _, err := t.Exec("bulk_item_settle", x.Outcome, conn.Text(x.Code), conn.Text(x.Detail), conn.Micros(x.EndedAt), id, x.No); err != nil {
				return err
			}
		}
		return writeAudit(t, by)
	}))
}

// Bulk implements backend.BulkReader.
func (s bulk) Bulk(ctx context.Context, id string) (backend.Bulk, error) {
	r := read("bulk_select")
	r.Where("PLAN_ID = ?", id)
	b, err := sqlite.One[backend.Bulk](ctx, s.Store, r)
	return b, wrap("plan "+id, err)
}

// Bulks implements backend.BulkReader.
func (s bulk) Bulks(ctx context.Context, after string, limit int) (p backend.Page[backend.Bulk], err error) {
	r := read("bulk_select")
	if err := newer(r, "CREATED_ON_UTC", "PLAN_ID", after); err != nil {
		return p, wrap("plans", err)
	}
	limit = projections.Bounded(limit)
	r.Order("CREATED_ON_UTC desc, PLAN_ID desc", limit+1)
	found, err := sqlite.List[backend.Bulk](ctx, s.Store, r)
	return lists.Page(found, limit, lists.BulkMark), wrap("plans", err)
}

// BulkItems implements backend.BulkReader.
func (s bulk) BulkItems(ctx context.Context, q backend.BulkItemQuery) (p backend.Page[backend.BulkItem], err error) {
	r := read("bulk_item_select")
	if err := lists.BulkItemsWhere(r, &q); err != nil {
		return p, wrap("items of plan "+q.ID, err)
	}
	found, err := sqlite.List[backend.BulkItem](ctx, s.Store, r)
	return lists.Page(found, projections.Bounded(q.Limit), lists.BulkItemMark), wrap("items of plan "+q.ID, err)
}

// BulkCounts implements backend.BulkReader.
func (s bulk) BulkCounts(ctx context.Context, id string) ([]backend.BulkCount, error) {
	found, err := sqlite.List[backend.BulkCount](ctx, s.Store, read("bulk_counts", id))
	return found, wrap("plan "+id, err)
}

// BulkKinds implements backend.BulkReader.
func (s bulk) BulkKinds(ctx context.Context, id string) ([]backend.BulkKind, error) {
	found, err := sqlite.List[backend.BulkKind](ctx, s.Store, read("bulk_kinds", id, backend.MaxBulkKinds))
	return found, wrap("plan "+id, err)
}

// bulkBatch is how many rows of plans are deleted at once.
const bulkBatch = 5000

// purgeBulk deletes plans that are past their window, the items first, and returns how
// many rows those were.
func (s jobs) purgeBulk(ctx context.Context, before time.Time, limit int, by backend.Purger) (int, error) {
	found, err := sqlite.List[keptRow](ctx, s.Store, read("purge_bulk_list", before.UnixMicro(), limit))
	if err != nil || len(found) == 0 {
		return 0, wrap("purge plans", err)
	}
	left := int64(bulkBatch)
	err = s.Write(ctx, func(t sqlite.Tx) error {
		left = bulkBatch
		for _, r := range found {
			_, gone, err := t.Exec("purge_bulk_items", r.Key, left)
			if err != nil {
				return err
			}
			if left -= gone; left <= 0 {
				return nil
			}
			if _, gone, err = t.Exec("purge_bulk", r.Key); err != nil {
				return err
			}
			if gone > 0 { // else another process was faster
				left--
				if err := writeAudit(t, []store.Audit{by(r.Target)}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, wrap("purge plans", err)
	}
	return int(bulkBatch - left), nil
}
