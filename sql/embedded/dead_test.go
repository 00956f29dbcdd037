package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
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

// A node that cannot open the file of another, for want of descriptors, does not take it
// for dead: its row and its messages stay.
func TestWantOfDescriptorsIsNoDeath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := open(t, path), open(t, path)
	if err := a.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("{}")}}}); err != nil {
		t.Fatal(err)
	}
	d, err := a.Receive(t.Context(), store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Orphans(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	low := was
	low.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	n, errOrphans := b.Orphans(t.Context(), 10)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if n != 0 || errOrphans != nil {
		t.Errorf("%d orphans, %v", n, errOrphans)
	}
	c, err := conn.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	nodes, _ := c.Number("select count(*) from WF_NODES")
	if nodes != 2 {
		t.Errorf("%d rows of nodes, two live", nodes)
	}
	if err := d.Commit(t.Context(), store.Change{}); err != nil {
		t.Errorf("the live node's message: %v", err)
	}
}
