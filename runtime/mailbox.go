package runtime

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A node has a mailbox for each instance that has work: messages, results of
// commands, calls of the API, in order of arrival. One goroutine at a time
// serves a mailbox, that of the post at its front; it decides what waits, one
// signal after the other on the snapshot in memory, and commits all of it at
// once. So results that come together do not compete for the version, and
// signals keep their order (design-2 §1).

// Bounds of what one turn takes from a mailbox.
const (
	TurnSignals = 256     // signals
	TurnBytes   = 2 << 20 // of their payloads; the first is taken whatever its size
)

// post is one signal in a mailbox.
type post struct {
	turn.Signal
	stop    context.Context             // of the consumer that has the message
	noted   bool                        // the ledger has a note of the message already
	solo    func(context.Context) error // instead of a decision: has the instance for itself
	settled bool                        // the message has been sent again, or given back
	lead    bool                        // it was at the front when it came, and serves
	alone   [1]*turn.Signal             // a turn of this one alone
	wake    chan bool                   // of any other; true: it is at the front and serves; false: it has been served
}

// queued says that the post came through the signal queue: such posts of an
// instance keep their order, also when one is tried again. What becomes of a
// message that another post stands for is that one's to say.
func (p *post) queued() bool {
	return p.Delivery != nil && !p.noted && p.Delivery.Message().Queue == store.Signals
}

// mailboxes are those of a node. A mailbox exists while it has a post.
type mailboxes struct {
	mu   sync.Mutex
	open map[string]*mailbox
	// held are instances one of whose messages is tried again at a time: those
	// behind it wait as well.
	held  map[string]*hold
	came  map[store.Queue]*arrivals
	spare []*mailbox
}

type mailbox struct {
	waiting []*post
	serving bool
	one     [1]*post // waiting, mostly
}

// spareMailboxes is how many that are empty are kept for the next instances.
const spareMailboxes = 256

// hold keeps the messages of an instance in line behind one that is tried again:
// it has a later place in the queue now, and so must they.
type hold struct {
	until time.Time // when it is given up: another node must have had the first
	due   time.Time // of the first
	grace time.Duration
	cause error
	line  []string        // signal ids of those that were sent again and have not come, in order
	in    map[string]bool // those of the line; true: it is known to be in the queue

	pruned bool // the line goes on without some that have not come
}

// absent says that what is tried again waits for the instance to begin: the
// request for that is what it waits for.
func (h *hold) absent() bool { return problem.CodeOf(h.cause) == "instance.unknown" }

// Bounds of what a node remembers of messages that are tried again. Beyond them
// the order is that of the queue.
const (
	holdMax   = 10_000                // messages of one instance that were sent again
	heldMax   = 10_000                // instances
	holdGrace = 15 * time.Second      // after the first of a line was to come
	holdPause = 50 * time.Millisecond // before one that came before its turn comes again, at first

	holdPauseMax = time.Second

	heldLate  = 200 * time.Millisecond // after which it is asked whether another node has had the first
	heldLooks = 64                     // that one turn asks for

	givenGrace = 2 * time.Second  // after one was given back, which any node may have at once
	seenGrace  = 3 * holdPauseMax // after the first was given up, for the next that was seen
)

func newMailboxes() *mailboxes {
	return &mailboxes{open: map[string]*mailbox{}, held: map[string]*hold{}, came: map[store.Queue]*arrivals{}}
}

// enter puts a post behind those of its instance. It leads, or is woken.
func (m *mailboxes) enter(p *post) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(p)
}

// add is enter; m.mu is held.
func (m *mailboxes) add(p *post) {
	id := p.Envelope.InstanceID
	b := m.open[id]
	if b == nil {
		if n := len(m.spare); n > 0 {
			b, m.spare = m.spare[n-1], m.spare[:n-1]
		} else {
			b = &mailbox{}
		}
		b.waiting = b.one[:0]
		m.open[id] = b
	}
	b.waiting = append(b.waiting, p)
	if p.wake == nil {
		if !b.serving {
			b.serving, p.lead = true, true
			return
		}
		p.wake = make(chan bool, 1)
	}
	b.next()
}

// next wakes the front, unless somebody serves.
func (b *mailbox) next() {
	if !b.serving && len(b.waiting) > 0 {
		b.serving = true
		b.waiting[0].wake <- true
	}
}

// take removes what one turn serves: the post at the front, and of those behind
// it as many as fit. With one delivery only, when the store cannot join them.
func (m *mailboxes) take(id string, joins bool) []*post {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.open[id]
	n, bytes, deliveries := 0, 0, 0
	for _, p := range b.waiting {
		bytes += len(p.Envelope.Payload)
		if p.Delivery != nil {
			deliveries++
		}
		// A message that was there when a process died is looked at alone, so that
		// those beside it are not suspected with it.
		alone := p.solo != nil || p.Delivery != nil && p.Delivery.Message().Crashes > 0
		full := n == TurnSignals || bytes > TurnBytes || deliveries > 1 && !joins || alone
		if n > 0 && full {
			break
		}
		n++
		if alone {
			break
		}
	}
	taken := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return taken
}

// done lets the next post serve.
func (m *mailboxes) done(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.open[id]
	b.serving = false
	if len(b.waiting) == 0 {
		delete(m.open, id)
		if len(m.spare) < spareMailboxes {
			m.spare = append(m.spare, b)
		}
		return
	}
	b.next()
}

// leave takes back a post that nobody serves yet; false means that it is being
// served.
func (m *mailboxes) leave(p *post) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.open[p.Envelope.InstanceID]
	if b == nil {
		return false
	}
	for i, w := range b.waiting {
		if w != p {
			continue
		}
		if i == 0 && b.serving && len(p.wake) > 0 {
			return false // it is the one to serve
		}
		b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
		return true
	}
	return false
}

// follow says which of the messages that have come wait for one that is tried
// again. Where that is late, another node may have had it: nobody waits for what
// the instance has recorded.
func (r *Runtime) follow(ctx context.Context, posts []*post) {
	r.mail.follow(posts, r.Now())
	for range heldLooks {
		if !slices.ContainsFunc(posts, func(p *post) bool { return p.Behind != nil }) {
			return
		}
		late, ok := r.mail.late(posts[0].Envelope.InstanceID, r.Now())
		if !ok {
			return
		}
		if recorded, err := r.Store.Recorded(ctx, late.InstanceID, late.SignalID); err != nil || !recorded {
			return
		}
		r.mail.passed(&post{Signal: turn.Signal{Envelope: late}}, r.Now())
		for _, p := range posts {
			p.Behind = nil
		}
		r.mail.follow(posts, r.Now())
	}
}

// late is the first of a line that ought to have come.
func (m *mailboxes) late(id string, now time.Time) (signal.Envelope, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.line(id, now)
	if !ok || len(h.line) == 0 || now.Sub(h.due) < heldLate {
		return signal.Envelope{}, false
	}
	return signal.Envelope{InstanceID: id, SignalID: h.line[0]}, true
}

// follow says which messages that have come wait for one that is tried again:
// all, but for those with which the line begins.
func (m *mailboxes) follow(posts []*post, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := posts[0].Envelope.InstanceID
	h, ok := m.line(id, now)
	if !ok {
		return
	}
	first, some := 0, false // some of these wait: so do the new ones behind them
	for _, p := range posts {
		switch {
		case !p.queued() || p.Envelope.Type == signal.StartRequest && h.absent():
		case first < len(h.line) && h.line[first] == p.Envelope.SignalID:
			first++
		case some || first < len(h.line):
			p.Behind, some = &turn.Behind{Cause: h.cause}, true
			if _, in := h.in[p.Envelope.SignalID]; in {
				h.in[p.Envelope.SignalID] = true
			}
		}
	}
}

// line is the hold of an instance at a time; m.mu is held. One whose first has not
// come goes on, once, without it and those behind it that have not been seen
// either: the others are in the queue, and keep their order.
func (m *mailboxes) line(id string, now time.Time) (*hold, bool) {
	h, ok := m.held[id]
	if !ok || !now.After(h.until) {
		return h, ok
	}
	rest := slices.IndexFunc(h.line, func(sid string) bool { return h.in[sid] && sid != h.line[0] })
	if h.pruned || rest < 0 {
		delete(m.held, id)
		return nil, false
	}
	for _, sid := range h.line[:rest] {
		delete(h.in, sid)
	}
	h.line, h.pruned, h.due, h.grace, h.until = h.line[rest:], true, now, seenGrace, now.Add(seenGrace)
	return h, true
}

// standing says whether messages of an instance are in line to come again.
func (m *mailboxes) standing(id string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.line(id, now)
	return ok
}

// passed takes a message out of the line: it has its verdict.
func (m *mailboxes) passed(p *post, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, sid := p.Envelope.InstanceID, p.Envelope.SignalID
	h, ok := m.held[id]
	if !ok {
		return
	}
	if _, in := h.in[sid]; !in {
		return
	}
	delete(h.in, sid)
	i := slices.Index(h.line, sid)
	h.line = slices.Delete(h.line, i, i+1)
	if until := now.Add(h.grace); i == 0 && until.After(h.until) { // never sooner: the next may be due later
		h.until = until
	}
	if len(h.line) == 0 {
		delete(m.held, id)
	}
}

// hold notes that a message comes again, and returns when: at due as the first of
// the line, or with those that it follows. A line is given up when its first has
// not come a grace later: another node has it, or it was never sent. Those that
// follow do not put that off, and come again less often the longer it takes.
func (m *mailboxes) hold(p *post, now, due time.Time, grace time.Duration, cause error, follows bool) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, sid := p.Envelope.InstanceID, p.Envelope.SignalID
	h, ok := m.line(id, now)
	if !ok {
		if len(m.held) >= heldMax { // most of those may be over, with nobody who came to see
			maps.DeleteFunc(m.held, func(_ string, h *hold) bool { return now.After(h.until) })
		}
		if len(m.held) >= heldMax {
			return due
		}
		h = &hold{in: map[string]bool{}, cause: cause}
		m.held[id] = h
	}
	if first := !ok || !follows; first {
		h.due, h.grace = due, grace
		if until := due.Add(grace); until.After(h.until) {
			h.until = until
		}
	} else if late := min(now.Sub(h.due)/4, holdPauseMax); h.due.After(due) {
		due = h.due
	} else if due.Before(now.Add(late)) {
		due = now.Add(late)
	}
	_, in := h.in[sid]
	switch {
	case in || len(h.line) >= holdMax:
	case follows:
		h.line, h.in[sid] = append(h.line, sid), p.Delivery != nil
	default:
		h.line, h.in[sid], h.cause = slices.Insert(h.line, 0, sid), true, cause
	}
	return due
}

// arrivals are messages that the queue has handed to this node and that are not
// in a mailbox yet, in order. Workers read them side by side; here they get
// into line again.
type arrivals struct {
	order []string         // ids of messages
	read  map[string]*post // nil = it goes into no mailbox
}

func (m *mailboxes) arrivals(q store.Queue) *arrivals {
	a := m.came[q]
	if a == nil {
		a = &arrivals{read: map[string]*post{}}
		m.came[q] = a
	}
	return a
}

// arrived notes a message that is about to be handed to one of the workers.
func (m *mailboxes) arrived(msg store.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.arrivals(msg.Queue)
	a.order = append(a.order, msg.ID)
}

// sort puts what a worker has read into its mailbox, when all that came before
// is there. p is nil for a message that needs none.
func (m *mailboxes) sort(msg store.Message, p *post) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.arrivals(msg.Queue)
	a.read[msg.ID] = p
	for len(a.order) > 0 {
		p, ok := a.read[a.order[0]]
		if !ok {
			return
		}
		delete(a.read, a.order[0])
		a.order = a.order[1:]
		if p != nil {
			m.add(p)
		}
	}
}

// attend blocks until a post has been served, or serves it and what waits with
// it. A post whose ctx ends before anybody serves it is taken back.
func (r *Runtime) attend(ctx context.Context, p *post) {
	if !p.lead && !r.woken(ctx, p) {
		return
	}
	id := p.Envelope.InstanceID
	posts := r.mail.take(id, r.Store.Joins())
	defer r.mail.done(id)
	defer func() { // whatever happens here, nobody waits for it for ever
		for _, other := range posts {
			if other != p {
				other.wake <- false
			}
		}
	}()
	if p.solo != nil {
		p.Err = r.soloOf(ctx, p)
		r.sendAgain(ctx, posts)
		return
	}
	if len(posts) > 1 { // the others must not end with this one's caller
		var cancel context.CancelFunc
		ctx, cancel = r.detached(ctx)
		defer cancel()
	}
	if p.Delivery != nil {
		r.handlers <- struct{}{}
	}
	r.serve(ctx, posts)
	if p.Delivery != nil {
		<-r.handlers // before the pause of a store in trouble
	}
	r.sendAgain(ctx, posts)
}

// woken waits until a post is to serve; false: it has been served, or taken back.
func (r *Runtime) woken(ctx context.Context, p *post) bool {
	select {
	case lead := <-p.wake:
		return lead
	case <-ctx.Done():
		if r.mail.leave(p) {
			p.Err = ctx.Err()
			return false
		}
		return <-p.wake
	}
}

// soloOf runs what has the instance for itself.
func (r *Runtime) soloOf(ctx context.Context, p *post) error {
	if r.follow(ctx, []*post{p}); p.Behind != nil {
		return p.Behind
	}
	return r.guarded(p.Delivery, func() error { return p.solo(ctx) })
}

// detached is a context that ends with the node's work, not with the caller.
func (r *Runtime) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	work := r.work
	r.mu.Unlock()
	if work == nil {
		return out, cancel
	}
	stop := context.AfterFunc(work, cancel)
	return out, func() { stop(); cancel() }
}
