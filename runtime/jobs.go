package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// adoptBatch is how many commands of dead nodes one commit announces again.
const adoptBatch = 500

// adopt announces the commands of dead nodes again (design 5).
func (r *Runtime) adopt(ctx context.Context) error {
	for {
		n, err := r.Store.Orphans(ctx, adoptBatch)
		if err != nil {
			return fmt.Errorf("runtime: commands of dead nodes: %w", err)
		}
		if n > 0 {
			r.Log.Info("commands of dead nodes are performed again", "commands", n)
			r.metrics.adopted.Add(float64(n))
		}
		if n < adoptBatch {
			return nil
		}
	}
}

// mourner is a store that tells when another node has died.
type mourner interface {
	// Deaths delivers a value after a node died; it is never closed.
	Deaths() <-chan struct{}
}

// host runs the hosted jobs: adoption at first and when a node has died, by the
// clock retention and the look for strays (A14). An adoption that fails is tried
// again: a node may well die of what ails the database.
func (r *Runtime) host(ctx context.Context) error {
	var deaths <-chan struct{}
	if m, ok := r.Store.(mourner); ok {
		deaths = m.Deaths()
	}
	adoption := time.NewTimer(0)
	defer adoption.Stop()
	failures := 0
	retention := time.NewTimer(r.RetentionEvery)
	defer retention.Stop()
	strays := time.NewTicker(r.StraysEvery)
	defer strays.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-deaths:
			adoption.Reset(0)
		case <-adoption.C:
			err := r.adopt(ctx)
			if err == nil || ctx.Err() != nil {
				failures = 0
				continue
			}
			failures++
			delay := r.retries.Backoff(failures, "adoption")
			r.Log.Error("commands of dead nodes could not be adopted", "error", err, "again", delay)
			adoption.Reset(delay)
		case <-strays.C:
			if err := r.pump.Strays(ctx); err != nil && ctx.Err() == nil {
				r.Log.Error("messages that nobody works on could not be looked for", "error", err)
			}
		case <-retention.C:
			if err := errors.Join(r.retain(ctx), r.forget(ctx)); err != nil && ctx.Err() == nil {
				r.Log.Error("retention failed", "error", err)
			}
			retention.Reset(r.RetentionEvery)
		}
	}
}

// Retention works in small commits, so that it never holds up the pump.
const (
	retentionLock  = "retention"
	retentionBatch = 100
	retentionTTL   = time.Minute
)

// retain deletes instances that ended long enough ago, while this node holds
// the job's lock.
func (r *Runtime) retain(ctx context.Context) error {
	if r.RetentionKeep == 0 {
		return nil
	}
	total := 0
	for ctx.Err() == nil {
		ok, err := r.Store.Lock(ctx, retentionLock, retentionTTL)
		if err != nil || !ok {
			return err
		}
		n, err := r.Store.Purge(ctx, r.Now().Add(-r.RetentionKeep), retentionBatch)
		if err != nil {
			return err
		}
		total += n
		r.metrics.purged.Add(float64(n))
		if n < retentionBatch {
			break
		}
	}
	if total > 0 {
		r.Log.Info("retention deleted closed instances", "instances", total)
	}
	return r.Store.Unlock(context.WithoutCancel(ctx), retentionLock)
}
