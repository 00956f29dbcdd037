package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/places"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// gatherDoc takes the events of one instance until told to stop.
var gatherDoc = doc("gather", `
  - all:
      listen: {to: {any: [{with: {type: step}}], until: '${ any(.[]; . == "stop") }'}}
`)

// strict is a definition that refuses events, as a state machine does.
type strict struct{ engine.Definition }

// Matches implements engine.Definition.
func (d strict) Matches(s *snapshot.Snapshot, w snapshot.Wait, event json.RawMessage) (bool, error) {
	var e struct{ Type, Data string }
	_ = json.Unmarshal(event, &e)
	switch e.Data {
	case "no":
		return false, problem.New(problem.Conflict, "lifecycle.refused", "event %s is not for this state", e.Type)
	case "soon":
		return false, problem.New(problem.Conflict, "lifecycle.in-transition", "a hook is under way")
	case "odd":
		return false, problem.New(problem.Invalid, "lifecycle.invalid-payload", "the payload does not fit")
	}
	return d.Definition.Matches(s, w, event)
}

// strictNode is a node whose definitions refuse the data "no", "soon" and
// "odd", and that suspends the instance of a dead letter.
func strictNode(t *testing.T, place string, documents ...string) *testNode {
	t.Helper()
	st, err := places.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{store: st, done: make(chan error, 1)}
	n.cat = definition.New(st, map[string]definition.Parser{"openworkflow": func(file string, source []byte, given ...definition.Resource) (definition.Parsed, error) {
		p, err := openworkflow.Parse(file, source, given...)
		p.Definition = strict{p.Definition}
		return p, err
	}}, time.Now)
	for _, d := range documents {
		if _, _, err := n.cat.Publish(t.Context(), "doc.yaml", []byte(d)); err != nil {
			t.Fatal(err)
		}
	}
	n.rt, err = runtime.New(t.Context(), runtime.Config{
		Store: st, Definitions: n.cat, Performer: activity.New(activity.Config{}), Now: time.Now, RetryMax: 2, RetryDelay: 20 * time.Millisecond,
		SignalConsumers: 4, ScheduleConsumers: 4, CommandConsumers: 4, SuspendOnDeadLetter: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(t.Context())
	n.stop = stop
	go func() { n.done <- n.rt.Run(run) }()
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

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
	entries, err := n.store.Stream(t.Context(), id, 0, projections.MaxLimit)
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
	places.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, gatherDoc)
		req := trigger("t/gather", "L-1", "r-1", "a")
		id, created, did, err := n.rt.StartOrSignal(t.Context(), "", req, nil)
		if !created || did != engine.Applied || err != nil {
			t.Fatalf("first: %t %s, %v", created, did, err)
		}
		s, err := n.store.Load(t.Context(), id)
		if err != nil || s.Version != 1 || s.Status != snapshot.Waiting {
			t.Fatalf("%+v, %v", s, err)
		}
		entries, err := n.store.Stream(t.Context(), id, 0, 10)
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

// A first event that is refused leaves nothing: no instance, no rows. What is
// refused by the present state of one that is there leaves it as it was.
func TestRefusedFirstSignalLeavesNothing(t *testing.T) {
	t.Parallel()
	places.Each(t, func(t *testing.T, fresh func() string) {
		n := strictNode(t, fresh(), gatherDoc)
		for _, c := range []struct{ data, code string }{
			{"no", "lifecycle.refused"}, {"soon", "lifecycle.in-transition"}, {"odd", "lifecycle.invalid-payload"},
		} {
			id, created, _, err := n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", "r-"+c.data, c.data), nil)
			code(t, err, c.code)
			if _, err := n.store.Load(t.Context(), id); created || !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: created %t, %v", c.data, created, err)
			}
		}
		if page, err := n.store.Instances(t.Context(), projections.InstanceQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("instances %+v, %v", page, err)
		}
		id, created, _, err := n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", "r-1", "a"), nil)
		if !created || err != nil {
			t.Fatal(created, err)
		}
		_, _, _, err = n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", "r-no", "no"), nil)
		code(t, err, "lifecycle.refused")
		if s, err := n.store.Load(t.Context(), id); err != nil || s.Version != 1 {
			t.Errorf("version %d, %v", s.Version, err)
		}
		// The state that the first application brought about refuses its repeat.
		_, _, did, err := n.rt.StartOrSignal(t.Context(), "", trigger("t/gather", "L-1", "r-1", "no"), nil)
		if did != duplicate || err != nil {
			t.Errorf("repeat: %s, %v", did, err)
		}
	})
}

// Of eight callers at once, each twice, one creates and the others signal.
func TestManyTriggersAreOneInstance(t *testing.T) {
	t.Parallel()
	places.Each(t, func(t *testing.T, fresh func() string) {
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
	places.Each(t, func(t *testing.T, fresh func() string) {
		n := strictNode(t, fresh(), gatherDoc)
		for i := range 8 {
			n.request(t, fmt.Sprint("i-", i), trigger("t/gather", "L-1", fmt.Sprint("r-", i/2), fmt.Sprint(i/2)))
		}
		deadline := time.Now().Add(20 * time.Second)
		var id string
		for {
			page, err := n.store.Instances(t.Context(), projections.InstanceQuery{BusinessKey: "L-1"})
			if err != nil || len(page.Items) > 1 || time.Now().After(deadline) {
				t.Fatalf("%+v, %v", page, err)
			}
			if len(page.Items) == 1 {
				if id = page.Items[0].ID; len(n.signals(t, id)) == 4 && n.idle(t) {
					break
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		if letters, err := n.store.DeadLetters(t.Context(), projections.DeadLetterQuery{}); err != nil || len(letters.Items) != 0 {
			t.Fatalf("letters %+v, %v", letters, err)
		}
		// What is refused is a dead letter at once, and suspends nothing; what
		// comes between two states is tried again first.
		for _, c := range []struct {
			data, code string
			attempts   int
		}{{"no", "lifecycle.refused", 1}, {"odd", "lifecycle.invalid-payload", 1}, {"soon", "lifecycle.in-transition", 3}} {
			event, err := json.Marshal(map[string]string{"type": "step", "data": c.data})
			if err != nil {
				t.Fatal(err)
			}
			for _, send := range []func(){
				func() { n.request(t, id, trigger("t/gather", "L-1", "x-"+c.data, c.data)) },
				func() { n.request(t, "new-"+c.data, trigger("t/gather", "L-2", "x-"+c.data, c.data)) },
				func() {
					n.send(t, string(must(signal.Envelope{SignalID: "y-" + c.data, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: event}.Encode())))
				},
			} {
				send()
				l := n.letters(t, 1)[0]
				if l.Reason != c.code || l.Attempts != c.attempts {
					t.Errorf("%s: %+v", c.data, l)
				}
				if err := n.store.Discard(t.Context(), l.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A repeat of what was applied is harmless, whatever the state says now.
		n.request(t, id, trigger("t/gather", "L-1", "r-0", "no"))
		n.request(t, "other", trigger("t/gather", "L-1", "stop", "stop"))
		n.output(t, id)
		n.request(t, id, trigger("t/gather", "L-1", "stop", "stop"))
		for !n.idle(t) {
			time.Sleep(5 * time.Millisecond)
		}
		if letters, err := n.store.DeadLetters(t.Context(), projections.DeadLetterQuery{}); err != nil || len(letters.Items) != 0 {
			t.Errorf("letters %+v, %v", letters, err)
		}
		if page, err := n.store.Instances(t.Context(), projections.InstanceQuery{}); err != nil || len(page.Items) != 1 {
			t.Errorf("instances %+v, %v", page, err)
		}
	})
}

// idle reports whether no message is left.
func (n *testNode) idle(t *testing.T) bool {
	t.Helper()
	queues, err := n.store.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		if q.Ready+q.Delayed+q.Leased > 0 {
			return false
		}
	}
	return true
}
