package runtime_test

import (
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// ringing sets two timers for one moment, and counts those that have fired.
func ringing(t *testing.T, version string, upcasts ...func(*workflow.Workflow[first])) *workflow.Definition {
	t.Helper()
	chime := workflow.Timer("chime")
	w := workflow.New[first]("t/ringing", version)
	workflow.Start(w, func(s first, _ workflow.Input[int]) (first, workflow.Do) {
		return s, workflow.Do{chime.After(3 * time.Second).Of(1), chime.After(3 * time.Second).Of(2)}
	}, workflow.To(chime))
	workflow.On(w, chime, func(s first, _ workflow.Input[workflow.Fired]) (first, workflow.Do) {
		if s.Cents++; s.Cents < 2 {
			return s, nil
		}
		return s, workflow.Do{workflow.Complete(version)}
	}, workflow.To())
	for _, u := range upcasts {
		u(w)
	}
	d, err := w.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Timers of one moment fire after a deploy, too: the first takes the instance to the newer version, and
// the others go on from there.
func TestTimersOfOneMomentOutliveADeploy(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		one := coded(t, place, ringing(t, "1.0.0"))
		one.begin(t, "a", "t/ringing", 1)
		if err := one.close(); err != nil {
			t.Fatal(err)
		}
		two := coded(t, place, ringing(t, "2.0.0", func(w *workflow.Workflow[first]) {
			workflow.Upcast(w, "1.0.0", "2.0.0", func(old first) (first, error) { return old, nil })
		}))
		if got := two.output(t, "a"); got != `"2.0.0"` {
			t.Errorf("output %s", got)
		}
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
	})
}
