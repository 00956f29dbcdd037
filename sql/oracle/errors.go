package oracle

import (
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// noClient is ODPI-C's code for a missing client library. It has no ORA number,
// so it is known by its text alone.
const noClient = "DPI-1047"

// explain turns an error of the database into a problem, by its code. Anything
// else it returns unchanged.
func explain(err error) error {
	var p *problem.Error
	if err == nil || errors.As(err, &p) {
		return err
	}
	for _, sentinel := range []error{store.ErrStale, store.ErrLost, store.ErrTaken, store.ErrNotFound, store.ErrDuplicate, store.ErrClosed, store.ErrUnknown} {
		if errors.Is(err, sentinel) {
			return err
		}
	}
	if strings.Contains(err.Error(), noClient) {
		return problem.Wrap(err, problem.Unavailable, "store.no-client", "Oracle's client library is not on this machine").
			WithHint("install Oracle Instant Client and let the loader find libclntsh.so (LD_LIBRARY_PATH or ldconfig)")
	}
	switch aq.Classify(err) {
	case aq.Reconnect:
		return problem.Wrap(err, problem.Unavailable, "store.unreachable", "the database cannot be reached")
	case aq.Paused:
		return problem.Wrap(err, problem.Unavailable, "store.paused", "the database needs its operator").
			WithHint("a queue is stopped, or space is used up: nothing was written, the work is repeated")
	case aq.Locked:
		return lockedIn("", err)
	case aq.Retry, aq.Broken:
		return problem.Wrap(err, problem.Unavailable, "store.busy", "the database was busy with the same rows")
	case aq.Data:
		return problem.Wrap(err, problem.Invalid, "store.value", "the database does not take a value")
	case aq.Duplicate:
		return problem.Wrap(err, problem.Conflict, "store.exists", "the key exists")
	}
	if len(aq.Codes(err)) == 0 {
		return err
	}
	return problem.Wrap(err, problem.Internal, "store.sql", "the database refused a statement")
}

// act is what becomes of a delivery that could not be received, loaded for or
// committed.
type act int

const (
	actNone   act = iota // the error is an answer, not a fault
	actPause             // the queue pauses; one delivery finds out in its transaction when the fault is over
	actRedo              // again in the transaction that holds the message; then as actPause
	actResend            // again in that transaction; then the runtime sends it again for later: others have nothing to do with it
	actLose              // the session is gone, and the message comes back with it; the queue pauses
	actOwner             // the author's or the sender's: the runtime decides, up to a dead letter
)

// acts is the table: what is done about a class, wherever it was met. Nothing
// becomes a dead letter because the database, or this program, has a fault. What
// is not known pauses (aq.Fatal).
var acts = map[aq.Class]act{
	aq.Paused:    actPause,
	aq.Fatal:     actPause,
	aq.Broken:    actPause,
	aq.Retry:     actRedo,
	aq.Locked:    actResend,
	aq.Reconnect: actLose,
	aq.Data:      actOwner,
	aq.Duplicate: actOwner,
}

// actOf is what is done about an error.
func actOf(err error) act {
	class := aq.Classify(err)
	if class == aq.Fatal && len(aq.Codes(err)) == 0 {
		return actNone // not the database's
	}
	return acts[class]
}

// unavailable is the error of a delivery whose message the node still holds, or has
// given back, through no fault of the message's.
func unavailable(err error) error {
	if problem.KindOf(explain(err)) == problem.Unavailable {
		return explain(err)
	}
	return problem.Wrap(err, problem.Unavailable, "store.paused", "the database refused a statement").
		WithHint("the queue pauses on this node: nothing was written, the work is repeated; the log says what the database says")
}
