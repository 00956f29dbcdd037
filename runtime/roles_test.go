package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

const guardedDocument = `
lifecycle: '1.0'
environment: t
definition: guarded
version: '1.0.0'
states:
  Open: {category: initial}
  Paid: {}
  Late: {timeout: PT0.05S, timeoutEvent: close}
  Done: {category: final}
events: {order: {}, pay: {roles: [cashier, 'db:SHOP']}, delay: {}, close: {roles: [manager]}}
transitions:
  - {from: Open, event: order, to: Open}
  - {from: Open, event: pay, to: Paid}
  - {from: Paid, event: delay, to: Late}
  - {from: '*', event: close, to: Done}
`

// Who sends an event, as signals say it.
const (
	byCashier = `{"kind":"token","name":"ann","groups":["staff","cashier"]}`
	byClerk   = `{"kind":"token","name":"bob","groups":["staff"]}`
	byShop    = `{"kind":"db","name":"SHOP","groups":["db:SHOP"]}`
	byOther   = `{"kind":"db","name":"OTHER","groups":["db:OTHER"]}`
	byNobody  = `{"kind":"nobody"}`
	byNode    = `{"kind":"node"}`
)

// sentBy is a signal of an event by a sender; none is one that nobody knows.
func sentBy(id, signalID, name, by string) signal.Envelope {
	e := signal.Envelope{
		SignalID: signalID, InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
		Payload: json.RawMessage(`{"type":"` + name + `"}`),
	}
	if by != "" {
		e.Principal = json.RawMessage(by)
	}
	return e
}

// enqueue puts an envelope into the queue of signals.
func (n *testNode) enqueue(t *testing.T, e signal.Envelope) {
	t.Helper()
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n.send(t, string(body))
}

// entries are those of a type in a stream.
func (n *testNode) entries(t *testing.T, id, entryType string) (list []projections.Entry) {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Type == entryType {
			list = append(list, r)
		}
	}
	return list
}

func (n *testNode) state(t *testing.T, id string) string {
	t.Helper()
	s, err := n.store.Writer.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.State.Name
}

// reasons are the reasons of the dead letters of an instance.
func (n *testNode) reasons(t *testing.T, id string) (all []string) {
	t.Helper()
	page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{InstanceID: id, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Items {
		all = append(all, l.Reason)
	}
	return all
}

// An event is taken from those who have a role that it names, whatever way it comes. To
// others it is refused: nothing is changed but the entry that says so, and its event.
func TestAnEventIsForTheRolesItNames(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, guardedDocument)
		id, err := n.trigger(t, "t/guarded", "a", "order")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 { // a caller gets the problem; one entry counts them
			for _, by := range []string{byClerk, byOther} {
				if _, err := n.rt.Signal(t.Context(), sentBy(id, "pay", "pay", by)); problem.CodeOf(err) != "event.forbidden" || problem.KindOf(err) != problem.Denied {
					t.Errorf("%d: %s: %v", i, by, err)
				}
			}
		}
		all := n.entries(t, id, "EventForbidden")
		if len(all) != 2 || !strings.Contains(string(all[0].Data), `"name":"bob"`) || !strings.Contains(string(all[0].Data), `"roles":["cashier","db:SHOP"]`) {
			t.Errorf("entries %+v", all)
		}
		emitted := 0
		for _, r := range n.entries(t, id, "EventEmitted") {
			if strings.Contains(string(r.Data), "io.aqueduct.lifecycle.event-forbidden.v1") {
				emitted++
			}
		}
		if emitted != 2 || n.state(t, id) != "Open" || len(n.reasons(t, id)) != 0 {
			t.Errorf("%d events, state %s, dead letters %v", emitted, n.state(t, id), n.reasons(t, id))
		}
		for _, by := range []string{byClerk, ""} { // by the queue
			n.enqueue(t, sentBy(id, "pay"+by[:min(1, len(by))], "pay", by))
		}
		await.Until(t, "dead letters", func() (bool, any) { l := n.reasons(t, id); return len(l) == 2, l })
		if got := strings.Join(n.reasons(t, id), " "); got != "event.forbidden event.forbidden" || n.state(t, id) != "Open" {
			t.Errorf("dead letters %s, state %s", got, n.state(t, id))
		}
		if got := n.entries(t, id, "EventForbidden"); len(got) != 3 || !strings.Contains(string(got[2].Data), `"kind":""`) {
			t.Errorf("entries by the queue: %+v", got)
		}
		// The same signal is taken when its sender has the role.
		if did, err := n.rt.Signal(t.Context(), sentBy(id, "pay", "pay", byCashier)); err != nil || did != "applied" || n.state(t, id) != "Paid" {
			t.Errorf("%s, %v, state %s", did, err, n.state(t, id))
		}
		if did, err := n.rt.Signal(t.Context(), sentBy(id, "delay", "delay", byClerk)); err != nil || did != "applied" {
			t.Errorf("an event without roles: %s, %v", did, err)
		}
		n.until(t, id, status("completed")) // the engine's own event asks nobody
	})
}

// By whatever a signal comes: what the database says of its user counts.
func TestWhoMayTrigger(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, guardedDocument)
		for who, takes := range map[string]bool{byCashier: true, byShop: true, byNode: true, byNobody: true, byClerk: false, byOther: false, "": false,
			`{"kind":"token","name":"cashier"}`: false, `{"kind":"system","name":"system"}`: false, `{"kind":"user","groups":["Cashier"]}`: false} {
			reference := strings.NewReplacer(`"`, "", "{", "", "}", "").Replace(who)
			start := signal.Start{Definition: "t/guarded", BusinessKey: reference, StartKey: signal.LifecycleKey, Signal: &signal.FirstSignal{ID: "first", Type: "pay", Actor: "system"}}
			payload, err := json.Marshal(start)
			if err != nil {
				t.Fatal(err)
			}
			id := n.rt.IDOf("", start)
			e := sentBy(id, "start", "", who)
			e.Type, e.Payload = signal.StartRequest, payload
			n.enqueue(t, e) // the first event, which begins the instance
			if takes {
				n.until(t, id, func(row projections.Instance) bool { return row.Position == "Paid" })
				continue
			}
			await.Until(t, "a dead letter", func() (bool, any) { l := n.reasons(t, id); return len(l) == 1, l })
			if got := n.reasons(t, id); got[0] != "event.forbidden" {
				t.Errorf("%s: %v", who, got)
			}
			if _, err := n.store.Writer.Load(t.Context(), id); err == nil {
				t.Errorf("%s: the instance has begun", who)
			}
		}
	})
}

// An event that waited for its turn is asked then who has sent it.
func TestAnEventAheadKeepsItsSender(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, guardedDocument)
		for who, want := range map[string]string{byClerk: "Open", byCashier: "Paid"} {
			id, err := n.trigger(t, "t/guarded", who[len(who)-30:], "order")
			if err != nil {
				t.Fatal(err)
			}
			second, first := sentBy(id, "s2", "pay", who), sentBy(id, "s1", "order", "")
			second.Sender, second.Sequence, first.Sender, first.Sequence = "till", 2, "till", 1
			if did, err := n.rt.Signal(t.Context(), second); err != nil || did != "buffered" {
				t.Fatalf("%s, %v", did, err)
			}
			if did, err := n.rt.Signal(t.Context(), first); err != nil || did != "applied" {
				t.Fatalf("%s, %v", did, err)
			}
			if got := n.state(t, id); got != want {
				t.Errorf("%s: state %s", who, got)
			}
			if m := n.last(t, id, "ExternalSignal"); want == "Open" && (m.Disposition != "refused" || !strings.Contains(m.Refusal, "event.forbidden")) {
				t.Errorf("the refusal is %+v", m)
			}
		}
	})
}

// The roles that a policy gives an event stand in the place of the lifecycle's, on every
// node, from its commit on.
func TestAPolicySaysWhoMayTrigger(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, guardedDocument)
		other := start(t, place, nil)
		id, err := n.trigger(t, "t/guarded", "a", "order")
		if err != nil {
			t.Fatal(err)
		}
		head := "policy: '1.0'\nenvironment: t\ndefinition: guarded\nversion: '1.0.0'\n"
		other.publish(t, head+"events: {pay: {roles: [staff]}}")
		if _, err := n.rt.Signal(t.Context(), sentBy(id, "pay", "pay", byShop)); problem.CodeOf(err) != "event.forbidden" {
			t.Errorf("the lifecycle's roles count: %v", err)
		}
		if did, err := n.rt.Signal(t.Context(), sentBy(id, "pay", "pay", byClerk)); err != nil || did != "applied" || n.last(t, id, "StateChanged").Policy != "1.0.0" {
			t.Errorf("%s, %v", did, err)
		}
		head = strings.Replace(head, "1.0.0", "1.1.0", 1)
		for rest, want := range map[string]string{
			"events: {paid: {roles: [staff]}}":     "policy.unknown-event /events/paid",
			"events: {pay: {roles: []}}":           "definition.missing-field /events/pay/roles",
			"events: {pay: {}}":                    "definition.missing-field /events/pay",
			"events: {}":                           "definition.missing-field /events",
			"events: {pay: {roles: cashier}}":      "definition.type /events/pay/roles",
			"events: {pay: {roles: [7]}}":          "definition.type /events/pay/roles/0",
			"events: {pay: {roles: [a, a]}}":       "definition.type /events/pay/roles/1",
			"events: {pay: {role: [a]}}":           "definition.unknown-field /events/pay/role",
			"events: {pay: {code: 1, roles: [a]}}": "definition.unknown-field /events/pay/code",
		} {
			_, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(head+rest))
			p, ok := err.(*problem.Error) //nolint:errorlint // it is not wrapped
			if !ok || len(p.Where) == 0 || p.Where[0].Code+" "+p.Where[0].Pointer != want || p.Where[0].Line != 5 {
				t.Errorf("%s: %+v", rest, err)
			}
		}
	})
}
