package runtime

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// owner is whose fault an error is, and so what is done about it. The kind of a
// problem does not say: that a message is too large is its sender's fault when
// it comes in, and the author's when a turn wants to send it.
type owner int

const (
	byUs       owner = iota // a bug, or what nobody else is known to have done: tried again for the node's patience
	bySender                // the message can never be applied: it is a dead letter
	byAbsence               // what the message names is not there, or not so, yet: tried again a few times
	byAuthor                // what the turn of a definition writes: its instance faults
	byDatabase              // it takes nothing now: given back until it does
	byNode                  // it has no memory to look at the message now: tried again until it has
	byUpgrade               // a newer node's: tried again until one has it
	byDamage                // what is stored is damaged: a dead letter, to be replayed after a restore
)

// owners are their names, as labels.
var owners = map[owner]string{
	byUs: "engine", bySender: "sender", byAbsence: "absence", byAuthor: "author", byDatabase: "database", byNode: "node", byUpgrade: "upgrade", byDamage: "damage",
}

// ownerOf says whose fault it is that a message could not be handled.
func ownerOf(err error) owner {
	if err == nil {
		return byUs
	}
	var p *problem.Error
	switch {
	case turn.IsOutput(err):
		return byAuthor
	case errors.Is(err, store.ErrTaken): // over the version decided on: its row is damaged
		return byDamage
	case errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return byDatabase
	case !errors.As(err, &p):
		return byUs
	case strings.HasPrefix(p.Code, "store."):
		if p.Kind == problem.Unavailable || p.Code == "store.corrupt" {
			return byDatabase
		}
		return byUs
	case p.Code == memory.CodeBusy:
		return byNode
	case p.Code == "snapshot.newer":
		return byUpgrade
	case p.Kind == problem.Internal && strings.HasSuffix(p.Code, ".corrupt"):
		return byDamage
	case p.Code == "lifecycle.in-transition":
		return byAbsence
	case p.Kind == problem.Invalid, p.Kind == problem.TooLarge, sendersFault(p):
		return bySender
	case p.Kind == problem.NotFound, p.Kind == problem.Conflict, p.Kind == problem.Denied:
		return byAbsence
	}
	return byUs
}

// sendersFault reports whether a problem is one of who answered a human task,
// or triggered an event: trying again does not help, unless the instance is
// just between two states, and the instance has nothing to do with it (D2).
func sendersFault(p *problem.Error) bool {
	ours := p.Kind == problem.Internal || p.Kind == problem.Unavailable
	return !ours && (strings.HasPrefix(p.Code, "task.") || strings.HasPrefix(p.Code, "lifecycle.") || p.Code == codeTaken || p.Code == codeReserved)
}

// fate is what becomes of a message.
type fate int

const (
	ended    fate = iota // done, or settled by redelivery (design 4.7)
	released             // given back: the database's trouble, not the message's
	buried               // a dead letter
	repeated             // tried again, and counted
	waited               // tried again, however long it takes
	refused              // tried again: what comes before it may be on its way
	followed             // tried again after one that is tried again
)

// blocks says that the messages behind wait, too.
func (f fate) blocks() bool { return f == released || f == repeated || f == waited || f == followed }

// attempts is what the message counts when it is sent again.
func (f fate) attempts(m store.Message) int {
	if f == repeated || f == refused {
		return m.Attempts + 1
	}
	return m.Attempts
}

// fate decides what becomes of a message that ended in err: by whose fault that
// is, and how long it has been tried.
func (r *Runtime) fate(m store.Message, err error) fate {
	if err == nil || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrUnknown) {
		return ended
	}
	var behind *turn.Behind
	if errors.As(err, &behind) {
		if r.fate(m, behind.Cause) == released {
			return released
		}
		return followed
	}
	switch ownerOf(err) {
	case byDatabase:
		return released
	case byNode, byUpgrade:
		return waited
	case bySender:
		if problem.CodeOf(err) == "lifecycle.refused" && r.waitedFor(m.Attempts+1, r.OrderGrace) <= r.OrderGrace {
			return refused
		}
		return buried
	case byAuthor, byDamage: // the author's, when the instance has faulted already
		return buried
	case byAbsence:
		if m.Attempts < r.RetryMax {
			return repeated
		}
		return buried
	}
	if r.outOfPatience(m) {
		return buried
	}
	return repeated
}

// waitedFor is how long a message has waited before its retry n, about; no
// longer than needed to pass limit.
func (r *Runtime) waitedFor(n int, limit time.Duration) time.Duration {
	var sum time.Duration
	for i := 1; i <= n && sum <= limit; i++ {
		sum += r.backoff(i, "")
	}
	return sum
}

// outOfPatience says that a message which fails by our own fault has been tried
// for long enough: by the retries that it counts, and by its age. The trouble
// of a database counts retries, too, and an old message may be new to us.
func (r *Runtime) outOfPatience(m store.Message) bool {
	if r.Patience < 0 || r.waitedFor(m.Attempts, r.Patience) <= r.Patience {
		return false
	}
	env, err := signal.Decode(m.Body)
	since := env.OccurredAt
	if env.DueAt.After(since) {
		since = env.DueAt
	}
	return err != nil || r.Now().Sub(since) > r.Patience
}

// backoff is 1, 2, 4, 8, 16 s … (design 4.5), capped, less up to a fifth of
// jitter taken from a hash of the attempt and seed, so that a repeated decision
// repeats it.
func (r *Runtime) backoff(attempt int, seed string) time.Duration {
	d := r.RetryDelayMax
	if shift := max(attempt-1, 0); r.RetryDelay <= d>>shift {
		d = r.RetryDelay << shift
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", seed, attempt)
	return d - time.Duration(h.Sum32()%200)*(d/1000)
}
