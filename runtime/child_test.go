package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var (
	shippingDoc = doc("shipping", `
  - ship:
      call: effect
      with: {ship: '${ .order }'}
      output: {as: '${ {ship: .} }'}
`)
	orderDoc = doc("order", `
  - ship:
      run: {workflow: {namespace: t, name: shipping, input: {order: '${ .id }'}}}
      output: {as: '${ {id: $input.id, got: .ship} }'}
`)
	carefulDoc = doc("careful", `
  - careful:
      try:
        - ship: {run: {workflow: {namespace: t, name: '`+"%s"+`'}}}
      catch: {do: [{note: {set: {status: '${ $error.status }', detail: '${ $error.detail }', at: '${ $error.instance }'}}}]}
`)
	slowDoc = doc("slow", `
  - hear: {listen: {to: {one: {with: {type: go}}}}}
`)
	outerDoc = doc("outer", `
  - middle: {run: {workflow: {namespace: t, name: inner}}}
`)
	innerDoc = doc("inner", `
  - slow: {run: {workflow: {namespace: t, name: slow}}}
`)
	looseDoc = doc("loose", `
  - slow: {run: {workflow: {namespace: t, name: slow, input: {n: 1}}, await: false}}
`)
)

// childOf waits for the one child of an instance.
func (n *testNode) childOf(t *testing.T, parent string) projections.Instance {
	t.Helper()
	var row projections.Instance
	eventually(t, "child of "+parent, func() bool {
		page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{ParentID: parent})
		if err == nil && len(page.Items) == 1 {
			row = page.Items[0]
			return true
		}
		return false
	})
	return row
}

func TestSubWorkflowGivesItsOutput(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, func(_ context.Context, in json.RawMessage) (any, error) { return json.RawMessage(in), nil }, shippingDoc, orderDoc)
		n.begin(t, "o", "t/order", map[string]any{"id": 7})
		if got := n.output(t, "o"); got != `{"got":{"ship":7},"id":7}` {
			t.Errorf("output %s", got)
		}
		child := n.childOf(t, "o")
		if child.Definition != "t/shipping" || child.Status != "completed" || child.DefVersion != "1.0.0" {
			t.Errorf("child %+v", child)
		}
		s, err := n.rt.Snapshot(t.Context(), "o")
		if err != nil || len(s.SubFrames) != 0 {
			t.Errorf("frames %+v, %v", s.SubFrames, err)
		}
	})
}

// TestLargeOutputOfASubWorkflow goes beyond what a message holds.
func TestLargeOutputOfASubWorkflow(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100_000)
	n := start(t, testdb.OnFile(t)(), func(context.Context, json.RawMessage) (any, error) { return large, nil }, shippingDoc, orderDoc)
	n.begin(t, "o", "t/order", map[string]any{"id": 7})
	if got := n.output(t, "o"); got != `{"got":"`+large+`","id":7}` {
		t.Errorf("output of %d bytes", len(got))
	}
}

// TestChildFaultIsTheParentsError is the first part of scenario 35.
func TestChildFaultIsTheParentsError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		fail := true
		effect := func(context.Context, json.RawMessage) (any, error) {
			if fail {
				return nil, &activity.Error{Type: "https://shop.example/stock", Status: 409, Title: "No stock", Detail: "none left"}
			}
			return 1, nil
		}
		n := start(t, place, effect, shippingDoc, orderDoc, fmt.Sprintf(carefulDoc, "shipping"))
		n.begin(t, "c", "t/careful", nil)
		got := n.output(t, "c")
		child := n.childOf(t, "c")
		want := `{"at":"/do/0/careful/try/0/ship","detail":"none left (in sub-workflow t/shipping, instance ` + child.ID + ` at /do/0/ship)","status":409}`
		if got != want || child.Status != "faulted" {
			t.Errorf("output %s\nwant %s; child %s", got, want, child.Status)
		}
		// An operator mends the child: its parent has gone on, and stays.
		fail = false
		if _, err := n.rt.Operate(t.Context(), child.ID, engine.Retry, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		n.output(t, child.ID)
		if again := n.output(t, "c"); again != got {
			t.Errorf("after the child's retry the parent has %s", again)
		}
		n.begin(t, "o", "t/order", map[string]any{"id": 1})
		n.output(t, "o")
	})
}

func TestUnknownSubWorkflowIsAnError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, fmt.Sprintf(carefulDoc, "nowhere"))
		n.begin(t, "c", "t/careful", nil)
		if got := n.output(t, "c"); !strings.Contains(got, "definition t/nowhere is not known") || !strings.Contains(got, `"status":400`) {
			t.Errorf("output %s", got)
		}
	})
}

// TestCancelEndsTheWholeFamily is the second part of scenario 35.
func TestCancelEndsTheWholeFamily(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, slowDoc, innerDoc, outerDoc)
		n.begin(t, "o", "t/outer", nil)
		inner := n.childOf(t, "o")
		slow := n.childOf(t, inner.ID)
		n.until(t, slow.ID, status("waiting"))
		if _, err := n.rt.Operate(t.Context(), "o", engine.Cancel, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		n.until(t, inner.ID, status("cancelled"))
		n.until(t, slow.ID, status("cancelled"))
	})
}

// TestCancelBeforeTheChildBegan cancels a parent whose request for a child
// lies in the queue: the child never begins.
func TestCancelBeforeTheChildBegan(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := idle(t, place, slowDoc, innerDoc)
		n.begin(t, "i", "t/inner", nil)
		if _, err := n.rt.Operate(t.Context(), "i", engine.Cancel, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		n.run(t)
		n.drained(t)
		page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{ParentID: "i"})
		deadLetters, deadLetterErr := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		if err = errors.Join(err, deadLetterErr); err != nil || len(page.Items) != 0 || len(deadLetters.Items) != 0 {
			t.Errorf("children %+v, dead letters %+v, %v", page.Items, deadLetters.Items, err)
		}
	})
}

// TestUnawaitedChildOutlivesItsParent is the third part of scenario 35.
func TestUnawaitedChildOutlivesItsParent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, slowDoc, looseDoc)
		n.begin(t, "l", "t/loose", map[string]any{"kept": true})
		if got := n.output(t, "l"); got != `{"kept":true}` {
			t.Errorf("output %s", got)
		}
		child := n.childOf(t, "l")
		n.until(t, child.ID, status("waiting"))
		if _, err := n.rt.PublishEvent(t.Context(), json.RawMessage(`{"specversion":"1.0","id":"1","source":"s","type":"go","data":1}`), nil); err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, child.ID); got != "[1]" {
			t.Errorf("output of the child %s", got)
		}
	})
}

// TestLatestIsResolvedOnce is scenario 36: what is published between the
// parent's commit and the child's start does not count.
func TestLatestIsResolvedOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := idle(t, place, slowDoc, innerDoc)
		n.begin(t, "i", "t/inner", nil)
		if _, _, err := n.cat.Publish(t.Context(), "slow.yaml", []byte(strings.Replace(slowDoc, "1.0.0", "2.0.0", 1))); err != nil {
			t.Fatal(err)
		}
		n.run(t)
		if child := n.childOf(t, "i"); child.DefVersion != "1.0.0" {
			t.Errorf("the child runs %s", child.DefVersion)
		}
		n.begin(t, "j", "t/inner", nil)
		if child := n.childOf(t, "j"); child.DefVersion != "2.0.0" {
			t.Errorf("a later child runs %s", child.DefVersion)
		}
	})
}

// TestSubWorkflowsHaveADepth waits one deeper than may be.
func TestSubWorkflowsHaveADepth(t *testing.T) {
	t.Parallel()
	n := start(t, testdb.OnFile(t)(), nil)
	for i := engine.MaxDepth + 1; i >= 0; i-- {
		publish(t, n, doc(fmt.Sprintf("d%d", i), fmt.Sprintf("\n  - a: {run: {workflow: {namespace: t, name: d%d}}}\n", i+1)))
	}
	n.begin(t, "p", "t/d0", nil)
	row := n.until(t, "p", status("faulted"))
	if !strings.Contains(row.ErrorDetail, "more than 32 deep") {
		t.Errorf("%+v", row)
	}
	// Within what is published the circle is seen.
	_, _, err := n.cat.Publish(t.Context(), "doc.yaml", []byte(doc("d9", "\n  - a: {run: {workflow: {namespace: t, name: d3}}}\n")))
	code(t, err, "definition.cyclic")
}

func publish(t *testing.T, n *testNode, text string) {
	t.Helper()
	if _, _, err := n.cat.Publish(t.Context(), "doc.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// idle opens a node that does not run yet.
func idle(t *testing.T, place string, documents ...string) *testNode {
	t.Helper()
	n, err := open(t.Context(), place, nil, nil, documents...)
	if err != nil {
		t.Fatal(err)
	}
	n.stop()
	if err := <-n.done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	n.stop = func() {}
	go func() { n.done <- nil }()
	return n
}

// run lets an idle node work.
func (n *testNode) run(t *testing.T) {
	t.Helper()
	<-n.done
	run, stop := context.WithCancel(t.Context())
	n.stop = stop
	go func() { n.done <- n.rt.Run(run) }()
}

// drained waits until no queue has a message.
func (n *testNode) drained(t *testing.T) {
	t.Helper()
	eventually(t, "queues", func() bool {
		queues, err := n.store.Backlog.Queues(t.Context())
		for _, q := range queues {
			if q.Ready+q.Delayed+q.Leased > 0 {
				return false
			}
		}
		return err == nil
	})
}
