package workflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// What docs/go.md shows: a test there compares it with this file, line by line.
type (
	Order struct {
		Cents   int
		Receipt string
	}
	OldOrder struct{ Euros int }
	Request  struct{ Cents int }
	Payment  struct{ Cents int }
	Receipt  struct{ ID string }
	Event    any
)

func TestThePageIsRight(t *testing.T) {
	t.Parallel()
	var charge = workflow.Call[Payment, Receipt]("charge", "chargeCard")

	w := workflow.New[Order]("shop/order", "1.0.0")
	workflow.Start(w, func(o Order, in workflow.Input[Request]) (Order, workflow.Do) {
		o.Cents = in.Value.Cents
		return o, workflow.Do{charge.With(Payment{Cents: o.Cents})}
	})
	workflow.On(w, charge, func(o Order, in workflow.Input[Receipt]) (Order, workflow.Do) {
		o.Receipt = in.Value.ID
		return o, workflow.Do{workflow.Complete(o)}
	})
	def := made(t, w)
	aqueducttest.Given(t, def, Order{Cents: 5}).
		When(charge, Receipt{ID: "r-1"}).
		Then(Order{Cents: 5, Receipt: "r-1"}, workflow.Complete(Order{Cents: 5, Receipt: "r-1"}))
}

func TestThePagesDeciderIsRight(t *testing.T) {
	t.Parallel()
	charge := workflow.Call[Payment, Receipt]("charge", "chargeCard")
	decide := func(o Order, in workflow.Input[any]) ([]Event, workflow.Do) {
		if r, ok := in.Value.(Request); ok {
			return []Event{r}, workflow.Do{charge.With(Payment(r))}
		}
		return []Event{in.Value}, workflow.Do{workflow.Complete(o)}
	}
	evolve := func(o Order, e Event) Order {
		if r, ok := e.(Request); ok {
			o.Cents = r.Cents
		}
		return o
	}
	w := workflow.Decided("shop/order", "1.0.0", workflow.Decider[Order, Event]{
		Decide: decide, // func(Order, workflow.Input[any]) ([]Event, workflow.Do)
		Evolve: evolve, // func(Order, Event) Order
		Takes:  []workflow.Taken{workflow.Begins[Request](workflow.To(charge)), workflow.Takes(charge)},
	})
	aqueducttest.Given(t, made(t, w), nil).WhenStarted(Request{5}).Then(Order{Cents: 5}, charge.With(Payment{5})).ThenEvents(Request{5})
}

func TestThePagesUpcastIsRight(t *testing.T) {
	t.Parallel()
	w := workflow.New[Order]("shop/order", "2.0.0")
	workflow.Start(w, func(o Order, _ workflow.Input[Request]) (Order, workflow.Do) {
		return o, workflow.Do{workflow.Complete(o)}
	})
	workflow.Upcast(w, "1.0.0", "2.0.0", func(old OldOrder) (Order, error) { return Order{Cents: 100 * old.Euros}, nil })
	made(t, w)
}

// What docs/sagas.md shows.
func TestThePageOfSagasIsRight(t *testing.T) {
	t.Parallel()
	type Trip struct{ To, Name string }
	bookFlight, bookInvoice := workflow.Call[string, any]("flight", "bookFlight"), workflow.Call[string, any]("invoice", "bookInvoice")
	printBadge := workflow.Call[string, any]("badge", "printBadge")
	refundFlight, reverseInvoice := workflow.Child[string, any]("refund", "shop/refund-flight"), workflow.Call[string, any]("reverse", "reverseInvoice")
	destroyBadge := workflow.Task[any]("destroy")
	pay := workflow.Timer("pay")
	decide := func(t Trip, _ workflow.Input[Trip]) (Trip, workflow.Do) {
		return t, workflow.Do{
			bookFlight.With(t.To).CompensateBy(refundFlight.With(t.To)),
			printBadge.With(t.Name).CompensateBy(destroyBadge.With(workflow.Person{
				Title: "Destroy the badge of " + t.Name, CandidateGroups: []string{"desk"},
				Outcomes: []string{"destroyed", "lost"}, Due: 24 * time.Hour,
			})),
			bookInvoice.With(t.Name).CompensateBy(reverseInvoice.With(t.Name).Acknowledged(10 * time.Minute)),
		}
	}
	w := workflow.New[Trip]("shop/trip", "1.0.0")
	workflow.Start(w, func(_ Trip, in workflow.Input[Trip]) (Trip, workflow.Do) {
		t, do := decide(in.Value, in)
		return t, append(do, pay.After(time.Hour))
	})
	booked := func(t Trip, _ workflow.Input[any]) (Trip, workflow.Do) { return t, nil }
	workflow.On(w, bookFlight, booked)
	workflow.On(w, printBadge, booked)
	workflow.On(w, bookInvoice, booked)
	workflow.On(w, pay, func(t Trip, _ workflow.Input[workflow.Fired]) (Trip, workflow.Do) {
		return t, workflow.Do{workflow.Fail(workflow.Failure{Type: "urn:poor"})}
	})
	k := aqueducttest.Definition(t, made(t, w))
	var order []string
	k.OnCall("*").Do(func(c aqueducttest.Call) (any, error) {
		order = append(order, c.Name)
		return nil, nil
	})
	k.Start(Trip{"Sofia", "Ann"})
	k.Advance(time.Hour)
	k.Task("badge").Claim("desk-1", "desk").Complete("destroyed", nil)
	if got := strings.Join(order, " "); k.Status() != snapshot.Compensated || got != "bookFlight printBadge bookInvoice reverseInvoice run shop/refund-flight" {
		t.Errorf("%s: %s", k.Status(), got)
	}
}
