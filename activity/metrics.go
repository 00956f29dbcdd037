package activity

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// MaxHostLabels bounds the values of the label host. Hosts beyond it are
// counted together as "other".
const MaxHostLabels = 64

const otherHosts = "other"

// metrics counts what a Performer does. Labels are closed sets: targets are
// registered by the program, outcomes and states are listed below, hosts are
// bounded by MaxHostLabels.
type metrics struct {
	attempts *prometheus.CounterVec   // target, outcome
	seconds  *prometheus.HistogramVec // target
	breakers *prometheus.GaugeVec     // host, state: how many breakers are in it
	opened   *prometheus.CounterVec   // host
	inFlight *prometheus.GaugeVec     // host
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
		breakers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aqueduct_activity_breakers", Help: "Circuit breakers of HTTP hosts, by state."},
			[]string{"host", "state"}),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aqueduct_activity_breaker_opened_total", Help: "Times a host's circuit breaker opened."},
			[]string{"host"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aqueduct_activity_requests_in_flight", Help: "HTTP requests under way."},
			[]string{"host"}),
	}
	if r != nil {
		r.MustRegister(m.attempts, m.seconds, m.breakers, m.opened, m.inFlight)
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
