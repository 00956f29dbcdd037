package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// TestAnIDIsOfOneDefinition: a start does not take another definition's
// instance for its own, neither by the API nor through the queue.
func TestAnIDIsOfOneDefinition(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, waitDoc("one"), waitDoc("two"))
		n.begin(t, "i", "t/one", nil)
		before := n.until(t, "i", status("waiting"))
		first := &signal.FirstSignal{ID: "s", Type: "go"}
		for _, s := range []signal.Start{{Definition: "t/two"}, {Definition: "t/two", StartKey: "k"}, {Definition: "t/two", Signal: first}} {
			_, created, err := n.rt.Start(t.Context(), "i", s, nil)
			if created || problem.CodeOf(err) != "instance.id-taken" || problem.KindOf(err) != problem.Conflict {
				t.Errorf("%+v: created %t, %v", s, created, err)
			}
		}
		if id, created, err := n.rt.Start(t.Context(), "i", signal.Start{Definition: "t/one"}, nil); id != "i" || created || err != nil {
			t.Errorf("a repeat: %s, created %t, %v", id, created, err)
		}
		n.queue(t, "i", `{"definition":"t/two"}`)
		n.discardsDeadLetter(t, "instance.id-taken")
		if after := n.until(t, "i", status("waiting")); after.Version != before.Version {
			t.Errorf("touched: %+v", after)
		}
	})
}

// TestIDsOfSchedulesAreTheEngines: nobody takes the id of a schedule instance,
// and nobody begins one.
func TestIDsOfSchedulesAreTheEngines(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, waitDoc("one"), scheduledDoc("hourly", "1.0.0", "{every: PT1H}"))
		for _, id := range []string{"schedule.t.hourly.1.1.0", "schedule.t.hourly.1.0.0", "schedule."} {
			for _, definition := range []string{"t/one", "t/hourly"} {
				_, created, err := n.rt.Start(t.Context(), id, signal.Start{Definition: definition}, nil)
				if created || problem.CodeOf(err) != "instance.reserved-id" || problem.KindOf(err) != problem.Invalid {
					t.Errorf("%s of %s: created %t, %v", id, definition, created, err)
				}
			}
		}
		for _, payload := range []string{
			`{"definition":"t/one"}`,
			`{"definition":"t/hourly","version":"1.0.0","schedule":{}}`,
			`{"definition":"t/hourly","version":"1.0.0","businessKey":"schedule","schedule":{"generation":1}}`,
		} {
			n.queue(t, "schedule.t.hourly.1.0.0~1", payload)
			n.discardsDeadLetter(t, "instance.reserved-id")
		}
		publish(t, n, scheduledDoc("hourly", "1.1.0", "{every: PT1H}"))
		if s := n.schedule(t, "schedule.t.hourly.1.1.0"); s.Status != snapshot.Waiting {
			t.Errorf("%+v", s)
		}
		if _, schedules := n.runs(t, "t/hourly"); len(schedules) != 2 {
			t.Errorf("schedules %+v", schedules)
		}
	})
}

func waitDoc(name string) string {
	return doc(name, "\n  - hear: {listen: {to: {one: {with: {type: go}}}}}\n")
}

// queue asks for an instance as an application does that has no API.
func (n *testNode) queue(t *testing.T, id, payload string) {
	t.Helper()
	body, err := signal.Envelope{
		SignalID: id, InstanceID: id, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: json.RawMessage(payload),
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
		t.Fatal(err)
	}
}

// discardsDeadLetter waits for one dead letter with a reason, and discards it.
func (n *testNode) discardsDeadLetter(t *testing.T, reason string) {
	t.Helper()
	var deadLetters []projections.DeadLetter
	eventually(t, "a dead letter", func() bool {
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		deadLetters = page.Items
		return err == nil && len(deadLetters) > 0
	})
	if len(deadLetters) != 1 || deadLetters[0].Reason != reason {
		t.Fatalf("dead letters %+v, want %s", deadLetters, reason)
	}
	if err := n.store.DeadLetters.Discard(t.Context(), deadLetters[0].ID, backend.AnyEdit, nil); err != nil {
		t.Fatal(err)
	}
}

// TestAStartWithoutVersionRunsTheHighest, in whatever order and at whichever
// node versions were published, at once.
func TestAStartWithoutVersionRunsTheHighest(t *testing.T) {
	t.Parallel()
	nodesOn(t, func(t *testing.T, nodes []*testNode) {
		highest := ""
		for i, c := range []struct{ publish, highest string }{
			{"1.9.0", "1.9.0"}, {"1.10.0", "1.10.0"}, {"1.2.0", "1.10.0"}, {"2.0.0-rc.1", "2.0.0-rc.1"}, {"2.0.0", "2.0.0"}, {"2.0.0-rc.2", "2.0.0"},
		} {
			text := strings.Replace(waitDoc("many"), "version: '1.0.0'", "version: '"+c.publish+"'", 1)
			publish(t, nodes[i%len(nodes)], text)
			highest = c.highest
			for _, n := range nodes {
				id, _, err := n.rt.Start(t.Context(), "", signal.Start{Definition: "t/many"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if s, err := n.rt.Snapshot(t.Context(), id); err != nil || s.Definition.Version != highest {
					t.Errorf("after %s: %s, %v; want %s", c.publish, s.Definition.Version, err, highest)
				}
			}
		}
		nodes[0].queue(t, "queued", `{"definition":"t/many"}`)
		if row := nodes[0].until(t, "queued", status("waiting")); row.DefVersion != highest {
			t.Errorf("through the queue: %s", row.DefVersion)
		}
	})
}
