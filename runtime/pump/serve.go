package pump

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/line"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// server makes turns of what is in the mailboxes: whoever brings a post waits until
// it has been served, or serves the mailbox when the post is at its front.
type server struct {
	*Config
	mail     *mailboxes
	lines    *line.Lines[*post]
	ends     *ends
	slots    chan struct{}                   // one for each message being handled
	suspects chan struct{}                   // one for all of them in which a process has died
	work     atomic.Pointer[context.Context] // with which turns of several posts end
}

// submit brings a post, and returns what its signal did.
func (s *server) submit(ctx context.Context, p *post) (*engine.Outcome, error) {
	s.mail.enter(p)
	s.attend(ctx, p)
	if p.Out == nil {
		p.Out = &engine.Outcome{}
	}
	return p.Out, p.Err
}

// serve decides and commits posts of one instance, in their order, and gives each its verdict. Where they cannot be
// committed together, each has a turn of its own. The caller has the mailbox.
func (s *server) serve(ctx context.Context, posts []*post) {
	if posts[0].solo == nil && !posts[0].noted {
		s.follow(ctx, posts)
	}
	if !s.together(ctx, posts) {
		s.apart(ctx, posts)
	} else if !s.Joins && len(posts) > 1 {
		s.apart(ctx, stranded(posts))
	}
	for _, p := range posts {
		if p.Err == nil {
			continue
		}
		did := engine.Duplicate
		if errors.Is(p.Err, turn.ErrLate) {
			did = engine.Closed
		} else if err := s.repeated(ctx, p.Envelope, p.Err); !errors.Is(err, store.ErrDuplicate) {
			p.Err = err
			continue
		} else if p.Err = s.First(ctx, p.Envelope); p.Err != nil {
			continue
		}
		s.Turns.Metrics.Count(did)
		p.Out, p.Err, p.Left = &engine.Outcome{Disposition: did}, nil, p.Delivery != nil
		if p.Envelope.Sequence > 0 && did == engine.Duplicate {
			s.takeNumber(ctx, p)
		}
	}
}

// takeNumber has a duplicate take its number, which is its own, in a turn that says nothing else.
func (s *server) takeNumber(ctx context.Context, p *post) {
	q := &post{Signal: p.Signal, noted: p.noted}
	q.Decide, q.Amend, q.Envelope.SignalID, q.Envelope.Payload = s.TakesNumber, nil, "", nil
	if s.together(ctx, []*post{q}); !errors.Is(q.Err, turn.ErrUntouched) {
		p.Err, p.Left = q.Err, q.Left
	}
}

// newLines are the lines of posts.
func newLines() *line.Lines[*post] {
	return &line.Lines[*post]{Of: func(p *post) line.Message {
		e := p.Envelope
		m := line.Message{Instance: e.InstanceID, Signal: e.SignalID, Occurred: e.OccurredAt, Ordered: p.queued(), Begins: e.Type == signal.StartRequest}
		if p.Delivery != nil {
			d := p.Delivery.Message()
			m.Sent, m.Again = d.EnqueuedAt, !d.DueAt.IsZero() && !d.DueAt.Equal(e.DueAt)
		}
		return m
	}}
}

// firstsMax is how many firsts of a line, that are late, a turn asks for.
const firstsMax = 64

// follow says which of the messages that have come wait for one that is tried again. Where that is late, another node
// may have had it: nobody waits for what the instance has recorded.
func (s *server) follow(ctx context.Context, posts []*post) {
	id := posts[0].Envelope.InstanceID
	for range firstsMax {
		waits, cause := s.lines.Follow(posts, s.Now())
		for i, p := range posts {
			if p.Behind = nil; waits[i] {
				p.Behind = &turn.Behind{Cause: cause}
			}
		}
		first, late := s.lines.First(id, s.Now())
		if !late || !slices.Contains(waits, true) {
			return
		}
		if recorded, err := s.Streams.Recorded(ctx, id, first); err != nil || !recorded {
			return
		}
		s.lines.Passed(id, first)
	}
}

// apart makes a turn of each of the posts.
func (s *server) apart(ctx context.Context, posts []*post) {
	var behind *turn.Behind
	for _, p := range posts {
		if p.Behind == nil && p.queued() {
			p.Behind = behind
		}
		s.together(ctx, []*post{p})
		if p.queued() && p.Err != nil && s.Retries.Blocks(p.Delivery.Message(), p.Err) {
			behind = &turn.Behind{Cause: p.Err}
		}
	}
}

// stranded are the posts whose turn was lost with the delivery of another, and who hold theirs.
func stranded(posts []*post) (list []*post) {
	for _, p := range posts {
		if p.Delivery != nil && (errors.Is(p.Err, store.ErrLost) || errors.Is(p.Err, store.ErrUnknown)) {
			list = append(list, p)
		}
	}
	return list
}

// together makes one turn of posts; false means that each needs its own.
func (s *server) together(ctx context.Context, posts []*post) (done bool) {
	signals := posts[0].alone[:0]
	for _, p := range posts {
		p.Ordered = p.queued()
		signals = append(signals, &p.Signal)
	}
	for _, p := range slices.Backward(posts) { // the turn begins when the first is noted, and so are the others then
		if p.Delivery != nil && !p.noted {
			s.Ledger.Enter(p.Delivery)
			defer s.Ledger.Leave(p.Delivery)
		}
	}
	c, done := s.Turns.Take(ctx, signals)
	s.Committed(c)
	return done
}

// attend blocks until a post has been served, or serves it and what waits with
// it. A post whose ctx ends before anybody serves it is taken back.
func (s *server) attend(ctx context.Context, p *post) {
	if p.lead || s.mail.woken(ctx, p) {
		s.lead(ctx, p)
	}
	p.consume(ctx)
}

// consume ends the message of a post that has been applied without it. When that fails it comes again, a duplicate.
func (p *post) consume(ctx context.Context) {
	if p.Left {
		p.Left, p.Err = false, p.Delivery.Commit(ctx, store.Change{})
	}
}

// lead serves the mailbox of the post at its front.
func (s *server) lead(ctx context.Context, p *post) {
	id := p.Envelope.InstanceID
	posts := s.mail.take(id)
	defer s.mail.done(id)
	defer func() { // whatever happens here, nobody waits for it for ever
		for _, other := range posts {
			if other != p {
				other.wake <- false
			}
		}
	}()
	if len(posts) > 1 { // the others must not end with this one's caller
		var cancel context.CancelFunc
		ctx, cancel = s.detached(ctx)
		defer cancel()
	}
	s.placed(p, func() {
		if p.solo != nil {
			p.Err = s.soloOf(ctx, p)
		} else {
			s.serve(ctx, posts)
		}
	})
	s.sendAgain(ctx, posts) // after which a store in trouble pauses
}

// suspect says that a process has died while it had a message in hand. Such a one is decided alone, and they are worked
// on one at a time: the death of a process is held against all that it has noted.
func suspect(d store.Delivery) bool { return d.Message().Crashes > 0 }

// placed runs what the post at the front of a mailbox has to do, when its message has its place. What runs alone takes
// one of the slots itself.
func (s *server) placed(p *post, run func()) {
	if p.Delivery != nil && (!p.noted || p.apart) && suspect(p.Delivery) {
		s.suspects <- struct{}{}
		defer func() { <-s.suspects }()
	}
	if p.solo == nil && p.Delivery != nil && (!p.noted || p.apart) { // else its message has a place
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	run()
}

// soloOf runs what has the instance for itself.
func (s *server) soloOf(ctx context.Context, p *post) error {
	if s.follow(ctx, []*post{p}); p.Behind != nil {
		return p.Behind
	}
	return s.guarded(p.Delivery, func() error { return s.handled(ctx, p) })
}

// handled is what the handler of a post makes of it.
func (s *server) handled(ctx context.Context, p *post) (err error) {
	h := p.solo
	if h.Alone != nil {
		return h.Alone(ctx, p.Delivery, p.Envelope, p.Now)
	}
	if p.Envelope, err = h.Complete(ctx, p.Delivery, p.Envelope); err != nil {
		return err
	}
	p.noted = true
	s.serve(ctx, []*post{p})
	return p.Err
}

// detached is a context that ends with the node's work, not with the caller.
func (s *server) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	work := s.work.Load()
	if work == nil {
		return out, cancel
	}
	stop := context.AfterFunc(*work, cancel)
	return out, func() { stop(); cancel() }
}

// repeated is store.ErrDuplicate when a signal was refused only because it has been applied: what it did may be why
// it cannot be done again (B7). Otherwise it is the cause.
func (s *server) repeated(ctx context.Context, env signal.Envelope, cause error) error {
	if k := problem.KindOf(cause); env.Type != signal.ExternalSignal && env.Type != signal.OperatorRequest || k == problem.Internal || k == problem.Unavailable || k == problem.NotFound {
		return cause
	}
	if recorded, err := s.Streams.Recorded(ctx, env.InstanceID, env.SignalID); err != nil || !recorded {
		return cmp.Or(err, cause)
	}
	return store.ErrDuplicate
}

// sendAgain gives those messages of a turn back that failed and are to come again. It is called while nobody else
// serves the instance, so that they and those behind them come again in their order.
func (s *server) sendAgain(ctx context.Context, posts []*post) {
	var back, sends []resend
	var given []*post // back
	var first *post   // that others follow: all may have failed alike
	var stop context.Context
	for _, p := range posts {
		if !p.queued() { // a call, or a result; it may be the one at the front
			continue
		}
		stop = p.stop
		m := p.Delivery.Message()
		f := s.Retries.fate(m, p.Err)
		if f == released {
			back, given = append(back, resend{d: p.Delivery, cause: p.Err}), append(given, p)
			p.settled = true
		}
		if f == ended || f == deadLettered || f == refused {
			s.lines.Passed(p.Envelope.InstanceID, p.Envelope.SignalID)
		}
		if f == ended || f == deadLettered || f == released {
			continue
		}
		delay := line.Pause
		if f != followed {
			delay = s.Retries.delay(f, m, p.Envelope.InstanceID)
		}
		due := func() time.Time { return s.Now().Add(delay) }
		if f.blocks() {
			follows := f == followed || first != nil
			due = func() time.Time { return s.lines.Hold(p, s.Now(), s.Now().Add(delay), p.Err, follows) }
			first = p
		}
		p.settled = true
		sends = append(sends, resend{d: p.Delivery, cause: p.Err, due: due, attempts: f.attempts(m)})
	}
	s.ends.sendLater(ctx, stop, sends...)
	s.ends.release(ctx, stop, back...)
	for i, p := range given { // those that came meanwhile follow them
		s.lines.Hold(p, s.Now(), s.Now(), p.Err, i > 0 || p.Behind != nil)
	}
}

// guarded runs f with the message noted in the ledger. A panic is a problem like any other.
func (s *server) guarded(d store.Delivery, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = s.Turns.Panicked(v, "message", d.Message().ID)
		}
	}()
	if d.Message().Queue != store.Commands { // whose workers wait for a place
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	s.Ledger.Enter(d)
	defer s.Ledger.Leave(d)
	return f()
}
