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

// Receive implements store.Receiver. It waits inside the database, and while the
// queue pauses, for the end of that: only what no waiting mends is an error.
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
		return nil, wrap("receive", s.over())
	}
	var d *delivery
	err := receivers{s}.inLine(ctx, name, arrived, func() (err error) {
		d, err = receivers{s}.receive(ctx, name, q, arrived)
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
func (s receivers) inLine(ctx context.Context, name store.Queue, arrived func(store.Message), f func() error) error {
	if arrived == nil {
		return f()
	}
	line := s.lines[name]
	select {
	case line <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.life.Done():
		return wrap("receive", s.over())
	}
	defer func() { <-line }()
	return f()
}

// receive waits with a slot, through the troubles of the database. While the queue
// pauses it commits something of its own first: a database that takes no commit is
// given no message to roll back.
func (s receivers) receive(ctx context.Context, name store.Queue, q aq.Queue, arrived func(store.Message)) (*delivery, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for {
		p, err := s.gates[name].enter(waiting)
		if err == nil {
			var d *delivery
			if p.tries() {
				err = s.Probe(waiting)
			}
			if err == nil || errors.Is(err, store.ErrNotFound) { // no heartbeat: a node that was silent for long
				d, err = s.wait(waiting, name, q, arrived, p)
			}
			if d != nil {
				return d, nil
			}
			if err != nil && waiting.Err() == nil {
				p.failed(err, false)
			}
			p.left()
		}
		if s.life.Err() != nil {
			return nil, wrap("receive", s.over())
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// wait takes a session and blocks on it until a message is due, or the queue
// pauses. The transaction stays open over empty dequeues: they lock nothing.
func (s receivers) wait(ctx context.Context, name store.Queue, q aq.Queue, arrived func(store.Message), p *pass) (*delivery, error) {
	session, err := s.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil && !p.barred() {
		if err = s.pool.begin(ctx, session); err != nil {
			break
		}
		var raw *aq.Message
		if raw, err = s.dequeue(ctx, session, name, q); err != nil {
			break
		}
		if raw == nil {
			p.empty()
			continue
		}
		if ctx.Err() != nil || !session.Good() || p.barred() {
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
		d.pass = p
		early := time.Duration(0)
		if !d.m.DueAt.IsZero() {
			early = max(d.m.DueAt.Sub(s.clock.now()), 0)
		}
		if early > 0 || raw.Rollbacks >= rollbacksMax {
			if err = d.putBack(ctx, early); err != nil {
				break
			}
			continue
		}
		if s.hold(d, arrived) {
			return d, nil
		}
		break
	}
	s.pool.giveBack(session)
	return nil, err
}

// hold notes a delivery, so that Close can give it back.
func (s receivers) hold(d *delivery, arrived func(store.Message)) bool {
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
func (s receivers) heldOf(q store.Queue) int {
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

// Strays implements backend.Strays. A message is locked by the session that has
// dequeued it, and the session belongs to a delivery: to drop that rolls back.
func (s receivers) Strays(_ context.Context, held func(string) bool) (int, error) {
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
	pass    *pass           // through the gate of its queue
	beside  []byte          // the snapshot that came with the message
	faults  int             // of the database, for which the message was sent again before
	mu      sync.Mutex      // one call at a time: the session has one transaction
	fault   *fault          // not nil: the runtime was told of it, and gives the message back
	over    bool
	stray   bool // nobody worked on it when Strays looked last
}

func (s receivers) deliver(ctx context.Context, session *aq.Session, name store.Queue, raw *aq.Message) (*delivery, error) {
	whole, c, err := redeem(ctx, session, raw)
	if err != nil {
		return nil, err
	}
	d := &delivery{s: s.Store, session: session, m: message(name, whole), claim: c, beside: raw.Beside}
	if n, ok := parseNote(whole.Note); ok {
		d.faults = n.faults
	}
	d.m.Crashes = s.ledger.crashes(ctx, d.m.ID)
	return d, nil
}

// again is the delivery's message, sent once more.
func (d *delivery) again(attempts, faults int, delay time.Duration) aq.Send {
	if d.claim == nil {
		return again(&d.m, attempts, faults, delay)
	}
	return d.claim.carry(again(&d.m, attempts, faults, delay))
}

func (d *delivery) Message() store.Message { return d.m }

// putBack sends a message again that came early, for the remainder, or has so many
// rollbacks behind it that the database would give it up.
func (d *delivery) putBack(ctx context.Context, early time.Duration) error {
	q, _ := d.s.queue(d.m.Queue)
	if err := d.session.Enqueue(ctx, q, []aq.Send{d.again(d.m.Attempts, d.faults, early)}); err != nil {
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
	if a := actOf(err); a != actNone && a != actOwner {
		err = d.faulted(err, true, func(ctx context.Context) error {
			_, err := load(ctx, d.session, id)
			return err
		})
	}
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
	work, err := planner{d.s}.plan(ctx, &c, d)
	if err != nil {
		return d.failed("commit", err)
	}
	work.careful = d.pass.tries()
	err = d.write(ctx, work)
	for try := range lockTries { // at once: who is longer in the way is worth a pause of the queue, or the message's
		a := actOf(err)
		if d.isLost(err) || a != actRedo && a != actResend {
			break
		}
		if a == actResend {
			pause(ctx, lockPause<<try)
		}
		err = d.write(ctx, work)
	}
	switch a := actOf(err); {
	case err == nil:
		unsent(d.s.log, work)
		d.pass.passed()
		d.end()
		return nil
	case d.isLost(err):
		err = d.lost(err)
	case a == actResend:
		err = explain(err)
	case a == actNone, a == actOwner:
	case work.made != nil:
		err = d.stepFaulted(err)
	default: // no answer
		kept := work.careful || wholeOf(work) != nil
		err = d.faulted(err, kept, func(ctx context.Context) error { return d.rehearse(ctx, work) })
	}
	return d.failed("commit", err)
}

// rehearse writes a plan and takes it back.
func (d *delivery) rehearse(ctx context.Context, w *work) error {
	w.careful = true
	err := execute(ctx, d.session, w, true)
	if err == nil {
		_, err = d.session.ExecContext(ctx, text("rollback_to"))
	}
	return err
}

// write executes a plan on the delivery's transaction and commits it. What is
// refused leaves the message dequeued and everything else as it was; after any
// other error the transaction is rolled back, and the message comes again.
func (d *delivery) write(ctx context.Context, w *work) error {
	if all := wholeOf(w); all != nil && !w.careful {
		return all.run(ctx, d.session)
	}
	err := execute(ctx, d.session, w, true)
	if err != nil {
		return err
	}
	return commit(d.session)
}

// commit ends the transaction of a session. Nobody repeats it.
func commit(session *aq.Session) error {
	if err := session.Commit(); err != nil {
		return store.Unknown(explain(err))
	}
	return nil
}

// Release implements store.Delivery: the message is consumed and sent again, for
// the attempts that the database counts would count every lost session. One that
// failed by a fault of the database is held until that is over.
func (d *delivery) Release(ctx context.Context, cause error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.log.Debug("oracle: release", "message", d.m.ID, "cause", cause)
	if err := d.begin(); err != nil {
		return d.failed("release", err)
	}
	defer d.s.leave()
	if d.fault == nil {
		attempts := d.m.Attempts + 1
		if problem.KindOf(cause) == problem.Unavailable {
			attempts--
		}
		err := d.sendAgain(ctx, attempts, d.faults, 0)
		switch {
		case err == nil:
			d.end()
			return nil
		case d.isLost(err), actOf(err) == actNone:
			return d.failed("release", d.lost(explain(err)))
		}
		return d.failed("release", d.faulted(err, true, nil))
	}
	if err := d.resolve(ctx); err != nil {
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
	d.s.pool.giveBack(d.session)
	d.pass.left()
	<-d.s.slots[d.m.Queue]
}

func (d *delivery) failed(what string, err error) error {
	return fmt.Errorf("oracle: %s message %s: %w", what, d.m.ID, err)
}
