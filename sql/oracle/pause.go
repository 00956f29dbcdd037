package oracle

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
)

// Pauses of a queue on this node: the first, doubled up to the longest, less up to a
// fifth, so that the nodes of a database do not come together.
const (
	pauseMin = 250 * time.Millisecond
	pauseMax = time.Minute
)

// rollbacksMax is how many rollbacks a message may have behind it before it is sent
// again as a new one: a twentieth of what the queue allows.
const rollbacksMax = 500

// pauses keeps the receivers of a queue from a database that takes nothing, such as
// one without space: each message that they took would be rolled back, and the
// database gives up one that has been rolled back too often.
type pauses struct {
	mu       sync.Mutex
	failures int       // in a row
	since    time.Time // of the first
	next     time.Time // when the next message may be taken
}

// failed takes note of a delivery that could not be committed. Only what lasts until
// somebody mends the database counts, and what is not known.
func (p *pauses) failed(log *slog.Logger, queue string, err error) {
	if class := aq.Classify(err); class != aq.Paused && class != aq.Fatal || len(aq.Codes(err)) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.next) {
		return // it was taken before the pause began
	}
	if p.failures == 0 {
		p.since = now
	}
	d := min(pauseMin<<min(p.failures, 8), pauseMax)
	d -= rand.N(d / 5)
	p.failures, p.next = p.failures+1, now.Add(d)
	if n := p.failures; n&(n-1) == 0 {
		log.Error("oracle: the queue pauses on this node: the database takes no commit", "queue", queue, "error", err,
			"failures", n, "for", now.Sub(p.since).Round(time.Second), "again in", d.Round(time.Millisecond))
	}
}

// passed takes note of one that was committed.
func (p *pauses) passed(log *slog.Logger, queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures > 0 {
		log.Info("oracle: the queue goes on", "queue", queue, "paused", time.Since(p.since).Round(time.Second))
		p.failures, p.next = 0, time.Time{}
	}
}

// wait blocks while the queue pauses, or until ctx ends.
func (p *pauses) wait(ctx context.Context) {
	p.mu.Lock()
	d := time.Until(p.next)
	p.mu.Unlock()
	if d > 0 {
		pause(ctx, d)
	}
}
