package memory

import (
	"context"
	"testing"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// What the stores with a disk are compared with passes their suite.
func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		db := New(nil)
		return storetest.Harness{
			Open: func(_ context.Context, node string) (store.Store, error) {
				s, err := db.Open(node)
				if err != nil {
					return nil, err
				}
				return s, nil
			},
			Kill:   func(s store.Store) { s.(*Store).Kill() },
			Damage: db.Damage,
		}
	})
}
