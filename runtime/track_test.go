package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// A command that was given back and came again is performed twice on one node:
// each performance ends by itself, and a withdrawal aborts both.
func TestPerformancesOfOneCommand(t *testing.T) {
	t.Parallel()
	r := &Runtime{performing: map[place]*job{}, dispatch: newDispatcher(Config{Now: time.Now}.withDefaults())}
	aborted := 0
	var jobs []*job
	for i := range 3 {
		j := &job{instance: "i", position: 7}
		if again := r.track(j); again != (i > 0) {
			t.Errorf("performance %d: performed before is %t", i, again)
		}
		if i != 1 {
			r.abortable(j, context.CancelFunc(func() { aborted++ }))
		}
		jobs = append(jobs, j)
	}
	if r.withdrawn("i", []engine.Settled{{Position: 6}, {Position: 7}}); aborted != 2 {
		t.Errorf("%d attempts are aborted, not the 2 under way", aborted)
	}
	r.untrack(jobs[1])
	r.untrack(jobs[2])
	// Two commits of unknown outcome may have claimed one command: each is looked after.
	doubt := &job{instance: "d", position: 1, doubted: true}
	if other := (&job{instance: "d", position: 1, doubted: true}); r.track(doubt) || r.track(other) || r.alone(other) {
		t.Error("a command is taken for performed by one in doubt of it")
	} else if r.untrack(doubt); !r.alone(other) {
		t.Error("a command in doubt is not alone")
	} else {
		r.untrack(other)
	}
	if r.alone(jobs[2]) || !r.alone(jobs[0]) {
		t.Error("the first performance is not the one that is left")
	}
	if n := len(r.lasting()); n != 0 {
		t.Errorf("%d attempts are looked at on their first round", n)
	}
	if list := r.lasting(); len(list) != 1 || list[0] != jobs[0] {
		t.Errorf("%d attempts are looked at on the second round", len(list))
	}
	r.untrack(jobs[0])
	if len(r.performing) != 0 {
		t.Error("something is performed still")
	}
}
