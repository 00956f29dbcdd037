package embedded

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
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
	(&lists.Filter{Time: microseconds}).DeadLetters(r, &q, definitionOfDeadLetter)
	lists.OfInstanceWithin(r, withinDeadLetter, q.Scope)
	if err := r.Behind("LETTER_NO", q.After); err != nil {
		return p, wrap("dead letters", err)
	}
	r.Order("LETTER_NO desc", limit+1)
	found, err := sqlite.List[lists.DeadLetterRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.DeadLetterRow.Item, lists.DeadLetterRow.Mark), wrap("dead letters", err)
}

// Reasons implements backend.BacklogReader.
func (s backlog) Reasons(ctx context.Context, q backend.DeadLetterQuery) ([]backend.ReasonCount, bool, error) {
	r := read("dead_letter_reasons")
	(&lists.Filter{Time: microseconds}).DeadLetters(r, &q, definitionOfDeadLetter)
	lists.OfInstanceWithin(r, withinDeadLetter, q.Scope)
	r.Order("LETTER_NO desc", backend.MaxCount+1)
	found, err := sqlite.List[lists.ReasonRow](ctx, s.Store, r)
	counts, more := lists.Reasons(found, backend.MaxCount)
	return counts, more, wrap("dead letters", err)
}

// withinDeadLetter is the instance that one is of.
const withinDeadLetter = "I.INSTANCE_NO = (select R.INSTANCE_NO from WF_STATES R where R.INSTANCE_ID = WF_DEAD_LETTERS.INSTANCE_ID)"

// definitionOfDeadLetter is that of its instance, where that is there.
const definitionOfDeadLetter = "(select I.DEFINITION from WF_STATES R join WF_INSTANCES I on I.INSTANCE_NO = R.INSTANCE_NO where R.INSTANCE_ID = WF_DEAD_LETTERS.INSTANCE_ID)"

// DeadLetterEdits implements backend.DeadLetterReader.
func (s deadLetters) DeadLetterEdits(ctx context.Context, id, after string, limit int) (p backend.Page[backend.DeadLetterEdit], err error) {
	r, limit := read("dead_letter_edit_select"), projections.Bounded(limit)
	r.Where("DEAD_LETTER_ID = ?", id)
	if err := r.Behind("EDIT_NO", after); err != nil {
		return p, wrap("edits of dead letter "+id, err)
	}
	r.Order("EDIT_NO desc", limit+1)
	found, err := sqlite.List[backend.DeadLetterEdit](ctx, s.Store, r)
	return lists.Page(found, limit, lists.DeadLetterEditMark), wrap("edits of dead letter "+id, err)
}

// EditDeadLetter implements backend.DeadLetterStore.
func (s deadLetters) EditDeadLetter(ctx context.Context, e backend.DeadLetterEdit, by ...store.Audit) error {
	err := s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(&e); err != nil {
			return err
		}
		died, err := died(t, e.DeadLetterID)
		if err != nil {
			return err
		}
		switch newest, err := newestEdit(t, e.DeadLetterID); {
		case err != nil:
			return err
		case newest != e.No-1:
			return store.ErrStale
		case newest >= backend.MaxDeadLetterEdits:
			return backend.ErrEdited
		case newest == 0:
			first := e
			first.No, first.What, first.By, first.Reason, first.Body = 0, backend.EditOriginal, "", "", died.Body
			if err := insertEdit(t, &first); err != nil {
				return err
			}
		}
		if err := insertEdit(t, &e); err != nil {
			return err
		}
		return writeAudit(t, by)
	})
	return wrap("edit dead letter "+e.DeadLetterID, err)
}

func insertEdit(t sqlite.Tx, e *backend.DeadLetterEdit) error {
	_, _, err := t.Exec("dead_letter_edit_insert", e.DeadLetterID, e.No, conn.Text(e.InstanceID), e.What, conn.Micros(e.At), conn.Text(e.By), conn.Text(e.Reason), conn.Blob(e.Body))
	return err
}

// died is a dead letter as it is sent again.
func died(t sqlite.Tx, id string) (m store.Send, err error) {
	row, err := t.Conn().One("dead_letter_envelope", 3, id)
	if err == nil && row == nil {
		err = store.ErrNotFound
	}
	if err == nil {
		queue, _ := row[0].(string)
		priority, _ := row[2].(int64)
		m.Queue, m.Priority = store.Queue(queue), int(priority)
		m.Body, _ = row[1].([]byte)
	}
	return m, err
}

func newestEdit(t sqlite.Tx, id string) (no int64, err error) {
	row, err := t.Conn().One("dead_letter_edit_newest", 1, id)
	if err == nil {
		no, _ = row[0].(int64)
	}
	return no, err
}

// Replay implements backend.DeadLetterStore.
func (s deadLetters) Replay(ctx context.Context, id string, edit int64, instead []byte, by ...store.Audit) error {
	return s.deadLetter(ctx, "replay", id, by, func(t sqlite.Tx) error {
		m, err := died(t, id)
		if err != nil {
			return err
		}
		newest, err := newestEdit(t, id)
		if err == nil && newest != edit {
			err = store.ErrStale
		}
		if err != nil {
			return err
		}
		if instead != nil {
			m.Body = instead
		}
		if instead == nil || len(instead) > 0 {
			t.Send(m)
		}
		return nil
	})
}

// Discard implements backend.DeadLetterStore.
func (s deadLetters) Discard(ctx context.Context, id string, edit int64, settle []store.Claim, by ...store.Audit) error {
	return s.deadLetter(ctx, "discard", id, by, func(t sqlite.Tx) error {
		newest, err := newestEdit(t, id)
		if err == nil && edit != backend.AnyEdit && newest != edit {
			err = store.ErrStale
		}
		if err == nil {
			_, _, err = t.Exec("dead_letter_edit_delete", id)
		}
		for i := 0; i < len(settle) && err == nil; i++ {
			err = t.Claim(&settle[i])
		}
		return err
	})
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
