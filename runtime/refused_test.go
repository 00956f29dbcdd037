package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
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
		other := start(t, place, nil, guardedDocument, rolesPolicy("1.0.0", "directors"))
		var repo mute
		n := startSet(t, place, func(c *runtime.Config) {
			repo.Repository = other.store.Store
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
		other.publish(t, rolesPolicy("1.1.0", "staff"))
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
