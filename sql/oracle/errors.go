package oracle

import (
	"errors"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// explain turns an error of the database into a problem, by its code. Anything
// else it returns unchanged.
func explain(err error) error {
	var p *problem.Error
	if err == nil || errors.As(err, &p) {
		return err
	}
	for _, sentinel := range []error{store.ErrStale, store.ErrLost, store.ErrNotFound, store.ErrDuplicate, store.ErrClosed, store.ErrUnknown} {
		if errors.Is(err, sentinel) {
			return err
		}
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

// isData says whether the database refuses a value for good.
func isData(err error) bool { return problem.CodeOf(err) == "store.value" }
