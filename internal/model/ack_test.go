package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// ordersDocument tells three applications of each transition.
const ordersDocument = `
lifecycle: '1.0'
environment: m
definition: orders
version: '1.0.0'
consumers:
  billing: {endpoint: '%[1]s/billing'}
  stock: {endpoint: '%[1]s/stock'}
  audit: {endpoint: '%[1]s/audit'}
states:
  Open: {category: initial}
  Paid: {}
  Done: {category: final}
events: {pay: {}, ship: {}}
transitions:
  - {from: Open, event: pay, to: Paid}
  - {from: Paid, event: ship, to: Done}
policies:
  - {states: [Paid, Done], consumers: [billing, stock, audit]}
`

// applications are the consumers of one world, and what they and its sink have seen.
type applications struct {
	clock *clock
	begun time.Time

	mu        sync.Mutex
	requests  map[string]int // by consumer
	delivered map[string]int // by consumer and key
	processed map[string]int // by consumer and key
	bad       []string       // bodies that are not of a transition
	acks      []string       // to be made: consumer and path
	events    map[string]map[string]any
}

// ServeHTTP is a consumer that processes a command when it is up and has it.
func (a *applications) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var body struct {
		InstanceID string
		OccurredAt time.Time
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.InstanceID != "order" || body.OccurredAt.Sub(a.begun).Abs() > 15*time.Minute {
		a.bad = append(a.bad, fmt.Sprint(body, err))
	}
	who, age := strings.TrimPrefix(r.URL.Path, "/"), a.clock.now().Sub(a.begun)
	a.requests[who]++
	switch {
	case who == "stock" && age < 23*time.Hour:
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	case who == "audit" && age < time.Hour:
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	effect := who + " " + r.Header.Get("Idempotency-Key")
	a.delivered[effect]++
	if who == "billing" && a.delivered[effect] == 1 {
		return // it forgets the first
	}
	a.processed[effect]++
	a.acks = append(a.acks, who+" "+r.Header.Get("Aqueduct-Ack"))
}

// published is the sink.
func (a *applications) published(_ context.Context, event json.RawMessage) (any, error) {
	var e map[string]any
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events[fmt.Sprint(e["id"])] = e
	return nil, nil
}

// acknowledge has the consumers say that they have processed what they have, times
// over.
func (a *applications) acknowledge(t *testing.T, w *world, times int) {
	t.Helper()
	a.mu.Lock()
	acks := a.acks
	a.acks = nil
	a.mu.Unlock()
	for _, said := range acks {
		who, path, _ := strings.Cut(said, " ")
		parts := strings.Split(path, "/") // /v1/instances/ID/commands/POSITION/ack
		position, err := strconv.ParseInt(parts[5], 10, 64)
		if err != nil {
			t.Fatal(said, err)
		}
		for n := range times {
			want := engine.Applied
			if n > 0 {
				want = engine.Duplicate
			}
			if did, err := w.rt.Acknowledge(t.Context(), parts[3], position, ack.Ack{Outcome: ack.Processed, Actor: who}); did != want || err != nil {
				t.Errorf("%s: %s: %s, %v, want %s", w.name, said, did, err, want)
			}
		}
	}
}

// rest waits until every command is done, or waits for its next delivery.
func (w *world) rest(t *testing.T, id string) []projections.Entry {
	t.Helper()
	var wait await.Wait
	for {
		entries, err := w.st.Streams.Stream(t.Context(), id, 0, projections.MaxLimit)
		if err != nil {
			t.Fatal(err)
		}
		busy, state := 0, ""
		for _, e := range entries {
			if e.Processed != nil && !*e.Processed && !strings.HasPrefix(e.LastError, "AckGivenUp") && (e.ClaimedBy != "" || !e.NextAttemptAt.After(w.clock.now())) {
				busy++
			}
			state += fmt.Sprint(e.Attempts, e.Deliveries, e.ClaimedBy, " ")
		}
		if busy == 0 {
			return entries
		}
		if !wait.Again(2*time.Millisecond, state) {
			t.Fatalf("%s: %d commands do not come to rest: %s", w.name, busy, state)
		}
	}
}

// TestADayWithoutAConsumer has three consumers of each transition, of whom one is
// down for a day and one answers 404 for an hour. Each processes every command once,
// nothing is a dead letter, and what was said and reminded of is in the stream and
// has left as an event.
func TestADayWithoutAConsumer(t *testing.T) {
	const id = "order"
	apps := map[string]*applications{}
	list := worlds(t, func(w *world) {
		a := &applications{clock: w.clock, begun: w.clock.now(), requests: map[string]int{}, delivered: map[string]int{}, processed: map[string]int{}, events: map[string]map[string]any{}}
		srv := httptest.NewServer(a)
		t.Cleanup(srv.Close)
		apps[w.name], w.published, w.more = a, a.published, []string{fmt.Sprintf(ordersDocument, srv.URL)}
	})
	for _, w := range list {
		if w.name == "oracle" && w.leap == nil {
			continue // its clock is its own
		}
		a := apps[w.name]
		for n, event := range []string{"pay", "ship"} {
			start := signal.Start{Definition: "m/orders", Signal: &signal.FirstSignal{ID: fmt.Sprint("s", n), Type: event}}
			if _, _, _, err := w.rt.StartOrSignal(t.Context(), id, start, nil); err != nil {
				t.Fatal(w.name, err)
			}
		}
		w.rest(t, id)
		for passed := time.Duration(0); passed < 25*time.Hour; {
			step := 2 * time.Hour
			if passed < time.Hour {
				step = 6 * time.Minute
			}
			if err := w.advance(t.Context(), step); err != nil {
				t.Fatal(w.name, err)
			}
			passed += step
			w.rest(t, id)
			a.acknowledge(t, w, 3)
		}
		a.check(t, w, w.rest(t, id))
	}
}

func (a *applications) check(t *testing.T, w *world, entries []projections.Entry) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.bad) > 0 {
		t.Errorf("%s: bodies %q", w.name, a.bad)
	}
	if len(a.processed) != 6 {
		t.Errorf("%s: processed %v", w.name, a.processed)
	}
	for effect, times := range a.processed {
		if times != 1 {
			t.Errorf("%s: %s was processed %d times", w.name, effect, times)
		}
	}
	page, err := w.st.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
	if err != nil || len(page.Items) > 0 {
		t.Errorf("%s: dead letters %+v, %v", w.name, page.Items, err)
	}
	if row, err := w.st.Instances.Instance(t.Context(), "order"); err != nil || row.Status != "completed" {
		t.Errorf("%s: %+v, %v", w.name, row, err)
	}
	notes, left := map[string]int{}, map[string]int{}
	for _, e := range entries {
		if e.Processed != nil && !*e.Processed {
			t.Errorf("%s: command %d is open: %s", w.name, e.Position, e.Data)
		}
		if !strings.HasPrefix(e.Type, "Ack") {
			continue
		}
		var n struct{ Consumer, Actor string }
		if err := json.Unmarshal(e.Data, &n); err != nil {
			t.Fatal(err)
		}
		notes[e.Type+" "+n.Consumer]++
		if again := e.Type == "AckRepeated"; again && e.Attempts != 1 || !again && e.Attempts != 0 {
			t.Errorf("%s: %s was said %d times again", w.name, e.Data, e.Attempts)
		}
		if said := e.Type == "AckProcessed" || e.Type == "AckRepeated"; said != (n.Actor == n.Consumer) {
			t.Errorf("%s: %s by %q", w.name, e.Data, n.Actor)
		}
	}
	for _, e := range a.events {
		data, _ := e["data"].(map[string]any)
		left[fmt.Sprint(e["type"], " ", data["consumer"])]++
	}
	want := map[string]int{
		"AckRetryPending stock": a.requests["stock"] - 2, "AckRetryPending audit": a.requests["audit"] - 2, "AckReminderProcessedPending billing": 2,
	}
	for _, who := range []string{"billing", "stock", "audit"} {
		want["AckProcessed "+who], want["AckRepeated "+who] = 2, 2
	}
	if !maps.Equal(notes, want) || want["AckRetryPending stock"] < 2*18 || want["AckRetryPending audit"] < 2*10 {
		t.Errorf("%s: %v, want %v", w.name, notes, want)
	}
	events := map[string]int{}
	for note, n := range want {
		entry, who, _ := strings.Cut(note, " ")
		kind := map[string]string{
			"AckRetryPending": "retry-pending", "AckReminderProcessedPending": "reminder-processed-pending", "AckProcessed": "processed", "AckRepeated": "repeated",
		}[entry]
		events["io.aqueduct.ack."+kind+".v1 "+who] = n
	}
	if !maps.Equal(left, events) {
		t.Errorf("%s: %v have left, want %v", w.name, left, events)
	}
}
