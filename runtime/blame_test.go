package runtime

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/pump"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
)

// TestWhoIsToBlame: problems of tasks, lifecycles and starts are their sender's,
// unless they are our own; what passes, and what was overtaken, is told apart.
func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind problem.Kind
		code string
		want pump.Blame
	}{
		{problem.Denied, "task.not-yours", pump.Blame{Sender: true}},
		{problem.Conflict, "task.completed", pump.Blame{Sender: true}},
		{problem.Unavailable, "task.contended", pump.Blame{}},
		{problem.Internal, "task.form", pump.Blame{}},
		{problem.Conflict, "lifecycle.refused", pump.Blame{Sender: true, Overtaken: true}},
		{problem.Conflict, "lifecycle.in-transition", pump.Blame{Sender: true, Passing: true}},
		{problem.Conflict, "lifecycle.held", pump.Blame{Sender: true, Passing: true}},
		{problem.Invalid, "lifecycle.unknown-event", pump.Blame{Sender: true}},
		{problem.Conflict, service.CodeTaken, pump.Blame{Sender: true}},
		{problem.Invalid, service.CodeReserved, pump.Blame{Sender: true}},
		{problem.NotFound, "instance.unknown", pump.Blame{}},
		{problem.Internal, "message.panic", pump.Blame{}},
	} {
		if got := blame(problem.New(c.kind, c.code, "x")); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.kind, c.code, got, c.want)
		}
	}
}
