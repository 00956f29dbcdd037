package docs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestTheSagaIsRun: the document of docs/sagas.md is undone as the page says.
func TestTheSagaIsRun(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Text(t, exampleBlocks.FindStringSubmatch(read(t, "docs/sagas.md"))[2])
	var order []string
	note := func(c aqueducttest.Call) (any, error) {
		order = append(order, c.Name+string(c.Input))
		return nil, nil
	}
	keys := map[string]string{}
	w.OnCall("book*").Do(func(c aqueducttest.Call) (any, error) {
		if strings.Contains(string(c.Input), "sea") {
			return nil, activity.Permanent(errors.New("full"))
		}
		keys[c.Name+string(c.Input)] = c.Key
		return map[string]string{"ticket": "t-1"}, nil
	})
	w.OnCall("printBadge").Return(nil)
	w.OnCall("charge").Fail("urn:poor", 402, "no money")
	w.OnCall("cancelRoom").Do(note)
	w.OnCall("reverseInvoice").Do(note)
	w.OnCall("run shop/refund-flight").Do(note)
	w.Start(map[string]any{"rooms": []string{"garden", "sea"}, "to": "Sofia", "name": "Ann"})
	w.Task("badge").Claim("desk-1", "desk").Complete("destroyed", nil)
	if s := w.Snapshot(); s.Status != snapshot.Compensated || s.Error.Type != "urn:poor" {
		t.Fatalf("%s: %+v", s.Status, s.Error)
	}
	want := []string{
		`reverseInvoice{"of":"` + keys[`bookInvoice{"ticket":"t-1"}`] + `"}`,
		`run shop/refund-flight{"of":"` + keys[`bookFlight{"to":"Sofia"}`] + `","to":"Sofia"}`,
		`cancelRoom{"of":"` + keys[`bookRoom{"room":"garden"}`] + `","room":"garden"}`,
	}
	if got := strings.Join(order, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("undone by\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
