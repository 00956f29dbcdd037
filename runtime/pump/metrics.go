package pump

import (
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what a pump counts.
type metrics struct {
	retries     *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	strays      prometheus.Counter
}

func newMetrics() metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		retries:     vec("aqueduct_message_retries_total", "Messages that failed and were sent again, by whose fault that was.", "queue", "by"),
		deadLetters: vec("aqueduct_dead_letters_total", "Messages that became dead letters.", "queue"),
		strays:      prometheus.NewCounter(prometheus.CounterOpts{Name: "aqueduct_messages_stray_total", Help: "Messages that a node had locked and nobody worked on, given back."}),
	}
}

// Collectors are the metrics of the pump.
func (u *Pump) Collectors() []prometheus.Collector {
	return []prometheus.Collector{u.metrics.retries, u.metrics.deadLetters, u.metrics.strays}
}

// DeadLetters counts the dead letters of a queue.
func (u *Pump) DeadLetters(q store.Queue) prometheus.Counter {
	return u.metrics.deadLetters.WithLabelValues(string(q))
}
