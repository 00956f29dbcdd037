package aqueducttest

import (
	"context"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Replay makes the instance again from its stream, as engine-node verify does, and
// fails the test unless that comes to the same. With a document it happens at the end
// of each test; with Go code, which a test may change meanwhile, when it is asked for:
// code that decides otherwise now is impure, or has changed without a version of its own.
func Replay(w *Workflow) {
	w.t.Helper()
	if w.turns == 0 {
		return
	}
	stored, err := w.snap.Encode()
	if err != nil {
		w.t.Fatalf("aqueducttest: %v", err)
	}
	rows, err := projections.Fold(nil, &engine.Outcome{Snapshot: w.snap, Entries: w.entries}, "", func(*engine.Entry) (string, int) { return "", 0 })
	if err != nil {
		w.t.Fatalf("aqueducttest: %v", err)
	}
	found, err := replay.Replayer{Definitions: w.driver, Key: []byte(InstanceID)}.Verify(context.Background(), InstanceID, stored, func(yield func(projections.Entry, error) bool) {
		for _, e := range rows.Stream {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		w.t.Fatalf("aqueducttest: %v", err)
	}
	if found.Verdict != replay.Equal {
		w.t.Errorf("aqueducttest: made again from its stream, the instance is another: %s", found)
	}
}

// Under implements replay.Definitions.
func (w driver) Under(_ context.Context, ref snapshot.Definition, _ string) (engine.Definition, error) {
	if w.def.Ref() != ref {
		return nil, fmt.Errorf("it is not the one of the test, %s@%s", w.def.Ref().Name, w.def.Ref().Version)
	}
	return w.def, nil
}
