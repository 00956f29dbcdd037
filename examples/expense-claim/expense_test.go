package expense_test

import (
	"os"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/definition"
)

// claim is a claim of ann's, with the policy or without.
func claim(t *testing.T, policed bool) *aqueducttest.Workflow {
	t.Helper()
	var given []definition.Resource
	if policed {
		policy, err := os.ReadFile("policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, definition.Resource{URI: definition.PolicyPrefix + "examples/expense-claim@1.0.0", Content: policy})
	}
	w := aqueducttest.File(t, "lifecycle.yaml", given...)
	w.Groups = map[string][]string{"max": {"managers"}, "olga": {"deputies"}, "carl": {"cashiers"}, "ann": {"managers"}}
	w.OnCall("POST http://127.0.0.1:9090/ledger").Return(nil)
	return w.Start(nil).TriggerAs("ann", "submit", `{"amount": 80}`)
}

func state(t *testing.T, w *aqueducttest.Workflow, want string) {
	t.Helper()
	if got := w.State(); got != want {
		t.Errorf("state %s, want %s", got, want)
	}
}

func TestManagersApproveAndCashiersPay(t *testing.T) {
	t.Parallel()
	w := claim(t, true)
	aqueducttest.Forbids(w, "carl", "approve")
	w.TriggerAs("max", "approve", nil)
	aqueducttest.Forbids(w, "max", "pay")
	state(t, w.TriggerAs("carl", "pay", nil), "Paid")
}

func TestThePolicyLetsDeputiesApprove(t *testing.T) {
	t.Parallel()
	aqueducttest.Forbids(claim(t, false), "olga", "approve")
	state(t, claim(t, true).TriggerAs("olga", "approve", nil), "Approved")
}

func TestThePolicyLetsAClaimLapse(t *testing.T) {
	t.Parallel()
	state(t, claim(t, false).Advance(8*24*time.Hour), "Submitted")
	state(t, claim(t, true).Advance(8*24*time.Hour), "Refused")
}
