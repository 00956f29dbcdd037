package pump

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/line"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A node has a mailbox for each instance that has work: messages, results of commands, calls of the API, in order of
// arrival. One goroutine at a time serves a mailbox, that of the post at its front; it decides what waits, one signal
// after the other on the snapshot in memory, and commits all of it at once. So results that come together do not
// compete for the version, and signals keep their order (design-2 §1).

// Bounds of what one turn takes from a mailbox.
const (
	TurnSignals = 256     // signals
	TurnBytes   = 2 << 20 // of their payloads; the first is taken whatever its size
)

// A turn of many signals is long, and holds up others. While there are others, an
// instance rests after such a turn, and its signals gather for the next.
const (
	manySignals = 32
	restFactor  = 16 // times as long as the turn took
	restMax     = 200 * time.Millisecond
)

// CallMax is how long a call waits until its instance can be served: a message of it
// may be in hand while the store is in trouble.
const CallMax = 30 * time.Second

// post is one signal in a mailbox.
type post struct {
	turn.Signal
	call    bool            // somebody waits for the answer who may come again
	stop    context.Context // of the consumer that has the message
	noted   bool            // the ledger has a note of the message already
	apart   bool            // its message has given its place back
	solo    *Handler        // not nil: has the instance for itself
	settled bool            // the message has been sent again, or given back
	lead    bool            // it was at the front when it came, and serves
	alone   [1]*turn.Signal // a turn of this one alone
	wake    chan bool       // of any other; true: it is at the front and serves; false: it has been served
}

// queued says that the post came through the signal queue: those of an instance keep their order, also when one is
// tried again, but for an operator's, which may be about that one. What another post stands for is that one's.
func (p *post) queued() bool {
	return p.Delivery != nil && !p.noted && p.Delivery.Message().Queue == store.Signals && p.Envelope.Type != signal.OperatorRequest
}

// mailboxes are those of a node. A mailbox exists while it has a post.
type mailboxes struct {
	mu    sync.Mutex
	open  map[string]*mailbox
	came  line.Arrivals[*post]
	spare []*mailbox
	turns int // counts those of all instances
}

type mailbox struct {
	waiting []*post
	serving bool      // or resting
	begun   time.Time // of the turn that was last, which has a number and may be one of many signals
	turn    int
	many    bool
	one     [1]*post // waiting, mostly
}

// spareMailboxes is how many that are empty are kept for the next instances.
const spareMailboxes = 256

func newMailboxes() *mailboxes {
	return &mailboxes{open: map[string]*mailbox{}}
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

// take removes what one turn serves: the post at the front, and of those behind it as many as fit.
func (m *mailboxes) take(id string) []*post {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.open[id]
	n, bytes := 0, 0
	for _, p := range b.waiting {
		bytes += len(p.Envelope.Payload)
		alone := p.solo != nil || p.Delivery != nil && suspect(p.Delivery)
		full := n == TurnSignals || bytes > TurnBytes || alone
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
	m.turns++
	b.begun, b.turn, b.many = time.Now(), m.turns, n > manySignals
	return taken
}

// done lets the next post serve: now, or after a rest.
func (m *mailboxes) done(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.open[id]
	if b.many && m.turns != b.turn {
		b.many = false
		time.AfterFunc(min(restFactor*time.Since(b.begun), restMax), func() { m.done(id) })
		return
	}
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

// leave takes back a post that nobody serves yet; false means that it is being served.
func (m *mailboxes) leave(p *post) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.open[p.Envelope.InstanceID]
	if b == nil {
		return false
	}
	i := slices.Index(b.waiting, p)
	if i < 0 || i == 0 && b.serving && len(p.wake) > 0 { // it is the one to serve
		return false
	}
	b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
	return true
}

// arrived notes a message that is about to be handed to one of the workers.
func (m *mailboxes) arrived(msg store.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.came.Come(string(msg.Queue), msg.ID)
}

// sort puts what a worker has read into its mailbox, when all that came before
// is there. p is nil for a message that needs none.
func (m *mailboxes) sort(msg store.Message, p *post) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.came.Read(string(msg.Queue), msg.ID, p, func(p *post) {
		if p != nil {
			m.add(p)
		}
	})
}

// woken waits until a post is to serve; false: it has been served, or taken back.
func (m *mailboxes) woken(ctx context.Context, p *post) bool {
	var late <-chan time.Time
	if p.call {
		late = time.After(CallMax)
	}
	var err error
	select {
	case lead := <-p.wake:
		return lead
	case <-late:
		err = problem.New(problem.Unavailable, "instance.contended", "instance %q could not be asked for %s", p.Envelope.InstanceID, CallMax)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if m.leave(p) {
		p.Err = err
		return false
	}
	return <-p.wake
}
