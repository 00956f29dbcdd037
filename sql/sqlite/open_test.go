package sqlite

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
)

func TestManyOpenANewFileAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := filepath.Join(t.TempDir(), "a.db")
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				s, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// Nodes of a new program that are started at once on an old file do not take the first
// of them, which has migrated it, for one of the old program.
func TestManyOpenAnOldFileAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	c := must(OpenWriter(must(Options{Path: path, Schema: schema.Tables{}}.complete())))
	defer c.Close()
	_, to, err := schema.Migrate(c, path)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := c.Script(fmt.Sprintf("pragma user_version = %d", to-1)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		stores := make(chan *Store, 6)
		for range cap(stores) {
			wg.Go(func() {
				s, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				stores <- s
			})
		}
		wg.Wait()
		for range len(stores) {
			if err := (<-stores).Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
