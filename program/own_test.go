package program_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// TestOwnSnapshotIsNotCopied: deciding on a snapshot of one's own costs no copy
// of its branches, of which an instance may have a thousand. It counts
// allocations, so it runs beside no other test.
func TestOwnSnapshotIsNotCopied(t *testing.T) {
	const branches = 500
	var list strings.Builder
	for i := range branches {
		fmt.Fprintf(&list, "          - b%d: {call: work}\n", i)
	}
	p, err := openworkflow.Parse("w.yaml", []byte("document: {dsl: '1.0.3', namespace: t, name: w, version: 1.0.0}\n"+
		"do:\n  - all:\n      fork:\n        branches:\n"+list.String()))
	if err != nil {
		t.Fatal(err)
	}
	in := engine.Input{Now: epoch, Key: []byte("k"), Incarnation: "inc"}
	begun, err := engine.Begin(p.Definition, "i", signal.Start{Input: json.RawMessage("{}")}, in)
	if err != nil {
		t.Fatal(err)
	}
	each := func(own bool) float64 {
		s, n := begun.Snapshot.Clone(), 0
		in.Own = own
		return testing.AllocsPerRun(50, func() {
			in.Signal = signal.Envelope{InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: s.Waits[0].Token, Payload: json.RawMessage(`{"output": 1}`)}
			out, err := engine.Step(p.Definition, s, in)
			if err != nil {
				t.Fatal(err)
			}
			s, n = out.Snapshot, n+1
		})
	}
	if copied, own := each(false), each(true); own > branches/4 || copied < branches {
		t.Errorf("%.0f allocations in place, %.0f with a copy of %d branches", own, copied, branches)
	}
}
