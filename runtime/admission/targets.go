package admission

import (
	"fmt"
	"sort"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// State is what is known of a destination.
type State struct {
	Destination
	Breaker   string    // Closed, Open or HalfOpen
	Failures  int       // in a row
	OpenUntil time.Time // of an open breaker
	Running   int       // commands under way
	Waiting   int       // commands that wait
	WaitsFor  string    // what those wait for; "" = none waits
}

// States are the destinations that are remembered, in the order of their names.
func (a *Admission[J]) States() []State {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	list := make([]State, 0, len(a.targets.known))
	for _, t := range a.targets.known {
		shown := State{
			Destination: t.to, Breaker: t.breaker.state(now), Failures: t.breaker.failures, Running: t.running, Waiting: t.waiting,
		}
		if shown.Breaker == breakerOpen {
			shown.OpenUntil = moment(a.Now(), t.breaker.until)
		}
		if t.queued > 0 {
			shown.WaitsFor = a.why(t)
		}
		list = append(list, shown)
	}
	sort.Slice(list, func(a, b int) bool { return list[a].Target < list[b].Target })
	return list
}

// Reset closes the breaker of a destination. The problem is target.unknown.
func (a *Admission[J]) Reset(name string) error {
	a.mu.Lock()
	t := a.targets.known[name]
	if t == nil {
		a.mu.Unlock()
		return problem.New(problem.NotFound, "target.unknown", "this node has sent nothing to %q", name).
			WithHint("the names are those of GET /v1/targets; each node has its own")
	}
	t.breaker = breaker{}
	a.mu.Unlock()
	a.next()
	return nil
}

// Load is how many commands are performed, and how many wait.
func (a *Admission[J]) Load() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running, a.room.waiting
}

// why says what commands for a destination wait for.
func (a *Admission[J]) why(t *target[J]) string {
	switch {
	case t.breaker.state(time.Now()) == breakerOpen:
		return fmt.Sprintf("the circuit breaker of %s, which is open until %s", t.to.Target, moment(a.Now(), t.breaker.until).Format(time.RFC3339Nano))
	case t.breaker.probing:
		return fmt.Sprintf("the circuit breaker of %s: one command tries whether it works again", t.to.Target)
	case t.to.Host != "" && a.hosts[t.to.Host] >= a.PerHost:
		return fmt.Sprintf("a place at host %s: %d requests are under way", t.to.Host, a.PerHost)
	case t.answers >= maxAnswers:
		return fmt.Sprintf("the commits of %d answers of %s", t.answers, t.to.Target)
	case t.running >= a.perTarget:
		return fmt.Sprintf("a place at %s: %d commands are under way", t.to.Target, t.running)
	}
	return fmt.Sprintf("a slot of this node: %d commands are performed at once", a.Slots)
}

// WaitsFor says what a command waits for before it is sent; "" = it does not
// wait here.
func (a *Admission[J]) WaitsFor(j *Ticket[J]) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !j.queued {
		return ""
	}
	return a.why(j.target)
}

// moment is a time of this process by the clock that says now.
func moment(now, at time.Time) time.Time {
	return now.Add(time.Until(at)).Truncate(time.Millisecond)
}
