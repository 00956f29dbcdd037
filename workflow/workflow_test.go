package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// Types of the order that most tests here run.
type (
	order struct {
		Cents   int    `json:"cents"`
		Receipt string `json:"receipt,omitempty"`
		Notes   []string
	}
	request struct {
		Cents int `json:"cents"`
	}
	payment struct {
		Cents int `json:"cents"`
	}
	receipt struct {
		ID string `json:"id"`
	}
)

var (
	charge = workflow.Call[payment, receipt]("charge", "chargeCard")
	tell   = workflow.HTTP[any]("tell")
	pause  = workflow.Timer("pause")
)

// ordering is a start, a call, a timer and a request.
func ordering() *workflow.Workflow[order] {
	w := workflow.New[order]("shop/order", "1.0.0")
	workflow.Start(w, func(o order, in workflow.Input[request]) (order, workflow.Do) {
		o.Cents = in.Value.Cents
		return o, workflow.Do{charge.With(payment(in.Value)).CompensateWith("refund", in.Value)}
	}, workflow.To(charge))
	workflow.On(w, charge, func(o order, in workflow.Input[receipt]) (order, workflow.Do) {
		o.Receipt = in.Value.ID
		return o, workflow.Do{pause.After(time.Hour)}
	}, workflow.To(pause))
	workflow.On(w, pause, func(o order, _ workflow.Input[workflow.Fired]) (order, workflow.Do) {
		return o, workflow.Do{tell.With(workflow.Request{Method: "POST", URI: "https://shop.example/told", Body: o})}
	}, workflow.To(tell))
	workflow.On(w, tell, func(o order, _ workflow.Input[any]) (order, workflow.Do) {
		return o, workflow.Do{workflow.Complete(o)}
	}, workflow.To())
	return w
}

func made[S any](t *testing.T, w *workflow.Workflow[S]) *workflow.Definition {
	t.Helper()
	d, err := w.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAWorkflowRunsToItsEnd(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Definition(t, made(t, ordering()))
	w.OnCall("chargeCard").Return(`{"id": "r-1"}`)
	w.OnCall("POST https://shop.example/told").Return(`{}`)
	w.Start(`{"cents": 5}`)
	if got := w.Snapshot().Waits[0]; got.Kind != snapshot.WaitTimer || got.Pointer != "/pause" {
		t.Fatalf("waits for %+v", got)
	}
	w.Advance(time.Hour)
	w.Completed(`{"cents": 5, "receipt": "r-1", "Notes": []}`)
}

// TestAFailureCompensates: what nobody takes fails the workflow; a call that is known
// to have failed is not undone, those before it are.
func TestAFailureCompensates(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Definition(t, made(t, ordering()))
	w.OnCall("chargeCard").Return(`{"id": "r-1"}`)
	w.OnCall("refund").Return(`null`)
	w.OnCall("POST https://shop.example/told").Fail("communication", 500, "no")
	w.Start(`{"cents": 5}`).Attempts(1).Advance(time.Hour)
	if s := w.Snapshot(); s.Status != snapshot.Compensated || s.Error.Instance != "/tell" || !s.Compensating.Done {
		t.Fatalf("%s: %+v", s.Status, s.Error)
	}
}

func TestAKnownRefusalIsNotCompensated(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Definition(t, made(t, ordering())).Attempts(1)
	w.OnCall("chargeCard").Fail("communication", 402, "no money")
	w.Start(`{"cents": 5}`)
	s := w.Snapshot()
	if s.Status != snapshot.Faulted || s.Error.Instance != "/charge" || s.Compensating != nil || len(s.Compensations) > 0 {
		t.Fatalf("%s: %+v, %+v", s.Status, s.Error, s.Compensations)
	}
	// An operator's retry calls again, under the same key.
	w.OnCall("chargeCard").Return(`{"id": "r-2"}`)
	w.Operate(engine.Retry, nil)
	if s := w.Snapshot(); s.Status != snapshot.Waiting || s.Waits[0].Pointer != "/pause" {
		t.Fatalf("%s: %+v", s.Status, s.Waits)
	}
	calls := w.Calls("chargeCard")
	if len(calls) != 2 || calls[0].Key != calls[1].Key {
		t.Errorf("calls %+v", calls)
	}
}

// TestBadDeclarationsAreFound, all at once, each with a code and a place.
func TestBadDeclarationsAreFound(t *testing.T) {
	t.Parallel()
	w := workflow.New[order]("shop/bad", "2.0.0")
	keep := func(o order, _ workflow.Input[receipt]) (order, workflow.Do) { return o, nil }
	workflow.On(w, workflow.Call[payment, receipt]("", "f"), keep)
	workflow.On(w, workflow.Call[payment, receipt]("free", ""), keep)
	workflow.On(w, charge, keep, workflow.To(pause))
	workflow.On(w, charge, keep)
	workflow.Upcast(w, "1.0.0", "1.1.0", func(o order) (order, error) { return o, nil })
	_, err := w.Definition()
	for _, want := range []string{"workflow.effect-name", "workflow.step", "workflow.twice", "workflow.step-unknown", "workflow.start", "workflow.upcast-hole"} {
		if problem.CodeOf(err) != "workflow.invalid" || !findings(err)[want] {
			t.Errorf("no %s in: %v", want, err)
		}
	}
	if !strings.Contains(err.Error(), "/charge: it leads to the step \"pause\"") {
		t.Errorf("no place in: %v", err)
	}
}

// TestUpcastsFitTogether: what one makes the next one takes, and the last one makes the
// state of the workflow. The finding names both.
func TestUpcastsFitTogether(t *testing.T) {
	t.Parallel()
	type first struct{ Euros int }
	type second struct{ Cents int }
	onward := func(w *workflow.Workflow[order]) {
		workflow.Upcast(w, "2.0.0", "3.0.0", func(s second) (order, error) { return order{Cents: s.Cents}, nil })
	}
	for name, c := range map[string]struct {
		upcast func(w *workflow.Workflow[order])
		want   string
	}{
		"it ends at another state": {func(w *workflow.Workflow[order]) {
			workflow.Upcast(w, "1.0.0", "3.0.0", func(s first) (first, error) { return s, nil })
		}, "/upcast/1.0.0: the upcast from version 1.0.0 to 3.0.0 makes a workflow_test.first, and the state of version 3.0.0 is a workflow_test.order"},
		"the next one takes another": {func(w *workflow.Workflow[order]) {
			workflow.Upcast(w, "1.0.0", "2.0.0", func(s first) (first, error) { return s, nil })
			onward(w)
		}, "/upcast/1.0.0: the upcast from version 1.0.0 to 2.0.0 makes a workflow_test.first, and that from 2.0.0 to 3.0.0 takes a workflow_test.second"},
		"they fit": {func(w *workflow.Workflow[order]) {
			workflow.Upcast(w, "1.0.0", "2.0.0", func(s first) (second, error) { return second{100 * s.Euros}, nil })
			onward(w)
		}, ""},
	} {
		w := workflow.New[order]("shop/fit", "3.0.0")
		workflow.Start(w, func(o order, _ workflow.Input[any]) (order, workflow.Do) { return o, workflow.Do{workflow.Complete(o)} })
		c.upcast(w)
		_, err := w.Definition()
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) || err != nil && !findings(err)["workflow.upcast-type"] {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func findings(err error) map[string]bool {
	all := map[string]bool{}
	if p, ok := err.(*problem.Error); ok {
		for _, w := range p.Where {
			all[w.Code] = true
		}
	}
	return all
}
