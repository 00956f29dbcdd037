package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// sizeDoc is five calls and a person, with a kilobyte of data.
var sizeDoc = doc("size", `
  - a: {call: effect, with: {n: 1}, output: {as: '${ $input }'}}
  - b: {call: effect, with: {n: 2}, output: {as: '${ $input }'}}
  - c: {call: effect, with: {n: 3}, output: {as: '${ $input }'}}
  - d: {call: effect, with: {n: 4}, output: {as: '${ $input }'}}
  - e: {call: effect, with: {n: 5}, output: {as: '${ $input }'}}
  - approve: {call: humanTask, with: {title: Approve the order, candidateGroups: [clerks]}}
`)

// What docs/oracle.md estimates is what rows of a workflow take in Oracle's blocks,
// by its rules for the length of rows and index entries ("Data Blocks, Extents, and
// Segments" and "Indexes and Index-Organized Tables" in Database Concepts), a fifth
// more or less.
func TestRowsTakeWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	const instances = 20
	place := testdb.OnOracle(t)()
	n := start(t, place, func(context.Context, json.RawMessage) (any, error) { return map[string]bool{"ok": true}, nil }, sizeDoc)
	sizes := func() map[string]int {
		sizes, err := testdb.Sizes(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		return sizes
	}
	ids := make([]string, instances)
	for i := range ids {
		ids[i] = fmt.Sprintf("0195c2aa-4b1e-7c3a-9f10-%012d", i)
		n.begin(t, ids[i], "t/size", map[string]string{"text": strings.Repeat("x", 1000)})
	}
	var err error
	var tasks backend.Page[projections.Task]
	eventually(t, "each instance asks", func() bool {
		tasks, err = n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{User: "ann", Groups: []string{"clerks"}, Limit: instances})
		return err == nil && len(tasks.Items) == instances
	})
	open := sizes()
	for _, task := range tasks.Items {
		if _, err := n.rt.ClaimTask(t.Context(), task.ID, "ann", []string{"clerks"}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.rt.CompleteTask(t.Context(), task.ID, "ann", []string{"clerks"}, "", json.RawMessage(`{"ok":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		n.until(t, id, status("completed"))
	}
	closed := sizes()
	page, err := os.ReadFile("../docs/oracle.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range slices.Sorted(maps.Keys(closed)) {
		a, b := open[table]/instances, closed[table]/instances
		t.Logf("report: %s: %d bytes of an instance that waits, %d of one that has ended", table, a, b)
		row := regexp.MustCompile("(?m)^\\| `" + table + "` \\| ([\\d,]+) \\| ([\\d,]+) \\|").FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("docs/oracle.md does not say what rows of %s take", table)
			continue
		}
		for i, want := range []int{a, b} {
			said, err := strconv.Atoi(strings.ReplaceAll(row[1+i], ",", ""))
			if err != nil || 10*said < 8*want-100 || 10*said > 12*want+100 {
				t.Errorf("docs/oracle.md says %s for %s, it is %d", row[1+i], table, want)
			}
		}
	}
}
