package runtime_test

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// handing is the part of a store that hands out a test's deliveries for those of another.
type handing struct {
	store.Receiver
	store.Writer
	store.Ledger
	hand func(store.Delivery) store.Delivery
}

// over puts a test's deliveries and its writer before those of a store.
func (s *handing) over(whole backend.Parts, w store.Writer, hand func(store.Delivery) store.Delivery) backend.Parts {
	s.Receiver, s.Writer, s.Ledger, s.hand = whole.Queue, whole.Writer, whole.Ledger, hand
	whole.Queue, whole.Writer, whole.Ledger = s, w, s
	return whole
}

// handed is a delivery of a test, with the one that the store has given.
type handed struct {
	store.Delivery
	given store.Delivery
}

func (s *handing) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := s.Receiver.Receive(ctx, q, arrived)
	if err != nil {
		return nil, err
	}
	return handed{s.hand(d), d}, nil
}

func (s *handing) Enter(d store.Delivery) { s.Ledger.Enter(d.(handed).given) }
func (s *handing) Leave(d store.Delivery) { s.Ledger.Leave(d.(handed).given) }
