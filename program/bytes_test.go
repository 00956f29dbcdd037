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

// TestATurnWritesSoManyBytes: a loop that emits much ends its turn early and
// goes on in others, and nothing is missing; the commands of one forEach are
// bounded together.
func TestATurnWritesSoManyBytes(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 20_000)
	begin := func(tasks string) (engine.Definition, *engine.Outcome, engine.Input) {
		t.Helper()
		p, err := openworkflow.Parse("w.yaml", []byte("document: {dsl: '1.0.3', namespace: t, name: w, version: 1.0.0}\ndo:\n"+tasks))
		if err != nil {
			t.Fatal(err)
		}
		in := engine.Input{Now: epoch, Key: []byte("k"), Incarnation: "inc"}
		out, err := engine.Begin(p.Definition, "i", signal.Start{Input: json.RawMessage(fmt.Sprintf(`{"large":%q}`, large))}, in)
		if err != nil {
			t.Fatal(err)
		}
		return p.Definition, out, in
	}
	def, out, in := begin("  - all: {for: {each: n, in: '${ [range(450)] }'}, do: [{one: {emit: {event: {with: {type: t, data: '${ .large }'}}}, output: {as: '${ $input }'}}}]}\n")
	emitted, turns := 0, 0
	for ; ; turns++ {
		bytes := 0
		for _, e := range out.Entries {
			if e.Command != nil {
				emitted++
				bytes += len(e.Command.Input)
			}
		}
		if bytes > engine.MaxTurnBytes+2*len(large) {
			t.Errorf("turn %d writes %d bytes", turns, bytes)
		}
		if out.Snapshot.Status != snapshot.Running {
			break
		}
		in.Signal = signal.Envelope{InstanceID: "i", Type: signal.InternalContinue, WaitingToken: out.Snapshot.Waits[0].Token}
		in.Now = in.Now.Add(time.Second)
		var err error
		if out, err = engine.Step(def, out.Snapshot, in); err != nil {
			t.Fatal(err)
		}
	}
	if emitted != 450 || turns != 2 || out.Snapshot.Status != snapshot.Completed {
		t.Errorf("%d events in %d more turns, %s: %v", emitted, turns, out.Snapshot.Status, out.Snapshot.Error)
	}
	each := "  - all: {call: forEach, with: {in: '${ [range(%d)] }', call: work, with: {text: '${ .large }'}}}\n"
	if _, out, _ := begin(fmt.Sprintf(each, 500)); len(out.Snapshot.Waits) != 500 {
		t.Errorf("%d commands of 500, %v", len(out.Snapshot.Waits), out.Snapshot.Error)
	}
	if _, out, _ := begin(fmt.Sprintf(each, 1_000)); out.Snapshot.Error == nil || out.Snapshot.Error.Title != "Limit exceeded" {
		t.Errorf("1,000 commands of %d bytes: %s, %v", len(large), out.Snapshot.Status, out.Snapshot.Error)
	}
}
