package sqlite

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aqueduct-engine/aqueduct/store"
)

// receivers are the calls that wait for messages, and what is known in memory of the queues.
type receivers struct {
	micros func() int64
	alone  func() bool // no other process may want what is prefetched
	wake   chan struct{}

	mu     sync.Mutex // guards queues
	queues map[store.Queue]*queue
	over   bool         // no more waiting
	due    atomic.Int64 // when the next delayed message is, 0 = none known
	stale  atomic.Bool  // another process may have changed due
}

func newReceivers(micros func() int64) *receivers {
	r := &receivers{micros: micros, alone: func() bool { return true }, wake: make(chan struct{}, 1), queues: map[store.Queue]*queue{}}
	r.stale.Store(true)
	return r
}

// poke makes the writer look for work.
func (r *receivers) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// queue is what is known in memory of a queue.
type queue struct {
	waiters  []*waiter
	mayReady bool // rows with STATE = 0 may exist

	// prefetched has messages claimed for workers that have just finished one and are about to ask for the next, in the
	// order in which they are due. It is used only while this is the only process, and is empty while anybody waits.
	prefetched []*delivery
}

// prefetchMax bounds what is prefetched.
const prefetchMax = 64

// waiter is a call of Receive.
type waiter struct {
	ch      chan reception
	arrived func(store.Message) // may be nil
	leaving bool                // its context ended while the writer had it; guarded by receivers.mu
}

// hand gives a waiter its message; the lock is held, so that messages arrive in order.
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
func (r *receivers) Receive(ctx context.Context, name store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.mu.Lock()
		if r.over {
			r.mu.Unlock()
			return nil, wrap("receive", store.ErrClosed)
		}
		q := r.queue(name)
		if len(q.prefetched) > 0 {
			d := q.prefetched[0]
			q.prefetched = slices.Delete(q.prefetched, 0, 1)
			if arrived != nil {
				arrived(d.m)
			}
			r.mu.Unlock()
			return d, nil
		}
		w := &waiter{ch: make(chan reception, 1), arrived: arrived}
		q.waiters = append(q.waiters, w)
		look := q.mayReady
		r.mu.Unlock()
		if look || r.stale.Load() || r.due.Load() != 0 { // the last: to arm the timer
			r.poke()
		}
		var h reception
		select {
		case h = <-w.ch:
		case <-ctx.Done():
			if r.unwait(q, w) {
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

// queue returns a queue; mu is held. One that is new may have rows.
func (r *receivers) queue(name store.Queue) *queue {
	q := r.queues[name]
	if q == nil {
		q = &queue{mayReady: true}
		r.queues[name] = q
	}
	return q
}

func (r *receivers) unwait(q *queue, w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(q.waiters, w)
	if i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	w.leaving = i < 0
	return i >= 0
}

// wanted says whether somebody waits for something that may be there.
func (r *receivers) wanted() bool {
	next := r.due.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.stale.Load() || next != 0 && next <= r.micros()
	for _, q := range r.queues {
		if len(q.waiters) > 0 && (q.mayReady || due) || len(q.prefetched) > 0 && !r.alone() {
			return true
		}
	}
	return false
}

func (r *receivers) anyWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		if len(q.waiters) > 0 {
			return true
		}
	}
	return false
}

// look forgets what is known of the queues: something else has changed them.
func (r *receivers) look() {
	r.mu.Lock()
	for _, q := range r.queues {
		q.mayReady = true
	}
	r.mu.Unlock()
	r.stale.Store(true)
	r.poke()
}

func (r *receivers) stopWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, q := range r.queues {
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

// Prefetched are the ids of messages that are kept for workers of this node.
func (s *Store) Prefetched() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[string]bool{}
	for _, q := range s.queues {
		for _, d := range q.prefetched {
			ids[d.m.ID] = true
		}
	}
	return ids
}
