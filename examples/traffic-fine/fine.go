// Package fine is the workflow of workflow.yaml in Go.
package fine

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/workflow"
)

// Fine is what an instance knows, and what it gives in the end.
type Fine struct {
	PoliceReport string          `json:"policeReport"`
	SystemNumber string          `json:"systemNumber,omitempty"`
	ManualCode   string          `json:"manualCode,omitempty"`
	Fine         json.RawMessage `json:"fine,omitempty"`

	Services string `json:"services,omitempty"`
}

// What the outside says.
type (
	Number struct {
		SystemNumber string `json:"systemNumber"`
	}
	Code struct {
		ManualIdentificationCode string `json:"manualIdentificationCode"`
	}
)

// The steps.
var (
	Generate = workflow.HTTP[Number]("generateSystemNumber")
	Await    = workflow.Event[Code]("awaitManualCode", "org.example.fines.manual-code-generated", "data.policeReport")
	Issue    = workflow.HTTP[json.RawMessage]("issueFine")
)

// Workflow is the definition examples/traffic-fine-go.
func Workflow() (*workflow.Definition, error) {
	w := workflow.New[Fine]("examples/traffic-fine-go", "1.0.0")
	workflow.Start(w, begun, workflow.To(Generate))
	workflow.On(w, Generate, numbered, workflow.To(Await))
	workflow.On(w, Await, coded, workflow.To(Issue))
	workflow.On(w, Issue, issued, workflow.To())
	return w.Definition()
}

func begun(_ Fine, in workflow.Input[Fine]) (Fine, workflow.Do) {
	f := in.Value
	body := map[string]string{"policeReport": f.PoliceReport}
	return f, workflow.Do{Generate.With(workflow.Request{Method: "POST", URI: f.Services + "/fines/system-number", Body: body})}
}

func numbered(f Fine, in workflow.Input[Number]) (Fine, workflow.Do) {
	f.SystemNumber = in.Value.SystemNumber
	return f, workflow.Do{Await.Listen(f.PoliceReport)}
}

func coded(f Fine, in workflow.Input[Code]) (Fine, workflow.Do) {
	f.ManualCode = in.Value.ManualIdentificationCode
	body := map[string]string{"policeReport": f.PoliceReport, "systemNumber": f.SystemNumber, "manualCode": f.ManualCode}
	return f, workflow.Do{Issue.With(workflow.Request{Method: "POST", URI: f.Services + "/fines/issue", Body: body})}
}

func issued(f Fine, in workflow.Input[json.RawMessage]) (Fine, workflow.Do) {
	f.Fine, f.Services = in.Value, ""
	return f, workflow.Do{workflow.Complete(f)}
}
