package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

// pauses shows which queues pause on this node, for how long, and of what class the
// error is: the code is in the log, for there are thousands of them.
type pauses func() []oracle.Pause

var pausedSeconds = prometheus.NewDesc("aqueduct_queue_paused_seconds",
	"How long a queue has paused on this node for a fault of the database, by the class of its error; 0 = it does not.", []string{"queue", "class"}, nil)

// Describe implements prometheus.Collector.
func (p pauses) Describe(ch chan<- *prometheus.Desc) { ch <- pausedSeconds }

// Collect implements prometheus.Collector.
func (p pauses) Collect(ch chan<- prometheus.Metric) {
	for _, q := range p() {
		seconds, class := 0.0, "none"
		if !q.Since.IsZero() {
			seconds, class = time.Since(q.Since).Seconds(), string(q.Class)
		}
		ch <- prometheus.MustNewConstMetric(pausedSeconds, prometheus.GaugeValue, seconds, string(q.Queue), class)
	}
}
