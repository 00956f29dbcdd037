// Package line keeps the messages of an instance in order while one of them is tried
// again: those behind it have a later place in their queue then, and so have all that
// follow. It says who waits, and when who comes again; it sends nothing, knows no
// store, and reads no clock. What it knows is of one node, and lost with it.
package line

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Bounds of what a node remembers of messages that are tried again. Beyond them
// the order is that of the queue.
const (
	Max       = 10_000           // messages of one instance that were sent again
	Instances = 10_000           // that have a line
	Grace     = 15 * time.Second // after one of a line was to come
)

// Pauses before a message comes again.
const (
	Pause    = 50 * time.Millisecond // of one that came before its turn, at first
	pauseMax = time.Second

	// Late is how long after its time the first is asked for: another node may have had it.
	Late = 200 * time.Millisecond

	lockedMax, lockedGap = 15 * time.Second, 200 * time.Millisecond // of one that met another session's lock, and of those behind it
	spacing, free        = 20 * time.Millisecond, 50                // between those behind it, but for so many
	round                = 10 * time.Millisecond                    // between those that come again without a lock, in a long line
)

// Message is what a line knows of a message.
type Message struct {
	Instance, Signal string
	Occurred         time.Time
	Sent             time.Time // to its queue; zero: it is no message yet
	Ordered          bool      // it keeps its place among those of its queue
	Again            bool      // it was sent again, by whatever node
	Begins           bool      // it is what an instance that is not there waits for
}

// Lines are the instances of which a message is tried again at a time. Of says what is
// known of one.
type Lines[T any] struct {
	Of func(T) Message

	mu   sync.Mutex
	held map[string]*line
}

type line struct {
	tries int           // of firsts, one after the other, that another session's lock was in the way of
	gap   time.Duration // between those behind such a one; 0 = there was none
	other bool          // another node sends messages of the instance again, too
	cause error
	list  []*place // those that were sent again and have not come, in order
	in    map[string]*place
}

// place is a message in a line.
type place struct {
	signal   string
	occurred time.Time
	sent     time.Time // to its queue, when it came into the line
	due      time.Time // when it comes again
	at       int       // its index, when that was last counted
}

// First is the first of a line that ought to have come.
func (l *Lines[T]) First(instance string, now time.Time) (signal string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[instance]
	if !ok || now.Sub(h.list[0].due) < Late {
		return "", false
	}
	return h.list[0].signal, true
}

// Follow puts messages of an instance that have come into its order, and says which
// of them wait for one that is tried again, and why it is: all, but for those with
// which the line begins.
func (l *Lines[T]) Follow(come []T, now time.Time) (waits []bool, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits = make([]bool, len(come))
	h, ok := l.line(now, come...)
	if !ok {
		return waits, nil
	}
	for _, c := range come {
		if m := l.Of(c); m.Ordered && h.in[m.Signal] == nil {
			h.rejoin(m, now)
		}
	}
	for i, q := range h.list {
		q.at = i
	}
	at := func(m Message) int {
		if q := h.in[m.Signal]; q != nil && m.Ordered {
			return q.at
		}
		return len(h.list)
	}
	slices.SortStableFunc(come, func(a, b T) int { return at(l.Of(a)) - at(l.Of(b)) })
	first := 0
	for i, c := range come {
		switch m := l.Of(c); {
		case !m.Ordered || m.Begins && problem.CodeOf(h.cause) == "instance.unknown":
		case at(m) == first && first < len(h.list):
			first++
		default: // so do the new ones behind those that wait
			waits[i] = first < len(h.list)
		}
	}
	return waits, h.cause
}

// line is that of an instance when messages of it have come; l.mu is held. Who is at
// its beginning and has not come is given up by the time of the queue, which may be
// slow: when a message comes that was sent a grace after that one was due. Another
// node has it, or it was never sent.
func (l *Lines[T]) line(now time.Time, come ...T) (*line, bool) {
	id := l.Of(come[0]).Instance
	h, ok := l.held[id]
	if !ok {
		return nil, false
	}
	var sent time.Time
	for _, c := range come {
		m := l.Of(c)
		if m.Signal == h.list[0].signal {
			return h, true
		}
		if m.Ordered {
			h.other = h.other || m.Again && h.in[m.Signal] == nil
			if m.Sent.After(sent) {
				sent = m.Sent
			}
		}
	}
	for len(h.list) > 0 && sent.Sub(h.list[0].due) > Grace {
		delete(h.in, h.list[0].signal)
		h.list = h.list[1:]
	}
	if len(h.list) == 0 {
		delete(l.held, id)
	}
	return h, len(h.list) > 0
}

// shared says that several nodes have tried an instance that is locked.
func (h *line) shared() bool { return h.other && h.gap > 0 }

// Standing says whether messages of an instance are in line to come again.
func (l *Lines[T]) Standing(instance string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[instance]
	return ok && !h.over(now)
}

// over says that first and last of a line should have come a grace before a moment.
func (h *line) over(now time.Time) bool {
	return now.Sub(h.list[0].due) > Grace && now.Sub(h.list[len(h.list)-1].due) > Grace
}

// Passed takes a message out of its line: it has its verdict. A lock is gone when the
// first passes, and what several nodes have of the line comes as it comes.
func (l *Lines[T]) Passed(instance, signal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[instance]
	if h == nil || h.in[signal] == nil {
		return
	}
	q := h.in[signal]
	delete(h.in, signal)
	switch {
	case len(h.in) == 0 || h.shared() && q == h.list[0]:
		delete(l.held, instance)
	case q == h.list[0]:
		h.list, h.tries = h.list[1:], 0
	default:
		h.list = slices.DeleteFunc(h.list, func(o *place) bool { return o == q })
	}
}

// Hold notes that a message comes again, and returns when: at due as the first of
// the line, or with those that it follows, and less often the longer that takes.
func (l *Lines[T]) Hold(p T, now, due time.Time, cause error, follows bool) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.Of(p)
	h, ok := l.line(now, p)
	if !ok {
		if len(l.held) >= Instances { // most of those may be over, with nobody who came to see
			maps.DeleteFunc(l.held, func(_ string, h *line) bool { return h.over(now) })
		}
		if len(l.held) >= Instances {
			return due
		}
		if h = (&line{in: map[string]*place{}}); l.held == nil {
			l.held = map[string]*line{}
		}
		l.held[m.Instance] = h
	}
	first := !ok || !follows
	at := h.enter(m, first)
	if first {
		h.cause = cause
		if problem.CodeOf(cause) == "store.locked" { // each time for longer
			h.tries, h.gap = h.tries+1, min(max(2*h.gap, spacing/8), spacing)
			due = now.Add(min(due.Sub(now)/8<<min(h.tries, 16), lockedMax))
		}
	} else {
		due = h.behind(at, now, due)
	}
	comes := due
	if h.gap > 0 {
		// Oracle delays by whole seconds, from the commit: a moment in between, and what is sent after this one
		// comes after it.
		comes = now.Add((due.Sub(now) + time.Second - 1).Truncate(time.Second))
		due = comes.Add(-time.Second / 2)
	}
	if m.Sent.IsZero() {
		comes = now
	}
	if at < len(h.list) {
		h.list[at].due = comes
	}
	return due
}

// enter puts a message into the line, and returns its place there. One that another
// node has sent again, or this one before it forgot, has its place by when it occurred.
func (h *line) enter(m Message, first bool) int {
	if q := h.in[m.Signal]; q != nil {
		return slices.Index(h.list, q)
	}
	at := h.order(m)
	if len(h.list) >= Max {
		return len(h.list)
	}
	if first {
		at = 0
	}
	q := &place{signal: m.Signal, occurred: m.Occurred, sent: m.Sent}
	h.list, h.in[q.signal] = slices.Insert(h.list, at, q), q
	return at
}

// order is the place of a message that is in no line: before those that occurred
// later, if it may have been before them in the queue. It was in this node's hands
// before, which lost it with its session, or let those behind it go on when it was
// refused for want of one before it; or it was in another's. One that is about to be
// sent was not, whatever the clocks of those in line say.
func (h *line) order(m Message) int {
	at := len(h.list)
	for at > 0 && h.list[at-1].occurred.After(m.Occurred) && (m.Again || !m.Sent.IsZero() && !m.Sent.After(h.list[at-1].sent)) {
		at--
	}
	return at
}

// rejoin puts a message that has come between those that wait, if that is its place;
// one that is behind them all has none before it has to wait.
func (h *line) rejoin(m Message, now time.Time) {
	if h.order(m) < len(h.list) && len(h.list) < Max {
		h.list[h.enter(m, false)].due = now
	}
}

// behind is when one comes that follows the first of the line: with it, but that all
// but some come round as often as makes them one each round, however long the line is.
// Behind a lock it comes after the one before it, and there it is one each spacing.
func (h *line) behind(at int, now, due time.Time) time.Time {
	latest := func(t time.Time) {
		if t.After(due) {
			due = t
		}
	}
	first := h.list[0].due
	latest(now.Add(min(now.Sub(first)/4, pauseMax)))
	latest(first)
	if h.gap == 0 {
		if at >= free {
			latest(now.Add(round * time.Duration(len(h.list)-free)))
			latest(h.list[at-1].due)
		}
		return due
	}
	due = due.Add(lockedGap + h.gap*time.Duration(max(at-free, 0)))
	if at >= free && h.tries > 0 {
		latest(now.Add(h.gap * time.Duration(len(h.list)-free)))
	}
	if at > 0 {
		latest(h.list[at-1].due)
	}
	return due
}
