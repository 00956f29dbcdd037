package program_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

const longLoop = `
document: {dsl: '1.0.3', namespace: t, name: long, version: '1.0.0'}
do:
  - each:
      for: {each: item, in: '${ .items }', at: i}
      while: '${ $i < 9990 }'
      do:
        - add: {set: '${ {sum: ((.sum // 0) + $item.n), last: $i} }'}
`

// TestLongLoopContinues is conformance scenario 26: a loop over 10,000 items
// goes on in turns that each take a bounded number of steps; every turn begins
// from the stored snapshot, at the right index, and stores less than the one
// before.
func TestLongLoopContinues(t *testing.T) {
	t.Parallel()
	const items = 10_000
	var list []string
	for i := range items {
		list = append(list, fmt.Sprintf(`{"n": %d}`, i))
	}
	p, err := openworkflow.Parse("w.yaml", []byte(longLoop))
	if err != nil {
		t.Fatal(err)
	}
	in := engine.Input{Now: epoch, Key: []byte("k"), Incarnation: "inc"}
	out, err := engine.Begin(p.Definition, "i", signal.Start{Input: json.RawMessage(`{"items": [` + strings.Join(list, ",") + `]}`)}, in)
	turns, bytes := 1, 0
	for err == nil && out.Snapshot.Status == snapshot.Running {
		s := stored(out.Snapshot)
		index := s.Branches[0].Frames[1].Next
		if want := turns * engine.DefaultSteps / 2; index < want-1 || index > want {
			t.Fatalf("turn %d ends at index %d, not about %d", turns, index, want)
		}
		raw, _ := s.Encode()
		if turns > 1 && len(raw) >= bytes {
			t.Errorf("turn %d stores %d bytes after %d", turns, len(raw), bytes)
		}
		turns, bytes = turns+1, len(raw)
		in.Signal = signal.Envelope{InstanceID: "i", Type: signal.InternalContinue, WaitingToken: s.Waits[0].Token}
		in.Now = in.Now.Add(time.Second)
		out, err = engine.Step(p.Definition, s, in)
	}
	if err != nil || turns != 2*items/engine.DefaultSteps {
		t.Fatalf("%d turns, %v", turns, err)
	}
	if got := string(out.Snapshot.State.Output); got != `{"last":9989,"sum":49895055}` {
		t.Errorf("output %s", got)
	}
}

// BenchmarkLoopTurn is one turn of a loop that calls something in each round,
// with so many items left, from the stored snapshot to the next: what a round
// costs beside its call.
func BenchmarkLoopTurn(b *testing.B) {
	p, err := openworkflow.Parse("w.yaml", []byte(strings.Replace(longLoop, "set: '${ {sum: ((.sum // 0) + $item.n), last: $i} }'", "call: work, with: {n: '${ $item.n }'}", 1)))
	if err != nil {
		b.Fatal(err)
	}
	for _, items := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			list := strings.Repeat(`{"n": 1, "text": "some forty bytes of an item or so"},`, items)
			in := engine.Input{Now: epoch, Key: []byte("k"), Incarnation: "inc"}
			out, err := engine.Begin(p.Definition, "i", signal.Start{Input: json.RawMessage(`{"items": [` + strings.TrimSuffix(list, ",") + `]}`)}, in)
			if err != nil {
				b.Fatal(err)
			}
			s := out.Snapshot
			in.Signal = signal.Envelope{InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: s.Waits[0].Token, Payload: json.RawMessage(`{"output": {"n": 1}}`)}
			bytes := 0
			for b.Loop() {
				next, err := engine.Step(p.Definition, s, in)
				if err != nil {
					b.Fatal(err)
				}
				raw, err := next.Snapshot.Encode()
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(raw)
			}
			b.ReportMetric(float64(bytes), "bytes/turn")
		})
	}
}
