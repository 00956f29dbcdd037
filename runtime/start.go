package runtime

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/google/uuid"
)

// requested starts the instance an application asked for through the queue.
func (r *Runtime) requested(ctx context.Context, d store.Delivery, env signal.Envelope, now time.Time) error {
	start, err := signal.DecodeStart(env.Payload)
	if err != nil {
		return err
	}
	if err := r.allowed(ctx, d, env.InstanceID, start); err != nil {
		return err
	}
	if ok, err := r.wanted(ctx, d, start.Parent); err != nil || !ok {
		if err == nil {
			err = d.Commit(ctx, store.Change{}) // its parent has gone on without it
		}
		return err
	}
	// Loading waits for the ledger's note: a definition that kills its process
	// must not do so unnoted.
	id, there, err := r.find(ctx, env.InstanceID, start)
	if err != nil {
		return err
	}
	if there {
		return r.startedBefore(ctx, d, env.InstanceID, id, env, start, now)
	}
	_, err = r.begin(ctx, d, env, start, now)
	if errors.Is(err, store.ErrDuplicate) {
		id, err := r.first(ctx, env.InstanceID, start)
		if err != nil {
			return err
		}
		return r.startedBefore(ctx, d, env.InstanceID, id, env, start, now)
	}
	if err != nil {
		return r.refused(ctx, d, env, err)
	}
	return err
}

// startedBefore gives the signal of a start request to the instance that is
// there. Without one the request is a repeat and changes nothing. held is the
// instance whose mailbox the caller has.
func (r *Runtime) startedBefore(ctx context.Context, d store.Delivery, held, id string, env signal.Envelope, start signal.Start, now time.Time) error {
	if start.Signal == nil {
		return d.Commit(ctx, store.Change{})
	}
	env, err := start.Signal.Envelope(id, env.OccurredAt, env.Headers)
	if err != nil {
		return err
	}
	return r.pump.Instead(ctx, d, held, env, now)
}

// newID is a UUID of version 7: unique, and in order of time, so that what
// belongs together lies together in the database.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// newIncarnation is what tells an instance from all others, those of the same id
// before and after it included: 96 random bits.
func newIncarnation() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin decides and commits the first turn of an instance.
func (r *Runtime) begin(ctx context.Context, to turn.Committer, env signal.Envelope, start signal.Start, now time.Time) (*engine.Outcome, error) {
	c, err := r.turns.Begin(ctx, to, env, start, now, newIncarnation())
	r.committed(c)
	return c.Outcome, err
}
