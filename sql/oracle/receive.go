package oracle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// connectTries is how often a receiver connects again before its caller is
// told; the delays between them add up to some seconds.
const connectTries = 6

// Receive implements store.Receiver. It waits inside the database.
func (s *Store) Receive(ctx context.Context, name store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, wrap("receive", err)
	}
	defer s.leave()
	q, ok := s.queue(name)
	if !ok {
		return nil, problem.New(problem.Invalid, "queue.unknown", "there is no queue %q", name)
	}
	slots := s.slots[name]
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.life.Done():
		return nil, wrap("receive", store.ErrClosed)
	}
	var d *delivery
	err := s.inLine(ctx, name, arrived, func() (err error) {
		d, err = s.receive(ctx, name, q, arrived)
		return err
	})
	if err != nil {
		<-slots
		return nil, err
	}
	return d, nil
}

// inLine bounds the receivers that wait in a queue, each with a session of its own:
// it is Waiters dequeues at a time, not so many messages, whose work goes on side by
// side. Those of the signal queue wait one after the other, so that messages
// arrive in the order of the queue: two sessions that dequeue at the same moment
// are answered in either order.
func (s *Store) inLine(ctx context.Context, name store.Queue, arrived func(store.Message), f func() error) error {
	if arrived == nil {
		return f()
	}
	line := s.lines[name]
	select {
	case line <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.life.Done():
		return wrap("receive", store.ErrClosed)
	}
	defer func() { <-line }()
	return f()
}

// receive waits with a slot, through the troubles that connecting again mends.
func (s *Store) receive(ctx context.Context, name store.Queue, q aq.Queue, arrived func(store.Message)) (*delivery, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for attempt := 1; ; attempt++ {
		d, err := s.wait(waiting, name, q, arrived)
		if d != nil {
			return d, nil
		}
		if s.life.Err() != nil {
			return nil, wrap("receive", store.ErrClosed)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		class := aq.Classify(err)
		if attempt >= connectTries || class != aq.Reconnect && class != aq.Retry {
			return nil, wrap("receive from "+string(name), explain(err))
		}
		s.log.Warn("oracle: receive", "queue", name, "attempt", attempt, "error", err)
		pause := time.NewTimer(aq.Backoff(attempt))
		select {
		case <-pause.C:
		case <-waiting.Done():
			pause.Stop()
		}
	}
}

// wait takes a session and blocks on it until a message is due. The
// transaction stays open over empty dequeues: they lock nothing.
func (s *Store) wait(ctx context.Context, name store.Queue, q aq.Queue, arrived func(store.Message)) (*delivery, error) {
	session, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		s.pauses[name].wait(ctx)
		if err = s.begin(ctx, session); err != nil {
			break
		}
		var raw *aq.Message
		if raw, err = session.Dequeue(ctx, q); err != nil {
			break
		}
		if raw == nil {
			continue
		}
		if ctx.Err() != nil || !session.Good() {
			break // nobody waits any more; the rollback gives it back
		}
		d, errPayload := s.deliver(ctx, session, name, raw)
		if errPayload != nil {
			if !errors.Is(errPayload, errClaimLost) {
				err = errPayload
				break
			}
			if err = s.discardLost(ctx, session, name, raw, errPayload); err != nil {
				break
			}
			continue
		}
		early := d.m.DueAt.Sub(s.clock.now())
		if d.m.DueAt.IsZero() {
			early = 0
		}
		if early > 0 || raw.Rollbacks >= rollbacksMax {
			if err = d.putBack(ctx, max(early, 0)); err != nil {
				break
			}
			continue
		}
		if s.hold(d, arrived) {
			return d, nil
		}
		break
	}
	s.giveBack(session)
	return nil, err
}

// hold notes a delivery, so that Close can give it back.
func (s *Store) hold(d *delivery, arrived func(store.Message)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.held[d] = struct{}{}
	if arrived != nil {
		arrived(d.m)
	}
	return true
}

// heldOf counts the deliveries of a queue on this node.
func (s *Store) heldOf(q store.Queue) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for d := range s.held {
		if d.m.Queue == q {
			n++
		}
	}
	return n
}

// Strays implements store.Ledger. A message is locked by the session that has
// dequeued it, and the session belongs to a delivery: to drop that rolls back.
func (s *Store) Strays(_ context.Context, held func(string) bool) (int, error) {
	if err := s.enter(); err != nil {
		return 0, wrap("strays", err)
	}
	defer s.leave()
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.held))
	s.mu.Unlock()
	count := 0
	for _, d := range all {
		if !d.mu.TryLock() {
			continue // somebody works on it
		}
		if d.over || held(d.m.ID) {
			d.stray = false
		} else if !d.stray {
			d.stray = true
		} else {
			s.log.Error("oracle: a message was locked by this node, and nobody worked on it", "queue", d.m.Queue, "message", d.m.ID)
			d.end()
			count++
		}
		d.mu.Unlock()
	}
	return count, nil
}

// delivery implements store.Delivery. It holds the session that has dequeued
// its message.
type delivery struct {
	s       *Store
	session *aq.Session
	m       store.Message
	claim   *claim          // on the message's body, when a row holds it
	fence   <-chan struct{} // open while the ledger's note is on its way
	mu      sync.Mutex      // one call at a time: the session has one transaction
	over    bool
	stray   bool // nobody worked on it when Strays looked last
}

func (s *Store) deliver(ctx context.Context, session *aq.Session, name store.Queue, raw *aq.Message) (*delivery, error) {
	whole, c, err := redeem(ctx, session, raw)
	if err != nil {
		return nil, err
	}
	d := &delivery{s: s, session: session, m: message(name, whole), claim: c}
	d.m.Crashes = s.ledger.crashes(ctx, d.m.ID)
	return d, nil
}

// again is the delivery's message, sent once more.
func (d *delivery) again(attempts int, delay time.Duration) aq.Send {
	if d.claim == nil {
		return again(&d.m, attempts, delay)
	}
	return d.claim.carry(again(&d.m, attempts, delay))
}

func (d *delivery) Message() store.Message { return d.m }

// putBack sends a message that came early again for the remainder, or one that was
// rolled back so often that the database would give it up.
func (d *delivery) putBack(ctx context.Context, early time.Duration) error {
	q, _ := d.s.queue(d.m.Queue)
	if err := d.session.Enqueue(ctx, q, []aq.Send{d.again(d.m.Attempts, early)}); err != nil {
		return err
	}
	return d.session.Commit()
}

// Load implements store.Delivery, on the delivery's own session. A decision
// that begins with it is made after the ledger has its note.
func (d *delivery) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(); err != nil {
		return snapshot.Snapshot{}, wrap("load "+id, err)
	}
	defer d.s.leave()
	snap, err := load(ctx, d.session, id)
	if d.fence != nil {
		late := time.NewTimer(fenceMax)
		defer late.Stop()
		select {
		case <-d.fence:
		case <-late.C:
		case <-ctx.Done():
		}
	}
	return snap, wrap("load "+id, err)
}

// fenceMax bounds the waiting for the ledger: it is a help, and no turn depends
// on it.
const fenceMax = time.Second

// begin admits a call; after it s.leave must be called.
func (d *delivery) begin() error {
	if err := d.s.enter(); err != nil {
		return err
	}
	if d.over {
		d.s.leave()
		return store.ErrLost
	}
	return nil
}

// Commit implements store.Delivery.
func (d *delivery) Commit(ctx context.Context, c store.Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(); err != nil {
		return d.failed("commit", err)
	}
	defer d.s.leave()
	work, err := d.s.plan(ctx, &c, d)
	if err != nil {
		return d.failed("commit", err)
	}
	err = d.write(ctx, work)
	if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrDuplicate) || errors.Is(err, store.ErrTaken) || isRefused(err) || errors.Is(err, store.ErrNotFound) {
		return d.failed("commit", err)
	}
	if err != nil {
		d.s.pauses[d.m.Queue].failed(d.s.log, string(d.m.Queue), err)
		d.end()
		if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrLost) {
			err = fmt.Errorf("%w: %w", store.ErrLost, err)
		}
		return d.failed("commit", err)
	}
	d.s.pauses[d.m.Queue].passed(d.s.log, string(d.m.Queue))
	d.end()
	return nil
}

// write executes a plan on the delivery's transaction and commits it. What is
// refused leaves the message dequeued and everything else as it was; after any
// other error the transaction is rolled back, and the message comes again.
func (d *delivery) write(ctx context.Context, w *work) error {
	err := d.s.execute(ctx, d.session, w, true)
	if err != nil {
		return err
	}
	return commit(d.session)
}

// commit ends the transaction of a session. Nobody repeats it.
func commit(session *aq.Session) error {
	if err := session.Commit(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnknown, explain(err))
	}
	return nil
}

// Release implements store.Delivery: the message is consumed and sent again,
// for the attempts that the database counts would count every lost session.
func (d *delivery) Release(ctx context.Context, cause error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.log.Debug("oracle: release", "message", d.m.ID, "cause", cause)
	if err := d.begin(); err != nil {
		return d.failed("release", err)
	}
	defer d.s.leave()
	q, _ := d.s.queue(d.m.Queue)
	err := d.s.ledger.erase(ctx, d.session, d.m.ID)
	if err == nil {
		err = d.session.Enqueue(ctx, q, []aq.Send{d.again(d.m.Attempts+1, 0)})
	}
	if err == nil {
		if err = commit(d.session); err == nil {
			d.s.ledger.erased(d.m.ID)
		}
	} else {
		err = fmt.Errorf("%w: %w", store.ErrLost, explain(err))
	}
	d.end()
	if err != nil {
		return d.failed("release", err)
	}
	return nil
}

// end lets go of the session and the slot.
func (d *delivery) end() {
	d.over = true
	d.s.mu.Lock()
	delete(d.s.held, d)
	d.s.mu.Unlock()
	d.s.giveBack(d.session)
	<-d.s.slots[d.m.Queue]
}

func (d *delivery) failed(what string, err error) error {
	return fmt.Errorf("oracle: %s message %s: %w", what, d.m.ID, err)
}
