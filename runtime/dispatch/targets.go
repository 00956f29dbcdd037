package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Targets are the destinations that this node remembers, in the order of their
// names.
func (d *Dispatcher) Targets() []engine.DestinationState {
	a := d.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	list := make([]engine.DestinationState, 0, len(a.targets))
	for _, t := range a.targets {
		shown := engine.DestinationState{
			Destination: t.to, Breaker: t.breaker.state(now), Failures: t.breaker.failures, Running: t.running, Waiting: t.waiting,
		}
		if shown.Breaker == breakerOpen {
			shown.OpenUntil = a.moment(t.breaker.until)
		}
		if t.queued > 0 {
			shown.WaitsFor = a.why(t)
		}
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b engine.DestinationState) int { return cmp.Compare(a.Target, b.Target) })
	return list
}

// ResetTarget closes the breaker of a destination on this node.
func (d *Dispatcher) ResetTarget(name string) error {
	a := d.admission
	a.mu.Lock()
	t := a.targets[name]
	if t == nil {
		a.mu.Unlock()
		return problem.New(problem.NotFound, "target.unknown", "this node has sent nothing to %q", name).
			WithHint("the names are those of GET /v1/targets; each node has its own")
	}
	t.breaker = breaker{}
	a.mu.Unlock()
	d.Log.Info("circuit breaker is reset", "target", name)
	a.next()
	return nil
}

// load is how many commands are performed, and how many wait.
func (a *admission) load() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running, a.waiting
}

// moment is a time of this process by the database's clock.
func (a *admission) moment(at time.Time) time.Time {
	return a.now().Add(time.Until(at)).Truncate(time.Millisecond)
}

// why says what commands for a destination wait for.
func (a *admission) why(t *target) string {
	switch {
	case t.breaker.state(time.Now()) == breakerOpen:
		return fmt.Sprintf("the circuit breaker of %s, which is open until %s", t.to.Target, a.moment(t.breaker.until).Format(time.RFC3339Nano))
	case t.breaker.probing:
		return fmt.Sprintf("the circuit breaker of %s: one command tries whether it works again", t.to.Target)
	case t.to.Host != "" && a.hosts[t.to.Host] >= a.perHost:
		return fmt.Sprintf("a place at host %s: %d requests are under way", t.to.Host, a.perHost)
	case t.answers >= maxAnswers:
		return fmt.Sprintf("the commits of %d answers of %s", t.answers, t.to.Target)
	case t.running >= a.perTarget:
		return fmt.Sprintf("a place at %s: %d commands are under way", t.to.Target, t.running)
	}
	return fmt.Sprintf("a slot of this node: %d commands are performed at once", a.slots)
}

// WaitsFor says what a command waits for on this node before it is sent; "" =
// it does not wait here.
func (d *Dispatcher) WaitsFor(instance string, position int64) string {
	d.mu.Lock()
	j := d.performing[place{instance, position}]
	var all []*Job
	for ; j != nil; j = j.next {
		all = append(all, j)
	}
	d.mu.Unlock()
	a := d.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range all {
		if j.queued {
			return a.why(j.target)
		}
	}
	return ""
}
