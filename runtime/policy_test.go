package runtime_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

const policedDocument = `
lifecycle: '1.0'
environment: t
definition: policed
version: '1.0.0'
states:
  Draft: {category: initial}
  Review: {}
  Done: {category: final}
events: {submit: {}, back: {}, expire: {}}
transitions:
  - {from: Draft, event: submit, to: Review}
  - {from: Review, event: back, to: Draft}
  - {from: Review, event: expire, to: Done}
`

func policyOf(version, states string) string {
	return "policy: '1.0'\nenvironment: t\ndefinition: policed\nversion: '" + version + "'\nstates: " + states + "\n"
}

// publish publishes a document on a node.
func (n *testNode) publish(t *testing.T, document string) {
	t.Helper()
	if _, _, err := n.cat.Publish(t.Context(), "doc.yaml", []byte(document)); err != nil {
		t.Fatal(err)
	}
}

// trigger has what a reference names take an event.
func (n *testNode) trigger(t *testing.T, definition, reference, event string) (id string, err error) {
	t.Helper()
	id, _, _, err = n.rt.StartOrSignal(t.Context(), "", signal.Start{
		Definition: definition, BusinessKey: reference, StartKey: signal.LifecycleKey, Signal: &signal.FirstSignal{ID: reference + "." + event, Type: event},
	}, nil)
	return id, err
}

// last are the entries of a type, the last one's metadata.
func (n *testNode) last(t *testing.T, id, entryType string) (m engine.Meta) {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Type == entryType {
			m = engine.Meta{}
			if err := json.Unmarshal(r.Metadata, &m); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// until is when the state's timer of an instance is due; zero = it has none.
func (n *testNode) timer(t *testing.T, id string) (due time.Duration) {
	t.Helper()
	s, err := n.store.Writer.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range s.Waits {
		if w.Kind == snapshot.WaitTimer {
			due = w.Until.Sub(s.UpdatedAt)
		}
	}
	return due
}

// A policy counts from its commit on, also on a node that has known an older one, or
// none; it needs no version of the definition. A timer that runs stays as it is.
func TestATurnTakesTheNewestPolicy(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, policedDocument)
		other := start(t, place, nil)
		do := func(reference, event, policy string, due time.Duration) {
			t.Helper()
			id, err := n.trigger(t, "t/policed", reference, event)
			if err != nil {
				t.Fatal(err)
			}
			if got := n.last(t, id, "StateChanged").Policy; got != policy {
				t.Errorf("%s %s: by policy %q, want %q", reference, event, got, policy)
			}
			if got := n.timer(t, id); got != due {
				t.Errorf("%s %s: timer of %v, want %v", reference, event, got, due)
			}
		}
		do("a", "submit", "", 0)
		other.publish(t, policyOf("1.0.0", "{Review: {timeout: PT1H}}"))
		do("a", "back", "1.0.0", 0)
		do("b", "submit", "1.0.0", time.Hour) // in the turn that begins it, by a node that knew of no policy
		other.publish(t, policyOf("1.1.0", "{Review: {timeout: PT2H}, Draft: {timeout: PT3H}}"))
		do("c", "submit", "1.1.0", 2*time.Hour)
		b, err := n.store.Instances.Started(t.Context(), "t/policed", "b", signal.LifecycleKey)
		if err != nil || n.timer(t, b.ID) != time.Hour {
			t.Errorf("a timer that runs is now of %v, %v", n.timer(t, b.ID), err)
		}
		do("b", "back", "1.1.0", 3*time.Hour)
		if got := n.last(t, b.ID, engine.EntryStarted).Policy; got != "1.0.0" {
			t.Errorf("begun by policy %q", got)
		}
		other.publish(t, policyOf("1.2.0", "{Review: {timeout: PT0.05S, timeoutEvent: expire}}"))
		id, err := n.trigger(t, "t/policed", "d", "submit")
		if err != nil {
			t.Fatal(err)
		}
		n.until(t, id, status("completed"))
		if got := n.last(t, id, "StateStale").Policy; got != "1.2.0" {
			t.Errorf("stale by policy %q", got)
		}
	})
}

// A policy that names what no live version has is refused, with its place, and changes
// nothing; what only some versions have is a warning.
func TestAPolicyOfUnknownNames(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, policedDocument)
		for text, want := range map[string]string{
			policyOf("1.0.0", "{Revue: {timeout: PT1H}}"):                                      "policy.unknown-state",
			policyOf("1.0.0", "{Review: {timeout: PT1H, timeoutEvent: expires}}"):              "policy.unknown-event",
			policyOf("1.0.0", "{Draft: {timeout: PT1H, timeoutEvent: expire}}"):                "policy.unknown-event",
			policyOf("1.0.0", "{Done: {timeout: PT1H}}"):                                       "policy.unknown-state",
			policyOf("1.0.0", "{Review: {timeout: soon}}"):                                     "definition.type",
			policyOf("1.0.0", "{Review: {patience: 3}}"):                                       "definition.unknown-field",
			policyOf("1.0.0", "{}"):                                                            "definition.missing-field",
			strings.Replace(policyOf("1.0.0", "{Review: {timeout: PT1H}}"), "1.0'", "2.0'", 1): "definition.unsupported",
		} {
			_, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(text))
			p, ok := err.(*problem.Error) //nolint:errorlint // it is not wrapped
			if !ok || len(p.Where) == 0 || p.Where[0].Code != want || p.Where[0].Line != 1 && p.Where[0].Line != 5 || p.Where[0].File != "p.yaml" {
				t.Errorf("%s: %+v", text, err)
			}
		}
		for rest, want := range map[string]string{
			"deliveries: [{states: Revue, consumers: a}]":                                         "policy.unknown-state",
			"deliveries: [{states: [Review, Revue], consumers: a}]":                               "policy.unknown-state",
			"deliveries: [{states: Review, event: none, consumers: a}]":                           "policy.unknown-event",
			"deliveries: [{states: Review, consumers: b}]":                                        "definition.unknown-reference",
			"deliveries: [{states: Review, consumers: a, retry: {limit: {duration: PT0S}}}]":      "definition.type",
			"deliveries: [{states: Review, consumers: a, ackRequired: 1}]":                        "definition.type",
			"deliveries: [{states: Review, consumers: a, await: ~}]":                              "definition.type",
			"states: {Review: {retry: {delay: PT2S, limit: {duration: PT1S}}}}":                   "definition.type",
			"states: {Review: {notices: {StateStaled: false}}}":                                   "definition.unknown-reference",
			"states: {Review: {notices: {StateStale: never}}}":                                    "definition.type",
			"states: {Review: {retry: none}}":                                                     "definition.unknown-reference",
			"states: {Review: {retry: {delay: soon}}}":                                            "definition.type",
			"states: {Review: {retry: {limit: {attempt: {duration: PT1S}}}}}":                     "definition.unsupported",
			"states: {Done: {onExit: [a: {call: effect}]}}":                                       "policy.unknown-state",
			"states: {Review: {onEnter: [a: {listen: {to: {one: {with: {type: x}}}}}]}}":          "definition.unsupported",
			"states: {Review: {onEnter: [a: {call: effect, metadata: {compensate: {call: b}}}]}}": "definition.unsupported",
		} {
			head, _, _ := strings.Cut(policyOf("1.0.0", ""), "states:")
			_, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(head+"consumers: {a: {endpoint: 'http://a.example'}}\n"+rest))
			p, ok := err.(*problem.Error) //nolint:errorlint // it is not wrapped
			if !ok || len(p.Where) != 1 || p.Where[0].Code != want || p.Where[0].Line != 6 {
				t.Errorf("%s: %+v", rest, err)
			}
		}
		other := strings.ReplaceAll(policyOf("1.0.0", "{Review: {timeout: PT1H}}"), "policed", "nobody")
		if _, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(other)); problem.CodeOf(err) != "policy.unknown-definition" {
			t.Errorf("of no definition: %v", err)
		}
		if list, err := n.store.Store.Versions(t.Context(), "policy:t/policed", 0); len(list) > 0 {
			t.Errorf("stored: %v, %v", list, err)
		}
	})
}

// Hooks of a policy that wait go on as they were, also when another policy is
// published meanwhile, by whatever node; the state that they lead to is the newest's.
func TestHooksOfAnOlderPolicyGoOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var mu sync.Mutex
		var done []string
		effect := func(_ context.Context, input json.RawMessage) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, string(input))
			return nil, nil
		}
		told := make(chan string, 10)
		consumer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			told <- string(body)
		}))
		defer consumer.Close()
		place := fresh()
		n := start(t, place, effect, policedDocument)
		other := start(t, place, effect)
		other.publish(t, policyOf("1.0.0", "{Review: {timeout: PT1H, onEnter: [ask: {call: humanTask, with: {title: Look, candidateUsers: [ann]}}, then: {call: effect, with: {hook: old}}]}}"))
		id, err := n.trigger(t, "t/policed", "a", "submit")
		if err != nil {
			t.Fatal(err)
		}
		s, err := n.store.Writer.Load(t.Context(), id)
		if err != nil || s.Definition.Policy != "1.0.0" || len(s.Waits) != 1 || s.Waits[0].Kind != snapshot.WaitTask {
			t.Fatalf("%+v, %v", s, err)
		}
		n.publish(t, policyOf("1.1.0", `{Review: {timeout: PT2H, onEnter: [other: {call: effect, with: {hook: new}}]}, Draft: {onExit: [out: {call: effect, with: {hook: out}}]}}
consumers: {audit: {endpoint: '`+consumer.URL+`'}}
deliveries: [{states: Review, event: submit, consumers: audit, ackRequired: false}]`))
		if _, err := other.rt.ClaimTask(t.Context(), s.Waits[0].TaskID, "ann", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := other.rt.CompleteTask(t.Context(), s.Waits[0].TaskID, "ann", nil, "", nil); err != nil {
			t.Fatal(err)
		}
		n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
		if s, err = n.store.Writer.Load(t.Context(), id); err != nil || s.Definition.Policy != "" || n.timer(t, id) != 2*time.Hour {
			t.Errorf("at rest by policy %q, for %v, %v", s.Definition.Policy, n.timer(t, id), err)
		}
		b, err := n.trigger(t, "t/policed", "b", "submit")
		if err != nil {
			t.Fatal(err)
		}
		n.until(t, b, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
		if got := <-told; !strings.Contains(got, `"definition":"t/policed"`) || !strings.Contains(got, `"version":"1.0.0"`) || !strings.Contains(got, `"to":"Review"`) {
			t.Errorf("told %s", got)
		}
		mu.Lock()
		defer mu.Unlock()
		if got, want := strings.Join(done, " "), `{"hook":"old"} {"hook":"out"} {"hook":"new"}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		rows, err := n.store.Streams.Stream(t.Context(), b, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows { // what needs no acknowledgement is done with when it is sent
			if r.Kind == "command" && strings.Contains(string(r.Data), consumer.URL) && !strings.Contains(string(r.Data), `"ack":-1`) {
				t.Errorf("acknowledged: %s", r.Data)
			}
		}
	})
}

// What only some of the versions know that count is a warning, and is left out in the
// others: the newest counts, and those that instances run.
func TestAPolicyOfSeveralVersions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, policedDocument)
		id, err := n.trigger(t, "t/policed", "a", "submit")
		if err != nil {
			t.Fatal(err)
		}
		n.publish(t, strings.NewReplacer("1.0.0", "2.0.0", "Review", "Check").Replace(policedDocument))
		r, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(policyOf("1.0.0", "{Review: {timeout: PT1H}, Check: {timeout: PT2H}}")))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range r.Warnings {
			got = append(got, w.Code+" "+w.Pointer+" "+w.Detail)
		}
		want := []string{
			"warning.unknown-state /states/Check the lifecycle has no state \"Check\", in version 1.0.0",
			"warning.unknown-state /states/Review the lifecycle has no state \"Review\", in version 2.0.0",
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("warnings %q", got)
		}
		b, err := n.trigger(t, "t/policed", "b", "submit")
		if err != nil || n.timer(t, b) != 2*time.Hour {
			t.Errorf("version 2.0.0: %v, %v", n.timer(t, b), err)
		}
		for _, event := range []string{"back", "submit.again"} {
			name, _, _ := strings.Cut(event, ".")
			if _, _, _, err := n.rt.StartOrSignal(t.Context(), "", signal.Start{
				Definition: "t/policed", BusinessKey: "a", StartKey: signal.LifecycleKey, Signal: &signal.FirstSignal{ID: event, Type: name},
			}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n.timer(t, id) != time.Hour {
			t.Errorf("version 1.0.0: %v", n.timer(t, id))
		}
		if _, err := n.trigger(t, "t/policed", "a", "expire"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(policyOf("1.1.0", "{Review: {timeout: PT1H}}"))); problem.CodeOf(err) != "policy.invalid" {
			t.Errorf("a state of a version that nothing runs: %v", err)
		}
	})
}

// Who triggers an event may say that nobody need acknowledge what follows: each consumer
// is told once, and nobody waits for more than that.
func TestATriggerNeedsNoAcknowledgement(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var told atomic.Int32
		consumer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
		defer consumer.Close()
		n := start(t, fresh(), nil, policedDocument)
		n.publish(t, policyOf("1.0.0", `{Draft: {timeout: PT9H}}
consumers: {a: {endpoint: '`+consumer.URL+`', within: PT0.1S}, b: {endpoint: '`+consumer.URL+`', within: PT0.1S}}
deliveries: [{states: [Review], consumers: [a, b], await: true}, {states: [Draft], consumers: a}]`))
		no, yes := false, true
		trigger := func(reference, event string, acks *bool) string {
			t.Helper()
			id, _, _, err := n.rt.StartOrSignal(t.Context(), "", signal.Start{
				Definition: "t/policed", BusinessKey: reference, StartKey: signal.LifecycleKey,
				Signal: &signal.FirstSignal{ID: event, Type: event, AckRequired: acks},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		acknowledged := func(id string) (commands, acks int) {
			rows, err := n.store.Streams.Stream(t.Context(), id, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if r.Kind == "command" && strings.Contains(string(r.Data), consumer.URL) {
					if commands++; !strings.Contains(string(r.Data), `"ack":-1`) {
						acks++
					}
				}
			}
			return commands, acks
		}
		id := trigger("once", "submit", &no)
		n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
		trigger("once", "back", &no)
		await.Until(t, "all are told", func() (bool, any) { return told.Load() >= 3, told.Load() })
		n.until(t, id, func(row projections.Instance) bool { return row.Position == "Draft" })
		if commands, acks := acknowledged(id); commands != 4 || acks != 1 { // the initial state was entered by no event
			t.Errorf("%d deliveries, %d of them to be acknowledged", commands, acks)
		}
		for name, given := range map[string]*bool{"yes": &yes, "none": nil} {
			id := trigger(name, "submit", given)
			if commands, acks := acknowledged(id); commands != 3 || acks != 3 {
				t.Errorf("%s: %d deliveries, %d of them to be acknowledged", name, commands, acks)
			}
			await.Until(t, "a reminder", func() (bool, any) { l := n.entries(t, id, "AckReminderProcessedPending"); return len(l) > 0, l })
		}
		if got := n.last(t, id, "AckReminderProcessedPending"); strings.Contains(got.Pointer, "Review") {
			t.Errorf("reminded at %s", got.Pointer)
		}
	})
}
