package runtime

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
)

// commandMetrics is what a dispatcher counts, and what it knows of destinations.
type commandMetrics struct {
	d           *dispatch.Dispatcher
	redelivered *prometheus.CounterVec
	running     prometheus.GaugeFunc
	capacity    prometheus.GaugeFunc
	waiting     prometheus.GaugeFunc
	room        prometheus.GaugeFunc
	givenUp     prometheus.Counter
	crowded     prometheus.Counter
	opened      *prometheus.CounterVec

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
func (m *commandMetrics) host(to admission.Destination) string {
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
		m.opened.WithLabelValues(to.Host) // zero, before it opens
	}
	return to.Host
}

// newCommandMetrics needs the dispatcher before it is collected.
func newCommandMetrics(activities, waiting int) *commandMetrics {
	m := &commandMetrics{hosts: map[string]bool{}}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, f func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	m.redelivered = vec("aqueduct_commands_redelivered_total", "Commands performed again because they were not acknowledged.", "target")
	m.running = gauge("aqueduct_commands_running", "Commands being performed now.", func() float64 { running, _ := m.d.Admission.Load(); return float64(running) })
	m.capacity = gauge("aqueduct_commands_running_limit", "Commands that may be performed at once.", func() float64 { return float64(activities) })
	m.waiting = gauge("aqueduct_commands_waiting", "Commands that wait on this node for a slot, a place at their host or a circuit breaker.", func() float64 { _, waiting := m.d.Admission.Load(); return float64(waiting) })
	m.room = gauge("aqueduct_commands_waiting_limit", "Commands that may wait on this node.", func() float64 { return float64(admission.WaitingTargets * waiting) })
	m.givenUp = counter("aqueduct_commands_given_up_total", "Commands that waited for a place for too long and were not sent.")
	m.crowded = counter("aqueduct_commands_crowded_total", "Announcements of commands put off because this node had no room for them.")
	m.opened = counters("aqueduct_activity_breaker_opened_total", "Times a circuit breaker of a host opened.", "host", functionHost, otherHosts)
	m.breakers = prometheus.NewDesc("aqueduct_activity_breakers", "Circuit breakers, by the host of their destination and by state.", []string{"host", "state"}, nil)
	m.inFlight = prometheus.NewDesc("aqueduct_activity_requests_in_flight", "Commands under way, by the host of their destination.", []string{"host"}, nil)
	return m
}

// collectors are all of them.
func (m *commandMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m, m.redelivered, m.running, m.capacity, m.waiting, m.room, m.givenUp, m.crowded, m.opened}
}

// Describe implements prometheus.Collector, for the destinations.
func (m *commandMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.breakers
	ch <- m.inFlight
}

// Collect implements prometheus.Collector: what is known of where commands go.
func (m *commandMetrics) Collect(ch chan<- prometheus.Metric) {
	type series struct{ host, state string }
	breakers, inFlight := map[series]int{}, map[string]int{}
	for _, t := range m.d.Admission.States() {
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
