package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
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
		return lists.Page(all[:min(len(all), limit+1)], limit, lists.ActivityMark), nil
	})
}

// Moments implements backend.MomentReader.
func (s people) Moments(ctx context.Context, q backend.MomentQuery) (backend.Page[backend.Moment], error) {
	return view(ctx, s.Store, func(t *data) (p backend.Page[backend.Moment], err error) {
		var us int64
		var instance, place string
		if q.After != "" {
			if us, instance, place, err = lists.AfterMoment(q.After); err != nil {
				return p, err
			}
		}
		var all []backend.Moment
		for _, i := range t.instances {
			if q.Scope.Has(i.row.Definition) && fits(q.BusinessKey, i.row.BusinessKey) && fits(q.InstanceID, i.row.ID) && fits(q.Definition, i.row.Definition) {
				all = append(all, t.moments(i.row)...)
			}
		}
		all = slices.DeleteFunc(all, func(m backend.Moment) bool {
			return len(q.Kinds) > 0 && !slices.Contains(q.Kinds, m.Kind) ||
				cmp.Or(cmp.Compare(m.At.UnixMicro(), us), cmp.Compare(m.InstanceID, instance), cmp.Compare(m.Place, place)) <= 0
		})
		slices.SortFunc(all, func(a, b backend.Moment) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.Place, b.Place))
		})
		limit := projections.Bounded(q.Limit)
		return lists.Page(all[:min(len(all), limit+1)], limit, lists.MomentMark), nil
	})
}

// moments are those of one instance.
func (t *data) moments(i projections.Instance) (all []backend.Moment) {
	of := backend.Moment{BusinessKey: i.BusinessKey, Definition: i.Definition, InstanceID: i.ID, Correlation: i.Correlation}
	for _, e := range t.streams[i.ID] {
		m := of
		var meta engine.Meta
		_ = json.Unmarshal(e.Metadata, &meta) // what is none says nothing
		m.At, m.Place, m.Kind, m.Direction, m.Position, m.Name = e.CreatedAt, fmt.Sprintf("%020d", e.Position), e.Kind, e.Direction, e.Position, e.Type
		m.Actor, m.Pointer, m.Hook, m.Attempts, m.LastError, m.EndedAt = meta.Actor, meta.Pointer, hookOf(meta.Pointer), e.Attempts, e.LastError, e.ProcessedAt
		switch {
		case e.Processed == nil:
		case *e.Processed:
			m.Status = "processed"
		case !e.DeliveredAt.IsZero():
			m.Status = "delivered"
		case e.ClaimedBy != "":
			m.Status = "claimed"
		default:
			m.Status = "open"
		}
		all = append(all, m)
	}
	for _, r := range t.tasks {
		if k := r.row; k.InstanceID == i.ID {
			m := of
			m.At, m.Place, m.Kind, m.Ref, m.Name, m.Status = k.CreatedAt, "task/"+k.ID, backend.MomentTask, k.ID, k.Name, k.Status
			m.EndedAt, m.Actor = k.EndedAt, cmp.Or(k.EndedBy, k.Assignee)
			all = append(all, m)
		}
	}
	for id, a := range t.activities {
		if id[0] == i.ID {
			m := of
			m.At, m.Place, m.Kind, m.Ref, m.Name, m.Status = a.CreatedAt, "activity/"+a.ID, backend.MomentActivity, a.ID, a.Name, a.Status
			m.EndedAt, m.Actor = a.FrozenAt, a.UpdatedBy
			all = append(all, m)
		}
	}
	return all
}

// hookOf is the field of a lifecycle, or of a policy, that has the hook at a pointer.
func hookOf(pointer string) string {
	p := strings.Split(pointer, "/")
	if len(p) > 3 && p[1] == "policy" {
		p = p[2:]
	}
	switch {
	case len(p) < 5:
	case p[1] == "states" && (p[3] == "onEnter" || p[3] == "onExit"), p[1] == "transitions" && p[3] == "hooks":
		return p[3]
	}
	return ""
}
