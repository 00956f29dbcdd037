package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// KeepEvent implements backend.Inbox.
func (s *Store) KeepEvent(ctx context.Context, e backend.Event) (kept bool, err error) {
	err = s.update(ctx, func(t *data) error { kept, err = t.keep(e); return err })
	return kept, err
}

// DropEvent implements backend.Inbox.
func (s *Store) DropEvent(ctx context.Context, key string) error {
	return s.update(ctx, func(t *data) error { delete(t.inbox, key); return nil })
}

// KeptEvents implements backend.Inbox.
func (s *Store) KeptEvents(ctx context.Context, those backend.KeptQuery, now time.Time, behind backend.Event) ([]backend.Event, error) {
	order := func(a, b backend.Event) int {
		return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.Key, b.Key))
	}
	return view(ctx, s, func(t *data) ([]backend.Event, error) {
		list := []backend.Event{}
		for _, e := range slices.SortedFunc(maps.Values(t.inbox), order) {
			if filed := fits(those.Rule, e.Rule) && fits(those.Key, e.Found) && !(those.Unfiled && e.Rule != ""); !filed {
				continue
			}
			if fits(those.Type, e.Type) && e.ExpiresAt.After(now) && (behind.Key == "" || order(e, behind) > 0) && len(list) < cmp.Or(those.Limit, projections.MaxLimit) && !backend.Full(list) {
				list = append(list, e)
			}
		}
		return list, nil
	})
}

// FileEvents implements backend.Inbox.
func (s *Store) FileEvents(ctx context.Context, rule string, events []backend.Filed) error {
	return s.update(ctx, func(t *data) error {
		for _, f := range events {
			if e, ok := t.inbox[f.Event]; ok && e.Rule == "" {
				e.Rule, e.Found = rule, f.Key
				t.inbox[f.Event] = e
			}
		}
		return nil
	})
}

// FiledOtherwise implements backend.Inbox.
func (s *Store) FiledOtherwise(ctx context.Context, eventType, rule string) (bool, error) {
	return view(ctx, s, func(t *data) (bool, error) {
		for _, e := range t.inbox {
			if e.Type == eventType && e.Rule != "" && e.Rule != rule {
				return true, nil
			}
		}
		return false, nil
	})
}

// PurgeEvents implements backend.Inbox.
func (s *Store) PurgeEvents(ctx context.Context, expiredBefore time.Time, limit int) (int, error) {
	count := 0
	err := s.update(ctx, func(t *data) error {
		for _, e := range slices.SortedFunc(maps.Values(t.inbox), func(a, b backend.Event) int { return a.ExpiresAt.Compare(b.ExpiresAt) }) {
			if count < limit && e.ExpiresAt.Before(expiredBefore) {
				delete(t.inbox, e.Key)
				count++
			}
		}
		return nil
	})
	return count, err
}
