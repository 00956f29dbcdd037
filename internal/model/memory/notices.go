package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Next implements backend.Notices.
func (s *Store) Next(ctx context.Context, wait time.Duration) (backend.Notice, error) {
	until := time.Now().Add(wait)
	for {
		found, err := view(ctx, s, func(t *data) ([]backend.Notice, error) { return t.notices, nil })
		if err != nil || len(found) > 0 {
			return append(found, backend.Notice{})[0], err
		}
		if !time.Now().Before(until) {
			return backend.Notice{}, store.ErrNotFound
		}
		again := time.NewTimer(10 * time.Millisecond)
		select {
		case <-ctx.Done():
			again.Stop()
			return backend.Notice{}, ctx.Err()
		case <-again.C:
		}
	}
}

// Told implements backend.Notices.
func (s *Store) Told(ctx context.Context, n backend.Notice) error {
	return s.update(ctx, func(t *data) error {
		t.notices = slices.DeleteFunc(slices.Clone(t.notices), func(o backend.Notice) bool { return o.Ref == n.Ref })
		return nil
	})
}

// Repeated implements backend.Repeats.
func (s *Store) Repeated(ctx context.Context, id, signalID string) error {
	return s.update(ctx, func(t *data) error {
		i := slices.IndexFunc(t.streams[id], func(e entry) bool { return e.SignalID == signalID })
		if i < 0 || signalID == "" {
			return fmt.Errorf("repeat of %s at %s: %w", signalID, id, store.ErrNotFound)
		}
		e := t.streams[id][i]
		e.Attempts++
		t.replace(id, i, e)
		return nil
	})
}
