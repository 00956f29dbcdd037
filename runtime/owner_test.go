package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// nested is n lists, one in the other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// deepDoc hears an event and gives a child what is nested too deep for a
// message, so that nobody could read the request.
var deepDoc = doc("deep", `
  - hear: {listen: {to: {one: {with: {type: go}}}}}
  - child: {run: {workflow: {namespace: t, name: slow, input: '${ reduce range(70) as $i (0; [.]) }'}}}
`)

// firstDeepDoc does so in its first turn.
var firstDeepDoc = doc("first-deep", `
  - child: {run: {workflow: {namespace: t, name: slow, input: '${ reduce range(70) as $i (0; [.]) }'}}}
`)

// hugeDoc hears an event and goes on in branches with more than a snapshot may hold.
var hugeDoc = doc("huge", `
  - hear: {listen: {to: {one: {with: {type: go}}}}}
  - grow:
      fork:
        branches:
`+fill("          - b%[1]d: {do: [{make: {set: {a: '${ \"x\" * 900000 }'}}}, {wait: {wait: {hours: 1}}}]}\n", 6))

// fill writes a line n times, each with its number.
func fill(line string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// deepChildDoc answers its parent with what nobody could read.
var (
	deepChildDoc  = doc("deep-child", "\n  - make: {set: {a: '${ reduce range(70) as $i (0; [.]) }'}}\n")
	deepParentDoc = doc("deep-parent", `
  - ask:
      try:
        - child: {run: {workflow: {namespace: t, name: deep-child}}}
      catch: {do: [{note: {set: {detail: '${ $error.detail }'}}}]}
`)
)

// TestAFaultOfAnOutputFaultsTheInstance: an error of what a turn writes is the
// author's. The message that led to it is sound, and no dead letter.
func TestAFaultOfAnOutputFaultsTheInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, slowDoc, deepDoc, firstDeepDoc, hugeDoc, deepChildDoc, deepParentDoc)
		for id, limit := range map[string]string{"deep": "signal.too-deep", "huge": "limit.snapshot"} {
			n.begin(t, id, "t/"+id, nil)
			n.until(t, id, status("waiting"))
			n.send(t, `{"signalId":"s","workflowInstanceId":"`+id+`","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"go"}}`)
			n.faultedBy(t, id, limit)
		}
		n.begin(t, "called", "t/first-deep", nil)
		n.faultedBy(t, "called", "signal.too-deep")
		n.queue(t, "queued", `{"definition":"t/first-deep","startKey":"k","businessKey":"b"}`)
		n.faultedBy(t, "queued", "signal.too-deep")
		if id, created, err := n.rt.Start(t.Context(), "", signal.Start{Definition: "t/first-deep", BusinessKey: "b", StartKey: "k"}, nil); id != "queued" || created || err != nil {
			t.Errorf("a repeat of the start: %s, created %t, %v", id, created, err)
		}
		n.begin(t, "parent", "t/deep-parent", nil)
		if got := n.output(t, "parent"); !strings.Contains(got, "signal.too-deep") {
			t.Errorf("parent %s", got)
		}
		if deadLetters := n.deadLetters(t, 0); len(deadLetters) != 0 {
			t.Errorf("dead letters %+v", deadLetters)
		}
	})
}

// faultedBy waits for an instance to fault, and checks that it says why.
func (n *testNode) faultedBy(t *testing.T, id, limit string) {
	t.Helper()
	n.until(t, id, status("faulted"))
	s, err := n.store.Writer.Load(t.Context(), id)
	if err != nil || s.Error == nil || s.Error.Title != "Limit exceeded" || !strings.Contains(s.Error.Detail, limit) {
		t.Errorf("%s: error %+v, %v; want %s", id, s.Error, err, limit)
	}
	if len(s.Waits) != 0 {
		t.Errorf("%s waits for %+v", id, s.Waits)
	}
}

// TestAnInputTooDeepIsItsSenders: the same limit, from outside, is a dead
// letter, and touches no instance.
func TestAnInputTooDeepIsItsSenders(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, slowDoc)
		n.begin(t, "i", "t/slow", nil)
		before := n.until(t, "i", status("waiting"))
		body := `{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"go","data":` + nested(70) + `}}`
		n.send(t, body)
		n.discardsDeadLetter(t, "signal.too-deep")
		env := signal.Envelope{SignalID: "s2", InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: before.StartedAt, Payload: json.RawMessage(`{"type":"go","data":` + nested(70) + `}`)}
		if _, err := env.Encode(); err == nil {
			t.Error("what cannot be read was written")
		}
		if after := n.until(t, "i", status("waiting")); after.Version != before.Version {
			t.Errorf("touched: %+v", after)
		}
	})
}
