package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Purge implements backend.Retention.
func (s *Store) Purge(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	count := 0
	err := s.update(ctx, func(t *data) error {
		over := slices.SortedFunc(maps.Values(t.instances), func(a, b numbered[projections.Instance]) int {
			return a.row.EndedAt.Compare(b.row.EndedAt)
		})
		for _, r := range over {
			i := r.row
			closed := i.Status == "completed" || i.Status == "cancelled" || i.Status == "compensated"
			if count == limit || !closed || i.EndedAt.IsZero() || !i.EndedAt.Before(endedBefore) || slices.ContainsFunc(t.streams[i.ID], open) || t.passesOn(i) {
				continue
			}
			t.forget(i.ID)
			count++
		}
		maps.DeleteFunc(t.deadLetterEdits, func(id string, list []backend.DeadLetterEdit) bool {
			_, waits := t.deadLetters[id]
			_, there := t.instances[list[0].InstanceID]
			return !waits && !there && list[len(list)-1].At.Before(endedBefore)
		})
		return nil
	})
	return count, err
}

// passesOn reports whether an instance that kept a schedule may yet pass on the end of a run.
func (t *data) passesOn(i projections.Instance) bool {
	if !strings.HasPrefix(i.ID, "schedule.") {
		return false
	}
	for _, c := range t.instances {
		open := c.row.Definition == i.Definition && c.row.EndedAt.IsZero() && strings.HasPrefix(c.row.ParentID, "schedule.")
		if open && (c.row.ParentID == i.ID || !c.row.StartedAt.After(i.EndedAt.Add(backend.ScheduleMargin))) {
			return true
		}
	}
	return false
}

// PurgeKept implements backend.Retention.
func (s *Store) PurgeKept(ctx context.Context, what backend.Kept, before time.Time, limit int, by backend.Purger) (count int, err error) {
	purged := func(t *data, target string, over bool) bool {
		if !over || count == limit {
			return false
		}
		count++
		t.noteAudit([]store.Audit{by(target)})
		return true
	}
	err = s.update(ctx, func(t *data) error {
		switch what {
		case backend.KeptTokens:
			maps.DeleteFunc(t.tokens, func(id string, k backend.Token) bool {
				return purged(t, id, ended(k).Before(before) && ended(k).Before(t.now))
			})
		case backend.KeptPolicies:
			t.records = slices.DeleteFunc(slices.Clone(t.records), func(r definition.Record) bool {
				return purged(t, definition.ID(r.Name, r.Version), strings.HasPrefix(r.Name, definition.PolicyPrefix) && t.unused(r, before))
			})
		case backend.KeptAudit:
			t.audit = slices.DeleteFunc(slices.Clone(t.audit), func(a store.Audit) bool {
				over := a.At.Before(before) && count < limit
				if over {
					count++
				}
				return over
			})
			if count > 0 {
				t.noteAudit([]store.Audit{backend.AuditPurged(count, by)})
			}
		case backend.KeptBulk:
			count = t.purgePlans(before, limit, by)
		}
		return nil
	})
	return count, err
}

// ended is when a token ended, or will.
func ended(k backend.Token) time.Time {
	if !k.RevokedAt.IsZero() && k.RevokedAt.Before(k.ExpiresAt) {
		return k.RevokedAt
	}
	return k.ExpiresAt
}

// unused says whether a newer policy was published before a moment, and no instance is
// there that may have been decided by this one.
func (t *data) unused(r definition.Record, before time.Time) bool {
	var replaced time.Time
	for _, other := range t.records {
		if other.Name == r.Name && other.Ordinal > r.Ordinal && (replaced.IsZero() || other.PublishedAt.Before(replaced)) {
			replaced = other.PublishedAt
		}
	}
	if replaced.IsZero() || !replaced.Before(before) {
		return false
	}
	for _, i := range t.instances {
		if i.row.Definition == strings.TrimPrefix(r.Name, definition.PolicyPrefix) && i.row.StartedAt.Before(replaced.Add(backend.PolicyMargin)) {
			return false
		}
	}
	return true
}

// OldDeadLetters implements backend.Retention.
func (s *Store) OldDeadLetters(ctx context.Context, diedBefore time.Time, after string, limit int) ([]string, error) {
	return view(ctx, s, func(t *data) ([]string, error) {
		var ids []string
		for _, l := range t.deadLetters {
			i, there := t.instances[l.row.InstanceID]
			if l.row.DiedAt.Before(diedBefore) && l.row.ID > after && (!there || !i.row.EndedAt.IsZero()) {
				ids = append(ids, l.row.ID)
			}
		}
		slices.Sort(ids)
		return ids[:min(limit, len(ids))], nil
	})
}
