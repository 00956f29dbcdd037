package runtime

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime/pump"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// turnMetrics counts what turns do, and what becomes of messages: it is a
// turn.Metrics, and a pump.Metrics.
type turnMetrics struct {
	log         *slog.Logger
	now         func() time.Time
	traces      Traces // nil = nobody traces
	failed      func(out *engine.Outcome, err error)
	turns       *prometheus.CounterVec
	seconds     prometheus.Histogram
	conflicts   prometheus.Counter
	signals     prometheus.Histogram
	started     prometheus.Counter
	ended       *prometheus.CounterVec
	missed      prometheus.Counter
	retries     *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
}

func newTurnMetrics(c *Config) *turnMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &turnMetrics{
		log: c.Log, now: c.Now, traces: c.Traces, failed: newestOnly{c.Definitions}.failed,
		turns: counters("aqueduct_turns_total", "Turns committed, by what they did with their signal.", "disposition",
			string(engine.Applied), string(engine.Buffered), string(engine.Stale), string(engine.Closed), string(engine.Duplicate), string(engine.Refused)),
		conflicts: counter("aqueduct_version_conflicts_total", "Turns decided again because another was faster."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aqueduct_turn_seconds", Help: "Time of a turn that was committed, from loading its instance.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		}),
		signals: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aqueduct_turn_signals", Help: "Signals of an instance that were decided in one turn.", Buckets: prometheus.ExponentialBuckets(1, 4, 5),
		}),
		started:     counter("aqueduct_instances_started_total", "Instances that have begun on this node."),
		ended:       counters("aqueduct_instances_ended_total", "Instances that have ended on this node.", "status", string(snapshot.Completed), string(snapshot.Compensated), string(snapshot.Cancelled)),
		missed:      counter("aqueduct_schedule_missed_total", "Ticks of schedules that were passed over, because they were long past."),
		deadLetters: counters("aqueduct_dead_letters_total", "Messages that became dead letters.", "queue", queueLabels...),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aqueduct_message_retries_total", Help: "Messages that failed and were sent again, by whose fault that was.",
		}, []string{"queue", "by"}),
	}
	for _, queue := range queueLabels {
		for _, by := range append(slices.Collect(maps.Values(pump.Owners)), "order") {
			m.retries.WithLabelValues(queue, by)
		}
	}
	return m
}

func (m *turnMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.turns, m.seconds, m.conflicts, m.signals, m.started, m.ended, m.missed, m.retries, m.deadLetters}
}

// Count implements turn.Metrics.
func (m *turnMetrics) Count(did engine.Disposition) { m.turns.WithLabelValues(string(did)).Inc() }

// Over implements turn.Metrics.
func (m *turnMetrics) Over(made turn.Made) {
	over := m.now()
	trace := ""
	if m.traces != nil {
		trace = m.traces.Turn(made, over)
	}
	if made.Err != nil {
		if m.failed(made.Out, made.Err); made.Prev != nil && errors.Is(made.Err, store.ErrStale) {
			m.conflicts.Inc()
		}
		return
	}
	m.took(over.Sub(made.Began), trace)
	if made.Prev != nil {
		m.signals.Observe(float64(len(made.Signals)))
	}
	if len(made.Signals) <= 1 {
		m.Count(made.Out.Disposition)
	} else {
		for _, s := range made.Signals {
			m.Count(s.Out.Disposition)
		}
	}
	m.committed(made.Prev, made.Out)
}

// took counts the time of a turn, with the trace that it is in; "" = in none.
func (m *turnMetrics) took(d time.Duration, trace string) {
	if e, ok := m.seconds.(prometheus.ExemplarObserver); ok && trace != "" {
		e.ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace})
		return
	}
	m.seconds.Observe(d.Seconds())
}

// committed counts instances, and the ticks that a turn has passed over.
func (m *turnMetrics) committed(prev *snapshot.Snapshot, out *engine.Outcome) {
	if prev == nil {
		m.started.Inc()
	}
	if status := out.Snapshot.Status; status.Closed() && (prev == nil || prev.Status != status) {
		m.ended.WithLabelValues(string(status)).Inc()
	}
	now := out.Snapshot.Schedule
	if now == nil || prev == nil || prev.Schedule == nil || now.Missed == prev.Schedule.Missed {
		return
	}
	m.missed.Add(float64(now.Missed - prev.Schedule.Missed))
	m.log.Warn("ticks of a schedule were missed", "instance", out.Snapshot.InstanceID, "missed", now.Missed-prev.Schedule.Missed, "next", now.Due)
}

// Retried implements pump.Metrics.
func (m *turnMetrics) Retried(q store.Queue, by string) {
	m.retries.WithLabelValues(string(q), by).Inc()
}

// DeadLetter implements pump.Metrics.
func (m *turnMetrics) DeadLetter(q store.Queue) { m.deadLetters.WithLabelValues(string(q)).Inc() }
