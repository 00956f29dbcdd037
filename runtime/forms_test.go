package runtime_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

const formDoc = `
document: {dsl: '1.0.3', namespace: t, name: form, version: '1.0.0'}
do:
  - ask:
      call: humanTask
      with:
        candidateUsers: [ann]
        form:
          schema: {type: object, required: [note], properties: {note: {type: string, maxLength: '${ .most }'}}}
`

// TestAnswersFitTheirForm: who answers wrongly is told where, and answers
// again; the workflow sees only what fits.
func TestAnswersFitTheirForm(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, formDoc)
		n.begin(t, "i", "t/form", map[string]any{"most": 3})
		before := n.until(t, "i", status("waiting"))
		page, err := n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{User: "ann"})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("tasks %v, %v", page, err)
		}
		id := page.Items[0].ID
		if _, err := n.rt.ClaimTask(t.Context(), id, "ann", nil); err != nil {
			t.Fatal(err)
		}
		for data, pointer := range map[string]string{`{"note": "long"}`: "/data/note", `{}`: "/data", `null`: "/data", ``: "/data"} {
			_, err := n.rt.CompleteTask(t.Context(), id, "ann", nil, "", json.RawMessage(data))
			var p *problem.Error
			if !errors.As(err, &p) || p.Code != "task.invalid-data" || p.Kind != problem.Invalid || len(p.Where) != 1 || p.Where[0].Pointer != pointer {
				t.Errorf("%s: %v", data, err)
			}
		}
		if row, err := n.store.Instances.Instance(t.Context(), "i"); err != nil || row.Status != "waiting" || row.Version != before.Version {
			t.Errorf("touched: %+v, %v", row, err)
		}
		if _, err := n.rt.CompleteTask(t.Context(), id, "ann", nil, "", json.RawMessage(`{"note": "yes"}`)); err != nil {
			t.Fatal(err)
		}
		n.until(t, "i", status("completed"))
	})
}

// TestNobodyIsAskedWithABrokenForm: a form that is made at run time and is
// none faults the task when it would be asked.
func TestNobodyIsAskedWithABrokenForm(t *testing.T) {
	t.Parallel()
	n := start(t, testdb.OnFile(t)(), nil, formDoc)
	n.begin(t, "i", "t/form", map[string]any{"most": "many"})
	row := n.until(t, "i", status("faulted"))
	if row.ErrorType != "https://open-workflow-specification.org/spec/1.0.0/errors/validation" {
		t.Errorf("%+v", row)
	}
}
