package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
)

// A node that is dead, and of which others have taken what it held, is none of the nodes: its
// row may be there for what it has claimed, its file is gone.
func TestADeadNodesRowIsNoNode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s, dead := open(t, path), open(t, path)
	if err := dead.Runs(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Members(t.Context()); err != nil || len(all) != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	if err := os.Remove(filepath.Join(files.Folder(path), strconv.FormatInt(dead.Number(), 10)+".node")); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Members(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v %v", all, err)
	}
}
