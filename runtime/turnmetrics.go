package runtime

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// turnMetrics counts what turns do, and what becomes of messages: it is a
// turn.Metrics, and a pump.Metrics.
type turnMetrics struct {
	log         *slog.Logger
	turns       *prometheus.CounterVec
	conflicts   prometheus.Counter
	signals     prometheus.Histogram
	missed      prometheus.Counter
	retries     *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
}

func newTurnMetrics(log *slog.Logger) *turnMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &turnMetrics{
		log:       log,
		turns:     vec("aqueduct_turns_total", "Turns committed, by what they did with their signal.", "disposition"),
		conflicts: counter("aqueduct_version_conflicts_total", "Turns decided again because another was faster."),
		signals: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aqueduct_turn_signals", Help: "Signals of an instance that were decided in one turn.", Buckets: prometheus.ExponentialBuckets(1, 4, 5),
		}),
		missed:      counter("aqueduct_schedule_missed_total", "Ticks of schedules that were passed over, because they were long past."),
		retries:     vec("aqueduct_message_retries_total", "Messages that failed and were sent again, by whose fault that was.", "queue", "by"),
		deadLetters: vec("aqueduct_dead_letters_total", "Messages that became dead letters.", "queue"),
	}
}

func (m *turnMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.turns, m.conflicts, m.signals, m.missed, m.retries, m.deadLetters}
}

// Count implements turn.Metrics.
func (m *turnMetrics) Count(did engine.Disposition) { m.turns.WithLabelValues(string(did)).Inc() }

// Conflicted implements turn.Metrics.
func (m *turnMetrics) Conflicted() { m.conflicts.Inc() }

// Signals implements turn.Metrics.
func (m *turnMetrics) Signals(n int) { m.signals.Observe(float64(n)) }

// Committed implements turn.Metrics: it counts the ticks that a turn has passed over.
func (m *turnMetrics) Committed(prev *snapshot.Snapshot, out *engine.Outcome) {
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
