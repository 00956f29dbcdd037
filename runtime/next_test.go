package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
)

// Branches that have no room in one turn go on by few messages, also when those come
// twice, and each does its work once.
func TestBranchesWithoutRoomInATurnGoOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		const branches = 300
		var doc strings.Builder
		doc.WriteString("document: {dsl: '1.0.3', namespace: t, name: wide, version: 1.0.0}\ndo:\n  - all:\n      fork:\n        branches:\n")
		for i := range branches {
			fmt.Fprintf(&doc, "          - b%d: {do: [{one: {set: {n: %d}}}]}\n", i, i)
		}
		place := fresh()
		n := startSet(t, place, func(c *runtime.Config) { c.Limits = engine.Limits{Steps: 40} }, nil, doc.String())
		n.begin(t, "w", "t/wide", map[string]any{})
		got := n.until(t, "w", func(i projections.Instance) bool {
			if err := testdb.Verify(t.Context(), place); err != nil { // each that waits has its message
				t.Fatal(err)
			}
			return i.Status == "completed"
		})
		if got.ErrorType != "" {
			t.Error(got.ErrorType)
		}
		n.quiet(t)
	})
}
