package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
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
		other := strings.ReplaceAll(policyOf("1.0.0", "{Review: {timeout: PT1H}}"), "policed", "nobody")
		if _, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(other)); problem.CodeOf(err) != "policy.unknown-definition" {
			t.Errorf("of no definition: %v", err)
		}
		if list, err := n.store.Store.Versions(t.Context(), "policy:t/policed", 0); len(list) > 0 {
			t.Errorf("stored: %v, %v", list, err)
		}
	})
}
