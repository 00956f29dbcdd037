package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
)

var (
	longDoc = doc("long", `
  - steps: {for: {in: '${ [range(12)] }', each: n}, do: [{step: {call: effect, with: {do: step}}}]}
  - again: {call: effect, with: {do: fail-twice}}
  - pause: {wait: {milliseconds: 5}}
  - nested: {run: {workflow: {namespace: t, name: middle}}}
  - tell: {emit: {event: {with: {type: told, data: {order: 1}}}}}
  - hear: {listen: {to: {one: {with: {type: go}}}}}
  - ack: {call: acknowledged, with: {call: effect, with: {do: ack}, within: PT1H}}
  - approve: {call: humanTask, with: {title: Approve, candidateUsers: [ann], outcomes: [yes, no], due: {after: PT1H}}}
  - late: {wait: {milliseconds: 5}}
  - done: {set: {ok: true}}
`)
	middleDoc = doc("middle", `
  - leaf: {run: {workflow: {namespace: t, name: leaf}}}
  - loose: {run: {workflow: {namespace: t, name: leaf}, await: false}}
`)
	leafDoc = doc("leaf", `
  - pause: {wait: {milliseconds: 5}}
  - call: {call: effect, with: {do: leaf}}
`)
	toldDoc      = scheduledDoc("told", "1.0.0", `{read: data, on: {one: {with: {type: told}}}}`)
	longStateDoc = strings.ReplaceAll(crashLifecycle, "{do: charge}", "{do: step}")
)

// flaky performs the calls of a long workflow; those that are told to fail do,
// twice for each key.
type flaky struct {
	mu    sync.Mutex
	tried map[string]int
}

func (f *flaky) take(ctx context.Context, input json.RawMessage) (any, error) {
	if !strings.Contains(string(input), "fail-twice") {
		return map[string]int{"n": 1}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := activity.Info(ctx).Key
	if f.tried[key]++; f.tried[key] <= 2 {
		return nil, fmt.Errorf("try again")
	}
	return map[string]int{"n": 2}, nil
}

// TestLongIDsWork: an id of the length that the limits allow serves for
// everything that an instance does, and what is made of it has no limit of its own.
func TestLongIDsWork(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		f := &flaky{tried: map[string]int{}}
		n := keeping(t, fresh(), time.Hour, f.take, longDoc, middleDoc, leafDoc, toldDoc, longStateDoc)
		var ids []string
		for size := signal.MaxIDBytes - 4; size <= signal.MaxIDBytes; size++ {
			ids = append(ids, strings.Repeat("x", size))
		}
		for i, id := range ids {
			s := signal.Start{Definition: "t/long", BusinessKey: fmt.Sprint("b", i), StartKey: strings.Repeat("k", signal.MaxKeyBytes)}
			for _, created := range []bool{true, false} {
				if got, is, err := n.rt.Start(t.Context(), id, s, nil); got != id || is != created || err != nil {
					t.Fatalf("%d bytes: %q, created %t, %v", len(id), got, is, err)
				}
			}
			n.lifecycleOf(t, strings.Repeat("l", len(id)), i)
		}
		for _, id := range ids {
			n.through(t, id)
		}
		eventually(t, "an instance for each event", func() bool {
			runs, _ := n.runs(t, "t/told")
			return len(runs) == len(ids)
		})
		if deadLetters := n.deadLetters(t, 0); len(deadLetters) != 0 {
			t.Errorf("dead letters %+v", deadLetters)
		}
	})
}

// through does what a long workflow waits for.
func (n *testNode) through(t *testing.T, id string) {
	t.Helper()
	n.waitsFor(t, id, "/do/5/hear")
	event := fmt.Sprintf(`{"signalId":"%s","workflowInstanceId":"%s","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"go"}}`,
		strings.Repeat("s", signal.MaxIDBytes), id)
	n.send(t, event)
	n.send(t, event)
	var position int64
	eventually(t, "the command", func() bool {
		s, err := n.store.Writer.Load(t.Context(), id)
		for _, w := range s.Waits {
			if strings.HasPrefix(w.Pointer, "/do/6/ack") {
				position = w.Command
			}
		}
		return err == nil && position > 0
	})
	eventually(t, "its delivery", func() bool {
		rows, err := n.store.Streams.Stream(t.Context(), id, position-1, 1)
		return err == nil && len(rows) == 1 && rows[0].Deliveries > 0
	})
	if got, err := n.rt.Acknowledge(t.Context(), id, position, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`1`)}); got != engine.Applied || err != nil {
		t.Errorf("%d bytes: %q, %v", len(id), got, err)
	}
	n.waitsFor(t, id, "/do/7/approve")
	s, _ := n.store.Writer.Load(t.Context(), id)
	task := ""
	for _, w := range s.Waits {
		task = max(task, w.TaskID)
	}
	if _, err := n.rt.ClaimTask(t.Context(), task, "ann", nil); err != nil {
		t.Fatalf("%d bytes: task %q: %v", len(id), task, err)
	}
	if _, err := n.rt.CompleteTask(t.Context(), task, "ann", nil, "yes", nil); err != nil {
		t.Fatalf("%d bytes: task %q: %v", len(id), task, err)
	}
	if got := n.output(t, id); got != `{"ok":true}` {
		t.Errorf("%d bytes: %s", len(id), got)
	}
}

func (n *testNode) waitsFor(t *testing.T, id, pointer string) {
	t.Helper()
	eventually(t, pointer, func() bool {
		s, err := n.store.Writer.Load(t.Context(), id)
		for _, w := range s.Waits {
			if w.Pointer == pointer {
				return true
			}
		}
		return err == nil && s.Status.Closed()
	})
}

// lifecycleOf takes an entity with a long id through its states.
func (n *testNode) lifecycleOf(t *testing.T, id string, i int) {
	t.Helper()
	for _, name := range []string{"submit", "close"} {
		eventually(t, name, func() bool {
			_, _, _, err := n.rt.StartOrSignal(t.Context(), id, event(fmt.Sprint("L-", i), strings.Repeat(name[:1], signal.MaxIDBytes), name, "7"), nil)
			return err == nil
		})
	}
	n.until(t, id, status("completed"))
}
