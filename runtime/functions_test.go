package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
)

// TestAFunctionThatNoNodeHasIsSaid: from the first second, by each node, until one has
// it; what another node has is none.
func TestAFunctionThatNoNodeHasIsSaid(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		paid := func(context.Context, json.RawMessage) (any, error) { return "paid", nil }
		one := start(t, place, paid, doc("pays", "  - own: {call: effect, with: {}}\n  - pay: {call: payCard, with: {}}\n"))
		unserved := func() int { return one.counted(t, "aqueduct_commands_unserved")[""] }
		if got := unserved(); got != 0 {
			t.Errorf("%d commands before there is one", got)
		}
		one.begin(t, "i", "t/pays", nil)
		eventually(t, "it is counted", func() bool { return unserved() == 1 })
		if !one.rt.Unserved(t.Context(), "payCard") || one.rt.Unserved(t.Context(), "effect") || one.rt.Unserved(t.Context(), "http") {
			t.Error("it is not told what no node has")
		}
		two, err := openSet(t.Context(), place, func(c *runtime.Config) {
			c.Performer.(*activity.Performer).Register("payCard", paid)
		}, paid)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is served", func() bool { return !one.rt.Unserved(t.Context(), "payCard") })
		one.until(t, "i", status("completed"))
		if got := unserved(); got != 0 {
			t.Errorf("%d commands when it is done", got)
		}
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nobody has it any more", func() bool { return one.rt.Unserved(t.Context(), "payCard") })
	})
}
