package runtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// stepsDocument has steps in every kind of turn: of a start, of a result, of a timer,
// of a person and of an event, with one that fails among them.
const stepsDocument = `
document: {dsl: '1.0.3', namespace: t, name: crash, version: '1.0.0'}
do:
  - begun: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: begun}}, output: {as: '${ $input }'}}
  - took: {call: sql, with: {statement: take, args: {item: pen, qty: 2}}, output: {as: '${ $input }'}}
  - charge: {call: effect, with: {do: charge}, output: {as: '${ $input }'}}
  - charged: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: charged}}, output: {as: '${ $input }'}}
  - try:
      try:
        - over: {call: sql, with: {statement: take, args: {item: pen, qty: 99}}}
      catch:
        do:
          - caught: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: caught}}, output: {as: '{}'}}
  - pause: {wait: PT0.02S}
  - rested: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: rested}}, output: {as: '${ $input }'}}
  - approve: {call: humanTask, with: {title: Approve, candidateUsers: [ann]}, output: {as: '${ $input }'}}
  - approved: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: approved}}, output: {as: '${ $input }'}}
  - each:
      for: {each: x, in: '[1, 2]'}
      do:
        - looped: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: looped}}, output: {as: '${ $input }'}}
  - paid: {listen: {to: {one: {with: {type: paid}}}}, output: {as: '${ $input }'}}
  - ended: {call: sql, with: {statement: look, args: {item: pen}}, output: {as: '${ .rows[0].LEFT_OVER }'}}
`

// stepsChild is the node of TestCrashPointsOfSteps.
func stepsChild() int {
	set, err := shopSteps()
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return crashChildOn(drive, set, outside(os.Getenv("AQUEDUCT_TEST_URL")), nil, stepsDocument)
}

// stepsDone are the steps that the instance has done, by what they have noted, as its
// stream says and as the application's own table says.
func stepsDone(t *testing.T, s *shop) (stream, table string, took int) {
	t.Helper()
	st, err := testdb.Open(t.Context(), s.place)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	entries, err := st.Streams.Stream(t.Context(), "i", 0, projections.MaxLimit)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	results := map[int64]bool{}
	for _, e := range entries {
		var m engine.Meta
		if len(e.Metadata) > 0 {
			if err := json.Unmarshal(e.Metadata, &m); err != nil {
				t.Fatal(err)
			}
		}
		results[m.Command] = results[m.Command] || m.Command != 0 && strings.HasPrefix(string(e.Data), `{"output":`)
	}
	var noted []string
	for _, e := range entries {
		var c engine.Command
		if e.Kind != string(engine.KindCommand) || !results[e.Position] {
			continue
		}
		var in struct{ Args struct{ What string } }
		if err := errors.Join(json.Unmarshal(e.Data, &c), json.Unmarshal(c.Input, &in)); err != nil {
			t.Fatal(err)
		}
		switch c.Target {
		case "sql/note":
			noted = append(noted, in.Args.What)
		case "sql/take":
			took += 2
		}
	}
	return strings.Join(noted, " "), strings.Join(s.texts("select WHAT from SHOP_DONE order by NO"), " "), took
}

// TestCrashPointsOfSteps stops a real process just before and just after each of its
// durable operations and of its steps, which are inside: the rows of the application and
// the instance agree at every point, and when another node has finished all was done once.
func TestCrashPointsOfSteps(t *testing.T) {
	t.Parallel()
	stepsCrashPoints(t, testdb.OnFile(t), 1, 1)
}

// TestCrashPointsOfStepsOnOracle does the same on the Oracle store: for one operation
// in four, others in every run, and for each with AQUEDUCT_FAULTS=all.
func TestCrashPointsOfStepsOnOracle(t *testing.T) {
	t.Parallel()
	first, step := 1+rand.Int64N(4), int64(4)
	if os.Getenv("AQUEDUCT_FAULTS") == "all" {
		first, step = 1, 1
	}
	stepsCrashPoints(t, testdb.OnOracle(t), first, step)
}

func stepsCrashPoints(t *testing.T, fresh func() string, first, step int64) {
	var operations int64
	const all = "begun charged caught rested approved looped looped"
	run := func(k int64, after string) {
		var s *shop
		got := scenario(t, func() string { s = newShop(t, fresh()); return s.place }, func(file, url string) int64 {
			if k > 0 {
				killed(t, "steps", file, url, k, after)
				stream, table, took := stepsDone(t, s)
				if stream != table || s.left() != 10-took {
					t.Errorf("operation %d, after=%q: the instance has done %q, the table says %q; it took %d, %d are left", k, after, stream, table, took, s.left())
				}
			}
			return runToEnd(t, "steps", file, url)
		})
		if k == 0 {
			operations = got.operations
		}
		stream, table, took := stepsDone(t, s)
		if stream != all || table != all || took != 2 || s.left() != 8 || !strings.Contains(got.state, "completed") || !strings.HasSuffix(got.state, "output 8") {
			t.Errorf("operation %d, after=%q: done %q, in the table %q, took %d, %d left: %s", k, after, stream, table, took, s.left(), got.state)
		}
	}
	run(0, "")
	if operations < 15 {
		t.Fatalf("the undisturbed run has %d operations", operations)
	}
	for k := first; k <= operations; k += step {
		run(k, "")
		run(k, "1")
	}
	t.Logf("%d operations; from %d on, every %d was stopped before and after", operations, first, step)
}
