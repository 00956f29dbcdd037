package turn

import (
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what a decider counts.
type metrics struct {
	turns     *prometheus.CounterVec
	conflicts prometheus.Counter
	signals   prometheus.Histogram
	missed    prometheus.Counter
}

func newMetrics() metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return metrics{
		turns:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aqueduct_turns_total", Help: "Turns committed, by what they did with their signal."}, []string{"disposition"}),
		conflicts: counter("aqueduct_version_conflicts_total", "Turns decided again because another was faster."),
		signals: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aqueduct_turn_signals", Help: "Signals of an instance that were decided in one turn.", Buckets: prometheus.ExponentialBuckets(1, 4, 5),
		}),
		missed: counter("aqueduct_schedule_missed_total", "Ticks of schedules that were passed over, because they were long past."),
	}
}

// Collectors are the metrics of turns.
func (d *Decider) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.metrics.turns, d.metrics.conflicts, d.metrics.signals, d.metrics.missed}
}

// Count counts a turn by what it did with its signal.
func (d *Decider) Count(did engine.Disposition) { d.metrics.turns.WithLabelValues(string(did)).Inc() }

// Conflicted counts a turn that is decided again because another was faster.
func (d *Decider) Conflicted() { d.metrics.conflicts.Inc() }

// countMissed counts the ticks that a turn has passed over.
func (d *Decider) countMissed(prev *snapshot.Snapshot, out *engine.Outcome) {
	now := out.Snapshot.Schedule
	if now == nil || prev == nil || prev.Schedule == nil || now.Missed == prev.Schedule.Missed {
		return
	}
	d.metrics.missed.Add(float64(now.Missed - prev.Schedule.Missed))
	d.Log.Warn("ticks of a schedule were missed", "instance", out.Snapshot.InstanceID, "missed", now.Missed-prev.Schedule.Missed, "next", now.Due)
}
