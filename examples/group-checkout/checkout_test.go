package checkout_test

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	checkout "github.com/aqueduct-engine/aqueduct/examples/group-checkout"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

func TestTheLastGuestEndsIt(t *testing.T) {
	t.Parallel()
	def, err := checkout.Workflow()
	if err != nil {
		t.Fatal(err)
	}
	g := checkout.Group{Guests: []string{"ada", "grace"}, Open: 2, Failed: map[int]string{}}
	one := g
	one.Open, one.Failed = 1, map[int]string{1: "no"}
	aqueducttest.Given(t, def, g).
		WhenAll(workflow.Happening{Step: checkout.CheckOut, Item: 1, Failed: true, Value: []byte(`{"title":"no"}`)}).
		Then(one)
	last := one
	last.Open = 0
	aqueducttest.Given(t, def, one).When(checkout.CheckOut, nil).
		Then(last, workflow.Complete(checkout.Result{CheckedOut: []string{"ada"}, Failed: []checkout.Refusal{{Guest: "grace", Reason: "no"}}, Status: "failed"}))
}
