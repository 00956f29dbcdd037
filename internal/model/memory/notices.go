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

// Replay implements backend.DeadLetterStore.
func (s *Store) Replay(ctx context.Context, id string, by ...store.Audit) error {
	return s.deadLetter(ctx, id, true, by)
}

// Discard implements backend.DeadLetterStore.
func (s *Store) Discard(ctx context.Context, id string, by ...store.Audit) error {
	return s.deadLetter(ctx, id, false, by)
}

func (s *Store) deadLetter(ctx context.Context, id string, send bool, by []store.Audit) error {
	return s.update(ctx, func(t *data) error {
		l, ok := t.deadLetters[id]
		if !ok {
			return fmt.Errorf("memory: dead letter %s: %w", id, store.ErrNotFound)
		}
		delete(t.deadLetters, id)
		t.noteAudit(by)
		if send {
			t.send(store.Send{Queue: store.Queue(l.row.Queue), Body: l.row.Envelope})
		}
		return nil
	})
}
