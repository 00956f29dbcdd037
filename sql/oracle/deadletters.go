package oracle

import (
	"context"
	"database/sql"
	"errors"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var editColumns = rows.ColumnsOf[backend.DeadLetterEdit]()

// died locks a dead letter: it as it is sent again, and the number of its newest edit.
func died(ctx context.Context, session *aq.Session, id string) (m store.Send, newest int64, err error) {
	var queue string
	err = session.QueryRowContext(ctx, text("dead_letter_lock"), id).Scan(&rows.Into{To: &queue}, &rows.Into{To: &m.Priority}, &rows.Into{To: &m.Body})
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err == nil {
		err = session.QueryRowContext(ctx, text("dead_letter_edit_newest"), id).Scan(&rows.Into{To: &newest})
	}
	m.Queue = store.Queue(queue)
	return m, newest, err
}

// Replay implements backend.DeadLetterStore.
func (s deadLetters) Replay(ctx context.Context, id string, edit int64, instead []byte, by ...store.Audit) error {
	if err := s.enter(); err != nil {
		return wrap("replay", err)
	}
	defer s.leave()
	return wrap("replay dead letter "+id, change(ctx, s.Store, nil, func(session *aq.Session) error {
		m, newest, err := died(ctx, session, id)
		if err == nil && newest != edit {
			err = store.ErrStale
		}
		if err != nil {
			return err
		}
		if instead != nil {
			m.Body = instead
		}
		w := &work{}
		w.add(store.ErrNotFound, "dead_letter_delete", id)
		w.audit(by)
		if instead == nil || len(instead) > 0 {
			if err := (planner(s)).planSends(w, []store.Send{m}); err != nil {
				return err
			}
		}
		return execute(ctx, session, w, false)
	}))
}

// Discard implements backend.DeadLetterStore.
func (s deadLetters) Discard(ctx context.Context, id string, edit int64, settle []store.Claim, by ...store.Audit) error {
	if err := rows.Fit(&store.Change{Audit: by}); err != nil {
		return wrap("discard dead letter "+id, err)
	}
	if err := s.enter(); err != nil {
		return wrap("discard", err)
	}
	defer s.leave()
	w := &work{}
	w.add(store.ErrNotFound, "dead_letter_delete", id)
	w.add(nil, "dead_letter_edit_delete", id)
	if err := planner(s).planClaims(ctx, w, settle, false); err != nil {
		return wrap("discard dead letter "+id, err)
	}
	w.audit(by)
	return wrap("discard dead letter "+id, change(ctx, s.Store, nil, func(session *aq.Session) error {
		if edit != backend.AnyEdit {
			if _, newest, err := died(ctx, session, id); err != nil {
				return err
			} else if newest != edit {
				return store.ErrStale
			}
		}
		return execute(ctx, session, w, false)
	}))
}

// EditDeadLetter implements backend.DeadLetterStore.
func (s deadLetters) EditDeadLetter(ctx context.Context, e backend.DeadLetterEdit, by ...store.Audit) error {
	what := "edit dead letter " + e.DeadLetterID
	err := rows.Fit(&e)
	if err == nil {
		err = rows.Fit(&store.Change{Audit: by})
	}
	if err == nil {
		err = s.enter()
	}
	if err != nil {
		return wrap(what, err)
	}
	defer s.leave()
	return wrap(what, change(ctx, s.Store, nil, func(session *aq.Session) error {
		m, newest, err := died(ctx, session, e.DeadLetterID)
		w := &work{}
		switch {
		case err != nil:
			return err
		case newest != e.No-1:
			return store.ErrStale
		case newest >= backend.MaxDeadLetterEdits:
			return backend.ErrEdited
		case newest == 0:
			first := e
			first.No, first.What, first.By, first.Reason, first.Body = 0, backend.EditOriginal, "", "", m.Body
			w.deadLetterEdit(&first)
		}
		w.deadLetterEdit(&e)
		w.audit(by)
		return execute(ctx, session, w, false)
	}))
}

func (w *work) deadLetterEdit(e *backend.DeadLetterEdit) {
	w.add(nil, "dead_letter_edit_insert", editColumns.Named(statements["dead_letter_edit_insert"].binds, e, values, nil)...)
}

// DeadLetterEdits implements backend.DeadLetterReader.
func (s deadLetters) DeadLetterEdits(ctx context.Context, id, after string, limit int) (p backend.Page[backend.DeadLetterEdit], err error) {
	r, limit := read("dead_letter_edit_select"), projections.Bounded(limit)
	r.Where("E.DEAD_LETTER_ID = ?", id)
	if err := r.Behind("E.EDIT_NO", after); err != nil {
		return p, wrap("edits of dead letter "+id, err)
	}
	r.Order("E.EDIT_NO desc", limit+1)
	found, err := list[backend.DeadLetterEdit](ctx, s.Store, r)
	return lists.Page(found, limit, lists.DeadLetterEditMark), wrap("edits of dead letter "+id, err)
}
