package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics is everything a node counts. Labels come from closed sets; no
// instance, definition or user is ever a label.
type metrics struct {
	r           *Runtime
	turns       *prometheus.CounterVec
	conflicts   prometheus.Counter
	signals     prometheus.Histogram
	retries     *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	adopted     prometheus.Counter
	strays      prometheus.Counter
	redelivered *prometheus.CounterVec
	acks        *prometheus.CounterVec
	purged      prometheus.Counter
	missed      prometheus.Counter
	kept        prometheus.Counter
	performing  prometheus.GaugeFunc
	capacity    prometheus.GaugeFunc
	waiting     prometheus.GaugeFunc
	room        prometheus.GaugeFunc
	givenUp     prometheus.Counter
	crowded     prometheus.Counter
	opened      *prometheus.CounterVec
	paced       *prometheus.CounterVec

	depth, age         *prometheus.Desc
	gaps, ahead        *prometheus.Desc
	breakers, inFlight *prometheus.Desc

	mu    sync.Mutex
	hosts map[string]bool // that are labels
}

// MaxHostLabels bounds the values of the label host. Hosts beyond it are
// counted together as "other".
const MaxHostLabels = 64

// Values of the label host that are no hosts.
const (
	otherHosts   = "other"
	functionHost = "function" // what is called in this process
)

// host is the label of a destination.
func (m *metrics) host(to engine.Destination) string {
	if to.Host == "" {
		return functionHost
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.hosts[to.Host] {
		if len(m.hosts) >= MaxHostLabels {
			return otherHosts
		}
		m.hosts[to.Host] = true
	}
	return to.Host
}

func newMetrics(r *Runtime) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, f func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	return &metrics{
		r:         r,
		turns:     vec("aqueduct_turns_total", "Turns committed, by what they did with their signal.", "disposition"),
		conflicts: counter("aqueduct_version_conflicts_total", "Turns decided again because another was faster."),
		signals: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aqueduct_turn_signals", Help: "Signals of an instance that were decided in one turn.", Buckets: prometheus.ExponentialBuckets(1, 4, 5),
		}),
		retries:     vec("aqueduct_message_retries_total", "Messages that failed and were sent again, by whose fault that was.", "queue", "by"),
		deadLetters: vec("aqueduct_dead_letters_total", "Messages that became dead letters.", "queue"),
		adopted:     counter("aqueduct_commands_adopted_total", "Commands of dead nodes announced again."),
		strays:      counter("aqueduct_messages_stray_total", "Messages that a node had locked and nobody worked on, given back."),
		redelivered: vec("aqueduct_commands_redelivered_total", "Commands performed again because they were not acknowledged.", "target"),
		acks:        vec("aqueduct_acknowledgements_total", "Acknowledgements of commands.", "outcome"),
		purged:      counter("aqueduct_instances_purged_total", "Closed instances deleted by retention."),
		missed:      counter("aqueduct_schedule_missed_total", "Ticks of schedules that were passed over, because they were long past."),
		kept:        counter("aqueduct_events_kept_total", "Events that nobody waited for when they came, and that are kept for a while."),
		performing:  gauge("aqueduct_commands_running", "Commands being performed now.", func() float64 { running, _ := r.dispatch.load(); return float64(running) }),
		capacity:    gauge("aqueduct_commands_running_limit", "Commands that may be performed at once.", func() float64 { return float64(r.Activities) }),
		waiting:     gauge("aqueduct_commands_waiting", "Commands that wait on this node for a slot, a place at their host or a circuit breaker.", func() float64 { _, waiting := r.dispatch.load(); return float64(waiting) }),
		room:        gauge("aqueduct_commands_waiting_limit", "Commands that may wait on this node.", func() float64 { return float64(waitingTargets * r.Waiting) }),
		givenUp:     counter("aqueduct_commands_given_up_total", "Commands that waited for a place for too long and were not sent."),
		crowded:     counter("aqueduct_commands_crowded_total", "Announcements of commands put off because this node had no room for them."),
		opened:      vec("aqueduct_activity_breaker_opened_total", "Times a circuit breaker of a host opened.", "host"),
		paced:       vec("aqueduct_paced_total", "Starts, events and loops that definitions caused to themselves faster than their rates, and that were delayed.", "cause"),
		breakers:    prometheus.NewDesc("aqueduct_activity_breakers", "Circuit breakers, by the host of their destination and by state.", []string{"host", "state"}, nil),
		inFlight:    prometheus.NewDesc("aqueduct_activity_requests_in_flight", "Commands under way, by the host of their destination.", []string{"host"}, nil),
		hosts:       map[string]bool{},
		depth:       prometheus.NewDesc("aqueduct_queue_messages", "Messages in a queue, counted up to 10,000.", []string{"queue", "state"}, nil),
		gaps:        prometheus.NewDesc("aqueduct_sequence_gaps", "Instances that keep signals until an earlier one of their sender comes, counted up to 10,000.", nil, nil),
		ahead:       prometheus.NewDesc("aqueduct_sequence_ahead", "Signals that these instances keep.", nil, nil),
		age:         prometheus.NewDesc("aqueduct_queue_oldest_seconds", "Age of the oldest message that is due.", []string{"queue"}, nil),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.turns, m.conflicts, m.signals, m.retries, m.deadLetters, m.adopted, m.strays, m.redelivered, m.acks, m.purged, m.missed, m.kept, m.performing, m.capacity,
		m.waiting, m.room, m.givenUp, m.crowded, m.opened, m.paced,
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
	ch <- m.breakers
	ch <- m.inFlight
}

// scrapeTimeout bounds the queries that a scrape makes.
const scrapeTimeout = 2 * time.Second

// Collect implements prometheus.Collector. The queues are asked when somebody
// scrapes, so a node that nobody watches asks nothing.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
	m.destinations(ch)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	queues, err := m.r.Store.Queues(ctx)
	if err != nil {
		m.r.Log.Warn("queues cannot be measured", "error", err)
		return
	}
	if gaps, err := m.r.Store.Gaps(ctx); err != nil {
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

// destinations measures what is known of where commands go.
func (m *metrics) destinations(ch chan<- prometheus.Metric) {
	type series struct{ host, state string }
	breakers, inFlight := map[series]int{}, map[string]int{}
	for _, t := range m.r.Targets() {
		host := m.host(t.Destination)
		breakers[series{host, t.Breaker}]++
		inFlight[host] += t.Running
	}
	for s, n := range breakers {
		ch <- prometheus.MustNewConstMetric(m.breakers, prometheus.GaugeValue, float64(n), s.host, s.state)
	}
	for host, n := range inFlight {
		ch <- prometheus.MustNewConstMetric(m.inFlight, prometheus.GaugeValue, float64(n), host)
	}
}

// schedule counts the ticks that a turn has passed over.
func (m *metrics) schedule(prev *snapshot.Snapshot, out *engine.Outcome) {
	now := out.Snapshot.Schedule
	if now == nil || prev == nil || prev.Schedule == nil || now.Missed == prev.Schedule.Missed {
		return
	}
	m.missed.Add(float64(now.Missed - prev.Schedule.Missed))
	m.r.Log.Warn("ticks of a schedule were missed", "instance", out.Snapshot.InstanceID, "missed", now.Missed-prev.Schedule.Missed, "next", now.Due)
}

func (m *metrics) turn(out *engine.Outcome) {
	m.turns.WithLabelValues(string(out.Disposition)).Inc()
}
