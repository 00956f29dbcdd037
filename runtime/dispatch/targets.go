package dispatch

import "github.com/aqueduct-engine/aqueduct/runtime/admission"

// Targets are the destinations that this node remembers, in the order of their
// names.
func (d *Dispatcher) Targets() []admission.State { return d.admission.States() }

// ResetTarget closes the breaker of a destination on this node.
func (d *Dispatcher) ResetTarget(name string) error {
	if err := d.admission.Reset(name); err != nil {
		return err
	}
	d.Log.Info("circuit breaker is reset", "target", name)
	return nil
}

// WaitsFor says what a command waits for on this node before it is sent; "" =
// it does not wait here.
func (d *Dispatcher) WaitsFor(instance string, position int64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for j := d.performing[place{instance, position}]; j != nil; j = j.next {
		if why := d.admission.WaitsFor(&j.Ticket); why != "" {
			return why
		}
	}
	return ""
}

// Busy is how many commands are performed, and how many wait.
func (d *Dispatcher) Busy() (running, waiting int) { return d.admission.Load() }
