package sqlite

import (
	"database/sql/driver"
	"iter"
	"slices"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// outbox is what a transaction gives to queues and takes from them: messages that
// are sent, and claims for the receivers that wait.
type outbox struct {
	tx       *tx
	notify   bool // other processes should look
	sends    []send
	wanting  []*wanting
	assigned []assignment
	finished []store.Queue // of each delivery that was committed
	returned []store.Queue // of each delivery that was released
	putBack  []*delivery
}

func (o *outbox) reset(t *tx) {
	clear(o.sends)
	*o = outbox{tx: t, sends: o.sends[:0], wanting: o.wanting[:0], assigned: o.assigned[:0], finished: o.finished[:0], returned: o.returned[:0]}
}

// send puts a message on its queue when the group is settled.
func (o *outbox) send(m store.Send) {
	if m.Priority == 0 {
		m.Priority = store.DefaultPriority
	}
	if m.Body == nil {
		m.Body = []byte{}
	}
	s := send{Send: m}
	if !m.Due.IsZero() {
		s.visible = conn.Due(m.Due)
	}
	o.sends = append(o.sends, s)
}

// send is a message on its way to a queue.
type send struct {
	store.Send
	visible int64 // due time, 0 = at once
}

// due are the sends to a queue that are not for later.
func (o *outbox) due(name store.Queue) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range o.sends {
			if o.sends[i].Queue == name && o.sends[i].visible <= o.tx.now && !yield(i) {
				return
			}
		}
	}
}

// assignment is a message that a waiter gets when the transaction is committed, or without waiter is prefetched.
type assignment struct {
	q *queue
	w *waiter
	d *delivery
}

// settle writes the messages of the group, promotes what is due, and claims for the receivers that wait.
func (o *outbox) settle() error {
	promoted, err := o.promote()
	if err != nil {
		return err
	}
	if err := o.returnPrefetched(promoted); err != nil {
		return err
	}
	s := o.tx.w.s
	s.mu.Lock()
	waiting := o.takeWaiters()
	s.mu.Unlock()
	if err := o.write(waiting); err != nil {
		return err
	}
	for _, v := range waiting {
		if err := o.claim(v); err != nil {
			return err
		}
	}
	return nil
}

// wanting is a queue with waiters that were taken from it.
type wanting struct {
	name    store.Queue
	q       *queue
	waiters []*waiter
	reserve int  // messages to prefetch
	ready   bool // rows may be there
}

// returnPrefetched returns claimed messages that something else may now precede: a message of smaller priority, one
// that came back, one that became due. All of them go when a second process is there to want them. With them go those
// that an unknown commit may have left claimed.
func (o *outbox) returnPrefetched(all bool) error {
	s := o.tx.w.s
	all = all || !s.nodes.Alone()
	var back []*delivery
	s.mu.Lock()
	for name, q := range s.queues {
		if len(q.prefetched) == 0 {
			continue
		}
		keep := 0
		if !all && !slices.Contains(o.returned, name) {
			least := q.prefetched[len(q.prefetched)-1].m.Priority
			for i := range o.due(name) {
				least = min(least, o.sends[i].Priority)
			}
			for keep < len(q.prefetched) && q.prefetched[keep].m.Priority <= least {
				keep++
			}
		}
		back = append(back, q.prefetched[keep:]...)
		q.prefetched = slices.Delete(q.prefetched, keep, len(q.prefetched))
	}
	s.mu.Unlock()
	o.putBack = back // all of them, also when one cannot be returned and the others are rolled back
	for _, d := range slices.Concat(o.tx.w.suspects, back) {
		if _, _, err := o.tx.exec("message_unlease", d.id, d.enq, s.nodes.no); err != nil {
			return err
		}
		o.released(d.m.Queue)
	}
	return nil
}

// takeWaiters takes the receivers that may be served; s.mu is held.
func (o *outbox) takeWaiters() []*wanting {
	list := o.wanting[:0]
	for name, q := range o.tx.w.s.queues {
		reserve := 0
		if o.tx.w.s.nodes.Alone() {
			for _, f := range o.finished {
				if f == name {
					reserve++
				}
			}
			reserve = max(0, min(reserve, prefetchMax-len(q.prefetched)))
		}
		if len(q.waiters)+reserve == 0 {
			continue
		}
		n := o.tx.w.batch
		if !q.mayReady {
			n = 0
			for range o.due(name) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		reserve = min(reserve, n)
		n = min(n, len(q.waiters))
		list = append(list, &wanting{name: name, q: q, waiters: slices.Clone(q.waiters[:n]), reserve: reserve, ready: q.mayReady})
		q.waiters = slices.Delete(q.waiters, 0, n)
	}
	o.wanting = list
	return list
}

// write inserts the sends in the order of their commits. Where a receiver
// waits and no other message can be before it, the row is born claimed.
func (o *outbox) write(waiting []*wanting) error {
	direct := map[int]bool{}
	for _, v := range waiting {
		if v.ready {
			continue
		}
		mine := slices.Collect(o.due(v.name))
		slices.SortStableFunc(mine, func(a, b int) int { return o.sends[a].Priority - o.sends[b].Priority })
		for _, i := range mine[:min(len(mine), len(v.waiters)+v.reserve)] {
			direct[i] = true
		}
	}
	for i := range o.sends {
		if err := o.insert(&o.sends[i], direct[i], waiting); err != nil {
			return err
		}
	}
	return nil
}

const (
	stateReady  = 0
	stateDelay  = 1
	stateLeased = 10
)

func (o *outbox) insert(m *send, direct bool, waiting []*wanting) error {
	s := o.tx.w.s
	state, visible, owner := stateReady, any(nil), any(nil)
	switch {
	case m.visible > o.tx.now:
		state = stateDelay
	case direct:
		state, owner = stateLeased, s.nodes.no
	}
	if m.visible != 0 {
		visible = m.visible
	}
	id, _, err := o.tx.w.c.Exec("message_insert", string(m.Queue), int64(state), int64(m.Priority), visible, o.tx.now, int64(m.Attempts), owner, m.Body)
	if err != nil {
		return err
	}
	switch state {
	case stateReady:
		o.notify = true
		s.mu.Lock()
		s.queue(m.Queue).mayReady = true
		s.mu.Unlock()
	case stateDelay:
		next := s.due.Load()
		if next == 0 || m.visible < next {
			s.due.Store(m.visible)
		}
		// One that is past says that nobody waits here: others must hear of what comes later, too.
		o.notify = o.notify || next <= o.tx.now || m.visible < next
	case stateLeased:
		for _, v := range waiting {
			if v.name == m.Queue {
				o.assign(v, message(id, m.Queue, int64(m.Priority), m.visible, o.tx.now, int64(m.Attempts), 0, m.Body))
			}
		}
	}
	return nil
}

// promote makes delayed messages ready that are due.
func (o *outbox) promote() (any bool, err error) {
	s := o.tx.w.s
	next := s.due.Load()
	if !s.stale.Load() && (next == 0 || next > o.tx.now) || !s.anyWaiting() && len(o.finished) == 0 {
		return false, nil
	}
	s.stale.Store(false)
	_, n, err := o.tx.exec("message_promote", o.tx.now, int64(promoteMax))
	if err != nil {
		s.stale.Store(true)
		return false, err
	}
	if n > 0 {
		o.notify = true
		s.mu.Lock()
		for _, q := range s.queues {
			q.mayReady = true
		}
		s.mu.Unlock()
	}
	row, err := o.tx.w.c.One("message_due", 1)
	if err != nil {
		return false, err
	}
	next = 0
	if row != nil {
		next, _ = row[0].(int64)
	}
	s.due.Store(next)
	return n > 0, nil
}

// claim gives ready rows to the waiters of a queue that have none yet.
func (o *outbox) claim(v *wanting) error {
	s := o.tx.w.s
	if len(v.waiters)+v.reserve == 0 {
		return nil
	}
	s.mu.Lock()
	ready := v.q.mayReady
	s.mu.Unlock()
	if !ready {
		return nil
	}
	want := len(v.waiters) + v.reserve
	var found []*delivery
	err := o.tx.w.c.Query("message_ready", 7, func(r []driver.Value) error {
		visible, _ := r[2].(int64)
		body, _ := r[6].([]byte)
		n := func(i int) int64 { v, _ := r[i].(int64); return v }
		found = append(found, message(n(0), v.name, n(1), visible, n(3), n(4), n(5), body))
		return nil
	}, string(v.name), int64(want))
	if err != nil {
		return err
	}
	for _, d := range found {
		if _, _, err := o.tx.exec("message_lease", s.nodes.no, d.id); err != nil {
			return err
		}
		o.assign(v, d)
	}
	if len(found) < want {
		s.mu.Lock() // before the commit: a wake-up that comes after it must not be undone
		v.q.mayReady = false
		s.mu.Unlock()
	}
	return nil
}

func (o *outbox) assign(v *wanting, d *delivery) {
	d.s = o.tx.w.s
	if len(v.waiters) == 0 {
		v.reserve--
		o.assigned = append(o.assigned, assignment{q: v.q, d: d})
		return
	}
	o.assigned = append(o.assigned, assignment{q: v.q, w: v.waiters[0], d: d})
	v.waiters = v.waiters[1:]
}

// handOver answers the waiters that settle took: with their messages, or by letting them wait again.
func (o *outbox) handOver(ok bool) {
	s := o.tx.w.s
	s.mu.Lock()
	for _, a := range o.assigned {
		switch {
		case a.w != nil && ok:
			a.w.hand(a.d)
		case a.w != nil:
			a.w.ch <- reception{}
		case ok && len(a.q.waiters) > 0: // the worker was fast
			a.q.waiters[0].hand(a.d)
			a.q.waiters = slices.Delete(a.q.waiters, 0, 1)
		case ok:
			a.q.put(a.d)
		}
	}
	for _, v := range o.wanting {
		if s.over {
			for _, w := range v.waiters {
				w.ch <- reception{err: store.ErrClosed}
			}
			continue
		}
		var back []*waiter
		for _, w := range v.waiters {
			if w.leaving {
				w.ch <- reception{}
				continue
			}
			back = append(back, w)
		}
		v.q.waiters = append(back, v.q.waiters...)
	}
	if !ok {
		for _, q := range s.queues {
			q.mayReady = true
		}
	}
	s.mu.Unlock()
	clear(o.assigned)
	o.assigned = o.assigned[:0]
	clear(o.wanting)
	o.wanting = o.wanting[:0]
	if !ok {
		o.tx.w.suspects = append(o.tx.w.suspects, o.putBack...)
		s.stale.Store(true)
	}
}

// suspect notes every message that an unknown commit may have left claimed by
// this node with nobody to work on it; the next transaction returns them.
func (o *outbox) suspect() {
	o.tx.w.suspects = append(o.tx.w.suspects, o.tx.deliveries...)
	for _, a := range o.assigned {
		o.tx.w.suspects = append(o.tx.w.suspects, a.d)
	}
	o.tx.w.s.look()
}

// released notes that a queue has a ready row again.
func (o *outbox) released(name store.Queue) {
	o.notify = true
	o.tx.w.s.mu.Lock()
	o.tx.w.s.queue(name).mayReady = true
	o.tx.w.s.mu.Unlock()
}
