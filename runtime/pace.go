package runtime

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// What a definition causes to itself has nothing outside that slows it: an
// instance that starts one of its own definition, directly or by way of others,
// an event that its instances emit and take, a loop that never waits. The first
// Rates.Burst of each of these go at once; then so many in a second on a node.
// The surplus is delayed, not lost: it is sent with the time at which it is due.
//
// What causes what is written in a header of the messages: the definitions that
// have had to do with it.

// Rates bounds what a definition causes to itself on a node. A zero field means
// the default.
type Rates struct {
	Starts int // of instances by instances of their own definition, in a second
	Events int // that instances of a definition take from instances of it, in a second
	Loops  int // turns in which an instance goes on after limits.steps tasks, in a second
	Burst  int // of each that go at once
}

// Defaults of Rates.
const (
	DefaultSelfStarts = 50
	DefaultSelfEvents = 100
	DefaultSelfLoops  = 20
	DefaultBurst      = 1_000
)

// Names of what is paced, as in the metric.
const (
	selfStart = "start"
	selfEvent = "event"
	selfLoop  = "loop"
)

// pacedMax bounds the rates that are remembered. Over it those are forgotten
// that have gone furthest below their limits.
const pacedMax = 1_024

// pacer says when something may go on.
type pacer struct {
	rates Rates
	mu    sync.Mutex
	next  map[string]time.Time // when all that has been admitted would have been, without a burst
	last  time.Time            // it was asked
}

func newPacer(r Rates) *pacer { return &pacer{rates: r, next: map[string]time.Time{}} }

// admit counts one of what a definition causes to itself, and returns when it is
// due: the zero time where that is at once.
func (p *pacer) admit(what, definition string, now time.Time) (due time.Time) {
	rate := map[string]int{selfStart: p.rates.Starts, selfEvent: p.rates.Events, selfLoop: p.rates.Loops}[what]
	each := time.Second / time.Duration(rate)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setBack(now)
	key := what + " " + definition
	next, known := p.next[key]
	if !known && len(p.next) >= pacedMax {
		p.forget(now)
	}
	if next.Before(now) {
		next = now
	}
	next = next.Add(each)
	p.next[key] = next
	if due = next.Add(-each * time.Duration(p.rates.Burst)); !due.After(now) {
		return time.Time{}
	}
	return due
}

// setBackMin is how far a clock is set back at least: somebody who asked before another may come after.
const setBackMin = time.Second

// setBack follows a clock that has been set back: what it admitted while it was ahead is not for then; p.mu is held.
func (p *pacer) setBack(now time.Time) {
	switch ahead := p.last.Sub(now); {
	case ahead >= setBackMin:
		for key, next := range p.next {
			p.next[key] = next.Add(-ahead)
		}
		p.last = now
	case ahead < 0:
		p.last = now
	}
}

// forget drops what is at rest, else what is least busy; p.mu is held.
func (p *pacer) forget(now time.Time) {
	least := ""
	for key, next := range p.next {
		if !next.After(now) {
			delete(p.next, key)
		} else if least == "" || next.Before(p.next[least]) {
			least = key
		}
	}
	if len(p.next) >= pacedMax {
		delete(p.next, least)
	}
}

// paced is admit for what one message causes; the metric counts what is late.
func (r *Runtime) paced(what, definition string) time.Time {
	due := r.pace.admit(what, definition, r.Now())
	if !due.IsZero() {
		r.metrics.paced.WithLabelValues(what).Inc()
	}
	return due
}

// lineageMax bounds the definitions that a message names.
const lineageMax = 16

// lineage adds to headers that a definition has had to do with what they go
// with, and what is in the headers of its causes.
func lineage(headers map[string]string, definition string, causes ...string) map[string]string {
	names := strings.Fields(headers[signal.HeaderLineage])
	for _, c := range append(causes, shortName(definition)) {
		for _, name := range strings.Fields(c) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	names = names[max(len(names)-lineageMax, 0):]
	if _, there := headers[signal.HeaderLineage]; !there && len(headers) >= signal.MaxHeaders {
		return headers // which another program has filled
	}
	out := map[string]string{}
	maps.Copy(out, headers)
	out[signal.HeaderLineage] = strings.Join(names, " ")
	return out
}

// causedBy reports whether a definition has had to do with what headers go with.
func causedBy(headers map[string]string, definition string) bool {
	h := headers[signal.HeaderLineage]
	return h != "" && slices.Contains(strings.Fields(h), shortName(definition))
}

// shortName stands for a definition in a header. Two that share one are paced
// where they cause each other: no harm.
func shortName(definition string) string {
	h := fnv.New32a()
	h.Write([]byte(definition))
	return fmt.Sprintf("%08x", h.Sum32())
}

// trace writes into the events and the requests for instances of a turn what has
// caused them: the instance, and the signals that the turn decided.
func trace(out *engine.Outcome, causes ...string) {
	if out.Snapshot.Schedule != nil {
		return // time and the outside have
	}
	name := out.Snapshot.Definition.Name
	for i := range out.Send {
		if env := &out.Send[i].Envelope; env.Type == signal.StartRequest {
			env.Headers = lineage(env.Headers, name, causes...)
		}
	}
	for i := range out.Entries {
		if c := out.Entries[i].Command; c != nil && c.Target == engine.TargetEvent {
			c.Headers = lineage(c.Headers, name, causes...)
		}
	}
}
