package sqlite

import (
	"context"
	"slices"

	"github.com/aqueduct-engine/aqueduct/store"
)

// queue is what is known in memory of a queue.
type queue struct {
	waiters  []*waiter
	mayReady bool // rows with STATE = 0 may exist

	// prefetched has messages claimed for workers that have just finished one and
	// are about to ask for the next, in the order in which they are due. It is
	// used only while this is the only process, and is empty while anybody
	// waits.
	prefetched []*delivery
}

// prefetchMax bounds what is prefetched.
const prefetchMax = 64

// waiter is a call of Receive.
type waiter struct {
	ch      chan reception
	arrived func(store.Message) // may be nil
	leaving bool                // its context ended while the writer had it; guarded by Store.mu
}

// hand gives a waiter its message; s.mu is held, so that messages arrive in order.
func (w *waiter) hand(d *delivery) {
	if w.arrived != nil {
		w.arrived(d.m)
	}
	w.ch <- reception{d: d}
}

// reception is what a waiter gets; with neither it waits again.
type reception struct {
	d   *delivery
	err error
}

// Receive implements store.Receiver.
func (s *Store) Receive(ctx context.Context, name store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		if s.over {
			s.mu.Unlock()
			return nil, wrap("receive", store.ErrClosed)
		}
		q := s.queue(name)
		if len(q.prefetched) > 0 {
			d := q.prefetched[0]
			q.prefetched = slices.Delete(q.prefetched, 0, 1)
			if arrived != nil {
				arrived(d.m)
			}
			s.mu.Unlock()
			return d, nil
		}
		w := &waiter{ch: make(chan reception, 1), arrived: arrived}
		q.waiters = append(q.waiters, w)
		look := q.mayReady
		s.mu.Unlock()
		if look || s.stale.Load() || s.due.Load() != 0 { // the last: to arm the timer
			s.poke()
		}
		var h reception
		select {
		case h = <-w.ch:
		case <-ctx.Done():
			if s.unwait(q, w) {
				return nil, ctx.Err()
			}
			h = <-w.ch // the writer is about to answer
		}
		if h.err != nil {
			return nil, wrap("receive", h.err)
		}
		if h.d != nil {
			return h.d, nil
		}
	}
}

// queue returns a queue; s.mu is held. One that is new may have rows.
func (s *Store) queue(name store.Queue) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{mayReady: true}
		s.queues[name] = q
	}
	return q
}

func (s *Store) unwait(q *queue, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(q.waiters, w)
	if i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	w.leaving = i < 0
	return i >= 0
}

// wanted says whether somebody waits for something that may be there.
func (s *Store) wanted() bool {
	next := s.due.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.stale.Load() || next != 0 && next <= s.micros()
	for _, q := range s.queues {
		if len(q.waiters) > 0 && (q.mayReady || due) || len(q.prefetched) > 0 && !s.nodes.Alone() {
			return true
		}
	}
	return false
}

func (s *Store) anyWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		if len(q.waiters) > 0 {
			return true
		}
	}
	return false
}

// look forgets what is known of the queues: something else has changed them.
func (s *Store) look() {
	s.mu.Lock()
	for _, q := range s.queues {
		q.mayReady = true
	}
	s.mu.Unlock()
	s.stale.Store(true)
	s.poke()
}

func (s *Store) stopWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, q := range s.queues {
		for _, w := range q.waiters {
			w.ch <- reception{err: store.ErrClosed}
		}
		q.waiters = nil
	}
}

// put adds a message to what is prefetched, in its place.
func (q *queue) put(d *delivery) {
	i := len(q.prefetched)
	for ; i > 0; i-- {
		if o := q.prefetched[i-1]; o.m.Priority < d.m.Priority || o.m.Priority == d.m.Priority && o.id < d.id {
			break
		}
	}
	q.prefetched = slices.Insert(q.prefetched, i, d)
}
