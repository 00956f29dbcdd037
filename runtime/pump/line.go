package pump

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// hold keeps the messages of an instance in line behind one that is tried again:
// it has a later place in the queue now, and so must they.
type hold struct {
	until time.Time // when it is given up: another node must have had the first
	due   time.Time // of the first
	tries int       // of firsts that another session's lock was in the way of
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

	lockedMax, lockedGap = 15 * time.Second, 200 * time.Millisecond // before one comes again that met another session's lock, and those behind it
	seenGrace            = 3 * holdPauseMax                         // after the first was given up, for the next that was seen
)

// lines are the instances one of whose messages is tried again at a time: those
// behind it wait as well.
type lines struct {
	mu   sync.Mutex
	held map[string]*hold
}

func newLines() *lines { return &lines{held: map[string]*hold{}} }

// follow says which of the messages that have come wait for one that is tried
// again. Where that is late, another node may have had it: nobody waits for what
// the instance has recorded.
func (s *server) follow(ctx context.Context, posts []*post) {
	s.lines.follow(posts, s.Now())
	for range heldLooks {
		if !slices.ContainsFunc(posts, func(p *post) bool { return p.Behind != nil }) {
			return
		}
		late, ok := s.lines.late(posts[0].Envelope.InstanceID, s.Now())
		if !ok {
			return
		}
		if recorded, err := s.Streams.Recorded(ctx, late.InstanceID, late.SignalID); err != nil || !recorded {
			return
		}
		s.lines.passed(&post{Signal: turn.Signal{Envelope: late}}, s.Now())
		for _, p := range posts {
			p.Behind = nil
		}
		s.lines.follow(posts, s.Now())
	}
}

// late is the first of a line that ought to have come.
func (l *lines) late(id string, now time.Time) (signal.Envelope, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.line(id, now)
	if !ok || len(h.line) == 0 || now.Sub(h.due) < heldLate {
		return signal.Envelope{}, false
	}
	return signal.Envelope{InstanceID: id, SignalID: h.line[0]}, true
}

// follow says which messages that have come wait for one that is tried again:
// all, but for those with which the line begins.
func (l *lines) follow(posts []*post, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := posts[0].Envelope.InstanceID
	h, ok := l.line(id, now)
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

// line is the hold of an instance at a time; l.mu is held. One whose first has not
// come goes on, once, without it and those behind it that have not been seen
// either: the others are in the queue, and keep their order.
func (l *lines) line(id string, now time.Time) (*hold, bool) {
	h, ok := l.held[id]
	if !ok || !now.After(h.until) {
		return h, ok
	}
	rest := slices.IndexFunc(h.line, func(sid string) bool { return h.in[sid] && sid != h.line[0] })
	if h.pruned || rest < 0 {
		delete(l.held, id)
		return nil, false
	}
	for _, sid := range h.line[:rest] {
		delete(h.in, sid)
	}
	h.line, h.pruned, h.due, h.grace, h.until = h.line[rest:], true, now, seenGrace, now.Add(seenGrace)
	return h, true
}

// standing says whether messages of an instance are in line to come again.
func (l *lines) standing(id string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.line(id, now)
	return ok
}

// passed takes a message out of the line: it has its verdict.
func (l *lines) passed(p *post, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, sid := p.Envelope.InstanceID, p.Envelope.SignalID
	h, ok := l.held[id]
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
		delete(l.held, id)
	}
}

// hold notes that a message comes again, and returns when: at due as the first of
// the line, or with those that it follows. A line is given up when its first has
// not come a grace later: another node has it, or it was never sent. Those that
// follow do not put that off, and come again less often the longer it takes.
func (l *lines) hold(p *post, now, due time.Time, grace time.Duration, cause error, follows bool) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, sid := p.Envelope.InstanceID, p.Envelope.SignalID
	h, ok := l.line(id, now)
	if !ok {
		if len(l.held) >= heldMax { // most of those may be over, with nobody who came to see
			maps.DeleteFunc(l.held, func(_ string, h *hold) bool { return now.After(h.until) })
		}
		if len(l.held) >= heldMax {
			return due
		}
		h = &hold{in: map[string]bool{}, cause: cause}
		l.held[id] = h
	}
	if first := !ok || !follows; first {
		if problem.CodeOf(cause) == "store.locked" { // each time for longer
			h.tries++
			due = now.Add(min(due.Sub(now)/8<<min(h.tries, 16), lockedMax))
		}
		h.due, h.grace = due, grace
		if until := due.Add(grace); until.After(h.until) {
			h.until = until
		}
	} else if late := min(now.Sub(h.due)/4, holdPauseMax); h.due.After(due) {
		due = h.due.Add(lockedGap * time.Duration(min(h.tries, 1)))
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
