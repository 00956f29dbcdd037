package tracing_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/tracing"
)

// kept is a tracer whose spans are kept.
func kept(key string, ratio float64) (*tracing.Tracer, *[]tracing.Span) {
	var spans []tracing.Span
	t := tracing.New(tracing.Config{Key: []byte(key), Ratio: ratio, System: "aq", Sink: func(s ...tracing.Span) { spans = append(spans, s...) }, Now: time.Now})
	return t, &spans
}

func made(s snapshot.Snapshot) turn.Made {
	prev := s
	prev.Version--
	return turn.Made{Prev: &prev, Out: &engine.Outcome{Snapshot: s, Disposition: engine.Applied}}
}

func traceOf(t *testing.T, headers map[string]string) string {
	t.Helper()
	parts := strings.Split(headers[signal.HeaderTraceparent], "-")
	if len(parts) != 4 {
		t.Fatalf("no traceparent: %v", headers)
	}
	return parts[1]
}

// The id of a trace is made of the database, the instance and its incarnation.
func TestATraceIsDerived(t *testing.T) {
	t.Parallel()
	a, _ := kept("key", 1)
	again, _ := kept("key", 1)
	elsewhere, _ := kept("another", 1)
	first := traceOf(t, a.Headers(nil, "i", "one"))
	if got := traceOf(t, again.Headers(nil, "i", "one")); got != first {
		t.Error("another node has another trace")
	}
	for name, other := range map[string]string{
		"database": traceOf(t, elsewhere.Headers(nil, "i", "one")), "instance": traceOf(t, a.Headers(nil, "j", "one")),
		"incarnation": traceOf(t, a.Headers(nil, "i", "two")), "border": traceOf(t, a.Headers(nil, "ion", "e")),
	} {
		if other == first {
			t.Errorf("another %s has the same trace", name)
		}
	}
	headers := map[string]string{signal.HeaderTraceparent: "00-garbage", "tracestate": "a=b", "x": "y"}
	if own := a.Headers(headers, "i", "one"); traceOf(t, own) != first || own["tracestate"] != "" || own["x"] != "y" || headers["tracestate"] == "" {
		t.Errorf("what is no traceparent: %v", own)
	}
	full := map[string]string{}
	for i := range signal.MaxHeaders {
		full[strings.Repeat("h", i+1)] = ""
	}
	if own := a.Headers(full, "i", "one"); len(own) != signal.MaxHeaders {
		t.Errorf("%d headers", len(own))
	}
}

// What is a traceparent is taken as it is, what is none is replaced.
func TestTraceparents(t *testing.T) {
	t.Parallel()
	tracer, _ := kept("key", 1)
	trace, span := strings.Repeat("a1", 16), strings.Repeat("b2", 8)
	for text, ok := range map[string]bool{
		"00-" + trace + "-" + span + "-01": true, "00-" + trace + "-" + span + "-00": true, "cc-" + trace + "-" + span + "-01-later": true, "cc-" + trace + "-" + span + "-01": true,
		"": false, "00-" + trace + "-" + span + "-01-later": false, "cc-" + trace + "-" + span + "-01x": false, "ff-" + trace + "-" + span + "-01": false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01": false, "00-" + strings.Repeat("0", 32) + "-" + span + "-01": false, "00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + trace + "-" + span + "-0": false, "00-" + trace + "-" + span + "-zz": false, "zz-" + trace + "-" + span + "-01": false, "00_" + trace + "-" + span + "-01": false,
	} {
		if got := tracer.Headers(map[string]string{signal.HeaderTraceparent: text}, "i", "n")[signal.HeaderTraceparent]; (got == text) != ok {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A ratio chooses by the id of the trace: about as many as it says, and those that a
// smaller one chooses, too.
func TestARatioChooses(t *testing.T) {
	t.Parallel()
	some, _ := kept("key", 0.3)
	more, _ := kept("key", 0.6)
	none, _ := kept("key", 0)
	const all = 4000
	n := 0
	for i := range all {
		id := string(binary.BigEndian.AppendUint32(nil, uint32(i)))
		is := func(t *tracing.Tracer) bool {
			return strings.HasSuffix(t.Headers(nil, id, "n")[signal.HeaderTraceparent], "-01")
		}
		if is(none) || is(some) && !is(more) {
			t.Fatal("chosen by the smaller ratio alone")
		}
		if is(some) {
			n++
		}
	}
	if n < all/4 || n > all*7/20 {
		t.Errorf("%d of %d", n, all)
	}
}

// Signals that were decided together are one span, with a link to the sender of each.
func TestSignalsOfOneTurnAreLinks(t *testing.T) {
	t.Parallel()
	tracer, spans := kept("key", 1)
	m := made(snapshot.Snapshot{InstanceID: "i", Version: 7, Status: snapshot.Waiting})
	for i := range tracing.MaxLinks + 3 {
		span := strings.Repeat("0", 14) + string("0123456789abcdef"[i/16+1]) + string("0123456789abcdef"[i%16])
		m.Signals = append(m.Signals, &turn.Signal{Envelope: signal.Envelope{Type: signal.ExternalSignal, Headers: map[string]string{signal.HeaderTraceparent: "00-" + strings.Repeat("a1", 16) + "-" + span + "-01"}}})
	}
	m.Signals = append(m.Signals, m.Signals[0]) // the same sender
	tracer.Turn(m, time.Now())
	if len(*spans) != 1 || len((*spans)[0].Links) != tracing.MaxLinks || (*spans)[0].Unlinked != 3 || number((*spans)[0], "aqueduct.signals") != tracing.MaxLinks+4 {
		t.Errorf("%d spans: %+v", len(*spans), *spans)
	}
}

// message is the delivery of one.
type message struct{ store.Delivery }

func (message) Message() store.Message { return store.Message{Queue: store.Schedule} }

// A turn of a message is of a consumer, also where nothing was decided.
func TestAMessageIsConsumed(t *testing.T) {
	t.Parallel()
	tracer, spans := kept("key", 1)
	m := made(snapshot.Snapshot{InstanceID: "i", Version: 2})
	m.To = message{}
	tracer.Turn(m, time.Now())
	m.To, m.Out, m.Err = nil, nil, errors.New("x")
	m.Signals = []*turn.Signal{{}, {Delivery: message{}}}
	tracer.Turn(m, time.Now())
	for _, s := range *spans {
		if s.Kind != tracing.Consumer || s.Name != "process schedule" || text(s, "messaging.destination.name") != "schedule" || text(s, "messaging.system") != "aq" {
			t.Errorf("%+v", s)
		}
	}
	if len(*spans) != 2 || !(*spans)[1].Failed {
		t.Errorf("%+v", *spans)
	}
}

// A schedule ticks for ever: each of its turns is a trace, and has no parent.
func TestATickIsATrace(t *testing.T) {
	t.Parallel()
	tracer, spans := kept("key", 1)
	for version := range int64(2) {
		tracer.Turn(made(snapshot.Snapshot{InstanceID: "schedule/x", Version: version + 2, Schedule: &snapshot.Schedule{}}), time.Now())
	}
	if s := *spans; len(s) != 2 || s[0].Trace == s[1].Trace || s[0].Parent != [8]byte{} {
		t.Errorf("%+v", s)
	}
}

// The same turn is the same span, and a child has its parent's start above it.
func TestATurnHasOneID(t *testing.T) {
	t.Parallel()
	tracer, spans := kept("key", 1)
	caller := map[string]string{signal.HeaderTraceparent: "00-" + strings.Repeat("a1", 16) + "-" + strings.Repeat("b2", 8) + "-01"}
	m := made(snapshot.Snapshot{InstanceID: "i", Version: 2, Headers: caller})
	tracer.Turn(m, time.Now())
	tracer.Turn(m, time.Now())
	m.Out.Snapshot.Epoch = 2 // of a restored database
	tracer.Turn(m, time.Now())
	if s := *spans; s[0].ID != s[1].ID || s[2].ID == s[0].ID {
		t.Errorf("%+v", s)
	}
	*spans = nil
	child := turn.Made{Out: &engine.Outcome{Snapshot: snapshot.Snapshot{InstanceID: "c", Version: 1, Headers: caller, Parent: &snapshot.Parent{InstanceID: "i"}}}}
	parent := turn.Made{Out: &engine.Outcome{Snapshot: snapshot.Snapshot{InstanceID: "i", Version: 1, Headers: caller}}}
	tracer.Turn(parent, time.Now())
	tracer.Turn(child, time.Now())
	if s := *spans; len(s) != 4 || s[2].Parent != s[0].ID || s[2].ID == s[0].ID {
		t.Errorf("%+v", s)
	}
	*spans = nil
	child.Out.Snapshot.Parent.InstanceID = schedule.Prefix + "x" // which is in no trace: who has sent the event is
	tracer.Turn(child, time.Now())
	if s := *spans; len(s) != 2 || hex.EncodeToString(s[0].Parent[:]) != strings.Repeat("b2", 8) {
		t.Errorf("%+v", s)
	}
}

// What an error says is nobody's, and an error type that is an author's is not told.
func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	tracer, spans := kept("key", 1)
	m := made(snapshot.Snapshot{InstanceID: "i", Version: 2, Status: snapshot.Faulted, Error: &snapshot.Error{Type: "https://x/" + planted, Detail: planted}})
	tracer.Turn(m, time.Now())
	m.Out.Snapshot.Error.Type = engine.ErrorBase + engine.ErrTimeout
	tracer.Turn(m, time.Now())
	for _, err := range []error{problem.New(problem.Conflict, "a.code", "%s", planted), errors.New(planted)} {
		m.Err = err
		tracer.Turn(m, time.Now())
	}
	for _, later := range []error{turn.ErrUntouched, &turn.Behind{Cause: errors.New("x")}} { // it was not for this turn
		m.Err = later
		tracer.Turn(m, time.Now())
	}
	s := *spans
	if len(s) != 4 || text(s[0], "aqueduct.fault") != "_OTHER" || text(s[1], "aqueduct.fault") != "timeout" || s[1].Failed || text(s[2], "error.type") != "a.code" || !s[3].Failed || text(s[3], "error.type") == "" {
		t.Errorf("%+v", s)
	}
	for _, span := range s {
		if slices.ContainsFunc(span.Attributes, func(a tracing.Attribute) bool { return strings.Contains(a.Text, planted) }) {
			t.Errorf("%+v", span)
		}
	}
}

// Whatever a header says, nothing panics, and what is taken is a traceparent.
func FuzzTraceparent(f *testing.F) {
	f.Add("00-" + strings.Repeat("a1", 16) + "-" + strings.Repeat("b2", 8) + "-01")
	f.Add(strings.Repeat("-", 55))
	f.Fuzz(func(t *testing.T, s string) {
		tracer, spans := kept("key", rand.Float64())
		tracer.Turn(made(snapshot.Snapshot{InstanceID: "i", Version: 2, Headers: map[string]string{signal.HeaderTraceparent: s}}), time.Now())
		for _, span := range *spans {
			if span.Trace == [16]byte{} || span.ID == [8]byte{} || span.Parent == [8]byte{} {
				t.Errorf("%q: %+v", s, span)
			}
		}
	})
}
