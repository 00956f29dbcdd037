package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func rolesPolicy(version, roles string) string {
	return "policy: '1.0'\nenvironment: t\ndefinition: guarded\nversion: '" + version + "'\nevents: {pay: {roles: [" + roles + "]}, order: {roles: [" + roles + "]}}\n"
}

// first triggers an event of a reference that nothing is there for.
func (n *testNode) first(t *testing.T, reference, event, by string) error {
	t.Helper()
	id := n.rt.IDOf("", signal.Start{Definition: "t/guarded", BusinessKey: reference, StartKey: signal.LifecycleKey})
	env := signal.Envelope{SignalID: id, InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.StartRequest, OccurredAt: time.Now(), Principal: json.RawMessage(by)}
	start := signal.Start{
		Definition: "t/guarded", BusinessKey: reference, StartKey: signal.LifecycleKey, Input: json.RawMessage("null"),
		Signal: &signal.FirstSignal{ID: reference, Type: event},
	}
	_, err := n.rt.Begin(t.Context(), n.store.Writer, env, start, time.Now())
	return err
}

// No commit finds out that a refusal was decided by a policy that is not the newest. It
// is asked for, whatever way the event has come: a policy that somebody else has
// published counts at once.
func TestARefusalIsByTheNewestPolicy(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n, other := start(t, place, nil, guardedDocument), start(t, place, nil)
		minor := 0
		publish := func(roles string) {
			t.Helper()
			minor++
			other.publish(t, rolesPolicy(fmt.Sprintf("1.%d.0", minor), roles))
		}
		begun := func(reference string) string {
			t.Helper()
			id, err := n.trigger(t, "t/guarded", reference, "order")
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		id := begun("a")
		known := func(by string) { // the node has decided by the newest
			t.Helper()
			publish("directors")
			if _, err := n.rt.Signal(t.Context(), sentBy(id, fmt.Sprint("known", minor), "pay", by)); problem.CodeOf(err) != "event.forbidden" {
				t.Fatalf("not refused: %v", err)
			}
		}
		known(byClerk)
		publish("staff")
		if did, err := n.rt.Signal(t.Context(), sentBy(id, "pay", "pay", byClerk)); err != nil || did != "applied" {
			t.Errorf("by a caller: %s, %v", did, err)
		}

		id = begun("b")
		known(byClerk)
		publish("staff")
		n.enqueue(t, sentBy(id, "pay", "pay", byClerk))
		n.until(t, id, func(projections.Instance) bool { return n.state(t, id) == "Paid" || len(n.reasons(t, id)) > 0 })
		if got := n.reasons(t, id); len(got) > 0 {
			t.Errorf("by the queue: %v", got)
		}

		id = begun("c")
		known(byClerk)
		publish("staff")
		if err := n.first(t, "d", "order", byClerk); err != nil {
			t.Errorf("a first event: %v", err)
		}

		known(byClerk) // and what is refused by the newest is refused
		if err := n.first(t, "e", "order", byClerk); problem.CodeOf(err) != "event.forbidden" {
			t.Errorf("a first event of others: %v", err)
		}
	})
}

// A refusal of which nobody can say whether it is by the newest policy is none: the event
// waits until that can be said.
func TestARefusalThatCannotBeCheckedIsNone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		other, err := testdb.Open(t.Context(), place) // no node, which would refuse by the policy that is the newest then
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		publish := func(document string) {
			t.Helper()
			if _, _, err := definition.New(other.Store, openworkflow.Parsers(), time.Now).Publish(t.Context(), "doc.yaml", []byte(document)); err != nil {
				t.Fatal(err)
			}
		}
		publish(guardedDocument)
		publish(rolesPolicy("1.0.0", "directors"))
		var repo mute
		n := startSet(t, place, func(c *runtime.Config) {
			repo.Repository = other.Store
			c.Definitions = definition.New(&repo, openworkflow.Parsers(), time.Now)
		}, nil)
		id, err := n.trigger(t, "t/guarded", "a", "order")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.rt.Signal(t.Context(), sentBy(id, "1", "pay", byClerk)); problem.CodeOf(err) != "event.forbidden" {
			t.Fatal(err)
		}
		repo.away.Store(true)
		if did, err := n.rt.Signal(t.Context(), sentBy(id, "2", "pay", byClerk)); err != nil || did != engine.Queued {
			t.Errorf("%s, %v", did, err)
		}
		publish(rolesPolicy("1.1.0", "staff"))
		repo.away.Store(false)
		n.until(t, id, func(projections.Instance) bool { return n.state(t, id) == "Paid" })
	})
}

// mute is a repository that does not say which versions there are.
type mute struct {
	definition.Repository
	away atomic.Bool
}

func (m *mute) Versions(ctx context.Context, name string, after int) ([]definition.Record, error) {
	if m.away.Load() && after > 0 {
		return nil, problem.New(problem.Unavailable, "store.away", "the store is away")
	}
	return m.Repository.Versions(ctx, name, after)
}

// An initial state that waits takes no first event. Whoever publishes a policy that makes
// it wait is told, and so is who triggers one: of nothing that is there, for nothing is.
func TestAnInitialStateThatWaitsTakesNoFirstEvent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, policedDocument)
		for i, c := range []struct{ rest, at string }{
			{"states: {Draft: {onEnter: [{nap: {wait: PT1H}}]}}", "/states/Draft/onEnter/0/nap"},
			{"consumers: {a: {endpoint: 'http://127.0.0.1:1/'}}\ndeliveries: [{states: Review, consumers: a}, {states: '*', consumers: a, await: true}]", "/deliveries/1/await"},
			{"states: {Review: {onEnter: [{nap: {wait: PT1H}}]}}", ""},
		} {
			head := fmt.Sprintf("policy: '1.0'\nenvironment: t\ndefinition: policed\nversion: '1.%d.0'\n", i)
			r, _, err := n.cat.Publish(t.Context(), "p.yaml", []byte(head+c.rest))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, w := range r.Warnings {
				got += w.Code + " " + w.Pointer
			}
			want, code := "", ""
			if c.at != "" {
				want, code = "warning.first-event "+c.at, "lifecycle.first-event"
			}
			if got != want || want != "" && r.Warnings[0].Line < 5 {
				t.Errorf("%s: %+v", c.rest, r.Warnings)
			}
			id, err := n.trigger(t, "t/policed", "L", "submit")
			if err == nil && code != "" || err != nil && problem.CodeOf(err) != code {
				t.Errorf("%s: %v", c.rest, err)
			}
			if _, there := n.store.Writer.Load(t.Context(), id); code != "" && there == nil {
				t.Error("it is begun")
			}
			n.request(t, "L", signal.Start{
				Definition: "t/policed", BusinessKey: "Q", StartKey: signal.LifecycleKey, Signal: &signal.FirstSignal{ID: "q", Type: "submit"},
			})
			if code != "" {
				if l := n.deadLetters(t, 1)[0]; l.Reason != code || n.store.DeadLetters.Discard(t.Context(), l.ID, backend.AnyEdit, nil) != nil {
					t.Errorf("by the queue: %+v", l)
				}
			}
		}
	})
}

// Roles of a version are for its instances. Whoever names a version that has none begins
// one without; a policy lies over all of them.
func TestRolesOfAVersionAreItsOwnAndAPolicysAreOfAll(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		closed := strings.NewReplacer("version: '1.0.0'", "version: '2.0.0'", "order: {}", "order: {roles: [cashier]}").Replace(guardedDocument)
		n := start(t, fresh(), nil, guardedDocument)
		warned := func(document string) (all []string) {
			t.Helper()
			r, _, err := n.cat.Publish(t.Context(), "l.yaml", []byte(document))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range r.Warnings {
				all = append(all, w.Code+" "+w.Pointer+" "+w.File)
			}
			return all
		}
		if got := warned(closed); len(got) != 1 || got[0] != "warning.roles-of-version /events/order/roles l.yaml" {
			t.Errorf("warned of %v", got)
		}
		first := func(reference, version string) error {
			s := signal.Start{
				Definition: "t/guarded", Version: version, BusinessKey: reference, StartKey: signal.LifecycleKey, Input: json.RawMessage("null"),
				Signal: &signal.FirstSignal{ID: reference, Type: "order"},
			}
			id := n.rt.IDOf("", s)
			env := signal.Envelope{SignalID: id, InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.StartRequest, OccurredAt: time.Now(), Principal: json.RawMessage(byClerk)}
			_, err := n.rt.Begin(t.Context(), n.store.Writer, env, s, time.Now())
			return err
		}
		if err := first("highest", ""); problem.CodeOf(err) != "event.forbidden" {
			t.Errorf("the highest version: %v", err)
		}
		if err := first("older", "1.0.0"); err != nil {
			t.Errorf("an older version has no roles: %v", err)
		}
		n.publish(t, rolesPolicy("1.0.0", "cashier"))
		for _, version := range []string{"", "1.0.0", "2.0.0"} {
			if err := first("policed"+version, version); problem.CodeOf(err) != "event.forbidden" {
				t.Errorf("version %q under the policy: %v", version, err)
			}
		}
		open := strings.Replace(guardedDocument, "version: '1.0.0'", "version: '3.0.0'", 1)
		if got := warned(strings.Replace(open, "delay: {}", "delay: {roles: [cashier]}", 1)); len(got) != 1 || got[0] != "warning.roles-of-version /events/delay/roles l.yaml" {
			t.Errorf("warned of %v", got)
		}
		n.publish(t, strings.Replace(open, "3.0.0", "4.0.0", 1))
		if got := warned(strings.Replace(closed, "2.0.0", "5.0.0", 1)); len(got) != 0 {
			t.Errorf("the policy has these roles: %v", got)
		}
	})
}
