package workflow_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// fiveCalls is a workflow of five calls in sequence, in Go.
func fiveCalls(tb testing.TB) engine.Definition {
	type argument struct {
		N int `json:"n"`
	}
	type answer struct {
		OK bool `json:"ok"`
	}
	w := workflow.New[answer]("t/five", "1.0.0")
	var steps []workflow.CallStep[argument, answer]
	for i := range 5 {
		steps = append(steps, workflow.Call[argument, answer](fmt.Sprintf("step%d", i), "f"))
	}
	workflow.Start(w, func(s answer, _ workflow.Input[argument]) (answer, workflow.Do) {
		return s, workflow.Do{steps[0].With(argument{1})}
	}, workflow.To(steps[0]))
	for i := range 4 {
		workflow.On(w, steps[i], func(_ answer, in workflow.Input[answer]) (answer, workflow.Do) {
			return in.Value, workflow.Do{steps[i+1].With(argument{i + 2})}
		}, workflow.To(steps[i+1]))
	}
	workflow.On(w, steps[4], func(_ answer, in workflow.Input[answer]) (answer, workflow.Do) {
		return in.Value, workflow.Do{workflow.Complete(in.Value)}
	}, workflow.To())
	d, err := w.Definition()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// BenchmarkFiveCalls is what deciding and encoding five calls costs, in Go and as a
// document.
func BenchmarkFiveCalls(b *testing.B) {
	text := "document: {dsl: '1.0.3', namespace: t, name: five, version: '1.0.0'}\ndo:\n"
	for i := range 5 {
		text += fmt.Sprintf("  - step%d: {call: f, with: {n: %d}}\n", i, i+1)
	}
	parsed, err := openworkflow.Parse("five.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	for name, def := range map[string]engine.Definition{"go": fiveCalls(b), "document": parsed.Definition} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			in := engine.Input{Now: time.Unix(1, 0), Key: []byte("k"), Incarnation: "0123456789abcdef"}
			for b.Loop() {
				out, err := engine.Begin(def, "i", signal.Start{Input: json.RawMessage(`{"n":1}`)}, in)
				for range 5 {
					if err != nil {
						b.Fatal(err)
					}
					if _, err = out.Snapshot.Encode(); err != nil {
						b.Fatal(err)
					}
					in := in
					in.Signal = signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: out.Snapshot.Waits[0].Token, Payload: json.RawMessage(`{"output":{"ok":true}}`)}
					out, err = engine.Step(def, out.Snapshot, in)
				}
				if err != nil || !out.Snapshot.Status.Closed() {
					b.Fatal(out, err)
				}
			}
		})
	}
}
