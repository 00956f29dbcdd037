package runtime

import (
	"context"
	"time"
)

// A commit of unknown outcome may have claimed commands for this node. Nobody
// else performs what a live node has claimed, so this node finds out.

// doubtFor is how long a commit that was lost on its way may still take effect.
const doubtFor = 15 * time.Second

// doubt settles commands on the places that are reserved for them.
func (r *Runtime) doubt(list ...*job) {
	for _, j := range list {
		go r.settle(r.work, j)
	}
}

// settle performs a command if its claim was committed and nobody on this node
// performs it already: the turn may have been repeated meanwhile.
func (r *Runtime) settle(ctx context.Context, j *job) {
	begun, delay := time.Now(), 50*time.Millisecond
	j.doubted = true
	for !r.track(j) {
		claimed, known, err := r.claimed(ctx, j)
		if claimed && r.alone(j) {
			r.sure(j)
			r.Log.Info("a commit of unknown outcome was made; its command is performed", "instance", j.instance, "command", j.position)
			if !r.dispatch.launch(j) {
				r.untrack(j)
			}
			return
		}
		r.untrack(j)
		over := err == nil && !claimed && time.Since(begun) > doubtFor
		if known || over || !sleep(ctx, delay) {
			r.dispatch.cancel(j)
			return
		}
		delay = min(2*delay, 5*time.Second)
	}
	r.untrack(j) // it is performed already
	r.dispatch.cancel(j)
}

// claimed says whether this node has the command, or known that it is somebody
// else's or done with. Neither: the commit has not been made yet, or ever. What
// stands at its place may be another command: the turn was decided again, or the
// same start was tried twice, and that one was made. Whoever made it performs it.
func (r *Runtime) claimed(ctx context.Context, j *job) (claimed, known bool, err error) {
	row, ok, err := r.entry(ctx, j.instance, j.position)
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
	if made.key() != j.key() {
		return false, true, nil
	}
	j.command = made.command
	begun := j.begun
	j.resume(row)
	if begun {
		j.failures = max(j.failures-1, 0) // the row counts the attempt that this is
	}
	// An announced command that nobody has may still become this node's.
	return row.ClaimedBy == r.Store.Node(), row.ClaimedBy != "" && row.ClaimedBy != r.Store.Node(), nil
}

// answered says whether the result of a command has been applied.
func (r *Runtime) answered(ctx context.Context, j *job) (bool, error) {
	row, ok, err := r.entry(ctx, j.instance, j.position)
	return ok && row.Processed != nil && *row.Processed, err
}

// track notes that this node performs a command, and reports whether it did so
// before: a command that was given back may come again before its worker is
// done. Who is in doubt does not perform it.
func (r *Runtime) track(j *job) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.next = r.performing[j.at()]
	r.performing[j.at()] = j
	for other := j.next; other != nil; other = other.next {
		again = again || !other.doubted
	}
	return again
}

// sure ends the doubt about a tracked command.
func (r *Runtime) sure(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.doubted = false
}

func (r *Runtime) untrack(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.performing[j.at()]
	at := &first
	for *at != j {
		at = &(*at).next
	}
	*at = j.next
	if first == nil {
		delete(r.performing, j.at())
	} else {
		r.performing[j.at()] = first
	}
}

// alone says that nobody else on this node performs a tracked command.
func (r *Runtime) alone(j *job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.performing[j.at()] == j && j.next == nil
}
