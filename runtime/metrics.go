package runtime

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// metrics is everything a node counts. Labels come from closed sets; no
// instance, definition or user is ever a label.
type metrics struct {
	r       *Runtime
	adopted prometheus.Counter
	purged  *prometheus.CounterVec
	left    prometheus.Counter
	resent  prometheus.Counter
	paced   *prometheus.CounterVec

	depth, age  *prometheus.Desc
	gaps, ahead *prometheus.Desc
	unserved    *prometheus.Desc
	unmeasured  *prometheus.Desc

	open map[string]*prometheus.Desc // by what the store counts
}

func newMetrics(r *Runtime) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		r:          r,
		adopted:    counter("aqueduct_commands_adopted_total", "Commands of dead nodes announced again."),
		purged:     counters("aqueduct_purged_total", "What retention has deleted past its window.", "what", windowNames...),
		left:       counter("aqueduct_retention_left_total", "Faulted instances past their window that were left to a node with their code."),
		resent:     counter("aqueduct_waits_resent_total", "Waits that were overdue and had no message, and whose message was sent again."),
		paced:      counters("aqueduct_paced_total", "Starts, events and loops that definitions caused to themselves faster than their rates, and that were delayed.", "cause", selfStart, selfEvent, selfLoop),
		depth:      prometheus.NewDesc("aqueduct_queue_messages", "Messages in a queue, counted up to 10,000.", []string{"queue", "state"}, nil),
		gaps:       prometheus.NewDesc("aqueduct_sequence_gaps", "Instances that keep signals until an earlier one of their sender comes, counted up to 10,000.", nil, nil),
		ahead:      prometheus.NewDesc("aqueduct_sequence_ahead", "Signals that these instances keep.", nil, nil),
		unserved:   prometheus.NewDesc("aqueduct_commands_unserved", "Pending commands for functions that no live node has, of the first 1,000 that no node has claimed.", nil, nil),
		unmeasured: prometheus.NewDesc("aqueduct_database_unmeasured", "What of the database could not be measured by this scrape, of 4: its gauges are missing then.", nil, nil),
		age:        prometheus.NewDesc("aqueduct_queue_oldest_seconds", "Age of the oldest message that is due.", []string{"queue"}, nil),
		open: map[string]*prometheus.Desc{
			backend.CountInstances:   prometheus.NewDesc("aqueduct_instances", "Instances that have not ended, counted up to 100,000.", []string{"status"}, nil),
			backend.CountTasks:       prometheus.NewDesc("aqueduct_tasks", "Tasks that people may work on, counted up to 100,000.", []string{"status"}, nil),
			backend.CountDeadLetters: prometheus.NewDesc("aqueduct_dead_letters", "Dead letters that wait for an operator, counted up to 100,000.", []string{"queue"}, nil),
		},
	}
}

// gauged are the labels that what is counted always has: a gauge that comes and goes
// with its rows has no zero.
var gauged = map[string][]string{
	backend.CountInstances:   {string(snapshot.Pending), string(snapshot.Running), string(snapshot.Waiting), string(snapshot.Suspended), string(snapshot.Faulted)},
	backend.CountTasks:       {backend.TaskOpen},
	backend.CountDeadLetters: queueLabels,
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.adopted, m.purged, m.left, m.resent, m.paced,
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
	ch <- m.unserved
	ch <- m.unmeasured
	ch <- m.ahead
	for _, desc := range m.open {
		ch <- desc
	}
}

// counters is a counter by one label, whose values are there from the start: to those who
// ask for an increase, a series that begins with one has none.
func counters(name, help, label string, values ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range values {
		vec.WithLabelValues(v)
	}
	return vec
}

// Times of the queries that a scrape makes, one after the other: they keep no other reader of a small
// store waiting. All of them take less than the ten seconds in which a scrape is to be answered.
const (
	scrapeTimeout = 6 * time.Second
	partTimeout   = 2 * time.Second
)

// Collect implements prometheus.Collector. The queues are asked when somebody
// scrapes, so a node that nobody watches asks nothing.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
	if m.r.Store.Backlog == nil {
		return
	}
	whole, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	unmeasured := 0
	for _, part := range []struct {
		what    string
		measure func(context.Context, chan<- prometheus.Metric) error
	}{
		{"queues", m.collectQueues}, {"instances", m.collectOpen}, {"gaps", m.collectGaps}, {"commands that no node performs", m.collectUnserved},
	} {
		ctx, cancel := context.WithTimeout(whole, partTimeout)
		if err := part.measure(ctx, ch); err != nil {
			m.r.Log.Warn(part.what+" cannot be measured", "error", err)
			unmeasured++
		}
		cancel()
	}
	ch <- prometheus.MustNewConstMetric(m.unmeasured, prometheus.GaugeValue, float64(unmeasured))
}

func (m *metrics) collectGaps(ctx context.Context, ch chan<- prometheus.Metric) error {
	gaps, err := m.r.Store.Backlog.Gaps(ctx)
	if err != nil {
		return err
	}
	ch <- prometheus.MustNewConstMetric(m.gaps, prometheus.GaugeValue, float64(gaps.Instances))
	ch <- prometheus.MustNewConstMetric(m.ahead, prometheus.GaugeValue, float64(gaps.Signals))
	return nil
}

func (m *metrics) collectUnserved(ctx context.Context, ch chan<- prometheus.Metric) error {
	n, err := m.r.waiting(ctx)
	if err != nil {
		return err
	}
	ch <- prometheus.MustNewConstMetric(m.unserved, prometheus.GaugeValue, float64(n))
	return nil
}

func (m *metrics) collectQueues(ctx context.Context, ch chan<- prometheus.Metric) error {
	queues, err := m.r.Store.Backlog.Queues(ctx)
	if err != nil {
		return err
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
	return nil
}

// collectOpen gives the gauges of what has not ended.
func (m *metrics) collectOpen(ctx context.Context, ch chan<- prometheus.Metric) error {
	counts, err := m.r.Store.Backlog.Counts(ctx)
	if err != nil {
		return err
	}
	for what, names := range gauged {
		rows := map[string]int{}
		for _, name := range names {
			rows[name] = 0
		}
		for _, c := range counts {
			if what == backend.CountDeadLetters {
				c.Name = queueLabel(c.Name)
			}
			if c.What == what {
				rows[c.Name] += c.Rows
			}
		}
		for name, n := range rows {
			ch <- prometheus.MustNewConstMetric(m.open[what], prometheus.GaugeValue, float64(n), name)
		}
	}
	return nil
}
