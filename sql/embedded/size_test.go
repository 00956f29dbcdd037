package embedded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// An instance that waits for an event, with 1 KB of state of its own, takes
// less than 3 KB of disk, indexes and its stream included.
func TestParkedInstanceIsSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	const instances = 2000
	state := json.RawMessage(`"` + strings.Repeat("x", 1022) + `"`)
	now := time.Now()
	errs := make(chan error, instances)
	size := 0
	for range instances {
		id, token := uuid.NewString(), strings.ReplaceAll(uuid.NewString(), "-", "")
		snap := snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Waiting, Position: 1, StartedAt: now, UpdatedAt: now,
			Definition: snapshot.Definition{Name: "default/loan", Version: "1.0.0", Digest: strings.Repeat("0", 64)},
			State:      snapshot.State{Context: state},
			Branches:   []*snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: "/do"}, {Pointer: "/do/0/wait"}}}},
			Waits:      []snapshot.Wait{{Kind: snapshot.WaitEvent, Token: token, Pointer: "/do/0/wait", Event: "paid"}}}
		c := store.Change{Snapshot: &snap, Encoded: must(snap.Encode()), Runtime: store.Runtime{LastSignalID: id, ExecutedBy: s.Node(), ExecutedAt: now},
			Rows: projections.Rows{
				Instance: &projections.Instance{ID: id, Definition: "default/loan", DefVersion: "1.0.0", BusinessKey: id[:8], Status: "waiting",
					Position: "wait", Version: 1, StartedAt: now, UpdatedAt: now},
				Stream: []projections.Entry{{InstanceID: id, Position: 1, Kind: "event", Direction: "in", Type: "StartRequest", SignalID: id,
					Data: []byte(`{"definition":"default/loan","input":{}}`), CreatedAt: now}},
				Waits: []projections.Wait{{Token: token, InstanceID: id, EventType: "paid", Spec: strings.Repeat("0", 64) + "/do/0/wait",
					KeyHash: strings.Repeat("0a", 32), CreatedAt: now}},
			}}
		size += len(c.Encoded)
		go func() { errs <- s.Commit(t.Context(), c) }()
	}
	for range instances {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	each := info.Size() / instances
	t.Logf("%d bytes each, %d of them the snapshot", each, size/instances)
	if each >= 3<<10 {
		t.Errorf("a parked instance takes %d bytes", each)
	}
}
