package runtime

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
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

// outputError is an error of what a turn writes, found after the decision. The
// message that led to it is sound.
type outputError struct{ cause error }

func (e *outputError) Error() string { return e.cause.Error() }
func (e *outputError) Unwrap() error { return e.cause }

// output marks an error of what a turn writes as such, where it is not ours.
func output(err error) error {
	if err == nil {
		return nil
	}
	if k := problem.KindOf(err); k == problem.Invalid || k == problem.TooLarge {
		return &outputError{err}
	}
	return err
}

// unwritable marks the errors with which a store refuses for good what a turn
// writes, as too large or as no value of its column; with any other, the store
// itself is in trouble.
func unwritable(err error) error {
	if err == nil {
		return nil
	}
	switch problem.CodeOf(err) {
	case "limit.stream", "signal.too-large", "store.too-big", "store.value":
		return output(err)
	}
	return err
}

// ownerOf says whose fault it is that a message could not be handled.
func ownerOf(err error) owner {
	if err == nil {
		return byUs
	}
	var p *problem.Error
	switch {
	case errors.As(err, new(*outputError)):
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
	var behind *behindError
	if errors.As(err, &behind) {
		if r.fate(m, behind.cause) == released {
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

// errLate says that a turn of an instance that has ended cannot be written, and
// need not be: what came late means nothing to it.
var errLate = errors.New("runtime: the instance has ended")

// faulted faults an instance, when what its turn wants to write cannot be
// written, in place of that turn: the message is consumed, nothing else of the
// turn is done. One that has faulted already cannot fault again, and what it
// cannot keep is left to an operator.
func (r *Runtime) faulted(ctx context.Context, t *turnOf, cause error) error {
	prev, out := t.prev, t.out
	switch {
	case prev.Status.Closed() && len(out.Send) == 0:
		return errLate
	case out.Disposition == engine.Buffered: // it asks for nothing but to be kept
		return problem.New(problem.TooLarge, "limit.buffer", "instance %s has no room to keep the signal: %v", prev.InstanceID, cause)
	case prev.Status == snapshot.Faulted || prev.Status.Closed():
		return &outputError{problem.Wrap(cause, problem.Conflict, "instance.full", "instance %s is %s and has no room for the signal", prev.InstanceID, prev.Status).
			WithHint("cancel it, and let another do its work")}
	}
	fault, err := engine.FaultWith(*prev, engine.Unwritten(cause), t.in)
	if err == nil {
		err = r.writeFault(ctx, t, fault)
	}
	return err
}

// stillborn begins an instance as a faulted one, when what its first turn wants
// to write cannot be written.
func (r *Runtime) stillborn(ctx context.Context, def engine.Definition, t *turnOf, cause error) error {
	fault, err := engine.FaultFirst(def, t.out.Snapshot, engine.Unwritten(cause), t.in)
	if err == nil {
		err = r.writeFault(ctx, t, fault)
	}
	return err
}

// writeFault writes the turn that faults an instance in place of t. The author has no part in
// what that contains: that it cannot be written is our own fault.
func (r *Runtime) writeFault(ctx context.Context, t *turnOf, fault *engine.Outcome) error {
	instead := *t
	instead.out = fault
	err := r.writeOut(ctx, &instead)
	if ownerOf(err) == byAuthor && err != nil {
		return problem.New(problem.Internal, "instance.unwritable", "instance %s cannot be faulted: %v", fault.Snapshot.InstanceID, err)
	}
	if err == nil {
		*t.out = *fault
	}
	return err
}
