package runtime

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is everything a node counts. Labels come from closed sets; no
// instance, definition or user is ever a label.
type metrics struct {
	r       *Runtime
	adopted prometheus.Counter
	purged  *prometheus.CounterVec
	resent  prometheus.Counter
	paced   *prometheus.CounterVec

	depth, age  *prometheus.Desc
	gaps, ahead *prometheus.Desc
}

func newMetrics(r *Runtime) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		r:       r,
		adopted: counter("aqueduct_commands_adopted_total", "Commands of dead nodes announced again."),
		purged:  vec("aqueduct_purged_total", "What retention has deleted past its window.", "what"),
		resent:  counter("aqueduct_waits_resent_total", "Waits that were overdue and had no message, and whose message was sent again."),
		paced:   vec("aqueduct_paced_total", "Starts, events and loops that definitions caused to themselves faster than their rates, and that were delayed.", "cause"),
		depth:   prometheus.NewDesc("aqueduct_queue_messages", "Messages in a queue, counted up to 10,000.", []string{"queue", "state"}, nil),
		gaps:    prometheus.NewDesc("aqueduct_sequence_gaps", "Instances that keep signals until an earlier one of their sender comes, counted up to 10,000.", nil, nil),
		ahead:   prometheus.NewDesc("aqueduct_sequence_ahead", "Signals that these instances keep.", nil, nil),
		age:     prometheus.NewDesc("aqueduct_queue_oldest_seconds", "Age of the oldest message that is due.", []string{"queue"}, nil),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.adopted, m.purged, m.resent, m.paced,
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
	ch <- m.depth
	ch <- m.age
	ch <- m.gaps
	ch <- m.ahead
}

// scrapeTimeout bounds the queries that a scrape makes.
const scrapeTimeout = 2 * time.Second

// Collect implements prometheus.Collector. The queues are asked when somebody
// scrapes, so a node that nobody watches asks nothing.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
	if m.r.Store.Backlog == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	queues, err := m.r.Store.Backlog.Queues(ctx)
	if err != nil {
		m.r.Log.Warn("queues cannot be measured", "error", err)
		return
	}
	if gaps, err := m.r.Store.Backlog.Gaps(ctx); err != nil {
		m.r.Log.Warn("gaps cannot be measured", "error", err)
	} else {
		ch <- prometheus.MustNewConstMetric(m.gaps, prometheus.GaugeValue, float64(gaps.Instances))
		ch <- prometheus.MustNewConstMetric(m.ahead, prometheus.GaugeValue, float64(gaps.Signals))
	}
	now := m.r.Now()
	for _, q := range queues {
		for state, n := range map[string]int{"ready": q.Ready, "delayed": q.Delayed, "leased": q.Leased} {
			ch <- prometheus.MustNewConstMetric(m.depth, prometheus.GaugeValue, float64(n), q.Name, state)
		}
		age := 0.0
		if !q.OldestAt.IsZero() {
			age = max(now.Sub(q.OldestAt).Seconds(), 0)
		}
		ch <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, age, q.Name)
	}
}
