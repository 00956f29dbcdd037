package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/runtime/cache"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/events"
	"github.com/aqueduct-engine/aqueduct/runtime/pump"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
)

// jobs are those of a database that a node hosts.
type jobs struct {
	*Config
	metrics *metrics
	retries *pump.Retries
	strays  *strays
	cache   *cache.Cache
	inbox   *events.Inbox
	notices *noticeMetrics
	discard func(ctx context.Context, deadLetter string) error
	giveUp  func(ctx context.Context, instance string, faultedBefore time.Time, actor string) (bool, error)
	sending *unsentMetrics

	dispatcher *dispatch.Dispatcher
}

func newJobs(r *Runtime) *jobs {
	return &jobs{
		Config: &r.Config, metrics: r.metrics, retries: r.retries, strays: r.strays, cache: r.cache, inbox: r.Inbox, notices: r.notices, discard: r.Discard, giveUp: r.GiveUp,
		sending: r.sending, dispatcher: r.Dispatcher,
	}
}

// adoptBatch is how many commands of dead nodes one commit announces again.
const adoptBatch = 500

// adopt announces the commands of dead nodes again (design 5).
func (j *jobs) adopt(ctx context.Context) error {
	for {
		n, err := j.Store.Nodes.Orphans(ctx, adoptBatch)
		if err != nil {
			return fmt.Errorf("runtime: commands of dead nodes: %w", err)
		}
		if n > 0 {
			j.Log.Info("commands of dead nodes are performed again", "commands", n)
			j.metrics.adopted.Add(float64(n))
		}
		if n == 0 { // fewer than asked for are left where another node takes some meanwhile
			return nil
		}
	}
}

// rest gives memory back when the node has had no turn since it was called last: what was
// kept for the next turns, and what the collector would keep for a while.
func (j *jobs) rest(ctx context.Context) error {
	if !j.cache.Rest() {
		return nil
	}
	for range 3 { // what pools keep goes with the second, and each makes stacks half as long
		defer debug.FreeOSMemory()
	}
	if j.Store.Caches == nil {
		return nil
	}
	return j.Store.Caches.Shrink(ctx)
}

// run runs the hosted jobs: adoption at first, when a node has died, and by the clock,
// for what another that ended has left and what somebody had locked; by the clock the
// look for strays (A14), and beside them retention, which takes long where it finds
// much. An adoption that fails is tried again: a node may well die of what ails the database.
func (j *jobs) run(ctx context.Context) error {
	var purging sync.WaitGroup
	defer purging.Wait()
	purging.Go(func() { j.purge(ctx) })
	failed := j.Store.Nodes.PeerFailures()
	adoption := time.NewTimer(0)
	defer adoption.Stop()
	failures := 0
	strays := time.NewTicker(j.StraysEvery)
	defer strays.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-failed:
			adoption.Reset(0)
		case <-adoption.C:
			err := j.adopt(ctx)
			if err == nil || ctx.Err() != nil {
				failures = 0
				continue
			}
			failures++
			delay := j.retries.Backoff(failures, "adoption")
			j.Log.Error("commands of dead nodes could not be adopted", "error", err, "again", delay)
			adoption.Reset(delay)
		case <-strays.C:
			if failures == 0 {
				adoption.Reset(0)
			}
			if err := j.strays.giveBack(ctx); err != nil && ctx.Err() == nil {
				j.Log.Error("messages that nobody works on could not be looked for", "error", err)
			}
			if err := j.rest(ctx); err != nil && ctx.Err() == nil {
				j.Log.Error("memory could not be given back", "error", err)
			}
		}
	}
}

// purge deletes by the clock what is kept no longer.
func (j *jobs) purge(ctx context.Context) {
	for turn.Pause(ctx, j.RetentionEvery) {
		if err := errors.Join(j.retain(ctx), j.inbox.Forget(ctx)); err != nil && ctx.Err() == nil {
			j.Log.Error("retention failed", "error", err)
		}
	}
}
