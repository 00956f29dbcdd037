package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Windows say how long is kept what instances do not take with them; 0 = for ever.
type Windows struct {
	Faulted     time.Duration // instances since they were touched; then they are cancelled, and RetentionKeep is theirs
	DeadLetters time.Duration // after they died; those of instances that live stay
	Audit       time.Duration // after what a row says
	Tokens      time.Duration // after they expired or were revoked
	Policies    time.Duration // after a newer version was published; those stay by which an instance that is kept may have gone
	Bulk        time.Duration // plans of what is done to many, after they were made or run last
}

// Retention works in small commits, so that it never holds up the pump.
const (
	retentionLock  = "retention"
	retentionBatch = 100
	retentionTTL   = time.Minute
	auditBatch     = 1000 // rows, which are short, and leave one
)

// window is one kind of what retention deletes: how, in one step that says whether
// there may be more.
type window struct {
	what string // as the metric has it
	keep time.Duration
	step func(ctx context.Context, before time.Time) (count int, more bool, err error)
}

// windowNames are what is kept for a window each.
var windowNames = []string{"instances", "faulted", "dead-letters", "audit", "tokens", "policies", "bulk"}

// windows are those that are set.
func (j *jobs) windows() (set []window) {
	for _, w := range []window{
		{"instances", j.RetentionKeep, func(ctx context.Context, before time.Time) (int, bool, error) {
			n, err := j.Store.Retention.Purge(ctx, before, retentionBatch)
			return n, n == retentionBatch && err == nil, err
		}},
		{"faulted", j.Windows.Faulted, j.faulted()},
		{"dead-letters", j.Windows.DeadLetters, j.deadLetters()},
		{"audit", j.Windows.Audit, j.kept(backend.KeptAudit, j.Windows.Audit)},
		{"tokens", j.Windows.Tokens, j.kept(backend.KeptTokens, j.Windows.Tokens)},
		{"policies", j.Windows.Policies, j.kept(backend.KeptPolicies, j.Windows.Policies)},
		{"bulk", j.Windows.Bulk, j.kept(backend.KeptBulk, j.Windows.Bulk)},
	} {
		if w.keep > 0 {
			set = append(set, w)
		}
	}
	return set
}

// retain deletes what is past its window, while this node holds the job's lock. What
// cannot be deleted of one kind keeps none of the others.
func (j *jobs) retain(ctx context.Context) error {
	var failed []error
	locked := false
	for _, w := range j.windows() {
		ok, err := j.clear(ctx, w)
		locked = locked || ok
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", w.what, err))
		}
		if !ok {
			break // another node does it
		}
	}
	if locked {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellLeave)
		defer cancel()
		failed = append(failed, j.Store.Locks.Unlock(leaving, retentionLock))
	}
	return errors.Join(failed...)
}

// clear deletes what is past one window; locked says whether the job is this node's.
func (j *jobs) clear(ctx context.Context, w window) (locked bool, err error) {
	total := 0
	for more := true; more && ctx.Err() == nil; {
		ok, lost := j.Store.Locks.Lock(ctx, retentionLock, retentionTTL)
		if locked = ok && lost == nil; !locked {
			return false, cmp.Or(err, lost)
		}
		var n int
		var failed error
		n, more, failed = w.step(ctx, j.Now().Add(-w.keep))
		total += n
		j.metrics.purged.WithLabelValues(w.what).Add(float64(n))
		err = cmp.Or(err, failed)
	}
	if total > 0 {
		j.Log.Info("retention has deleted what is past its window", "what", w.what, "count", total, "kept", w.keep)
	}
	return locked, err
}

// purging is a context in which retention acts, for the audit.
func purging(ctx context.Context, setting string, keep time.Duration) context.Context {
	return audit.Because(ctx, fmt.Sprintf("%s%s", because(setting), keep))
}

func because(setting string) string { return "retention." + setting + ": kept for " }

// kept deletes what the store can delete by itself.
func (j *jobs) kept(what backend.Kept, keep time.Duration) func(context.Context, time.Time) (int, bool, error) {
	limit := retentionBatch
	if what == backend.KeptAudit {
		limit = auditBatch
	}
	return func(ctx context.Context, before time.Time) (int, bool, error) {
		ctx = purging(ctx, string(what), keep)
		n, err := j.Store.Retention.PurgeKept(ctx, what, before, limit, func(target string) store.Audit {
			return audit.Row(ctx, j.Now(), "purge", target, "")
		})
		return n, n > 0 && err == nil, err
	}
}

// faulted gives up instances that nobody has touched: they are cancelled, and their
// dead letters discarded, which would keep them. Those of Go code that this node does not
// have are left to one that has it, whose turn it is at another interval. Then come the dead
// letters of those that a node has cancelled whose end it was.
func (j *jobs) faulted() func(context.Context, time.Time) (int, bool, error) {
	after, rest, left := "", false, j.leftBehind()
	return func(ctx context.Context, before time.Time) (count int, more bool, err error) {
		ctx = purging(ctx, "faulted", j.Windows.Faulted)
		if rest {
			more, err = left(ctx, before)
			return 0, more, err
		}
		page, err := j.Store.Instances.Instances(ctx, backend.InstanceQuery{Status: string(snapshot.Faulted), After: after, Limit: retentionBatch})
		if err != nil {
			return 0, false, err
		}
		for _, i := range page.Items {
			if !i.UpdatedAt.Before(before) {
				continue
			}
			given, failed := j.giveUp(ctx, i.ID, before, "retention")
			if given {
				count++
				failed = j.discardAll(ctx, backend.DeadLetterQuery{InstanceID: i.ID, Limit: retentionBatch})
			}
			if problem.CodeOf(failed) == engine.CodeElsewhere {
				j.metrics.left.Inc()
				j.Log.Debug("retention leaves an instance to a node with its code", "instance", i.ID, "definition", i.Definition)
			} else if failed != nil {
				err = failed
			}
		}
		after = page.Next
		rest = after == ""
		return count, true, err
	}
}

// leftBehind discards dead letters of instances that retention has cancelled, and that
// are older than its window: a node that ended between the two has left them.
func (j *jobs) leftBehind() func(context.Context, time.Time) (bool, error) {
	after, given := "", map[string]time.Time{} // when an instance was cancelled
	return func(ctx context.Context, before time.Time) (more bool, err error) {
		ids, err := j.Store.Retention.OldDeadLetters(ctx, before, after, retentionBatch)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		for _, id := range ids {
			if failed := j.discardLeft(ctx, id, given); failed != nil && !errors.Is(failed, store.ErrNotFound) {
				err = failed
			}
		}
		after = ids[len(ids)-1]
		return len(ids) == retentionBatch, err
	}
}

// discardLeft discards a dead letter when retention has cancelled its instance since.
func (j *jobs) discardLeft(ctx context.Context, id string, given map[string]time.Time) error {
	l, err := j.Store.DeadLetters.DeadLetter(ctx, id)
	if err != nil || l.InstanceID == "" {
		return err
	}
	at, known := given[l.InstanceID]
	if !known {
		by := audit.Row(ctx, j.Now(), string(engine.Cancel), l.InstanceID, l.InstanceID)
		p, err := j.Store.Audit.Audit(ctx, backend.AuditQuery{Action: string(engine.Cancel), InstanceID: l.InstanceID, Limit: 1})
		if err != nil {
			return err
		}
		if len(p.Items) > 0 && p.Items[0].Kind == by.Kind && strings.HasPrefix(p.Items[0].Reason, because("faulted")) {
			at = p.Items[0].At
		}
		given[l.InstanceID] = at
	}
	if !l.DiedAt.Before(at) {
		return nil
	}
	return j.discard(ctx, id)
}

// discardAll discards the dead letters that a query selects.
func (j *jobs) discardAll(ctx context.Context, q backend.DeadLetterQuery) error {
	for {
		page, err := j.Store.DeadLetters.DeadLetters(ctx, q)
		if err != nil {
			return err
		}
		for _, l := range page.Items {
			if err := j.discard(ctx, l.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// deadLetters discards dead letters as an operator would: with the command that nobody
// performs any more and nobody waits for, which would keep its instance.
func (j *jobs) deadLetters() func(context.Context, time.Time) (int, bool, error) {
	after := ""
	return func(ctx context.Context, before time.Time) (count int, more bool, err error) {
		ctx = purging(ctx, "dead-letters", j.Windows.DeadLetters)
		ids, err := j.Store.Retention.OldDeadLetters(ctx, before, after, retentionBatch)
		if err != nil || len(ids) == 0 {
			return 0, false, err
		}
		for _, id := range ids {
			switch failed := j.discard(ctx, id); {
			case failed == nil:
				count++
			case !errors.Is(failed, store.ErrNotFound): // else an operator was faster
				err = failed
			}
		}
		after = ids[len(ids)-1]
		return count, len(ids) == retentionBatch, err // those that fail do not keep those behind them
	}
}
