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
func (s *Store) Replay(ctx context.Context, id string, edit int64, instead []byte, by ...store.Audit) error {
	return s.deadLetter(ctx, id, edit, true, instead, nil, by)
}

// Discard implements backend.DeadLetterStore.
func (s *Store) Discard(ctx context.Context, id string, edit int64, settle []store.Claim, by ...store.Audit) error {
	return s.deadLetter(ctx, id, edit, false, nil, settle, by)
}

// EditDeadLetter implements backend.DeadLetterStore.
func (s *Store) EditDeadLetter(ctx context.Context, e backend.DeadLetterEdit, by ...store.Audit) error {
	return s.update(ctx, func(t *data) error {
		l, ok := t.deadLetters[e.DeadLetterID]
		list := t.deadLetterEdits[e.DeadLetterID]
		switch newest := max(int64(len(list)), 1) - 1; {
		case !ok:
			return fmt.Errorf("memory: dead letter %s: %w", e.DeadLetterID, store.ErrNotFound)
		case newest != e.No-1:
			return store.ErrStale
		case newest >= backend.MaxDeadLetterEdits:
			return backend.ErrEdited
		case newest == 0:
			first := e
			first.No, first.What, first.By, first.Reason, first.Body = 0, backend.EditOriginal, "", "", l.row.Envelope
			list = append(list, first)
		}
		t.deadLetterEdits[e.DeadLetterID] = append(slices.Clip(list), e)
		t.noteAudit(by)
		return nil
	})
}

// DeadLetterEdits implements backend.DeadLetterReader.
func (s *Store) DeadLetterEdits(ctx context.Context, id, after string, limit int) (backend.Page[backend.DeadLetterEdit], error) {
	return view(ctx, s, func(t *data) (backend.Page[backend.DeadLetterEdit], error) {
		list := map[string]numbered[backend.DeadLetterEdit]{}
		for _, e := range t.deadLetterEdits[id] {
			list[fmt.Sprint(e.No)] = numbered[backend.DeadLetterEdit]{e.No, e}
		}
		return newest(list, after, limit, func(backend.DeadLetterEdit) bool { return true })
	})
}

func (s *Store) deadLetter(ctx context.Context, id string, edit int64, send bool, instead []byte, settle []store.Claim, by []store.Audit) error {
	return s.update(ctx, func(t *data) error {
		l, ok := t.deadLetters[id]
		if !ok {
			return fmt.Errorf("memory: dead letter %s: %w", id, store.ErrNotFound)
		}
		if newest := max(int64(len(t.deadLetterEdits[id])), 1) - 1; newest != edit && (send || edit != backend.AnyEdit) {
			return store.ErrStale
		}
		for _, m := range settle {
			if err := t.claim(s, m); err != nil {
				return fmt.Errorf("memory: dead letter %s: %w", id, err)
			}
		}
		if !send {
			delete(t.deadLetterEdits, id)
		}
		delete(t.deadLetters, id)
		t.noteAudit(by)
		if send {
			body := []byte(l.row.Envelope)
			if instead != nil {
				body = instead
			}
			if instead != nil && len(body) == 0 {
				return nil
			}
			t.send(store.Send{Queue: store.Queue(l.row.Queue), Body: body, Priority: l.row.Priority})
		}
		return nil
	})
}
