package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// ringDoc goes round: each event is refused in every state but one, so that the
// order in which events are applied shows.
const circleDoc = `
lifecycle: '1.0'
environment: t
definition: ring
version: '1.0.0'
states: {A: {category: initial}, B: {}, C: {}}
events: {ab: {}, bc: {}, ca: {}}
transitions:
  - {from: A, event: ab, to: B}
  - {from: B, event: bc, to: C}
  - {from: C, event: ca, to: A}
`

// Events that were queued in order are applied in order, the one that begins
// the entity first (issue: 59 of 60 became dead letters).
func TestQueuedEventsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		const entities, events = 5, 30
		n := startSet(t, fresh(), patient, nil, circleDoc)
		var c store.Change
		for i := range events {
			for e := range entities {
				reference := fmt.Sprintf("R-%d", e)
				s := trigger("t/ring", reference, fmt.Sprintf("e-%d", i), "")
				s.Signal.Type, s.Signal.Data = []string{"ab", "bc", "ca"}[i%3], json.RawMessage(`{}`)
				payload, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				body := must(signal.Envelope{
					SignalID: fmt.Sprintf("s-%d", i), InstanceID: reference, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: payload,
				}.Encode())
				c.Send = append(c.Send, store.Send{Queue: store.Signals, Body: body})
			}
		}
		if err := n.store.Writer.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for e := range entities {
			id := fmt.Sprintf("R-%d", e)
			n.until(t, id, func(projections.Instance) bool { return len(n.signals(t, id)) == events })
			for i, got := range n.signals(t, id) {
				if want := fmt.Sprintf("e-%d", i); got != want {
					t.Errorf("%s: signal %d is %s", id, i, got)
				}
			}
		}
		n.quiet(t)
	})
}

// Where the message of an instance fails for a while, those behind it wait: they
// are applied in the order in which they were sent, tried again or not.
func TestOrderOutlivesRetries(t *testing.T) {
	t.Parallel()
	n := configured(t, testdb.OnFile(t)(), func(c *runtime.Config) {
		c.Definitions = &faltering{Definitions: c.Definitions}
		c.RetryMax, c.RetryDelay, c.RetryDelayMax = 100, 5*time.Millisecond, 20*time.Millisecond
	}, gatherDoc)
	n.begin(t, "g", "t/gather", nil)
	const signals = 300
	var want []string
	for i := range signals {
		data := fmt.Sprint(i)
		if i == signals-1 {
			data = "stop"
		}
		want = append(want, data)
		n.send(t, string(must(signal.Envelope{
			SignalID: fmt.Sprintf("s-%d", i), InstanceID: "g", Type: signal.ExternalSignal, OccurredAt: time.Now(),
			Payload: json.RawMessage(fmt.Sprintf(`{"type":"step","data":"%s"}`, data)),
		}.Encode())))
	}
	var got []string
	if err := json.Unmarshal([]byte(n.output(t, "g")), &got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// faltering is a catalogue that is not to be had for moments.
type faltering struct {
	runtime.Definitions
	asked atomic.Int64
}

func (f *faltering) Pinned(ctx context.Context, ref snapshot.Definition) (engine.Definition, error) {
	if (f.asked.Add(1)+2)%40 < 2 { // twice: what fails on a snapshot of the cache is decided again
		return nil, problem.New(problem.Unavailable, "definition.unavailable", "not now")
	}
	return f.Definitions.Pinned(ctx, ref)
}

var wideDoc = doc("wide", `
  - all:
      call: forEach
      with: {call: effect, in: '${ [range(1000)] }'}
`)

// The results of a wide instance are decided together: they do not compete for
// its version, and small instances beside it are served in between.
func TestWideInstanceDoesNotCompeteWithItself(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), func(context.Context, json.RawMessage) (any, error) { return 1, nil }, wideDoc)
		n.begin(t, "w", "t/wide", nil)
		n.until(t, "w", status("completed"))
		if got := n.counted(t, "aqueduct_version_conflicts_total")[""]; got > 20 {
			t.Errorf("%d conflicts", got)
		}
		s, err := n.store.Writer.Load(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		if s.Version != 1001 {
			t.Errorf("version %d: a signal applied is a version more", s.Version)
		}
	})
}

// sleepers is a fork of 300 branches that wait; wait says for how long.
func sleepers(wait func(i int) string) string {
	var branches strings.Builder
	for i := range 300 {
		fmt.Fprintf(&branches, "          - b%d: {wait: %s}\n", i, wait(i))
	}
	return doc("sleepers", "\n  - all:\n      fork:\n        branches:\n"+branches.String())
}

// Timers of one instance that are due at almost the same moment are no race either.
func TestTimersOfOneInstanceAreDecidedTogether(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, sleepers(func(i int) string { return fmt.Sprintf("PT1.%06dS", i) }))
		turns, before := 0, 0
		for try := range 3 { // on a busy machine they may come one by one
			id := fmt.Sprint("z", try)
			n.begin(t, id, "t/sleepers", nil)
			n.until(t, id, status("completed"))
			all := int(n.counted(t, "aqueduct_turn_signals")[""])
			if turns, before = all-before, all; turns <= 200 {
				break
			}
		}
		if turns > 200 {
			t.Errorf("%d turns for 300 timers", turns)
		}
		if got := n.counted(t, "aqueduct_version_conflicts_total")[""]; got > 20 {
			t.Errorf("%d conflicts", got)
		}
	})
}

// Timers of one instance that are due at the same moment share messages, so that
// the timers of others, and schedules, are not behind each of them.
func TestTimersOfOneMomentShareMessages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, sleepers(func(int) string { return "PT2S" }))
		n.begin(t, "z", "t/sleepers", nil)
		n.until(t, "z", func(i projections.Instance) bool {
			if err := testdb.Verify(t.Context(), place); err != nil { // each that waits has its message
				t.Fatal(err)
			}
			return i.Status == "completed"
		})
		if got := n.counted(t, "aqueduct_turn_signals")[""]; got > 10 {
			t.Errorf("%d turns for 300 timers", got)
		}
		n.quiet(t)
	})
}

// Of signals that are decided in one turn each has a verdict of its own, and one
// that is refused leaves no trace in the state of the others.
func TestEachSignalOfATurnHasItsVerdict(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, circleDoc)
		if _, _, _, err := n.rt.StartOrSignal(t.Context(), "", trigger("t/ring", "R", "e-0", ""), nil); problem.CodeOf(err) != "lifecycle.unknown-event" {
			t.Fatalf("an event that nobody knows: %v", err)
		}
		first := trigger("t/ring", "R", "e-0", "")
		first.Signal.Type = "ab"
		id, _, _, err := n.rt.StartOrSignal(t.Context(), "", first, nil)
		if err != nil {
			t.Fatal(err)
		}
		const rounds = 50
		var applied, refused atomic.Int64
		done := make(chan error)
		for i := range 3 * rounds {
			go func() {
				env := signal.Envelope{SignalID: fmt.Sprintf("s-%d", i), InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(),
					Payload: json.RawMessage(`{"type":"` + []string{"ab", "bc", "ca"}[i%3] + `","data":{}}`)}
				did, err := n.rt.Signal(t.Context(), env)
				switch {
				case err == nil && did == engine.Applied:
					applied.Add(1)
				case problem.CodeOf(err) == "lifecycle.refused":
					refused.Add(1)
					err = nil
				}
				done <- err
			}()
		}
		for range 3 * rounds {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		s, err := n.store.Writer.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(n.signals(t, id)), int(applied.Load())+1; got != want || s.Version != int64(want) || applied.Load()+refused.Load() != 3*rounds {
			t.Errorf("%d recorded, version %d; %d applied and %d refused", got, s.Version, applied.Load(), refused.Load())
		}
	})
}

// A signal that the API could only queue is not overtaken by those that its
// sender sends after it.
func TestQueuedSignalIsNotOvertaken(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	n := configured(t, testdb.OnFile(t)(), func(c *runtime.Config) {
		c.Definitions = &missing{Definitions: c.Definitions, away: &away}
		c.RetryMax, c.RetryDelay, c.RetryDelayMax = 100, 5*time.Millisecond, 20*time.Millisecond
	}, gatherDoc)
	n.begin(t, "g", "t/gather", nil)
	var want []string
	for i := range 60 {
		away.Store(i%10 == 3)
		data := fmt.Sprint(i)
		if i == 59 {
			data = "stop"
		}
		want = append(want, data)
		if _, err := n.rt.Signal(t.Context(), signal.Envelope{
			SignalID: fmt.Sprintf("s-%d", i), InstanceID: "g", Type: signal.ExternalSignal, OccurredAt: time.Now(),
			Payload: json.RawMessage(fmt.Sprintf(`{"type":"step","data":"%s"}`, data)),
		}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := json.Unmarshal([]byte(n.output(t, "g")), &got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// missing is a catalogue that is not to be had while it is away.
type missing struct {
	runtime.Definitions
	away *atomic.Bool
}

func (m *missing) Pinned(ctx context.Context, ref snapshot.Definition) (engine.Definition, error) {
	if m.away.Load() {
		return nil, problem.New(problem.Unavailable, "definition.unavailable", "not now")
	}
	return m.Definitions.Pinned(ctx, ref)
}

// Signals that have come before the request for their instance, as they may
// after the database was in trouble, do not keep it behind them.
func TestSignalsDoNotKeepTheirStartBehindThem(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), func(c *runtime.Config) {
			c.RetryMax, c.RetryDelay, c.RetryDelayMax = 1000, 20*time.Millisecond, 50*time.Millisecond
		}, gatherDoc)
		for i, data := range []string{"a", "b", "stop"} {
			n.send(t, string(must(signal.Envelope{
				SignalID: fmt.Sprintf("s-%d", i), InstanceID: "g", Type: signal.ExternalSignal, OccurredAt: time.Now(),
				Payload: json.RawMessage(fmt.Sprintf(`{"type":"step","data":"%s"}`, data)),
			}.Encode())))
		}
		time.Sleep(300 * time.Millisecond) // they are tried again meanwhile
		n.request(t, "g", signal.Start{Definition: "t/gather", Input: json.RawMessage("null")})
		if got := n.output(t, "g"); got != `["a","b","stop"]` {
			t.Error(got)
		}
	})
}

// With a place for one message at a time, a start that is a repeat hands its signal to the instance that is there,
// whose own messages wait for the place.
func TestOnePlaceServesStartsAndSignals(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		const rounds = 40
		n := startSet(t, fresh(), func(c *runtime.Config) { c.Handlers, c.SignalConsumers = 1, 8 }, nil, doc("ticks", `
  - all: {listen: {to: {any: [{with: {type: tick}}], until: '${ length >= 80 }'}}}
  - count: {set: '${ length }'}
`))
		if _, _, err := n.rt.Start(t.Context(), "x", signal.Start{Definition: "t/ticks", BusinessKey: "b", StartKey: "k"}, nil); err != nil {
			t.Fatal(err)
		}
		for i := range rounds {
			n.queue(t, fmt.Sprint("y", i), fmt.Sprintf(`{"definition":"t/ticks","businessKey":"b","startKey":"k","signal":{"id":"first-%d","type":"tick"}}`, i))
			n.send(t, fmt.Sprintf(`{"signalId":"s%d","workflowInstanceId":"x","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"tick"}}`, i))
		}
		if got := n.output(t, "x"); got != fmt.Sprint(2*rounds) {
			t.Errorf("output %s", got)
		}
	})
}
