package tracing

import (
	"maps"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

const headerTracestate = "tracestate"

// instance is where an instance is: the span of its start, in its trace.
type instance struct {
	place
	caller   place   // who has started it, and was traced; zeros = nobody
	parent   [8]byte // of the span of its start; zeros = it has none
	schedule bool
}

// Headers are those of a start with the trace of the instance that begins, where they
// have none: every command, child and event carries it. A traceparent that is none is
// replaced, and the tracestate that came with it left out.
func (t *Tracer) Headers(headers map[string]string, id, incarnation string) map[string]string {
	if _, ok := parse(headers[signal.HeaderTraceparent]); ok {
		return headers
	}
	if _, there := headers[signal.HeaderTraceparent]; !there && len(headers) >= signal.MaxHeaders {
		return headers // which its sender has filled
	}
	own := make(map[string]string, len(headers)+1)
	maps.Copy(own, headers)
	delete(own, headerTracestate)
	own[signal.HeaderTraceparent] = t.own(id, incarnation).String()
	return own
}

// own is where an instance is that nobody traced has started.
func (t *Tracer) own(of ...string) (p place) {
	sum := derived(t.Key, of...)
	copy(p.trace[:], sum[:])
	p.span = spanIn(p.trace, "start", of[0])
	p.sampled = chosen(p.trace, t.Ratio)
	return p
}

// instance is where an instance is by the headers of its start. One that has begun while
// nobody traced has a trace of its id alone.
func (t *Tracer) instance(headers map[string]string, id string) instance {
	stored, ok := parse(headers[signal.HeaderTraceparent])
	if !ok {
		return instance{place: t.own(id)}
	}
	i := instance{place: stored}
	if i.span = spanIn(stored.trace, "start", id); i.span != stored.span {
		i.caller, i.parent = stored, stored.span
	}
	return i
}

// of is where a turn of an instance is. A schedule has turns for ever: each is a trace of its own.
func (t *Tracer) of(s *snapshot.Snapshot) instance {
	if s.Schedule == nil {
		i := t.instance(s.Headers, s.InstanceID)
		if s.Parent != nil && i.caller != (place{}) && !strings.HasPrefix(s.Parent.InstanceID, schedule.Prefix) { // it has the trace of its parent, and so the caller of that
			i.parent = spanIn(i.trace, "start", s.Parent.InstanceID)
		}
		return i
	}
	return instance{place: t.own(s.InstanceID, s.Incarnation, strconv.FormatInt(s.Version, 10)), schedule: true}
}
