package fine_test

import (
	"encoding/json"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	fine "github.com/aqueduct-engine/aqueduct/examples/traffic-fine"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// TestEachDecision: given a state, when something happens, then a state and effects.
func TestEachDecision(t *testing.T) {
	t.Parallel()
	def, err := fine.Workflow()
	if err != nil {
		t.Fatal(err)
	}
	begun := fine.Fine{PoliceReport: "PR-1", Services: "http://s.example"}
	numbered := begun
	numbered.SystemNumber = "SN-1"
	coded := numbered
	coded.ManualCode = "MC-7"
	issued := coded
	issued.Fine, issued.Services = json.RawMessage(`{"id":1}`), ""
	aqueducttest.Given(t, def, begun).When(fine.Generate, fine.Number{SystemNumber: "SN-1"}).Then(numbered, fine.Await.Listen("PR-1"))
	aqueducttest.Given(t, def, coded).When(fine.Issue, issued.Fine).Then(issued, workflow.Complete(issued))
}

// TestAFine runs an instance from its start to its end.
func TestAFine(t *testing.T) {
	t.Parallel()
	def, err := fine.Workflow()
	if err != nil {
		t.Fatal(err)
	}
	w := aqueducttest.Definition(t, def)
	w.OnCall("POST http://s.example/fines/system-number").Return(`{"systemNumber": "SN-1"}`)
	w.OnCall("POST http://s.example/fines/issue").Return(`{"id": 1}`)
	w.Start(`{"services": "http://s.example", "policeReport": "PR-1"}`)
	const code = "org.example.fines.manual-code-generated"
	if w.ListensFor(code, `{"policeReport": "PR-2", "manualIdentificationCode": "MC-8"}`) {
		t.Error("it takes the code of another report")
	}
	w.Event(code, `{"policeReport": "PR-1", "manualIdentificationCode": "MC-7"}`)
	w.Completed(`{"policeReport": "PR-1", "systemNumber": "SN-1", "manualCode": "MC-7", "fine": {"id": 1}}`)
}
