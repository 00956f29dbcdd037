package aqueducttest

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Advance lets time pass. Timers, timeouts and late answers that are due until
// then happen, each at its own moment, and what follows from them as well.
func (w *Workflow) Advance(d time.Duration) *Workflow {
	w.t.Helper()
	w.driver.started()
	until := w.now.Add(d)
	for {
		i := w.driver.earliest()
		if i < 0 || w.due[i].at.After(until) {
			break
		}
		w.driver.fire(i)
	}
	w.now = until
	return w
}

// NextTimer skips to the next moment at which something happens by itself, a
// timer, a timeout, a late answer or another attempt, and returns how far that was. It fails
// the test when nothing would.
func (w *Workflow) NextTimer() time.Duration {
	w.t.Helper()
	w.driver.started()
	i := w.driver.earliest()
	if i < 0 {
		w.t.Fatalf("aqueducttest: no timer is set; the instance is %s", w.driver.where())
		return 0
	}
	d := w.due[i].at.Sub(w.now)
	w.driver.fire(i)
	return max(d, 0)
}

// earliest finds what is due first, of what somebody still waits for: a timer
// whose wait is gone changes nothing.
func (w driver) earliest() int {
	best := -1
	for i, p := range w.due {
		if _, waits := w.snap.Wait(p.token); !waits {
			continue
		}
		if best < 0 || p.at.Before(w.due[best].at) {
			best = i
		}
	}
	return best
}

func (w driver) fire(i int) {
	w.t.Helper()
	p := w.due[i]
	w.due = append(w.due[:i:i], w.due[i+1:]...)
	if p.at.After(w.now) {
		w.now = p.at
	}
	p.do()
	w.run()
}

// WaitsUntil returns when the wait of a task is due, in virtual time. It fails
// the test when the task has no such wait.
func (w *Workflow) WaitsUntil(task string) time.Time {
	w.t.Helper()
	for _, wait := range w.snap.Waits {
		if taskName(wait.Pointer) == task && !wait.Until.IsZero() {
			return wait.Until
		}
	}
	w.t.Fatalf("aqueducttest: %s waits for no moment; the instance is %s", task, w.driver.where())
	return time.Time{}
}

// mere reports whether a wait is only a deadline or a due date beside another
// wait.
func mere(w snapshot.Wait) bool {
	return w.Kind == snapshot.WaitTimeout || w.Kind == snapshot.WaitDue
}
