package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := Open(ctx, Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(ctx, store.Change{Snapshot: &snapshot.Snapshot{InstanceID: "a", Version: 1, Status: snapshot.Running},
		Send: []store.Send{{Queue: store.Signals, Body: []byte("hello")}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Receive(ctx, store.Signals)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(ctx, store.Change{Snapshot: &snapshot.Snapshot{InstanceID: "a", Version: 2, Status: snapshot.Running}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(ctx, "a")
	if err != nil || got.Version != 2 {
		t.Fatal(got, err)
	}
	t.Log(s.Stats())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
