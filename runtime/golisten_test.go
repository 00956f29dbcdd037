package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// listening waits at a step for the payment of order 7; the second version takes over from
// the first.
func listening(t *testing.T, name, version, step, by string) *workflow.Definition {
	t.Helper()
	paid := workflow.Event[map[string]any](step, "org.paid", by)
	w := workflow.New[first](name, version)
	workflow.Start(w, func(s first, _ workflow.Input[any]) (first, workflow.Do) {
		return s, workflow.Do{paid.Listen(7)}
	}, workflow.To(paid))
	workflow.On(w, paid, func(s first, _ workflow.Input[map[string]any]) (first, workflow.Do) {
		return s, workflow.Do{workflow.Complete(s)}
	}, workflow.To())
	if version == "2.0.0" {
		workflow.Upcast(w, "1.0.0", version, func(old first) (first, error) { return old, nil })
	}
	d, err := w.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a step listens for is in the keys of who waits there: a new version keeps it while
// instances of the older one live. One without the step takes nothing from other listeners.
func TestAStepGoesOnListeningForTheSame(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := coded(t, place, listening(t, "t/listening", "1.0.0", "paid", "data.order"), listening(t, "t/other", "1.0.0", "paid", "data.order"))
		n.begin(t, "a", "t/listening", 5)
		n.begin(t, "b", "t/other", 5)
		if err := n.close(); err != nil {
			t.Fatal(err)
		}
		n = coded(t, place, listening(t, "t/other", "1.0.0", "paid", "data.order"))
		defer n.close()
		if _, err := n.cat.PublishCode(t.Context(), listening(t, "t/listening", "2.0.0", "paid", "data.orderId")); problem.CodeOf(err) != "workflow.event-changed" || !strings.Contains(err.Error(), "/steps/paid") {
			t.Errorf("it listens for something else: %v", err)
		}
		if _, err := n.cat.PublishCode(t.Context(), listening(t, "t/listening", "2.0.0", "settled", "data.order")); err != nil {
			t.Fatal(err)
		}
		if got, err := n.rt.PublishEvent(t.Context(), json.RawMessage(`{"specversion":"1.0","id":"1","source":"x","type":"org.paid","data":{"order":7}}`), nil); got != 1 || err != nil {
			t.Errorf("the event reached %d: %v", got, err)
		}
		n.until(t, "b", status("completed"))
	})
}
