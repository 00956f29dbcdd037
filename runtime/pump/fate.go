package pump

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/line"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Retries says what becomes of messages that fail, and when one comes again. All of it is required, but for Blame.
type Retries struct {
	Max        int           // retries of a message that names what is not there, or not so, yet; negative = none
	Delay      time.Duration // before the first retry, doubled with each
	DelayMax   time.Duration // the longest
	Patience   time.Duration // how long a message that fails by a fault of the engine's own is tried again; negative = without end
	OrderGrace time.Duration // how long one that was refused waits for one that should have come before it; negative = not at all
	Now        func() time.Time
	// Blame is what extras know of a problem.
	Blame func(p *problem.Error) Blame
}

// Blame is what an extra knows of a problem of its own.
type Blame struct {
	Sender    bool // who sent the message is to blame, and its instance has nothing to do with it
	Passing   bool // it may be over in a moment
	Overtaken bool // it is perhaps for want of a message that was sent before
}

// owner is whose fault an error is, and so what is done about it. The kind of a problem does not say: that a message
// is too large is its sender's fault when it comes in, and the author's when a turn wants to send it.
type owner int

const (
	byUs       owner = iota // a bug, or what nobody else is known to have done: tried again for the node's patience
	bySender                // the message can never be applied: it is a dead letter
	byAbsence               // what the message names is not there, or not so, yet: tried again a few times
	byAuthor                // what the turn of a definition writes: its instance faults
	byDatabase              // it takes nothing now: given back until it does
	byNode                  // it has no memory to look at the message now: tried again until it has
	byLock                  // another session has the rows of the instance: tried again until it has not
	byUpgrade               // another node's, newer or with other code: tried again until one has it
	byDamage                // what is stored is damaged: a dead letter, to be replayed after a restore
)

// Owners are their names, as labels; by "order" is who waits for an earlier message.
var Owners = map[owner]string{
	byUs: "engine", bySender: "sender", byAbsence: "absence", byAuthor: "author", byDatabase: "database", byNode: "node", byLock: "lock", byUpgrade: "upgrade", byDamage: "damage",
}

var ownerOfCode = map[string]owner{memory.CodeBusy: byNode, "store.locked": byLock, "snapshot.newer": byUpgrade, engine.CodeElsewhere: byUpgrade}

// ownerOf says whose fault it is that a message could not be handled.
func (r *Retries) ownerOf(err error) owner {
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
	case r.Blame(p).Passing, p.Code == "store.value": // of no turn
		return byAbsence
	case ownerOfCode[p.Code] != byUs:
		return ownerOfCode[p.Code]
	case strings.HasPrefix(p.Code, "store."):
		if p.Kind == problem.Unavailable || p.Code == "store.corrupt" {
			return byDatabase
		}
		return byUs
	case p.Kind == problem.Internal && strings.HasSuffix(p.Code, ".corrupt"):
		return byDamage
	case p.Kind == problem.Invalid, p.Kind == problem.TooLarge, r.Blame(p).Sender:
		return bySender
	case p.Kind == problem.NotFound, p.Kind == problem.Conflict, p.Kind == problem.Denied:
		return byAbsence
	}
	return byUs
}

// fate is what becomes of a message.
type fate int

const (
	ended        fate = iota // done, or settled by redelivery (design 4.7)
	released                 // given back: the database's trouble, not the message's
	deadLettered             // a dead letter
	repeated                 // tried again, and counted
	waited                   // tried again, however long it takes
	refused                  // tried again: what comes before it may be on its way
	followed                 // tried again after one that is tried again
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

// fate decides what becomes of a message that ended in err: by whose fault that is, and how long it has been tried.
func (r *Retries) fate(m store.Message, err error) fate {
	if err == nil || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrUnknown) {
		return ended
	}
	// Also behind one that was given back: what is given back waits for its turn anew,
	// and so would all that came after it, each behind the next.
	if errors.As(err, new(*turn.Behind)) {
		return followed
	}
	switch r.ownerOf(err) {
	case byDatabase:
		return released
	case byNode, byLock, byUpgrade:
		return waited
	case bySender:
		var p *problem.Error // or it was refused for want of one before it
		if errors.As(err, &p) && r.Blame(p).Overtaken && r.grace(m) > 0 {
			return refused
		}
		return deadLettered
	case byAuthor, byDamage: // the author's, when the instance has faulted already
		return deadLettered
	case byAbsence:
		if m.Attempts < r.Max {
			return repeated
		}
		return deadLettered
	}
	if r.outOfPatience(m) {
		return deadLettered
	}
	return repeated
}

// Blocks says that the messages of an instance behind one that ended in err wait for it.
func (r *Retries) Blocks(m store.Message, err error) bool { return r.fate(m, err).blocks() }

// waitedFor is how long a message has waited before its retry n, about.
func (r *Retries) waitedFor(n int, limit time.Duration) time.Duration {
	return line.Waited(r.Delay, r.DelayMax, n, limit)
}

// grace is what is left of the time for which a refused message is tried, if jitter took all it can of that.
func (r *Retries) grace(m store.Message) time.Duration {
	return r.OrderGrace - r.waitedFor(m.Attempts, 2*r.OrderGrace)*4/5
}

// delay is how long a message of this fate waits; a refused one, for its grace.
func (r *Retries) delay(f fate, m store.Message, seed string) time.Duration {
	d := r.Backoff(max(f.attempts(m), 1), seed)
	if f == refused {
		d = min(d, r.grace(m))
	}
	return d
}

// outOfPatience says that a message which fails by our own fault has been tried for long enough: by the retries that
// it counts, and by its age. The trouble of a database counts retries, too, and an old message may be new to us.
func (r *Retries) outOfPatience(m store.Message) bool {
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

// Backoff is the pause before a retry: 1, 2, 4, 8, 16 s … (design 4.5).
func (r *Retries) Backoff(attempt int, seed string) time.Duration {
	return line.Backoff(r.Delay, r.DelayMax, attempt, seed)
}
