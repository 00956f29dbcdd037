package runtime

import (
	"context"
	"time"
)

// A command whose wait has been withdrawn (by a cancellation, a timeout, a
// branch that lost) is settled by that commit, and its result would be stale.
// The attempt under way is aborted: at once on the node that commits the
// withdrawal, and on another node when it next looks.

// withdrawnEvery is how often an attempt looks whether its command has been
// settled by another node. One that is shorter never looks.
const withdrawnEvery = 2 * time.Second

// attempted makes one attempt at a command, and reports whether it was aborted
// because nobody waits for the result any more.
func (r *Runtime) attempted(ctx context.Context, j job, attempt func(ctx context.Context)) (aborted bool) {
	if j.command.Token == "" || j.command.Ack > 0 {
		// Nobody waits, so nobody withdraws; or what settles the command may be
		// its acknowledgement, by a consumer that has not answered yet.
		attempt(ctx)
		return false
	}
	own, abort := context.WithCancel(ctx)
	defer abort()
	key := j.at()
	r.mu.Lock()
	r.aborts[key] = append(r.aborts[key], abort)
	r.mu.Unlock()
	look := time.AfterFunc(withdrawnEvery, func() { r.watch(own, j, abort) })
	attempt(own)
	look.Stop()
	r.mu.Lock()
	aborted = own.Err() != nil && ctx.Err() == nil
	delete(r.aborts, key) // another attempt at the same command on this node finds out by looking
	r.mu.Unlock()
	return aborted
}

// watch looks from time to time whether a command is settled, until its attempt
// is over.
func (r *Runtime) watch(ctx context.Context, j job, abort context.CancelFunc) {
	for ctx.Err() == nil {
		if done, err := r.answered(ctx, j); err == nil && done {
			r.Log.Info("command is withdrawn; the attempt at it is aborted", "instance", j.instance, "command", j.position)
			abort()
			return
		}
		if !sleep(ctx, withdrawnEvery) {
			return
		}
	}
}

// withdrawn aborts the attempts of this node at commands that a commit has
// settled.
func (r *Runtime) withdrawn(instance string, positions []int64) {
	if len(positions) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range positions {
		for _, abort := range r.aborts[place{instance, p}] {
			abort()
		}
	}
}
