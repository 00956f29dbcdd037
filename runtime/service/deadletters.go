package service

import (
	"context"
	"errors"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Replay sends a dead letter to its queue again, where it is decided anew: as it was
// edited last, which is the number, or 0 where what died is sent. Problem:
// dead-letter.edited, of an edit that came meanwhile, and those of what was edited.
func (l *DeadLetters) Replay(ctx context.Context, id string) (int64, error) {
	return l.ReplayAfter(ctx, id, backend.AnyEdit)
}

// ReplayAfter is Replay of what somebody has seen, the newest edit being the number after,
// 0 = there was none; of [backend.AnyEdit] it is not asked. Problem: dead-letter.edited.
func (l *DeadLetters) ReplayAfter(ctx context.Context, id string, after int64) (int64, error) {
	deadLetter, err := l.DeadLetters.DeadLetter(ctx, id)
	if err != nil {
		return 0, err
	}
	p, err := l.DeadLetters.DeadLetterEdits(ctx, id, "", 1)
	if err != nil {
		return 0, err
	}
	edit, sent := backend.First(p), int64(0)
	if after != backend.AnyEdit && after != edit.No {
		return 0, l.edited(ctx, id)
	}
	by := audit.Row(ctx, l.Now(), "replay", id, deadLetter.InstanceID)
	if edit.What != backend.EditOriginal {
		sent, by.Action = edit.No, "replay-edited"
	}
	var body []byte
	switch edit.What {
	case backend.EditInput, backend.EditSameKey:
		body, err = []byte{}, l.ask(ctx, deadLetter, edit, by)
	case backend.EditEnvelope:
		deadLetter.Envelope = edit.Body
		body, err = l.Anew(ctx, deadLetter)
		if body == nil {
			body = edit.Body
		}
	default:
		body, err = l.Anew(ctx, deadLetter)
	}
	if err != nil {
		return 0, err
	}
	audited := []store.Audit{by}
	if body != nil && len(body) == 0 {
		audited = nil // the turn has it
	}
	err = l.DeadLetters.Replay(ctx, id, edit.No, body, audited...)
	if errors.Is(err, store.ErrStale) {
		err = l.edited(ctx, id)
	}
	return sent, err
}

// Discard removes a dead letter for good, and with it the command that nobody
// performs any more then and nobody waits for: an open one would keep its
// instance from retention for ever. Problem: dead-letter.reason.
func (l *DeadLetters) Discard(ctx context.Context, id string) error {
	return l.DiscardAfter(ctx, id, backend.AnyEdit)
}

// DiscardAfter is Discard of what somebody has seen, as ReplayAfter is Replay of it.
// Problem: dead-letter.edited.
func (l *DeadLetters) DiscardAfter(ctx context.Context, id string, after int64) error {
	if err := reasoned(ctx); err != nil {
		return err
	}
	deadLetter, err := l.DeadLetters.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	if after != backend.AnyEdit {
		p, err := l.DeadLetters.DeadLetterEdits(ctx, id, "", 1)
		if err != nil {
			return err
		}
		if backend.First(p).No != after {
			return l.edited(ctx, id)
		}
	}
	if err := l.asked(ctx, deadLetter); err != nil {
		return err
	}
	settle, err := l.forsaken(ctx, deadLetter)
	if err != nil {
		return err
	}
	by := audit.Row(ctx, l.Now(), "discard", id, deadLetter.InstanceID)
	// In one commit: it may have been sent again meanwhile, and then the command is to be performed.
	if err = l.DeadLetters.Discard(ctx, id, after, settle, by); errors.Is(err, store.ErrTaken) { // somebody performs it after all
		err = l.DeadLetters.Discard(ctx, id, after, nil, by)
	}
	if errors.Is(err, store.ErrStale) {
		err = l.edited(ctx, id)
	}
	return err
}

// asked ends a replay that was cut off between its two commits: the command was asked for anew, and is
// performed, whatever becomes of the letter that is left.
func (l *DeadLetters) asked(ctx context.Context, d projections.DeadLetter) error {
	row, ok, err := l.about(ctx, d)
	if err != nil || !ok || !*row.Processed {
		return err
	}
	done, err := l.Recorded(ctx, row.InstanceID, askedOnce(d.ID))
	if err != nil || !done {
		return err
	}
	p, err := l.DeadLetters.DeadLetterEdits(ctx, d.ID, "", 1)
	if err == nil {
		err = l.DeadLetters.Replay(ctx, d.ID, backend.First(p).No, []byte{})
	}
	if errors.Is(err, store.ErrStale) {
		return l.edited(ctx, d.ID)
	}
	if err != nil {
		return err
	}
	return problem.New(problem.Conflict, "command.settled", "command %d of %s was asked for anew, as it had been edited, and its dead letter is gone now", row.Position, row.InstanceID).
		WithHint("engine-node show %s --timeline says what became of it", row.InstanceID)
}

// forsaken is what settles the command that a dead letter announces, when it is nobody's
// and nobody waits for it.
func (l *DeadLetters) forsaken(ctx context.Context, deadLetter projections.DeadLetter) ([]store.Claim, error) {
	row, ok, err := l.about(ctx, deadLetter)
	if !ok || *row.Processed {
		return nil, err // it announces none, or one that is gone, or settled
	}
	c, err := l.Commands.Command(row)
	if err != nil {
		return nil, nil // damaged: the dead letter goes, the row stays to be mended
	}
	env, _ := signal.Decode(deadLetter.Envelope) // as it could be before
	if superseded := c.Ack != 0 && !env.DueAt.Equal(row.NextAttemptAt); superseded || c.Token != "" {
		return nil, nil
	}
	return []store.Claim{{InstanceID: row.InstanceID, Position: row.Position, Done: true, Unknown: true, GivenUp: l.Now()}}, nil
}
