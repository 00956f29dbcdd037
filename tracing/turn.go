package tracing

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Turn makes the span of a turn that is over, and the anchors of an instance that has
// begun with it, or ended. A turn that was not committed is a span of an error. It
// returns the id of the trace, "" when nothing was made.
func (t *Tracer) Turn(made turn.Made, over time.Time) string {
	on := made.Prev
	if made.Out != nil {
		on = &made.Out.Snapshot
	}
	if on == nil || errors.Is(made.Err, turn.ErrUntouched) || errors.As(made.Err, new(*turn.Behind)) { // it was not for this turn to do, or not yet
		return ""
	}
	at := t.of(on)
	if !at.sampled {
		return ""
	}
	s := Span{Trace: at.trace, ID: anyID(), Parent: at.span, Kind: Internal, Name: "turn", Start: made.Began, End: over}
	if at.schedule {
		s.Parent = [8]byte{}
	}
	if d := delivery(made); d != nil {
		queue := string(d.Message().Queue)
		s.Kind, s.Name = Consumer, "process "+queue
		s.text("messaging.system", t.System)
		s.text("messaging.operation.type", "process")
		s.text("messaging.operation.name", "process")
		s.text("messaging.destination.name", queue)
	}
	ofInstance(&s, on)
	s.ofSignals(made, at)
	if made.Err != nil {
		s.failed(kindOf(made.Err))
		t.Sink(s)
		return ""
	}
	version := strconv.FormatInt(on.Version, 10)
	s.ID = spanIn(at.trace, "turn", on.InstanceID, strconv.FormatInt(on.Epoch, 10), version)
	s.number("aqueduct.turn.seq", on.Version)
	s.text("aqueduct.disposition", string(made.Out.Disposition))
	s.text("aqueduct.status", string(on.Status))
	if on.Status == snapshot.Faulted && on.Error != nil {
		s.text("aqueduct.fault", typeOf(on.Error.Type))
	}
	if at.schedule {
		t.Sink(s)
	} else {
		t.Sink(append(anchors(made.Prev, on, at, over), s)...)
	}
	return hex.EncodeToString(at.trace[:])
}

// delivery is that of the message which a turn was about, nil if it was about none.
func delivery(made turn.Made) store.Delivery {
	if d, ok := made.To.(store.Delivery); ok {
		return d
	}
	for _, s := range made.Signals {
		if s.Delivery != nil {
			return s.Delivery
		}
	}
	return nil
}

// anchors are the spans without length of an instance that has begun with a turn, and of
// one that has ended.
func anchors(prev, on *snapshot.Snapshot, at instance, over time.Time) (list []Span) {
	if prev == nil {
		s := Span{Trace: at.trace, ID: at.span, Parent: at.parent, Kind: Internal, Name: "start " + on.Definition.Name, Start: over, End: over}
		ofInstance(&s, on)
		list = append(list, s)
	}
	if on.Status.Closed() && (prev == nil || !prev.Status.Closed()) {
		s := Span{Trace: at.trace, ID: spanIn(at.trace, "end", on.InstanceID), Parent: at.span, Kind: Internal, Name: "end " + on.Definition.Name, Start: over, End: over}
		ofInstance(&s, on)
		s.text("aqueduct.status", string(on.Status))
		list = append(list, s)
	}
	return list
}

func ofInstance(s *Span, on *snapshot.Snapshot) {
	s.text("aqueduct.instance.id", on.InstanceID)
	s.text("aqueduct.definition", on.Definition.Name)
	s.text("aqueduct.version", on.Definition.Version)
	if p, ok := on.Primary(); ok {
		s.text("aqueduct.task", p.Pointer)
	}
}

// ofSignals says what a turn was about, and links it to what has sent that: a caller who
// was traced, or the attempt whose result it is.
func (s *Span) ofSignals(made turn.Made, at instance) {
	if len(made.Signals) == 0 {
		s.text("aqueduct.signal.type", string(signal.StartRequest))
		if at.caller != (place{}) {
			s.link(at.caller.trace, at.caller.span)
		}
		return
	}
	s.text("aqueduct.signal.type", string(made.Signals[0].Envelope.Type))
	s.number("aqueduct.signals", int64(len(made.Signals)))
	for _, m := range made.Signals {
		env := &m.Envelope
		from, ok := parse(env.Headers[signal.HeaderTraceparent])
		switch {
		case isAnswer(env):
			s.link(at.trace, attemptIn(at.trace, env.InstanceID, env.SignalID))
		case ok && from.span != at.span && from != at.caller: // else the engine has sent it for the instance
			s.link(from.trace, from.span)
		}
	}
}

// isAnswer reports whether a signal is what an attempt at a command came to: its id is
// then the token that the command has, and the number of the attempt.
func isAnswer(env *signal.Envelope) bool {
	rest, ok := strings.CutPrefix(env.SignalID, env.WaitingToken+"/")
	return ok && env.Type == signal.TaskCompleted && env.WaitingToken != "" && strings.Trim(rest, "0123456789") == ""
}

// attemptIn is the id of the span of an attempt, by the id of the signal that answers it.
func attemptIn(trace [16]byte, instance, answer string) [8]byte {
	return spanIn(trace, "attempt", instance, answer)
}

// other is the kind of an error that has none of its own.
const other = "_OTHER"

// kindOf is an error in a word: its words may have what an instance works on.
func kindOf(err error) string {
	for _, known := range []struct {
		err  error
		kind string
	}{
		{store.ErrStale, "stale"}, {store.ErrDuplicate, "duplicate"}, {store.ErrTaken, "taken"}, {store.ErrLost, "lost"},
		{store.ErrUnknown, "unknown"}, {store.ErrClosed, "closed"}, {context.Canceled, "canceled"}, {context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, known.err) {
			return known.kind
		}
	}
	return problem.CodeOf(err)
}

// typeOf is the type of an error in a word; one that an author has made may have anything in it.
func typeOf(kind string) string {
	for _, known := range []string{
		engine.ErrConfiguration, engine.ErrValidation, engine.ErrExpression, engine.ErrAuthentication,
		engine.ErrAuthorization, engine.ErrTimeout, engine.ErrCommunication, engine.ErrRuntime,
	} {
		if engine.SameType(kind, engine.ErrorBase+known) {
			return known
		}
	}
	return other
}
