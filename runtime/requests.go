package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
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
