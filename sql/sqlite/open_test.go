package sqlite

import (
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
