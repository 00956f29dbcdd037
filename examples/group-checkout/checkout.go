// Package checkout is the workflow of workflow.yaml in Go.
package checkout

import "github.com/aqueduct-engine/aqueduct/workflow"

// Group is what an instance knows.
type Group struct {
	Services string         `json:"services"`
	Name     string         `json:"group"`
	Guests   []string       `json:"guests"`
	Open     int            `json:"open,omitzero"` // guests who are still checking out
	Failed   map[int]string `json:"failed"`        // why, by the guest's place in the list
}

// Result is what it gives in the end.
type Result struct {
	Group      string    `json:"group"`
	CheckedOut []string  `json:"checkedOut"`
	Failed     []Refusal `json:"failed"`
	Status     string    `json:"status"`
}

// Refusal is a guest who could not check out.
type Refusal struct {
	Guest  string `json:"guest"`
	Reason string `json:"reason"`
}

// CheckOut closes the account of one guest.
var CheckOut = workflow.HTTP[any]("checkOutGuest")

// Workflow is the definition examples/group-checkout-go.
func Workflow() (*workflow.Definition, error) {
	w := workflow.New[Group]("examples/group-checkout-go", "1.0.0")
	workflow.Start(w, begun, workflow.To(CheckOut))
	workflow.On(w, CheckOut, checkedOut, workflow.To())
	workflow.OnFailure(w, CheckOut, refused, workflow.To())
	return w.Definition()
}

func begun(_ Group, in workflow.Input[Group]) (Group, workflow.Do) {
	g := in.Value
	if len(g.Guests) == 0 {
		return g, workflow.Do{workflow.Complete(g.result())}
	}
	g.Open, g.Failed = len(g.Guests), map[int]string{}
	var do workflow.Do
	for i, guest := range g.Guests {
		do = append(do, CheckOut.With(workflow.Request{Method: "POST", URI: g.Services + "/checkout/" + guest}).Of(i))
	}
	return g, do
}

func checkedOut(g Group, _ workflow.Input[any]) (Group, workflow.Do) { return g.less() }

func refused(g Group, in workflow.Input[workflow.Failure]) (Group, workflow.Do) {
	g.Failed[in.Item] = in.Value.Title
	return g.less()
}

// less is the group when one more guest is done.
func (g Group) less() (Group, workflow.Do) {
	if g.Open--; g.Open > 0 {
		return g, nil
	}
	return g, workflow.Do{workflow.Complete(g.result())}
}

func (g Group) result() Result {
	r := Result{Group: g.Name, Status: "completed"}
	for i, guest := range g.Guests {
		if why, failed := g.Failed[i]; failed {
			r.Failed, r.Status = append(r.Failed, Refusal{guest, why}), "failed"
		} else {
			r.CheckedOut = append(r.CheckedOut, guest)
		}
	}
	return r
}
