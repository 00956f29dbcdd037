package activity

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// metrics counts what a Performer does. Labels are closed sets: targets are
// registered by the program, outcomes are listed below.
type metrics struct {
	attempts *prometheus.CounterVec   // target, outcome
	seconds  *prometheus.HistogramVec // target
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aqueduct_activity_attempts_total", Help: "Attempts to perform a command, by outcome."},
			[]string{"target", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aqueduct_activity_attempt_seconds", Help: "Duration of an attempt.",
			Buckets: []float64{.001, .005, .025, .1, .5, 1, 5, 30, 120}},
			[]string{"target"}),
	}
	if r != nil {
		r.MustRegister(m.attempts, m.seconds)
	}
	return m
}

// outcome is the label of a failure; nil is success.
func outcome(f *engine.Failure) string {
	switch {
	case f == nil:
		return "ok"
	case f.Retry:
		return "retry"
	}
	return "failed"
}
