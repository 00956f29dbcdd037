package docs_test

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestTheFirstExampleIsRun: what the README shows first is published without a warning,
// and does in the kit what the page says.
func TestTheFirstExampleIsRun(t *testing.T) {
	t.Parallel()
	source := exampleBlocks.FindStringSubmatch(read(t, "README.md"))[2]
	p, err := openworkflow.Parse("order.yaml", []byte(source))
	if err != nil || len(p.Warnings) > 0 {
		t.Fatalf("%v, warnings %v", err, p.Warnings)
	}
	w := aqueducttest.Text(t, source)
	w.OnCall("POST https://pay.example/charges").Return(map[string]string{"country": "NL"})
	w.Start(map[string]int{"amount": 30})
	if title := w.Task("approve").Title; title != "Ship to NL" {
		t.Errorf("people are asked %q", title)
	}
	w.Task("approve").Claim("kim", "shipping").Complete("ship", nil)
	if s := w.Snapshot(); s.Status != snapshot.Completed {
		t.Errorf("%s: %+v", s.Status, s.Error)
	}
}
