package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// A command whose wait has been withdrawn (by a cancellation, a timeout, a
// branch that lost) is settled by that commit, and its result would be stale.
// The attempt under way is aborted: at once on the node that commits the
// withdrawal, and on another node when it next looks.

// withdrawnEvery is how often a node looks whether the command of an attempt
// has been settled by another node: first when the attempt has lasted between
// half of this and all of it. One that is shorter is never looked at.
const withdrawnEvery = 2 * time.Second

// attempted makes one attempt at a command, which abort may end from outside
// by ending ctx.
func (r *Runtime) attempted(ctx context.Context, abort context.CancelFunc, j *job) (json.RawMessage, *engine.Failure) {
	if j.command.Token == "" || j.command.Ack > 0 {
		// Nobody waits, so nobody withdraws; or what settles the command may be
		// its acknowledgement, by a consumer that has not answered yet.
		return r.attempt(ctx, j)
	}
	r.abortable(j, abort)
	output, failure := r.attempt(ctx, j)
	r.abortable(j, nil)
	return output, failure
}

// abortable says how the attempt under way is aborted; nil = there is none.
func (r *Runtime) abortable(j *job, abort context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.abort = abort
}

// watch looks, until ctx ends, which attempts nobody waits for any more.
func (r *Runtime) watch(ctx context.Context) {
	for sleep(ctx, withdrawnEvery/2) {
		for _, j := range r.lasting() {
			if done, err := r.answered(ctx, j); err == nil && done {
				r.Log.Info("command is withdrawn; the attempt at it is aborted", "instance", j.instance, "command", j.position)
				r.abort(j)
			}
		}
	}
}

// lasting are the attempts to look at: each on every second round.
func (r *Runtime) lasting() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*job
	for _, j := range r.performing {
		for ; j != nil; j = j.next {
			if j.abort == nil {
				continue
			}
			if j.rounds++; j.rounds%2 == 0 {
				list = append(list, j)
			}
		}
	}
	return list
}

// abort ends the attempt at a command, when it is still under way.
func (r *Runtime) abort(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.abort != nil {
		j.abort()
	}
}

// withdrawn aborts the attempts of this node at commands that a commit has
// settled, and forgets those that wait for a place.
func (r *Runtime) withdrawn(instance string, settled []engine.Settled) {
	if len(settled) == 0 {
		return
	}
	var waiting []*job
	r.mu.Lock()
	for _, s := range settled {
		for j := r.performing[place{instance, s.Position}]; j != nil; j = j.next {
			if j.abort != nil {
				j.abort()
			} else {
				waiting = append(waiting, j)
			}
		}
	}
	r.mu.Unlock()
	for _, j := range waiting {
		if r.dispatch.drop(j) {
			r.untrack(j)
		}
	}
}
