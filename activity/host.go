package activity

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/timeout"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// MaxHosts bounds the hosts whose breakers and bulkheads are remembered. Over
// it the one unused for longest is forgotten, and starts closed when it is
// called again.
const MaxHosts = 1_024

// answer is what a guarded request ends with: a result or a failure, and
// whether the failure is the host's.
type answer struct {
	result  []byte
	failure *engine.Failure
	ill     bool
}

// host guards the requests to one target host.
type host struct {
	label    string
	breaker  circuitbreaker.CircuitBreaker[answer]
	bulkhead bulkhead.Bulkhead[answer]
	used     uint64 // when it was last asked for, in requests
}

// hosts holds the guards by host name and port.
type hosts struct {
	config  Config
	metrics *metrics

	mu     sync.Mutex
	byName map[string]*host
	labels map[string]bool
	clock  uint64
}

func newHosts(c Config, m *metrics) *hosts {
	return &hosts{config: c, metrics: m, byName: map[string]*host{}, labels: map[string]bool{}}
}

// get returns the guard of a host, making it when it is new.
func (hs *hosts) get(name string) *host {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.clock++
	h := hs.byName[name]
	if h == nil {
		if len(hs.byName) >= MaxHosts {
			hs.forget()
		}
		h = hs.make(hs.label(name))
		hs.byName[name] = h
	}
	h.used = hs.clock
	return h
}

func (hs *hosts) label(name string) string {
	if !hs.labels[name] {
		if len(hs.labels) >= MaxHostLabels {
			return otherHosts
		}
		hs.labels[name] = true
	}
	return name
}

func (hs *hosts) make(label string) *host {
	breakers := hs.metrics.breakers
	b := circuitbreaker.NewBuilder[answer]().
		HandleIf(func(a answer, err error) bool { return a.ill || errors.Is(err, timeout.ErrExceeded) }).
		WithFailureThreshold(uint(hs.config.BreakAfter)).
		WithSuccessThreshold(1).
		WithDelay(hs.config.BreakFor).
		OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
			breakers.WithLabelValues(label, e.OldState.String()).Dec()
			breakers.WithLabelValues(label, e.NewState.String()).Inc()
			if e.NewState == circuitbreaker.OpenState {
				hs.metrics.opened.WithLabelValues(label).Inc()
			}
		}).Build()
	breakers.WithLabelValues(label, b.State().String()).Inc()
	limit := bulkhead.NewBuilder[answer](uint(hs.config.MaxPerHost)).WithMaxWaitTime(hs.config.HostWait).Build()
	return &host{label: label, breaker: b, bulkhead: limit}
}

// forget drops the guard that was unused for longest.
func (hs *hosts) forget() {
	oldest := ""
	for name, h := range hs.byName {
		if oldest == "" || h.used < hs.byName[oldest].used {
			oldest = name
		}
	}
	h := hs.byName[oldest]
	hs.metrics.breakers.WithLabelValues(h.label, h.breaker.State().String()).Dec()
	delete(hs.byName, oldest)
}

// do runs request in the host's bulkhead, behind its breaker, under a timeout.
// The bulkhead is outermost: a request that found no place says nothing about
// the host's health.
func (hs *hosts) do(ctx context.Context, h *host, limit time.Duration, request func(context.Context) answer) (answer, error) {
	guarded := failsafe.With[answer](h.bulkhead, h.breaker, timeout.New[answer](limit)).WithContext(ctx)
	return guarded.GetWithExecution(func(e failsafe.Execution[answer]) (answer, error) {
		running := hs.metrics.inFlight.WithLabelValues(h.label)
		running.Inc()
		defer running.Dec()
		return request(e.Context()), nil
	})
}
