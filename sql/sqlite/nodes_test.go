package sqlite

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
)

// A node may close while it recovers peers: what locks their files must be over
// before the files are closed, for a descriptor's number is soon another file's.
// Only the race detector sees it.
func TestCloseWhilePeersAreRecovered(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	for range 5 {
		a, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var killed sync.WaitGroup
		for range 8 {
			peer, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
			if err != nil {
				t.Fatal(err)
			}
			killed.Go(func() {
				time.Sleep(20 * time.Millisecond)
				peer.Abandon()
			})
		}
		select {
		case <-a.PeerFailures(): // the others are next
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was told")
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		killed.Wait()
	}
}

// A node that was killed starts again under its name at once, though others are giving back
// what it held; the name of a live one is refused.
func TestANameIsFreeWhenItsNodeIsDead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open := func(name string) (*Store, error) {
		return Open(t.Context(), Options{Schema: schema.Tables{}, Path: path, Node: name})
	}
	first, err := open("fixed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open("fixed"); problem.CodeOf(err) != "store.node-in-use" {
		t.Errorf("a second node of the name: %v", err)
	}
	first.Abandon()
	names, err := filepath.Glob(filepath.Join(files.Folder(path), "*.node"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	f, err := os.Open(names[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // as one does that gives back
		t.Fatal(err)
	}
	freed := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() {
		defer close(freed)
		unix.Flock(int(f.Fd()), unix.LOCK_UN)
	})
	again, err := open("fixed")
	<-freed
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
