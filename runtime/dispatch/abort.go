package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
)

// A command whose wait has been withdrawn (by a cancellation, a timeout, a branch that lost) is settled by that
// commit, and its result would be stale. The attempt under way is aborted: at once on the node that commits the
// withdrawal, and on another node when it next looks.

// withdrawnEvery is how often a node looks whether another has settled the command of an
// attempt: first when that has lasted between half of this and all of it.
const withdrawnEvery = 2 * time.Second

// attempted makes one attempt at a command, which abort may end from outside by ending ctx.
func (d *Dispatcher) attempted(ctx context.Context, abort context.CancelFunc, j *Job) (json.RawMessage, *engine.Failure) {
	// Where nobody waits, nobody withdraws; and what settles one that asks for an
	// acknowledgement may be that, by a consumer that has not answered yet.
	if j.command.Token != "" && j.command.Ack <= 0 {
		d.performing.abortable(j, abort)
		defer d.performing.abortable(j, nil)
	}
	return d.outside.attempt(ctx, j)
}

// abortable says how the attempt under way is aborted; nil = there is none.
func (p *performing) abortable(j *Job, abort context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.abort = abort
}

// Watch looks, until ctx ends, which attempts nobody waits for any more.
func (d *Dispatcher) Watch(ctx context.Context) {
	for turn.Pause(ctx, withdrawnEvery/2) {
		for _, j := range d.performing.lasting() {
			if done, err := d.Record.answered(ctx, j); err == nil && done {
				d.Log.Info("command is withdrawn; the attempt at it is aborted", "instance", j.Instance, "command", j.position)
				d.performing.abort(j)
			}
		}
	}
}

// lasting are the attempts to look at: each on every second round.
func (p *performing) lasting() []*Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*Job
	for _, j := range p.jobs {
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
func (p *performing) abort(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.abort != nil {
		j.abort()
	}
}

// Withdrawn aborts the attempts of this node at commands that a commit has settled, and forgets those that wait.
func (d *Dispatcher) Withdrawn(instance string, settled []engine.Settled) {
	if len(settled) == 0 {
		return
	}
	var waiting []*Job
	d.performing.mu.Lock()
	for _, s := range settled {
		for j := d.performing.jobs[place{instance, s.Position}]; j != nil; j = j.next {
			if j.abort != nil {
				j.abort()
			} else {
				waiting = append(waiting, j)
			}
		}
	}
	d.performing.mu.Unlock()
	for _, j := range waiting {
		if d.Admission.Drop(&j.Ticket) {
			d.performing.untrack(j)
		}
	}
}
