package runtime

import (
	"context"
	"errors"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// owner is whose fault an error is, and so what is done about it. The kind of a
// problem does not say: that a message is too large is its sender's fault when
// it comes in, and the author's when a turn wants to send it.
type owner int

const (
	byUs     owner = iota // the database's, or a bug: done again, or given back
	bySender              // the message can never be applied: it is a dead letter
	byAuthor              // what the turn of a definition writes: its instance faults
)

// outputError is an error of what a turn writes, found after the decision. The
// message that led to it is sound.
type outputError struct{ cause error }

func (e *outputError) Error() string { return e.cause.Error() }
func (e *outputError) Unwrap() error { return e.cause }

// output marks an error of what a turn writes as such, where it is not ours.
func output(err error) error {
	if k := problem.KindOf(err); k == problem.Invalid || k == problem.TooLarge {
		return &outputError{err}
	}
	return err
}

// unwritable marks the errors with which a store refuses what a turn writes for
// its size; with any other, the store itself is in trouble.
func unwritable(err error) error {
	switch problem.CodeOf(err) {
	case "limit.stream", "signal.too-large", "store.too-big":
		return output(err)
	}
	return err
}

// ownerOf says whose fault it is that a message could not be handled.
func ownerOf(err error) owner {
	var p *problem.Error
	switch {
	case errors.As(err, new(*outputError)):
		return byAuthor
	case !errors.As(err, &p):
		return byUs
	case p.Kind == problem.Invalid, p.Kind == problem.TooLarge, sendersFault(p):
		return bySender
	}
	return byUs
}

// faulted faults an instance, when what its turn wants to write cannot be
// written, in place of that turn: the message is consumed, nothing else of the
// turn is done. One that has faulted or ended stays as it is, and the message
// waits for a mended version of the definition.
func (r *Runtime) faulted(ctx context.Context, w writer, prev *snapshot.Snapshot, out *engine.Outcome, cause error, in engine.Input) error {
	if prev.Status == snapshot.Faulted || prev.Status.Closed() {
		return cause
	}
	fault, err := engine.FaultWith(*prev, unwritten(cause), in)
	if err != nil {
		return err
	}
	if err = r.writeOut(ctx, w, prev, &fault, "", in); err == nil {
		*out = fault
	}
	return err
}

// stillborn begins an instance as a faulted one, when what its first turn wants
// to write cannot be written.
func (r *Runtime) stillborn(ctx context.Context, c committer, def engine.Definition, out *engine.Outcome, startKey string, cause error, in engine.Input) error {
	fault, err := engine.FaultFirst(def, out.Snapshot, unwritten(cause), in)
	if err != nil {
		return err
	}
	if err = r.writeOut(ctx, c.Commit, nil, &fault, startKey, in); err == nil {
		*out = fault
	}
	return err
}

func unwritten(cause error) snapshot.Error {
	title := "Output cannot be written"
	if problem.KindOf(cause) == problem.TooLarge {
		title = "Limit exceeded"
	}
	return snapshot.Error{Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: title, Detail: cause.Error()}
}
