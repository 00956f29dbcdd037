package turn

import (
	"errors"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// What a store refuses for good is the author's output; what is its own trouble is not.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		problem.New(problem.Invalid, "store.value", "no value"):             true,
		problem.New(problem.TooLarge, "store.too-big", "too big"):           true,
		problem.New(problem.TooLarge, "limit.stream", "full"):               true,
		problem.New(problem.Internal, "store.value", "ours"):                false,
		problem.New(problem.Unavailable, "store.full", "disk"):              false,
		problem.New(problem.Conflict, "task.closed", "closed"):              false,
		errors.New("nobody has thought of it"):                              false,
		problem.New(problem.Internal, "instance.unwritable", "not a fault"): false,
	} {
		if got := unwritable(err); IsOutput(got) != want || !errors.Is(got, err) {
			t.Errorf("%v: output %t, want %t", err, IsOutput(got), want)
		}
	}
	if unwritable(nil) != nil || Output(nil) != nil || IsOutput(nil) {
		t.Error("no error is one")
	}
}
