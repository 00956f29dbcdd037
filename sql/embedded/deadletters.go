package embedded

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// deadLetters reads dead letters, and works on them.
type deadLetters struct{ *sqlite.Store }

// DeadLetter implements backend.DeadLetterReader.
func (s deadLetters) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	r := read("dead_letter_select")
	r.Where("DEAD_LETTER_ID = ?", id)
	row, err := sqlite.One[lists.DeadLetterRow](ctx, s.Store, r)
	return row.DeadLetter, wrap("dead letter "+id, err)
}

// DeadLetters implements backend.DeadLetterReader.
func (s deadLetters) DeadLetters(ctx context.Context, q backend.DeadLetterQuery) (p backend.Page[projections.DeadLetter], err error) {
	r, limit := read("dead_letter_select"), projections.Bounded(q.Limit)
	r.Equals("QUEUE", q.Queue)
	r.Equals("REASON", q.Reason)
	r.Equals("INSTANCE_ID", q.InstanceID)
	if err := r.Behind("LETTER_NO", q.After); err != nil {
		return p, wrap("dead letters", err)
	}
	r.Order("LETTER_NO desc", limit+1)
	found, err := sqlite.List[lists.DeadLetterRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.DeadLetterRow.Item, lists.DeadLetterRow.Mark), wrap("dead letters", err)
}

// Replay implements backend.DeadLetterStore.
func (s deadLetters) Replay(ctx context.Context, id string, by ...store.Audit) error {
	return s.deadLetter(ctx, "replay", id, by, func(t sqlite.Tx) error {
		row, err := t.Conn().One("dead_letter_envelope", 2, id)
		if err != nil {
			return err
		}
		if row == nil {
			return store.ErrNotFound
		}
		queue, _ := row[0].(string)
		body, _ := row[1].([]byte)
		t.Send(store.Send{Queue: store.Queue(queue), Body: body})
		return nil
	})
}

// Discard implements backend.DeadLetterStore.
func (s deadLetters) Discard(ctx context.Context, id string, by ...store.Audit) error {
	return s.deadLetter(ctx, "discard", id, by, func(sqlite.Tx) error { return nil })
}

func (s deadLetters) deadLetter(ctx context.Context, what, id string, by []store.Audit, before func(sqlite.Tx) error) error {
	err := s.Write(ctx, func(t sqlite.Tx) error {
		if err := before(t); err != nil {
			return err
		}
		if err := t.Guard(store.ErrNotFound, "dead_letter_delete", id); err != nil {
			return err
		}
		return writeAudit(t, by)
	})
	return wrap(what+" dead letter "+id, err)
}
