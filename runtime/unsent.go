package runtime

import (
	"context"
	"errors"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Notices of the engine are events for who operates it: of acknowledgements, of states
// that lasted too long, of events that were refused. A node that has no sink gives them to
// the instances, and leaves their commands open, with no message that announces them: a
// node that has a sink looks for such commands, and sends them. So one without takes
// nothing from the others, and none is lost where the sink is set later.

// noticePrefix begins the types of the engine's own events.
const noticePrefix = "io.aqueduct."

// Bounds of a look for notices that are unsent: so many are read at once, and counted.
const (
	unsentBatch = 100
	MaxUnsent   = 1_000
)

// unsentMetrics counts notices that wait for a sink.
type unsentMetrics struct {
	waiting prometheus.Gauge
	expired prometheus.Counter
}

func newUnsentMetrics() *unsentMetrics {
	return &unsentMetrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aqueduct_notices_unsent", Help: "Notices of the database that wait for a node with a sink, counted up to 1,000.",
		}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aqueduct_notices_expired_total", Help: "Notices that have waited for a node with a sink for too long, and were not sent.",
		}),
	}
}

func (m *unsentMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.waiting, m.expired}
}

// unsent says why a command that this node has performed is not done: it is a notice, and
// went to the instances only.
func (c *Config) unsent(did engine.Command) string {
	if did.Target != engine.TargetEvent || c.NoticeKeep < 0 || c.Performer.Can(engine.TargetEvent) {
		return ""
	}
	var event struct {
		Type string `json:"type"`
	}
	if err := jsonv2.Unmarshal(did.Input, &event); err != nil || !strings.HasPrefix(event.Type, noticePrefix) {
		return ""
	}
	return ack.Unsent + ": it waits for a node with a sink (events.sink)"
}

// send looks for unsent notices until ctx ends. Every node does: what each does about one
// is a claim, of which one is made.
func (j *jobs) send(ctx context.Context) error {
	if j.NoticeKeep < 0 {
		return nil
	}
	for ctx.Err() == nil {
		err := errors.Join(j.expireUnsent(ctx), j.sendUnsent(ctx), j.countUnsent(ctx))
		if err != nil && ctx.Err() == nil {
			j.Log.Error("notices that wait for a sink could not be looked for", "error", err)
		}
		sleep(ctx, j.UnsentEvery)
	}
	return nil
}

// eachUnsent gives f the open commands of notices made before a moment, until it says that
// it has enough; a zero moment is none.
func (j *jobs) eachUnsent(ctx context.Context, before time.Time, f func(projections.Entry) (bool, error)) error {
	q := backend.CommandQuery{Error: ack.Unsent, Before: before, Limit: unsentBatch}
	for {
		p, err := j.Store.Streams.Commands(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range p.Items {
			if row.ClaimedBy != "" {
				continue
			}
			if more, err := f(row); err != nil || !more {
				return err
			}
		}
		if q.After = p.Next; q.After == "" {
			return nil
		}
	}
}

// expireUnsent ends the commands of notices that nobody can have sent for too long.
func (j *jobs) expireUnsent(ctx context.Context) error {
	return j.eachUnsent(ctx, j.Now().Add(-j.NoticeKeep), func(row projections.Entry) (bool, error) {
		err := j.Store.Writer.Commit(ctx, store.Change{Claims: []store.Claim{{InstanceID: row.InstanceID, Position: row.Position, Done: true}}})
		if errors.Is(err, store.ErrTaken) {
			return true, nil // another node was faster
		}
		if err == nil {
			j.sending.expired.Inc()
			j.Log.Warn("a notice has expired: no node with a sink has sent it", "instance", row.InstanceID, "command", row.Position, "after", j.NoticeKeep)
		}
		return true, err
	})
}

// sendUnsent has this node send what it has room for, when it has a sink.
func (j *jobs) sendUnsent(ctx context.Context) error {
	if !j.Performer.Can(engine.TargetEvent) {
		return nil
	}
	return j.eachUnsent(ctx, time.Time{}, func(row projections.Entry) (bool, error) {
		c, err := commandOf(row)
		if err != nil {
			return true, err
		}
		job, ok := j.dispatcher.Reserve(row.InstanceID, row.Position, c, j.Now())
		if !ok {
			return false, nil // it has no room now
		}
		claim := store.Claim{InstanceID: row.InstanceID, Position: row.Position, Owner: j.dispatcher.Node}
		if job.Counted {
			claim.Attempts = 1
		}
		err = j.Store.Writer.Commit(ctx, store.Change{Claims: []store.Claim{claim}})
		switch {
		case err == nil:
			j.dispatcher.Launch(job)
		case errors.Is(err, store.ErrUnknown):
			j.dispatcher.Resolve(job)
		default:
			j.dispatcher.Cancel(job)
		}
		if errors.Is(err, store.ErrTaken) {
			err = nil // another node was faster
		}
		return err == nil, err
	})
}

// countUnsent measures how many wait.
func (j *jobs) countUnsent(ctx context.Context) error {
	n := 0
	err := j.eachUnsent(ctx, time.Time{}, func(projections.Entry) (bool, error) {
		n++
		return n < MaxUnsent, nil
	})
	if err == nil {
		j.sending.waiting.Set(float64(n))
	}
	return err
}
