package oracle

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// insideCalls are more calls than a change with a step makes before its commit.
const insideCalls = 12

// A change with steps that no message asks for, as a start is, has no delivery to lose:
// one whose connection ends before the commit is made again on the next, once.
func TestAChangeWithStepsIsMadeAgainOnAnotherConnection(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	again := 0
	for _, action := range []string{"cut", "cut_after", "error_after=3113"} {
		for k := 1; k <= insideCalls; k++ {
			id := fmt.Sprintf("%s-%d", action, k)
			c := starting(id)
			arm(t, s, action, k)
			made := 0
			err := s.Commit(t.Context(), store.Change{Snapshot: c.Snapshot, Over: c.Over, Inside: func(do store.Perform) (store.Change, error) {
				made++
				if _, _, err := do("sql/none", []byte("{}")); problem.CodeOf(err) != "step.unknown" {
					t.Errorf("%s: the step that nobody has listed: %v", id, err)
				}
				return c, nil
			}})
			if made > 1 {
				again++
			}
			if err != nil && !errors.Is(err, store.ErrUnknown) {
				t.Errorf("%s: %v", id, err)
			}
			got, errLoad := s.Load(t.Context(), id)
			if err == nil && (errLoad != nil || got.Version != 1) {
				t.Errorf("%s: version %d, %v", id, got.Version, errLoad)
			}
		}
	}
	if again == 0 {
		t.Error("no change was made a second time: the faults came at no call of theirs")
	}
}

// Where no connection is to be had for it, that is what its caller is told.
func TestAChangeWithStepsThatNoConnectionTakesIsUnreachable(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	c := starting("a")
	err := s.Commit(t.Context(), store.Change{Snapshot: c.Snapshot, Over: c.Over, Inside: func(store.Perform) (store.Change, error) {
		if _, err := d.Kill(t.Context()); err != nil { // every attempt loses its connection
			t.Error(err)
		}
		return c, nil
	}})
	if errors.Is(err, store.ErrLost) || problem.CodeOf(err) != "store.unreachable" || problem.KindOf(err) != problem.Unavailable {
		t.Errorf("%v", err)
	}
}
