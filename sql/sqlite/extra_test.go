package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// TestWhatIsOfExtrasIsRefusedWithoutThem: a store that was opened without those who
// write tasks, waits and definitions loses none of them silently.
func TestWhatIsOfExtrasIsRefusedWithoutThem(t *testing.T) {
	t.Parallel()
	s, _ := openLogged(t, filepath.Join(t.TempDir(), "a.db"))
	for name, c := range map[string]store.Change{
		"a task":             {Rows: projections.Rows{Tasks: []projections.Task{{ID: "a"}}}},
		"the end of a task":  {Rows: projections.Rows{TaskEnds: []projections.TaskEnd{{ID: "a"}}}},
		"an event of a task": {Rows: projections.Rows{TaskEvents: []projections.TaskEvent{{TaskID: "a"}}}},
		"an edit of a task":  {Tasks: []store.TaskEdit{{ID: "a"}}},
		"a wait":             {Rows: projections.Rows{Waits: []projections.Wait{{Token: "a"}}}},
		"a wait that ends":   {Rows: projections.Rows{WaitsGone: []string{"a"}}},
		"a definition":       {Definition: &store.Definition{Name: "a"}},
	} {
		if err := s.Commit(t.Context(), c); problem.CodeOf(err) != "store.change" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWithoutASchemaNothingIsOpened: the store makes no tables by itself.
func TestWithoutASchemaNothingIsOpened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	if _, err := Open(t.Context(), Options{Path: path}); problem.CodeOf(err) != "store.options" {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
}
