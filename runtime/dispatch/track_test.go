package dispatch

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// A command that was given back and came again is performed twice on one node:
// each performance ends by itself, and a withdrawal aborts both.
func TestPerformancesOfOneCommand(t *testing.T) {
	t.Parallel()
	d := New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler), Activities: 256})
	aborted := 0
	var jobs []*Job
	for i := range 3 {
		j := newJob("i", 7, engine.Command{})
		if again := d.performing.track(j); again != (i > 0) {
			t.Errorf("performance %d: performed before is %t", i, again)
		}
		if i != 1 {
			d.performing.abortable(j, context.CancelFunc(func() { aborted++ }))
		}
		jobs = append(jobs, j)
	}
	if d.Withdrawn("i", []engine.Settled{{Position: 6}, {Position: 7}}); aborted != 2 {
		t.Errorf("%d attempts are aborted, not the 2 under way", aborted)
	}
	d.performing.untrack(jobs[1])
	d.performing.untrack(jobs[2])
	// Two commits of unknown outcome may have claimed one command: each is looked after.
	first, other := newJob("d", 1, engine.Command{}), newJob("d", 1, engine.Command{})
	first.unresolved, other.unresolved = true, true
	if d.performing.track(first) || d.performing.track(other) || d.performing.alone(other) {
		t.Error("a command is taken for performed by an unresolved job")
	} else if d.performing.untrack(first); !d.performing.alone(other) {
		t.Error("an unresolved job is not alone")
	} else {
		d.performing.untrack(other)
	}
	if d.performing.alone(jobs[2]) || !d.performing.alone(jobs[0]) {
		t.Error("the first performance is not the one that is left")
	}
	if n := len(d.performing.lasting()); n != 0 {
		t.Errorf("%d attempts are looked at on their first round", n)
	}
	if list := d.performing.lasting(); len(list) != 1 || list[0] != jobs[0] {
		t.Errorf("%d attempts are looked at on the second round", len(list))
	}
	d.performing.untrack(jobs[0])
	if len(d.performing.jobs) != 0 {
		t.Error("something is performed still")
	}
}
