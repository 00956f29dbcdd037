package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// gatherDoc takes the events of one instance until told to stop.
var gatherDoc = doc("gather", `
  - all:
      listen: {to: {any: [{with: {type: step}}], until: '${ any(.[]; . == "stop") }'}}
`)

// loanDoc is a lifecycle: it refuses what its present state does not take, and
// everything while a hook waits.
const loanDoc = `
lifecycle: '1.0'
environment: t
definition: loan
version: '1.0.0'
states: {Draft: {category: initial}, Review: {}, Held: {}, Done: {category: final}}
events: {submit: {code: 1000, schema: {document: {type: object}}}, hold: {}, close: {}}
transitions:
  - {from: Draft, event: submit, to: Review, set: '${ . + $event.data }'}
  - {from: Review, event: hold, to: Held, hooks: [{pause: {wait: PT1H}}]}
  - {from: Review, event: close, to: Done}
`

// trigger is a start with a signal, by reference.
func trigger(definition, reference, id, data string) signal.Start {
	return signal.Start{
		Definition: definition, BusinessKey: reference, StartKey: signal.LifecycleKey, Input: json.RawMessage(`{"order":7}`),
		Signal: &signal.FirstSignal{ID: id, Type: "step", Data: json.RawMessage(`"` + data + `"`), Actor: "ann"},
	}
}

// signals are the ids of the signals in an instance's stream, in order.
func (n *testNode) signals(t *testing.T, id string) []string {
	t.Helper()
	entries, err := n.store.Streams.Stream(t.Context(), id, 0, projections.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		if e.SignalID != "" {
			ids = append(ids, e.SignalID)
		}
	}
	return ids
}

func TestStartWithSignalIsOneCommit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, gatherDoc)
		req := trigger("t/gather", "L-1", "r-1", "a")
		id, created, did, err := n.rt.StartOrSignal(t.Context(), "", req, nil)
		if !created || did != engine.Applied || err != nil {
			t.Fatalf("first: %t %s, %v", created, did, err)
		}
		s, err := n.store.Writer.Load(t.Context(), id)
		if err != nil || s.Version != 1 || s.Status != snapshot.Waiting {
			t.Fatalf("%+v, %v", s, err)
		}
		entries, err := n.store.Streams.Stream(t.Context(), id, 0, 10)
		if err != nil || len(entries) != 2 || entries[0].Type != engine.EntryStarted || entries[1].Type != string(signal.ExternalSignal) ||
			entries[1].SignalID != "r-1" || !strings.Contains(string(entries[1].Metadata), `"actor":"ann"`) {
			t.Fatalf("stream %+v, %v", entries, err)
		}
		for _, c := range []struct {
			id, data string
			want     engine.Disposition
		}{{"r-1", "a", duplicate}, {"r-2", "b", engine.Applied}, {"r-2", "b", duplicate}, {"r-3", "stop", engine.Applied}, {"r-3", "stop", duplicate}, {"r-1", "a", duplicate}} {
			again, created, did, err := n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", c.id, c.data), nil)
			if again != id || created || did != c.want || err != nil {
				t.Errorf("%s: %s %t %s, %v, want %s", c.id, again, created, did, err, c.want)
			}
		}
		if out := n.output(t, id); out != `["a","b","stop"]` {
			t.Errorf("output %s", out)
		}
		_, _, _, err = n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", "r-4", "c"), nil)
		code(t, err, "instance.closed")

		req.Signal = nil
		if again, created, did, err := n.rt.StartOrSignal(t.Context(), "", req, nil); again != id || created || did != "" || err != nil {
			t.Errorf("without a signal: %s %t %s, %v", again, created, did, err)
		}
		for _, bad := range []signal.FirstSignal{{Type: "t"}, {ID: "a b", Type: "t"}, {ID: "r"}, {ID: "r", Type: strings.Repeat("x", 300)}} {
			req.Signal = &bad
			if _, _, _, err := n.rt.StartOrSignal(t.Context(), "", req, nil); problem.KindOf(err) != problem.Invalid && problem.KindOf(err) != problem.TooLarge {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// event is a trigger of the lifecycle loan.
func event(reference, id, name, data string) signal.Start {
	s := trigger("t/loan", reference, id, "")
	s.Signal.Type, s.Signal.Data = name, json.RawMessage(data)
	return s
}

// A first event that is refused leaves nothing: no instance, no rows. What is
// refused by the present state of one that is there leaves it as it was; a
// repeat is a duplicate, though the state that it led to would refuse it.
func TestRefusedFirstSignalLeavesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, loanDoc)
		for _, c := range []struct{ name, data, code string }{
			{"close", `{}`, "lifecycle.refused"}, {"submit", `7`, "lifecycle.invalid-payload"}, {"nothing", `{}`, "lifecycle.unknown-event"},
		} {
			id, created, _, err := n.rt.StartOrSignal(t.Context(), "", event("L-1", "r-"+c.name, c.name, c.data), nil)
			code(t, err, c.code)
			if _, err := n.store.Writer.Load(t.Context(), id); created || !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: created %t, %v", c.name, created, err)
			}
		}
		if page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("instances %+v, %v", page, err)
		}
		for i, c := range []struct {
			id, name string
			want     engine.Disposition
			version  int64
			code     string
		}{
			{"r-1", "1000", engine.Applied, 1, ""}, {"r-1", "1000", duplicate, 1, ""}, {"r-2", "submit", "", 1, "lifecycle.refused"},
			{"r-3", "close", engine.Applied, 2, ""}, {"r-1", "1000", duplicate, 2, ""}, {"r-3", "close", duplicate, 2, ""}, {"r-4", "close", "", 2, "instance.closed"},
		} {
			id, created, did, err := n.rt.StartOrSignal(t.Context(), "", event("L-1", c.id, c.name, `{"amount":1}`), nil)
			if did != c.want || created != (i == 0) || (err == nil) != (c.code == "") {
				t.Errorf("%d: created %t, %s, %v", i, created, did, err)
			}
			if err != nil {
				code(t, err, c.code)
			}
			if s, err := n.store.Writer.Load(t.Context(), id); err != nil || s.Version != c.version {
				t.Errorf("%d: version %d, %v", i, s.Version, err)
			}
		}
	})
}

// Of eight callers at once, each twice, one creates and the others signal.
func TestManyTriggersAreOneInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, gatherDoc)
		var mu sync.Mutex
		var wg sync.WaitGroup
		ids, created, did := map[string]bool{}, 0, map[engine.Disposition]int{}
		for i := range 16 {
			wg.Go(func() {
				id, isNew, d, err := n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", fmt.Sprint("r-", i%8), fmt.Sprint(i%8)), nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
				did[d]++
				if isNew {
					created++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || created != 1 || did[engine.Applied] != 8 || did[duplicate] != 8 {
			t.Errorf("%d instances, %d created, %v", len(ids), created, did)
		}
		for id := range ids {
			if got := n.signals(t, id); len(got) != 8 {
				t.Errorf("signals %v", got)
			}
		}
	})
}

// request sends a start with a signal the way an application does.
func (n *testNode) request(t *testing.T, instance string, s signal.Start) {
	t.Helper()
	payload, err := json.Marshal(s)
	if err == nil {
		err = enqueue(t.Context(), n, signal.Envelope{
			SignalID: "start-" + instance, InstanceID: instance, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: payload,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Through the queue each request may name an instance of its own: the start
// key decides (A15).
func TestTriggersThroughTheQueue(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, gatherDoc)
		for i := range 8 {
			n.request(t, fmt.Sprint("i-", i), trigger("t/gather", "L-1", fmt.Sprint("r-", i/2), fmt.Sprint(i/2)))
		}
		var w await.Wait
		var id string
		for {
			page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{BusinessKey: "L-1"})
			if err != nil || len(page.Items) > 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			if len(page.Items) == 1 {
				if id = page.Items[0].ID; len(n.signals(t, id)) == 4 && n.idle(t) {
					break
				}
			}
			if !w.Again(5*time.Millisecond, page.Items) {
				t.Fatalf("nothing moves any more: %+v", page)
			}
		}
		n.quiet(t)
		n.request(t, "other", trigger("t/gather", "L-1", "stop", "stop"))
		n.output(t, id)
		n.request(t, id, trigger("t/gather", "L-1", "stop", "stop"))
		n.quiet(t)
		if page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{}); err != nil || len(page.Items) != 1 {
			t.Errorf("instances %+v, %v", page, err)
		}
	})
}

// What a state refuses is a dead letter when the grace for what may come before
// it is over, what none takes at once; what comes while a hook waits is tried
// again first. Neither suspends the instance: it has nothing to do with it.
func TestRefusedEventsAreDeadLetters(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), func(c *runtime.Config) {
			c.SuspendOnDeadLetter, c.RetryMax, c.RetryDelay, c.OrderGrace = true, 2, 20*time.Millisecond, 25*time.Millisecond
		}, loanDoc)
		for i, reference := range []string{"L-1", "L-2"} {
			n.request(t, reference, event(reference, "r-1", "submit", `{"amount":1}`))
			n.until(t, reference, func(row projections.Instance) bool { return row.Position == "Review" })
			if i == 1 {
				n.request(t, "other", event(reference, "r-2", "hold", `{}`))
				n.until(t, reference, func(row projections.Instance) bool { return row.Position == "Review->Held" })
			}
		}
		for _, c := range []struct {
			reference, name, data, code string
			attempts                    int
		}{
			{"L-1", "submit", `{}`, "lifecycle.refused", 2}, {"L-1", "submit", `7`, "lifecycle.invalid-payload", 1},
			{"L-1", "nothing", `{}`, "lifecycle.unknown-event", 1}, {"L-2", "close", `{}`, "lifecycle.in-transition", 3},
			{"L-3", "close", `{}`, "lifecycle.refused", 2},
		} {
			plain := signal.Envelope{SignalID: "plain", InstanceID: c.reference, Type: signal.ExternalSignal, OccurredAt: time.Now()}
			plain.Payload = json.RawMessage(`{"type":"` + c.name + `","data":` + c.data + `}`)
			sends := []func(){
				func() { n.request(t, c.reference, event(c.reference, "x", c.name, c.data)) },
				func() { n.send(t, string(must(plain.Encode()))) },
			}
			if c.reference == "L-3" {
				sends = sends[:1] // nothing to signal plainly
			}
			for _, send := range sends {
				send()
				l := n.deadLetters(t, 1)[0]
				// What comes out of order has its whole grace: how often it is looked at meanwhile is the machine's matter.
				if l.Reason != c.code || l.Attempts < c.attempts || c.attempts == 1 && l.Attempts > 1 || l.InstanceID != c.reference {
					t.Errorf("%s: %+v", c.name, l)
				}
				if err := n.store.DeadLetters.Discard(t.Context(), l.ID, backend.AnyEdit, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A repeat of what was applied is harmless, though the state refuses it.
		n.request(t, "again", event("L-1", "r-1", "submit", `{"amount":1}`))
		n.quiet(t)
		for _, reference := range []string{"L-1", "L-2"} {
			if row, err := n.store.Instances.Instance(t.Context(), reference); err != nil || row.Status != "waiting" {
				t.Errorf("%+v, %v", row, err)
			}
		}
		if _, err := n.store.Instances.Instance(t.Context(), "L-3"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a refused first event left something: %v", err)
		}
	})
}

// quiet waits until no message is left that is due, and none has died.
func (n *testNode) quiet(t *testing.T) {
	t.Helper()
	for !n.idle(t) {
		time.Sleep(5 * time.Millisecond)
	}
	if deadLetters, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{}); err != nil || len(deadLetters.Items) != 0 {
		t.Fatalf("dead letters %+v, %v", deadLetters, err)
	}
}

// idle reports whether no message is left that is due.
func (n *testNode) idle(t *testing.T) bool {
	t.Helper()
	queues, err := n.store.Backlog.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		if q.Ready+q.Leased > 0 || q.Name == string(store.Signals) && q.Delayed > 0 {
			return false
		}
	}
	return true
}

// crashLifecycle has a hook that the outside performs.
const crashLifecycle = `
lifecycle: '1.0'
environment: t
definition: loan
version: '1.0.0'
states: {Draft: {category: initial}, Review: {}, Done: {category: final}}
events: {submit: {}, close: {}}
transitions:
  - {from: Draft, event: submit, to: Review, hooks: [{charge: {call: effect, with: {do: charge}}}]}
  - {from: Review, event: close, to: Done}
`

// crashPolicy lies over it, and has a hook, too.
const crashPolicy = `
policy: '1.0'
environment: t
definition: loan
version: '1.0.0'
states: {Review: {timeout: PT1H, onEnter: [{look: {call: effect, with: {do: look}}}]}}
`

// driveTriggers plays an application that says everything again until it sees
// that it was done: the first event by the API, the second through the queue,
// one that is refused, and one that is refused under a key.
func driveTriggers(ctx context.Context, n *testNode) error {
	for ctx.Err() == nil {
		if _, _, _, err := n.rt.StartOrSignal(ctx, "i", event("L-1", "r-1", "submit", "7"), nil); err != nil {
			return err
		}
		_, created, _, err := n.rt.StartOrSignal(ctx, "j", event("L-2", "r-1", "close", "7"), nil)
		if _, missing := n.store.Writer.Load(ctx, "j"); created || problem.CodeOf(err) != "lifecycle.refused" || !errors.Is(missing, store.ErrNotFound) {
			return fmt.Errorf("a refused first event: created %t, %w, %w", created, err, missing)
		}
		s, err := n.store.Writer.Load(ctx, "i")
		if err != nil {
			return err
		}
		if s.Status == snapshot.Completed {
			open, err := n.store.Streams.Pending(ctx, "", 1)
			if err != nil || len(open) == 0 {
				return err
			}
		}
		if w, _ := s.Primary(); w.Kind == snapshot.WaitState {
			said := sentBy("i", "k", "submit", "")
			said.SignalID, said.DedupeKey = signal.Keyed("k"), "k"
			if _, err := n.rt.Signal(ctx, said); problem.CodeOf(err) != "lifecycle.refused" { // kept under its key, once
				return fmt.Errorf("an event that the state refuses: %w", err)
			}
			payload, err := json.Marshal(event("L-1", "r-2", "close", "8"))
			if err != nil {
				return err
			}
			if err := enqueue(ctx, n, signal.Envelope{
				SignalID: "start", InstanceID: "another", Type: signal.StartRequest, OccurredAt: time.Now(), Payload: payload,
			}); err != nil {
				return err
			}
		}
		time.Sleep(20 * time.Millisecond) // what it says again is an operation too
	}
	return ctx.Err()
}

// TestTriggerSurvivesEachCrash stops a real process just before and just after
// each of its durable operations, and lets another finish: each event is
// applied once, and what was refused left nothing.
func TestTriggerSurvivesEachCrash(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		crashPoints(t, testdb.OnFile(t), "trigger", 1, 1)
	})
	t.Run("oracle", func(t *testing.T) {
		t.Parallel()
		crashPoints(t, testdb.OnOracle(t), "trigger", 1+rand.Int64N(3), 3) // others in every run
	})
}
