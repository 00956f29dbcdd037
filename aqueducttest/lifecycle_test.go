package aqueducttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
)

const order = `lifecycle: '1.0'
environment: shop
definition: order
version: '1.0.0'
states:
  Open: {category: initial, timeout: PT30M, timeoutEvent: expire}
  Paid: {onEnter: [{tell: {call: tell, with: {who: '${ $event.actor }'}}}]}
  Gone: {category: final}
events: {pay: {code: 7}, expire: {}, ship: {}}
transitions:
  - {from: Open, event: pay, to: Paid, when: $event.data.sum >= .price, set: '${ . + {paid: true} }'}
  - {from: Open, event: expire, to: Gone}
  - {from: Paid, event: ship, to: Gone}
`

func TestLifecycles(t *testing.T) {
	t.Parallel()
	begin := func(t aqueducttest.TB) *aqueducttest.Workflow {
		w := aqueducttest.Text(t, order)
		w.OnCall("tell").After(20 * time.Second).Return(nil)
		return w.Start(`{"price": 10}`)
	}
	w := begin(t)
	w.Refuses("lifecycle.refused", "pay", `{"sum": 9}`).Refuses("lifecycle.unknown-event", "buy", nil)
	if w.State() != "Open" {
		t.Error(w.State())
	}
	w.TriggerAs("ann", "7", `{"sum": 10}`).Refuses("lifecycle.in-transition", "ship", nil)
	if calls := w.Calls("tell"); w.State() != "Open->Paid" || len(calls) != 1 || string(calls[0].Input) != `{"who":"ann"}` {
		t.Errorf("%q %+v", w.State(), calls)
	}
	w.Advance(20 * time.Second)
	if w.State() != "Paid" {
		t.Error(w.State())
	}
	w.Advance(time.Hour) // the timeout of a state that was left
	w.Trigger("ship", nil).Completed(`{"price": 10, "paid": true}`)
	if w.State() != "Gone" {
		t.Error(w.State())
	}

	late := begin(t)
	late.Advance(30*time.Minute - time.Second)
	if late.State() != "Open" {
		t.Error(late.State())
	}
	late.Advance(time.Second)
	late.Completed(`{"price": 10}`)
	if stale := late.Calls("event:publish"); len(stale) != 1 || !strings.Contains(string(stale[0].Input), `"state":"Open"`) {
		t.Errorf("%+v", stale)
	}

	for want, test := range map[string]func(aqueducttest.TB){
		"does not take ship": func(t aqueducttest.TB) { begin(t).Trigger("ship", nil) },
		"not refused":        func(t aqueducttest.TB) { begin(t).Refuses("lifecycle.refused", "pay", `{"sum": 10}`) },
		"another code":       func(t aqueducttest.TB) { begin(t).Refuses("lifecycle.in-transition", "ship", nil) },
		"not started":        func(t aqueducttest.TB) { aqueducttest.Text(t, order).Trigger("pay", nil) },
	} {
		if got := fails(test); !strings.Contains(got, want) {
			t.Errorf("%q is not said in\n%s", want, got)
		}
	}
}

// An event that names roles is taken from a person who is in one of these groups.
func TestEventsOfRoles(t *testing.T) {
	t.Parallel()
	guarded := func(t aqueducttest.TB) *aqueducttest.Workflow {
		w := aqueducttest.Text(t, "lifecycle: '1.0'\nenvironment: t\ndefinition: g\nversion: '1.0.0'\nstates: {Open: {category: initial}, Paid: {category: final}}\n"+
			"events: {pay: {roles: [cashier, boss]}}\ntransitions: [{from: Open, event: pay, to: Paid}]\n")
		w.Groups = map[string][]string{"ann": {"staff", "cashier"}, "bob": {"staff"}}
		return w.Start(nil)
	}
	w := aqueducttest.Forbids(guarded(t), "bob", "pay")
	aqueducttest.Forbids(w, "eve", "pay")
	if got := w.TriggerAs("ann", "pay", nil).State(); got != "Paid" {
		t.Errorf("state %s", got)
	}
	if got := guarded(t).Trigger("pay", nil).State(); got != "Paid" {
		t.Errorf("by the program: state %s", got)
	}
	for name, f := range map[string]func(aqueducttest.TB){
		"bob pays":       func(t aqueducttest.TB) { guarded(t).TriggerAs("bob", "pay", nil) },
		"ann may":        func(t aqueducttest.TB) { aqueducttest.Forbids(guarded(t), "ann", "pay") },
		"another reason": func(t aqueducttest.TB) { aqueducttest.Forbids(guarded(t), "bob", "sell") },
	} {
		t.Run(name, func(t *testing.T) {
			if got := fails(f); got == "" {
				t.Error("it does not fail")
			}
		})
	}
}
