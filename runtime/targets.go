package runtime

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
func (r *Runtime) Targets() []engine.DestinationState {
	d := r.dispatch
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	list := make([]engine.DestinationState, 0, len(d.targets))
	for _, t := range d.targets {
		shown := engine.DestinationState{
			Destination: t.to, Breaker: t.breaker.state(now), Failures: t.breaker.failures, Running: t.running, Waiting: t.waiting,
		}
		if shown.Breaker == breakerOpen {
			shown.OpenUntil = d.moment(t.breaker.until)
		}
		if t.queued > 0 {
			shown.WaitsFor = d.why(t)
		}
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b engine.DestinationState) int { return cmp.Compare(a.Target, b.Target) })
	return list
}

// ResetTarget closes the breaker of a destination on this node.
func (r *Runtime) ResetTarget(name string) error {
	d := r.dispatch
	d.mu.Lock()
	t := d.targets[name]
	if t == nil {
		d.mu.Unlock()
		return problem.New(problem.NotFound, "target.unknown", "this node has sent nothing to %q", name).
			WithHint("the names are those of GET /v1/targets; each node has its own")
	}
	t.breaker = breaker{}
	d.mu.Unlock()
	r.Log.Info("circuit breaker is reset", "target", name)
	d.next()
	return nil
}

// load is how many commands are performed, and how many wait.
func (d *dispatcher) load() (running, waiting int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running, d.waiting
}

// moment is a time of this process by the database's clock.
func (d *dispatcher) moment(at time.Time) time.Time {
	return d.now().Add(time.Until(at)).Truncate(time.Millisecond)
}

// why says what commands for a destination wait for.
func (d *dispatcher) why(t *target) string {
	switch {
	case t.breaker.state(time.Now()) == breakerOpen:
		return fmt.Sprintf("the circuit breaker of %s, which is open until %s", t.to.Target, d.moment(t.breaker.until).Format(time.RFC3339Nano))
	case t.breaker.probing:
		return fmt.Sprintf("the circuit breaker of %s: one command tries whether it works again", t.to.Target)
	case t.to.Host != "" && d.hosts[t.to.Host] >= d.perHost:
		return fmt.Sprintf("a place at host %s: %d requests are under way", t.to.Host, d.perHost)
	case t.running >= d.perTarget:
		return fmt.Sprintf("a place at %s: %d commands are under way", t.to.Target, t.running)
	}
	return fmt.Sprintf("a slot of this node: %d commands are performed at once", d.slots)
}

// WaitsFor says what a command waits for on this node before it is sent; "" =
// it does not wait here.
func (r *Runtime) WaitsFor(instance string, position int64) string {
	r.mu.Lock()
	j := r.performing[place{instance, position}]
	var all []*job
	for ; j != nil; j = j.next {
		all = append(all, j)
	}
	r.mu.Unlock()
	d := r.dispatch
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range all {
		if j.queued {
			return d.why(j.target)
		}
	}
	return ""
}
