package runtime_test

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/store"
)

// handing is a store that hands out a test's deliveries for those of another.
type handing struct {
	store.Full
	hand func(store.Delivery) store.Delivery
}

// over puts a test's deliveries over those of a store.
func (s *handing) over(full store.Full, hand func(store.Delivery) store.Delivery) {
	s.Full, s.hand = full, hand
}

// handed is a delivery of a test, with the one that the store has given.
type handed struct {
	store.Delivery
	given store.Delivery
}

func (s *handing) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := s.Full.Receive(ctx, q, arrived)
	if err != nil {
		return nil, err
	}
	return handed{s.hand(d), d}, nil
}

func (s *handing) Enter(d store.Delivery) { s.Full.Enter(d.(handed).given) }
func (s *handing) Leave(d store.Delivery) { s.Full.Leave(d.(handed).given) }
func (s *handing) Deaths() <-chan struct{} {
	return s.Full.(interface{ Deaths() <-chan struct{} }).Deaths()
}
