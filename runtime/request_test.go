package runtime_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// ask puts on the queue what an operator asks.
func (n *testNode) ask(t *testing.T, id, instance, payload string) {
	t.Helper()
	body, err := signal.Envelope{SignalID: id, InstanceID: instance, RuntimeProvider: signal.Provider, Type: signal.OperatorRequest,
		OccurredAt: time.Now().UTC(), Headers: service.ActorHeader("olga"), Payload: json.RawMessage(payload)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
		t.Fatal(err)
	}
}

// recorded is the entry of a request in the stream of its instance.
func (n *testNode) recorded(t *testing.T, instance, id string) (found projections.Entry) {
	t.Helper()
	list, err := n.store.Streams.Stream(t.Context(), instance, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.SignalID == id {
			found = e
		}
	}
	return found
}

// TestARequestOfAnOperatorIsDecidedByANode: what is asked through the queue is decided
// as what is asked of the API, is in the stream under the request's id, and applied
// once. A refusal is a dead letter with the API's code, and leaves the instance alone.
func TestARequestOfAnOperatorIsDecidedByANode(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := startSet(t, fresh(), func(c *runtime.Config) { c.SuspendOnDeadLetter = true }, nil, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 7})
		n.until(t, "i", status("waiting"))
		n.ask(t, "r-1", "i", `{"operation":"suspend","reason":"stock-taking"}`)
		n.until(t, "i", status("suspended"))
		if e := n.recorded(t, "i", "r-1"); e.Type != "InstanceSuspended" || string(e.Data) != `{"operation":"suspend","reason":"stock-taking"}` {
			t.Errorf("recorded as %s %s", e.Type, e.Data)
		}
		n.ask(t, "r-1", "i", `{"operation":"suspend"}`)
		n.ask(t, "r-2", "i", `{"operation":"resume"}`)
		n.until(t, "i", status("waiting"))
		for k, r := range []struct{ payload, code string }{
			{`{"operation":"resume"}`, "instance.not-suspended"},
			{`{"operation":"retry"}`, "instance.not-faulted"},
			{`{"operation":"explode"}`, "operation.unknown"},
			{`{"operation":"rewind","output":{"to":1,"version":1,"state":{}}}`, "operation.unknown"}, // only the API takes it
			{`{"operation":"run-now"}`, "instance.nothing-to-run"},
			{`{"operation":7}`, "operation.unknown"},
		} {
			id := fmt.Sprintf("refused-%d", k)
			n.ask(t, id, "i", r.payload)
			dead := n.deadLetter(t, "i") // one: the repetition of r-1 has made none
			env, err := signal.Decode(dead.Envelope)
			if err != nil || dead.Reason != r.code || dead.Attempts != 1 || env.SignalID != id {
				t.Errorf("%s: %s after %d attempts, %v", r.payload, dead.Reason, dead.Attempts, err)
			}
			n.discard(t, dead.ID)
		}
		if s, err := n.rt.Snapshot(t.Context(), "i"); err != nil || s.Status != snapshot.Waiting {
			t.Errorf("%s after what was refused, %v", s.Status, err)
		}
		n.ask(t, "r-3", "i", `{"operation":"cancel"}`)
		n.until(t, "i", status("cancelled"))
		n.ask(t, "r-4", "i", `{"operation":"cancel"}`)
		if dead := n.deadLetter(t, "i"); dead.Reason != "instance.closed" {
			t.Errorf("cancelled twice: %s", dead.Reason)
		}
	})
}

// TestARequestPassesWhatIsTriedAgain: an operator's request is perhaps about the very
// message that holds up the others of its instance.
func TestARequestPassesWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		bug := &bugged{}
		n := startSet(t, fresh(), func(c *runtime.Config) {
			bug.Definitions, c.Definitions = c.Definitions, bug
			c.RetryDelay, c.RetryDelayMax = time.Hour, time.Hour
		}, nil, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 7})
		n.until(t, "i", status("waiting"))
		bug.errors.Store(1000)
		body, err := signal.Envelope{SignalID: "s-1", InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal,
			OccurredAt: time.Now().UTC(), Payload: json.RawMessage(`{"type":"x"}`)}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "that it is sent again for later", func() bool {
			queues, err := n.store.Backlog.Queues(t.Context())
			return err == nil && slices.ContainsFunc(queues, func(q backend.Queue) bool { return q.Delayed == 1 })
		})
		bug.errors.Store(0)
		n.ask(t, "r-1", "i", `{"operation":"cancel"}`)
		n.until(t, "i", status("cancelled"))
	})
}
