package access

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// TestWhoPublishesWhich: by role and by group; what nobody is named for nobody publishes, and
// where nothing is said everybody who may publish.
func TestWhoPublishesWhich(t *testing.T) {
	t.Parallel()
	types := EventTypes{"order.*": {Application}, "order.void": {Operator}, "pay.done": {"group:tills"}, "*": {"group:all"}}
	if err := CheckEventTypes(types); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		role, group, eventType string
		may                    bool
	}{
		{Application, "", "order.paid", true}, {Application, "", "order.void", true}, {Application, "", "orders", false}, {Application, "", "pay.done", false},
		{Operator, "", "order.void", true}, {Operator, "", "order.voided", false}, {Operator, "", "order.paid", false},
		{Operator, "tills", "pay.done", true}, {Operator, "tills", "pay.done.", false}, {Operator, "all", "x", true},
		{Operator, "group:all", "x", false}, {Operator, Application, "order.paid", false},
	} {
		p := principal.Principal{Name: "ann", Roles: []string{c.role}, Groups: []string{c.group}}
		p.Types = types.of(&p)
		if err := Publishes(p, c.eventType); (err == nil) != c.may || err != nil && problem.CodeOf(err) != "access.denied" {
			t.Errorf("%s of %q publishes %s: %v", c.role, c.group, c.eventType, err)
		}
	}
	if Publishes(principal.Principal{}, "x") != nil {
		t.Error("where nothing is said something is refused")
	}
	for _, wrong := range []EventTypes{{"a": {Viewer}}, {"a": {"group:"}}, {"a": {"application@shop"}}, {"a*b": {Operator}}, {"**": {Operator}}, {"a": {Operator, "x"}}} {
		if problem.CodeOf(CheckEventTypes(wrong)) != "config.role" {
			t.Error(wrong)
		}
	}
}

// TestTheGateSaysWhichEvents: of the operations that bring them to who waits.
func TestTheGateSaysWhichEvents(t *testing.T) {
	t.Parallel()
	g := &Gate{Verifiers: []Verifier{held{}}, Events: EventTypes{"order.*": {Application}}}
	for bearer, want := range map[string]int{"application": 1, "operator": 0} {
		for _, operation := range []string{"publish-event", "signal-instance", "start-instance", "trigger-event"} {
			who, err := g.Admit(t.Context(), Shown{Authorization: "Bearer " + bearer}, operation)
			if err != nil || who.Types == nil || len(who.Types) != want {
				t.Errorf("%s: %s of %q %v", bearer, operation, who.Types, err)
			}
		}
	}
	for bearer, want := range map[string]int{"application@shop": 1, "operator@shop": 0} { // in the namespace
		if who, err := g.Admit(t.Context(), Shown{Authorization: "Bearer " + bearer}, "signal-instance"); err != nil || len(who.Types) != want {
			t.Errorf("%s: %q %v", bearer, who.Types, err)
		}
	}
	if who, err := g.Admit(t.Context(), Shown{Authorization: "Bearer operator"}, "list-instances"); err != nil || who.Types != nil {
		t.Error(who.Types, err)
	}
}
