package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// AttachActivity implements backend.Activities.
func (s people) AttachActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	return s.update(ctx, func(t *data) error {
		if err := rows.Fit(&a); err != nil {
			return err
		}
		count, id := 0, [2]string{a.InstanceID, a.ID}
		for of := range t.activities {
			if of[0] == a.InstanceID {
				count++
			}
		}
		_, there := t.instances[a.InstanceID]
		_, same := t.activities[id]
		switch {
		case !there:
			return store.ErrNotFound
		case same:
			return store.ErrDuplicate
		case count >= backend.MaxActivities:
			return backend.ErrFull
		}
		t.putActivity(a)
		t.noteAudit([]store.Audit{by})
		return nil
	})
}

func (t *data) putActivity(a backend.Activity) {
	a.CreatedAt, a.UpdatedAt, a.FrozenAt, a.Data = micros(a.CreatedAt), micros(a.UpdatedAt), micros(a.FrozenAt), slices.Clone(a.Data)
	t.activities[[2]string{a.InstanceID, a.ID}] = a
}

// ChangeActivity implements backend.Activities.
func (s people) ChangeActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	return s.update(ctx, func(t *data) error {
		if err := rows.Fit(&a); err != nil {
			return err
		}
		old, ok := t.activities[[2]string{a.InstanceID, a.ID}]
		if !ok || old.Version != a.Version-1 || !old.FrozenAt.IsZero() {
			return store.ErrStale
		}
		old.Status, old.Version, old.UpdatedAt, old.UpdatedBy, old.FrozenAt, old.Data = a.Status, a.Version, a.UpdatedAt, a.UpdatedBy, a.FrozenAt, a.Data
		t.putActivity(old)
		t.noteAudit([]store.Audit{by})
		return nil
	})
}

// Activity implements backend.Activities.
func (s people) Activity(ctx context.Context, instanceID, id string) (backend.Activity, error) {
	return view(ctx, s.Store, func(t *data) (backend.Activity, error) {
		a, ok := t.activities[[2]string{instanceID, id}]
		if !ok {
			return a, store.ErrNotFound
		}
		return a, nil
	})
}

// Activities implements backend.Activities.
func (s people) Activities(ctx context.Context, instanceID, after string, limit int) (backend.Page[backend.Activity], error) {
	return view(ctx, s.Store, func(t *data) (p backend.Page[backend.Activity], err error) {
		var us int64
		var last string
		if after != "" {
			if us, last, err = rows.Mark(after); err != nil {
				return p, err
			}
		}
		var all []backend.Activity
		for of, a := range t.activities {
			if of[0] == instanceID && cmp.Or(cmp.Compare(a.CreatedAt.UnixMicro(), us), cmp.Compare(a.ID, last)) > 0 {
				all = append(all, a)
			}
		}
		slices.SortFunc(all, func(a, b backend.Activity) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
		limit = projections.Bounded(limit)
		return lists.Cut(all[:min(len(all), limit+1)], limit, lists.Itself, lists.ActivityMark), nil
	})
}
