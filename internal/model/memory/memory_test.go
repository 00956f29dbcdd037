package memory

import (
	"context"
	"testing"

	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// What the stores with a disk are compared with passes their suite.
func TestStore(t *testing.T) {
	suite(t, func(s *Store) backend.Store { return s })
}

// bare is a store without what one may lack.
type bare struct{ *Store }

func (b bare) Parts() backend.Parts {
	p := b.Store.Parts()
	p.Ledger, p.Locks, p.Retention, p.Overdue, p.Inbox, p.Backlog, p.Prober = nil, nil, nil, nil, nil, nil, nil
	return p
}

// A store that lacks what it may passes every other case.
func TestAStoreMayLackParts(t *testing.T) {
	suite(t, func(s *Store) backend.Store { return bare{s} }, "Ledger", "Locks", "Retention", "Overdue", "Inbox", "Backlog", "Prober")
}

func suite(t *testing.T, as func(*Store) backend.Store, lacks ...string) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		db := New(nil)
		return storetest.Harness{
			Open: func(_ context.Context, node string) (backend.Store, error) {
				s, err := db.Open(node)
				if err != nil {
					return nil, err
				}
				return as(s), nil
			},
			Kill: func(s backend.Store) {
				if b, ok := s.(bare); ok {
					s = b.Store
				}
				s.(*Store).Kill()
			},
			Damage: db.Damage,
		}
	}, lacks...)
}
