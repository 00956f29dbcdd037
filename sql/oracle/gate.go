package oracle

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
)

// gate lets the receivers of a queue through. A fault of the database closes it:
// the queue pauses on this node. After each pause one pass has a try, and its
// verdict opens the gate or makes the next pause longer, so that a fault which
// lasts costs a few statements a minute and rolls next to nothing back.
type gate struct {
	queue store.Queue
	log   *slog.Logger

	mu       sync.Mutex
	failures int           // in a row; 0 = the gate is open
	since    time.Time     // of the first
	next     time.Time     // when the next try may begin
	cause    error         // of the last
	holder   *pass         // who has the try; nil = nobody
	changed  chan struct{} // closed when a receiver that waits may look again
	work     bool          // the last failure was that of a delivery: to receive nothing says nothing
	nothing  int           // tries in a row that received nothing
	total    int           // pauses that began
}

// Pauses of a queue: the first, doubled up to the longest, less up to a fifth of
// jitter, so that the nodes of a database do not come together.
const (
	pauseMin = 250 * time.Millisecond
	pauseMax = time.Minute
)

func newGate(q store.Queue, log *slog.Logger) *gate {
	return &gate{queue: q, log: log, changed: make(chan struct{})}
}

// pass is the right to take one delivery, or to look for one once.
type pass struct{ g *gate }

// enter blocks until the gate is open, or the next try is the caller's. Whoever
// has a pass says how it went: failed, passed or left.
func (g *gate) enter(ctx context.Context) (*pass, error) {
	for {
		g.mu.Lock()
		if g.failures == 0 {
			g.mu.Unlock()
			return &pass{g: g}, nil
		}
		wait, changed := time.Until(g.next), g.changed
		if g.holder == nil && wait <= 0 {
			p := &pass{g: g}
			g.holder = p
			g.mu.Unlock()
			return p, nil
		}
		if g.holder != nil {
			wait = pauseMax // changed comes before
		}
		g.mu.Unlock()
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		case <-changed:
		case <-again.C:
		}
		again.Stop()
	}
}

// tries says whether the pass has the one try that there is while the queue
// pauses.
func (p *pass) tries() bool {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.holder == p
}

// barred says that the queue has paused since the pass was given.
func (p *pass) barred() bool {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.failures > 0 && p.g.holder != p
}

// due says whether the pause is over for who has the try.
func (p *pass) due() bool {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return !time.Now().Before(p.g.next)
}

// failed closes the gate, or prolongs the pause, for the failure of a delivery
// (work), or to get one. Who closes it has the try. What had begun before the
// queue paused says nothing new.
func (p *pass) failed(cause error, work bool) {
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures > 0 && g.holder != p {
		return
	}
	if g.failures == 0 {
		g.since = time.Now()
		g.total++
	}
	g.failures++
	g.holder, g.cause, g.work, g.nothing = p, cause, work, 0
	d := g.pause()
	if n := g.failures; n&(n-1) == 0 {
		level := slog.LevelWarn
		if n >= longPause {
			level = slog.LevelError
		}
		g.log.Log(context.Background(), level, "oracle: the queue pauses on this node", "queue", g.queue, "reason", reasonOf(cause), "error", cause,
			"failures", n, "paused", time.Since(g.since).Round(time.Millisecond), "again in", d.Round(time.Millisecond))
	}
	g.wake()
}

// pause is how long the next pause is, from now; g.mu is held.
func (g *gate) pause() time.Duration {
	d := pauseMax
	if n := g.failures - 1; n < 8 {
		d = min(pauseMin<<n, pauseMax)
	}
	d -= time.Duration(rand.N(int64(d) / 5))
	g.next = time.Now().Add(d)
	return d
}

// empty takes note that the queue has nothing for the pass. Where it was a
// delivery that failed, that is no verdict, unless it comes again and again:
// another node had the message.
func (p *pass) empty() {
	g := p.g
	g.mu.Lock()
	if g.nothing++; g.holder == p && g.work && g.nothing < emptyTries {
		g.pause()
		g.holder = nil
		g.wake()
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	p.passed()
}

// longPause is how many failures in a row are no mere hiccup: the pauses have
// added up to half a minute.
const longPause = 8

// emptyTries is how many tries in a row that find nothing open the gate.
const emptyTries = 3

// passed opens the gate, if the pass has the try.
func (p *pass) passed() {
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder != p {
		return
	}
	g.log.Info("oracle: the queue goes on", "queue", g.queue, "failures", g.failures, "paused", time.Since(g.since).Round(time.Millisecond))
	g.failures, g.cause, g.holder = 0, nil, nil
	g.wake()
}

// again has the next try begin at once: what had failed seems to be possible now.
// Only a commit opens the gate.
func (p *pass) again() {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if p.g.holder == p {
		p.g.next = time.Now()
	}
}

// left gives the try back without a verdict.
func (p *pass) left() {
	g := p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder == p {
		g.holder = nil
		g.wake()
	}
}

// wake lets receivers look again; g.mu is held.
func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Pause is a queue that pauses on this node, or has paused.
type Pause struct {
	Queue    store.Queue
	Count    int       // pauses that have begun
	Since    time.Time // zero: it does not pause now
	Next     time.Time // when it is tried again
	Failures int       // in a row
	Reason   string    // ORA-01653, or what is known
	Class    aq.Class  // of the error
}

// Pauses says of each queue whether it pauses on this node, and why.
func (s *Store) Pauses() []Pause {
	list := make([]Pause, 0, len(s.gates))
	for _, q := range []store.Queue{store.Signals, store.Schedule, store.Commands} {
		g := s.gates[q]
		g.mu.Lock()
		p := Pause{Queue: q, Count: g.total, Failures: g.failures}
		if g.failures > 0 {
			p.Since, p.Next, p.Reason, p.Class = g.since, g.next, reasonOf(g.cause), aq.Classify(g.cause)
		}
		g.mu.Unlock()
		list = append(list, p)
	}
	return list
}

// reasonOf is the code at the root of an error.
func reasonOf(err error) string {
	if code, ok := aq.Cause(err); ok {
		return fmt.Sprintf("ORA-%05d", code)
	}
	return "connection"
}
