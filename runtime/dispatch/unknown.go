package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
)

// A commit of unknown outcome may have claimed commands for this node. Nobody
// else performs what a live node has claimed, so this node finds out.

// A commit that was lost on its way has places for its commands for unknownFor. A database that hung may make it much
// later: for lostFor the node looks on, ever more seldom, and announces again what it then has by it.
const (
	unknownFor = 15 * time.Second
	lostFor    = 24 * time.Hour
)

// Resolve finds out whether commands were claimed, on the places that are reserved for them.
func (d *Dispatcher) Resolve(list ...*Job) {
	for _, j := range list {
		go d.resolve(d.work, j)
	}
}

// resolve performs a command if its claim was committed and nobody on this node performs it already: the turn may have
// been repeated meanwhile, and what that has claimed, on its way to be launched, is looked at twice.
func (d *Dispatcher) resolve(ctx context.Context, j *Job) {
	begun, delay := time.Now(), 25*time.Millisecond
	cancel := sync.OnceFunc(func() { d.Admission.Cancel(&j.Ticket) })
	late, before := false, false // its place is given back; the look before found it claimed
	for j.unresolved = true; !d.performing.track(j); {
		claimed, known, err := d.claimed(ctx, j)
		if claimed && before && d.performing.alone(j) {
			d.performing.sure(j)
			d.Log.Info("a commit of unknown outcome was made; its command is performed", "instance", j.Instance, "command", j.position)
			if late {
				j.Counted = false // it has not been sent
				d.Record.giveBack(ctx, j)
			}
			if late || !d.Admission.Launch(&j.Ticket) {
				d.performing.untrack(j)
			}
			return
		}
		d.performing.untrack(j)
		age := time.Since(begun)
		absent, most := err == nil && !claimed, 5*time.Second
		if absent {
			most = max(most, age/8)
		}
		delay = min(2*delay, most)
		if absent && age > unknownFor && !late {
			late, j.command = true, engine.Command{} // the row has it
			cancel()
		}
		if before = claimed; known || absent && age > lostFor || !turn.Pause(ctx, delay) {
			cancel()
			return
		}
	}
	d.performing.untrack(j) // it is performed already
	cancel()
}

// claimed says whether this node has the command, or known that it is somebody else's or done with. Neither: the
// commit has not been made yet, or ever. What stands at its place may be another command: the turn was decided again,
// or the same start was tried twice, and that one was made. Whoever made it performs it.
func (d *Dispatcher) claimed(ctx context.Context, j *Job) (claimed, known bool, err error) {
	row, ok, err := d.Record.Entry(ctx, j.Instance, j.position)
	if !ok {
		return false, false, err
	}
	if row.Processed == nil || *row.Processed {
		return false, true, nil
	}
	made, err := jobOf(row)
	if err != nil {
		return false, false, err
	}
	if made.Key != j.Key {
		return false, true, nil
	}
	j.command = made.command
	if j.resume(row); j.Counted {
		j.failures = max(j.failures-1, 0) // the row counts the attempt that this is
	}
	// An announced command that nobody has may still become this node's.
	return row.ClaimedBy == d.Node, row.ClaimedBy != "" && row.ClaimedBy != d.Node, nil
}

// answered says whether the result of a command has been applied.
func (r Record) answered(ctx context.Context, j *Job) (bool, error) {
	row, ok, err := r.Entry(ctx, j.Instance, j.position)
	return ok && row.Processed != nil && *row.Processed, err
}

// track notes that this node performs a command, and reports whether it did so before: a command that was given back
// may come again before its worker is done. An unresolved job does not perform it.
func (p *performing) track(j *Job) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.next = p.jobs[j.at()]
	p.jobs[j.at()] = j
	for other := j.next; other != nil; other = other.next {
		again = again || !other.unresolved
	}
	return again
}

// sure says that a tracked command is this node's.
func (p *performing) sure(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.unresolved = false
}

func (p *performing) untrack(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.jobs[j.at()]
	at := &first
	for *at != j {
		at = &(*at).next
	}
	*at = j.next
	if p.jobs[j.at()] = first; first == nil {
		delete(p.jobs, j.at())
	}
}

// alone says that nobody else on this node performs a tracked command.
func (p *performing) alone(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.jobs[j.at()] == j && j.next == nil
}
