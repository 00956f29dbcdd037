package sqlite

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
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
