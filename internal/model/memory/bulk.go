package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// plan is one with its items.
type plan struct {
	backend.Bulk
	items []backend.BulkItem
}

// MakeBulk implements backend.BulkPlans.
func (s people) MakeBulk(ctx context.Context, b backend.Bulk) error {
	return s.update(ctx, func(t *data) error {
		if err := rows.Fit(&b); err != nil {
			return err
		}
		if _, there := t.plans[b.ID]; there {
			return store.ErrDuplicate
		}
		t.putPlan(b, nil)
		return nil
	})
}

func (t *data) putPlan(b backend.Bulk, items []backend.BulkItem) {
	b.CreatedAt, b.UpdatedAt, b.EndedAt = micros(b.CreatedAt), micros(b.UpdatedAt), micros(b.EndedAt)
	t.plans[b.ID] = plan{b, items}
}

// SelectBulk implements backend.BulkPlans.
func (s people) SelectBulk(ctx context.Context, id string, q backend.BulkSelection, limit int) (count int, more bool, err error) {
	err = s.update(ctx, func(t *data) error {
		var found []backend.BulkItem
		if q.DeadLetters != nil {
			fit := t.fitsDeadLetter(*q.DeadLetters)
			for _, l := range slices.Backward(ordered(t.deadLetters)) {
				if fit(l) {
					found = append(found, backend.BulkItem{Target: l.ID, Kind: l.Reason})
				}
			}
		} else {
			fit := t.fitsInstance(*q.Instances)
			for _, i := range ordered(t.instances) {
				if fit(i) {
					found = append(found, backend.BulkItem{Target: i.ID, Version: t.snapshots[i.ID].version, Kind: cmp.Or(i.ErrorType, i.Status)})
				}
			}
		}
		if more = len(found) > limit; more {
			found = found[:limit]
		}
		for i := range found {
			found[i].No = int64(i) + 1
		}
		count = len(found)
		t.putPlan(t.plans[id].Bulk, found)
		return nil
	})
	return count, more, err
}

// ordered are rows, the newest first.
func ordered[T any](all map[string]numbered[T]) (list []T) {
	for _, r := range slices.SortedFunc(maps.Values(all), func(a, b numbered[T]) int { return cmp.Compare(b.no, a.no) }) {
		list = append(list, r.row)
	}
	return list
}

// ChangeBulk implements backend.BulkPlans.
func (s people) ChangeBulk(ctx context.Context, b backend.Bulk, by ...store.Audit) error {
	return s.update(ctx, func(t *data) error {
		old, there := t.plans[b.ID]
		if !there || old.Version != b.Version-1 {
			return store.ErrStale
		}
		old.Status, old.Version, old.More, old.UpdatedAt, old.RunBy, old.EndedAt = b.Status, b.Version, b.More, b.UpdatedAt, b.RunBy, b.EndedAt
		t.putPlan(old.Bulk, old.items)
		t.noteAudit(by)
		return nil
	})
}

// SettleBulk implements backend.BulkPlans.
func (s people) SettleBulk(ctx context.Context, id string, settled []backend.BulkItem, by ...store.Audit) error {
	return s.update(ctx, func(t *data) error {
		p := t.plans[id]
		items := slices.Clone(p.items)
		for _, x := range settled {
			if err := rows.Fit(&x); err != nil {
				return err
			}
			if i := int(x.No) - 1; i < len(items) && items[i].Outcome == "" {
				items[i].Outcome, items[i].Code, items[i].Detail, items[i].EndedAt = x.Outcome, x.Code, x.Detail, micros(x.EndedAt)
			}
		}
		t.putPlan(p.Bulk, items)
		t.noteAudit(by)
		return nil
	})
}

// Bulk implements backend.BulkReader.
func (s people) Bulk(ctx context.Context, id string) (backend.Bulk, error) {
	return view(ctx, s.Store, func(t *data) (backend.Bulk, error) {
		p, there := t.plans[id]
		if !there {
			return p.Bulk, store.ErrNotFound
		}
		return p.Bulk, nil
	})
}

// Bulks implements backend.BulkReader.
func (s people) Bulks(ctx context.Context, after string, limit int) (backend.Page[backend.Bulk], error) {
	return view(ctx, s.Store, func(t *data) (page backend.Page[backend.Bulk], err error) {
		var us int64
		var last string
		if after != "" {
			if us, last, err = rows.Mark(after); err != nil {
				return page, err
			}
		}
		var all []backend.Bulk
		for _, p := range t.plans {
			if after == "" || cmp.Or(cmp.Compare(p.CreatedAt.UnixMicro(), us), cmp.Compare(p.ID, last)) < 0 {
				all = append(all, p.Bulk)
			}
		}
		slices.SortFunc(all, func(a, b backend.Bulk) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
		})
		limit = projections.Bounded(limit)
		return lists.Page(all[:min(len(all), limit+1)], limit, lists.BulkMark), nil
	})
}

// BulkItems implements backend.BulkReader.
func (s people) BulkItems(ctx context.Context, q backend.BulkItemQuery) (backend.Page[backend.BulkItem], error) {
	return view(ctx, s.Store, func(t *data) (page backend.Page[backend.BulkItem], err error) {
		after := int64(0)
		if q.After != "" {
			if after, err = strconv.ParseInt(q.After, 10, 64); err != nil {
				return page, err
			}
		}
		var all []backend.BulkItem
		for _, i := range t.plans[q.ID].items {
			if i.No > after && (q.Outcome == "" || q.Outcome == cmp.Or(i.Outcome, backend.BulkItemOpen)) {
				all = append(all, i)
			}
		}
		limit := projections.Bounded(q.Limit)
		return lists.Page(all[:min(len(all), limit+1)], limit, lists.BulkItemMark), nil
	})
}

// BulkCounts implements backend.BulkReader.
func (s people) BulkCounts(ctx context.Context, id string) ([]backend.BulkCount, error) {
	return view(ctx, s.Store, func(t *data) ([]backend.BulkCount, error) {
		counts := map[[2]string]int{}
		for _, i := range t.plans[id].items {
			counts[[2]string{cmp.Or(i.Outcome, backend.BulkItemOpen), i.Code}]++
		}
		all := []backend.BulkCount{}
		for of, n := range counts {
			all = append(all, backend.BulkCount{Outcome: of[0], Code: of[1], Rows: n})
		}
		slices.SortFunc(all, func(a, b backend.BulkCount) int {
			return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Code, b.Code))
		})
		return all, nil
	})
}

// BulkKinds implements backend.BulkReader.
func (s people) BulkKinds(ctx context.Context, id string) ([]backend.BulkKind, error) {
	return view(ctx, s.Store, func(t *data) ([]backend.BulkKind, error) {
		counts := map[string]int{}
		for _, i := range t.plans[id].items {
			counts[i.Kind]++
		}
		all := []backend.BulkKind{}
		for kind, n := range counts {
			all = append(all, backend.BulkKind{Kind: kind, Rows: n})
		}
		slices.SortFunc(all, func(a, b backend.BulkKind) int {
			return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Kind, b.Kind))
		})
		return all[:min(len(all), backend.MaxBulkKinds)], nil
	})
}

// purgePlans deletes plans with their items, and counts the rows.
func (t *data) purgePlans(before time.Time, limit int, by backend.Purger) (count int) {
	for _, id := range slices.Sorted(maps.Keys(t.plans)) {
		if p := t.plans[id]; p.UpdatedAt.Before(before) && count < limit {
			delete(t.plans, id)
			count += 1 + len(p.items)
			t.noteAudit([]store.Audit{by(id)})
		}
	}
	return count
}
