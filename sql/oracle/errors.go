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
	case aq.Retry:
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

// isRefused says whether the database has refused a statement: for a value that
// it never takes, or by a mistake of ours. The session goes on, and nothing of
// the block that had the statement is written.
func isRefused(err error) bool {
	switch problem.CodeOf(err) {
	case "store.value", "store.exists", "store.sql":
		return !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrUnknown)
	}
	return false
}
