package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// The states of three versions of one workflow.
type (
	first  struct{ Cents int }
	second struct{ Amount struct{ Cents int } }
)

// paidFor waits for an event, and calls a function then. Its state has the form of its
// version.
func paidFor[S any](t *testing.T, version string, set func(*S, int), get func(S) int, upcasts ...func(*workflow.Workflow[S])) *workflow.Definition {
	t.Helper()
	paid := workflow.Event[string]("paid", "paid", "data")
	book := workflow.Call[int, did]("book", "effect")
	w := workflow.New[S]("t/paying", version)
	workflow.Start(w, func(s S, in workflow.Input[int]) (S, workflow.Do) {
		set(&s, in.Value)
		return s, workflow.Do{paid.Listen("now")}
	}, workflow.To(paid))
	workflow.On(w, paid, func(s S, _ workflow.Input[string]) (S, workflow.Do) {
		return s, workflow.Do{book.With(get(s))}
	}, workflow.To(book))
	workflow.On(w, book, func(s S, _ workflow.Input[did]) (S, workflow.Do) {
		return s, workflow.Do{workflow.Complete(map[string]any{"version": version, "cents": get(s)})}
	}, workflow.To())
	for _, u := range upcasts {
		u(w)
	}
	d, err := w.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func payingFirst(t *testing.T) *workflow.Definition {
	return paidFor(t, "1.0.0", func(s *first, n int) { s.Cents = n }, func(s first) int { return s.Cents })
}

func payingSecond(t *testing.T, upcasts ...func(*workflow.Workflow[second])) *workflow.Definition {
	return paidFor(t, "2.0.0", func(s *second, n int) { s.Amount.Cents = n }, func(s second) int { return s.Amount.Cents }, upcasts...)
}

// coded starts a node that has the code of definitions.
func coded(t *testing.T, place string, code ...*workflow.Definition) *testNode {
	t.Helper()
	n, err := openSet(t.Context(), place, func(c *runtime.Config) {
		for _, def := range code {
			if _, err := c.Definitions.(*definition.Catalogue).PublishCode(t.Context(), def, definition.Code{Live: backend.Live(c.Store.Instances)}); err != nil {
				t.Error(err)
			}
		}
		c.RetryDelay, c.RetryMax = 5*time.Millisecond, 1
	}, func(context.Context, json.RawMessage) (any, error) { return did{1}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWhatIsForCodeElsewhereIsHandedOn: a node without the code of a workflow takes
// signals, events and starts for it, loses none, spends no attempt on them and makes no
// dead letter; a node with a newer version goes on with the instances.
func TestWhatIsForCodeElsewhereIsHandedOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		one := coded(t, place, payingFirst(t))
		for _, id := range []string{"a", "b"} {
			if _, _, err := one.rt.Start(t.Context(), id, signal.Start{Definition: "t/paying", Input: json.RawMessage(`5`)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.close(); err != nil {
			t.Fatal(err)
		}

		bare := coded(t, place)
		if _, err := bare.rt.Operate(t.Context(), "a", engine.Retry, nil, "olga"); problem.CodeOf(err) != engine.CodeElsewhere {
			t.Errorf("an operation of a node without the code: %v", err)
		}
		for _, id := range []string{"a", "b"} {
			env := signal.Envelope{SignalID: "paid-" + id, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"paid","data":"now"}`)}
			if err := enqueue(t.Context(), bare, env); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "messages that come again and again", func() bool {
			return bare.retriedBy(t, "upgrade") > 3
		})
		records := must(bare.store.Versions(t.Context(), "t/paying", 0))
		stored := must(bare.store.Definition(t.Context(), "t/paying", records[0].Version))
		if err := bare.cat.Verify(t.Context(), stored); err != nil {
			t.Errorf("its record is not sound: %v", err)
		}
		stored.Document = append(stored.Document, ' ')
		if err := bare.cat.Verify(t.Context(), stored); problem.CodeOf(err) != "definition.digest" {
			t.Errorf("its record is damaged, and that is not found: %v", err)
		}
		dead := must(bare.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{}))
		if len(dead.Items) > 0 {
			t.Errorf("dead letters %+v", dead.Items)
		}
		if err := bare.close(); err != nil {
			t.Fatal(err)
		}

		two := coded(t, place, payingSecond(t, func(w *workflow.Workflow[second]) {
			workflow.Upcast(w, "1.0.0", "2.0.0", func(old first) (s second, err error) {
				s.Amount.Cents = old.Cents
				return s, nil
			})
		}))
		for _, id := range []string{"a", "b"} {
			eventually(t, id+" at its end", func() bool {
				s, err := two.store.Writer.Load(t.Context(), id)
				if err == nil && s.Status == snapshot.Faulted {
					t.Fatalf("%+v", s.Error)
				}
				return err == nil && s.Status == snapshot.Completed && string(s.State.Output) == `{"cents":5,"version":"2.0.0"}`
			})
			row := must(two.store.Instances.Instance(t.Context(), id))
			if row.DefVersion != "2.0.0" {
				t.Errorf("%s runs %s", id, row.DefVersion)
			}
		}
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// retriedBy is how often messages were tried again by somebody's fault.
func (n *testNode) retriedBy(t *testing.T, by string) (count int) {
	t.Helper()
	families, err := n.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if family.GetName() == "aqueduct_message_retries_total" && l.GetName() == "by" && l.GetValue() == by {
					count += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return count
}

// TestAVersionWithoutAWayIsRefused: instances run a version that the new one cannot go
// on with. It is named, and nothing is published.
func TestAVersionWithoutAWayIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := coded(t, fresh(), payingFirst(t))
		defer n.close()
		if _, _, err := n.rt.Start(t.Context(), "a", signal.Start{Definition: "t/paying", Input: json.RawMessage(`5`)}, nil); err != nil {
			t.Fatal(err)
		}
		other := definition.New(n.store, nil, time.Now)
		code := definition.Code{Live: backend.Live(n.store.Instances), Can: func(string) bool { return true }}
		_, err := other.PublishCode(t.Context(), payingSecond(t), code)
		if problem.CodeOf(err) != "workflow.upcast-missing" || !strings.Contains(err.Error(), "/upcast/1.0.0") {
			t.Errorf("a version without a way from the one that lives: %v", err)
		}
		if list := must(n.store.Versions(t.Context(), "t/paying", 0)); len(list) != 1 {
			t.Errorf("versions %+v", list)
		}
		if _, err := other.PublishCode(t.Context(), payingFirst(t), code); err != nil {
			t.Errorf("the same again: %v", err)
		}
		code.Can = func(string) bool { return false }
		if _, err := other.PublishCode(t.Context(), payingFirst(t), code); problem.CodeOf(err) != "workflow.function-unknown" || !strings.Contains(err.Error(), "/book") {
			t.Errorf("a function that nobody has registered: %v", err)
		}
	})
}
