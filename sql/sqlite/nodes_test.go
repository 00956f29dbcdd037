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
	"github.com/aqueduct-engine/aqueduct/store"
)

// A node may close while it recovers peers: what locks their files must be over before the files are closed, for a
// descriptor's number is soon another file's. Only the race detector sees it.
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
		case <-time.After(5 * time.Minute):
			t.Fatal("nothing was told")
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		killed.Wait()
	}
}

// Who was killed while it joined has left a file, unlocked, under the number that the next has.
func TestWhoHasTheNumberOfADeadJoinerStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := open(t, path), open(t, path)
	left, err := os.Create(filepath.Join(t.TempDir(), "left"))
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if err := a.nodes.Recover(b.nodes.no, left); err != nil {
		t.Fatal(err)
	}
	err = a.Write(t.Context(), func(tx Tx) error {
		rows, err := nodeRows(tx.Conn())
		if rows[b.nodes.no] != b.node {
			t.Errorf("nodes: %v, %s is gone", rows, b.node)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A node of which nothing receives tells the others of each delayed message, also when it knows of one that is past.
func TestDelaysOfWhoDoesNotReceiveAreTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := open(t, path), open(t, path)
	for i := range 3 {
		due := time.Now().Add(200 * time.Millisecond)
		if err := a.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte{byte(i)}, Due: due}}}); err != nil {
			t.Fatal(err)
		}
		if err := received(t, b).Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(err)
		}
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
	for range 20 {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // as one does that gives back
			t.Fatal(err)
		}
		begun, held := time.Now(), make(chan time.Duration, 1)
		time.AfterFunc(200*time.Millisecond, func() {
			unix.Flock(int(f.Fd()), unix.LOCK_UN)
			held <- time.Since(begun)
		})
		again, err := open("fixed")
		if took := <-held; err != nil && took > namePatience/3 {
			continue // so long no other holds it, but a busy machine
		}
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		return
	}
	t.Fatal("the lock is held for too long, each time")
}
