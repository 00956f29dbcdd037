package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Of all that comes with one key of the application the first is applied, on whatever
// way the others come: as signals of other ids, as a message of the queue, as an event.
func TestOneKeyIsAppliedOnce(t *testing.T) {
	t.Parallel()
	document := doc("twice", `
  - first: {listen: {to: {one: {with: {type: paid}}}}}
  - second: {listen: {to: {one: {with: {type: paid}}}}}
`)
	once := doc("once", `
  - first: {listen: {to: {one: {with: {type: paid}}}}}
`)
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, document, once)
		n.begin(t, "i", "t/twice", nil)
		n.begin(t, "other", "t/once", nil)
		said := func(instance, id, key string) signal.Envelope {
			e := signal.Envelope{
				SignalID: id, InstanceID: instance, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
				Payload: json.RawMessage(fmt.Sprintf(`{"id":%q,"source":"s","type":"paid","data":{"of":%q}}`, id, id)), DedupeKey: key,
			}
			if key != "" {
				e.SignalID = signal.Keyed(key)
			}
			return e
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		applied := 0
		for k := range 8 {
			wg.Go(func() {
				did, err := n.rt.Signal(t.Context(), said("i", fmt.Sprint("m-", k), "order-7"))
				mu.Lock()
				defer mu.Unlock()
				if did == engine.Applied {
					applied++
				} else if did != engine.Duplicate {
					t.Errorf("%s, %v", did, err)
				}
			})
		}
		wg.Wait()
		if applied != 1 {
			t.Errorf("%d of 8 were applied", applied)
		}
		// A message of an application, which has the id of its transport and the key of its business.
		for _, id := range []string{"t-1", "t-2"} {
			n.send(t, `{"signalId":"`+id+`","dedupeKey":"order-7","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"id":"q","source":"s","type":"paid","data":{"of":"queue"}}}`)
		}
		n.drained(t)                                                                                                                                 // else the wait that is over may be counted with that which is new
		n.event(t, json.RawMessage(`{"specversion":"1.0","id":"e-1","source":"bank","type":"paid","dedupekey":"order-7","data":{"of":"event"}}`), 2) // both listen
		n.drained(t)
		if row := n.until(t, "i", status("waiting")); row.Position != "second" {
			t.Errorf("at %q", row.Position)
		}
		e, err := n.store.Streams.Received(t.Context(), "i", signal.Keyed("order-7"))
		if err != nil || e.Type != "ExternalSignal" || !strings.Contains(string(e.Data), "m-") {
			t.Errorf("%+v, %v", e, err)
		}
		if types := n.types(t, "i"); types["ExternalSignal"] != 1 {
			t.Errorf("%v", types)
		}
		if _, err := n.store.Streams.Received(t.Context(), "other", signal.Keyed("order-7")); err != nil { // the event's, whose key is its own there
			t.Error(err)
		}
		if did, err := n.rt.Signal(t.Context(), said("i", "m-9", "order-8")); did != engine.Applied || err != nil {
			t.Errorf("another key: %s, %v", did, err)
		}
		n.until(t, "i", status("completed"))
		if did, err := n.rt.Signal(t.Context(), said("i", "m-10", "order-7")); did != engine.Duplicate || err != nil {
			t.Errorf("of an instance that has ended: %s, %v", did, err)
		}
		for _, key := range []string{"a b", strings.Repeat("k", 129)} {
			e := said("other", "s", "")
			e.DedupeKey = key
			_, err := n.rt.Signal(t.Context(), e)
			code(t, err, "signal.invalid")
		}
	})
}

// A message that was refused under a key of the application is refused again under it, in
// the same words, on whatever way it comes, though its instance would take it by now, and
// whatever node it comes to (B7). An operator's replay is decided anew, and once. What
// is over by itself is no verdict, nor is that of a sender, who may burn nobody's key.
func TestARefusalIsToldAgainUnderItsKey(t *testing.T) {
	t.Parallel()
	document := `
lifecycle: '1.0'
environment: t
definition: keyed
version: '1.0.0'
states: {Draft: {category: initial}, Held: {}, Review: {}, Done: {category: final}}
events: {hold: {}, submit: {schema: {document: {not: {type: array}}}}, note: {}, close: {roles: [chief]}}
transitions:
  - {from: Draft, event: note, to: Draft}
  - {from: Draft, event: hold, to: Held}
  - {from: Held, event: submit, to: Review, hooks: [{pause: {wait: PT0.5S}}]}
  - {from: Review, event: note, to: Review}
  - {from: Review, event: close, to: Done}
`
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		soon := func(c *runtime.Config) { c.OrderGrace = 25 * time.Millisecond }
		n := startSet(t, place, soon, nil, document)
		say := func(key, event, data string) signal.Start {
			return signal.Start{Definition: "t/keyed", BusinessKey: "L", StartKey: signal.LifecycleKey, Signal: &signal.FirstSignal{ID: signal.Keyed(key), Type: event, Data: json.RawMessage(data), Actor: "ann"}}
		}
		trigger := func(key, event string) (string, engine.Disposition, error) {
			id, _, did, err := n.rt.StartOrSignal(t.Context(), "", say(key, event, `{}`), nil)
			return id, did, err
		}
		id, _, err := trigger("k-0", "note")
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("l", 128)
		refused := []struct{ key, event, data, code string }{
			{"k-1", "submit", `{}`, "lifecycle.refused"}, {"k-2", "nothing", `{}`, "lifecycle.unknown-event"}, {long, "submit", `[]`, "lifecycle.invalid-payload"},
		}
		for _, r := range refused {
			_, _, _, err := n.rt.StartOrSignal(t.Context(), "", say(r.key, r.event, r.data), nil)
			code(t, err, r.code)
		}
		for _, key := range []string{"k-3", "k-3"} { // on the queue
			e := sentBy(id, "ignored", "submit", "")
			e.DedupeKey, e.SignalID = key, signal.Keyed(key)
			n.enqueue(t, e)
			n.drained(t)
		}
		if got := n.reasons(t, id); len(got) != 2 || got[0] != "lifecycle.refused" || got[1] != "lifecycle.refused" {
			t.Fatalf("dead letters %v", got)
		}
		if got := n.entries(t, id, "SignalRefused"); len(got) != 4 {
			t.Errorf("%d refusals are kept", len(got))
		}
		if _, did, err := trigger("k-4", "hold"); did != engine.Applied || err != nil {
			t.Fatal(did, err)
		}
		n = startSet(t, place, soon, nil) // another node
		for _, r := range refused {       // it would be taken now
			_, _, err := trigger(r.key, "submit")
			code(t, err, r.code)
			if !strings.Contains(fmt.Sprint(err), "another key") {
				t.Errorf("%s: %v", r.key, err)
			}
		}
		e := sentBy(id, "ignored", "submit", "")
		e.DedupeKey, e.SignalID = "k-1", signal.Keyed("k-1")
		_, err = n.rt.Signal(t.Context(), e)
		code(t, err, "lifecycle.refused")
		n.enqueue(t, e)
		n.drained(t)
		if n.state(t, id) != "Held" {
			t.Fatal(n.state(t, id))
		}
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{InstanceID: id, Limit: 10})
		if err != nil || len(page.Items) != 3 {
			t.Fatalf("%d dead letters, %v", len(page.Items), err)
		}
		for _, l := range page.Items { // each is applied, or refused in its turn: the first goes to Review
			if _, err := n.rt.DeadLetters.Replay(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
			n.drained(t)
		}
		n.until(t, id, status("waiting"))
		if got := n.state(t, id); got != "Review" {
			t.Errorf("after the replay in %s", got)
		}
		if got := n.reasons(t, id); len(got) != 2 {
			t.Errorf("dead letters %v", got)
		}
		_, _, err = trigger("k-1", "note")
		code(t, err, "lifecycle.refused") // the first verdict, though the replay was applied
		for range 2 {                     // who may not send it has no verdict
			e := sentBy(id, "ignored", "close", byClerk)
			e.DedupeKey, e.SignalID = "k-5", signal.Keyed("k-5")
			_, err := n.rt.Signal(t.Context(), e)
			code(t, err, "event.forbidden")
		}
		e = sentBy(id, "ignored", "close", `{"kind":"token","name":"eve","groups":["chief"]}`)
		e.DedupeKey, e.SignalID = "k-5", signal.Keyed("k-5")
		if did, err := n.rt.Signal(t.Context(), e); did != engine.Applied || err != nil {
			t.Error(did, err)
		}
		n.until(t, id, status("completed"))
	})
}

// Two messages of one key that come at the same moment, of which the instance takes one and
// refuses the other, have one verdict: that of whichever was first.
func TestMessagesOfOneKeyHaveOneVerdict(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, `
lifecycle: '1.0'
environment: t
definition: raced
version: '1.0.0'
states: {Draft: {category: initial}, Done: {category: final}}
events: {note: {}, close: {}}
transitions:
  - {from: Draft, event: note, to: Draft}
  - {from: Draft, event: close, to: Done, when: 'false'}
`)
		say := func(key, event string) (engine.Disposition, error) {
			_, _, did, err := n.rt.StartOrSignal(t.Context(), "", signal.Start{
				Definition: "t/raced", BusinessKey: "L", StartKey: signal.LifecycleKey,
				Signal: &signal.FirstSignal{ID: signal.Keyed(key), Type: event, Data: json.RawMessage(`{}`)},
			}, nil)
			return did, err
		}
		if _, err := say("first", "note"); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			key := fmt.Sprint("k-", i)
			noted, closed := make(chan error, 1), make(chan error, 1)
			var first, second engine.Disposition
			go func() {
				var err error
				first, err = say(key, "note")
				noted <- err
			}()
			go func() {
				var err error
				second, err = say(key, "close")
				closed <- err
			}()
			took, refused := <-noted, <-closed
			switch {
			case took == nil && first == engine.Applied && refused == nil && second == engine.Duplicate:
			case problem.CodeOf(took) == "lifecycle.refused" && problem.CodeOf(refused) == "lifecycle.refused":
			default:
				t.Fatalf("%s: %q, %v and %q, %v", key, first, took, second, refused)
			}
		}
	})
}
