package service

import (
	"context"
	"errors"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Replay sends a dead letter to its queue again.
func (l *DeadLetters) Replay(ctx context.Context, id string) error {
	deadLetter, err := l.DeadLetters.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	return l.DeadLetters.Replay(ctx, id, audit.Row(ctx, l.Now(), "replay", id, deadLetter.InstanceID))
}

// Discard removes a dead letter for good, and with it the command that nobody
// performs any more then and nobody waits for: an open one would keep its
// instance from retention for ever. When it fails between the two, the dead letter is
// still there, and to discard it again ends it.
func (l *DeadLetters) Discard(ctx context.Context, id string) error {
	deadLetter, err := l.DeadLetters.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	if err := l.forsake(ctx, deadLetter); err != nil {
		return err
	}
	return l.DeadLetters.Discard(ctx, id, audit.Row(ctx, l.Now(), "discard", id, deadLetter.InstanceID))
}

// forsake settles the command that a dead letter announces, when it is nobody's
// and nobody waits for it.
func (l *DeadLetters) forsake(ctx context.Context, deadLetter projections.DeadLetter) error {
	env, err := signal.Decode(deadLetter.Envelope)
	if deadLetter.Queue != string(store.Commands) || err != nil {
		return nil // it announces none
	}
	position, err := signal.CommandPosition(env.Payload)
	if err != nil {
		return nil
	}
	row, ok, err := l.Commands.Entry(ctx, env.InstanceID, position)
	if !ok || row.Processed == nil || *row.Processed {
		return err // gone, or settled
	}
	c, err := l.Commands.Command(row)
	if err != nil {
		return nil // damaged: the dead letter goes, the row stays to be mended
	}
	if superseded := c.Ack != 0 && !env.DueAt.Equal(row.NextAttemptAt); superseded || c.Token != "" {
		return nil
	}
	err = l.Writer.Commit(ctx, store.Change{Claims: []store.Claim{{InstanceID: env.InstanceID, Position: position, Done: true, Unknown: true}}})
	if errors.Is(err, store.ErrTaken) {
		return nil // somebody performs it after all
	}
	return err
}
