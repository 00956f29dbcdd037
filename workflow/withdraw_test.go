package workflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// Two events that had come before they were listened for are two decisions: what the first
// withdraws is not decided about, and its event stays for who listens next.
func TestWhatIsWithdrawnIsNotDecidedAbout(t *testing.T) {
	t.Parallel()
	type event = workflow.Input[map[string]any]
	for name, then := range map[string]string{
		"withdrawn":                    `["first", "paid"]`,
		"withdrawn and asked for":      `["first", "paid", "cancelled"]`,
		"both":                         `["first", "paid", "cancelled"]`,
		"withdrawn, listened for late": `["first", "paid", "later", "cancelled"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflow.New[notes]("t/two", "1.0.0")
			first, later := workflow.Timer("first"), workflow.Timer("later")
			paid := workflow.Event[map[string]any]("paid", "org.paid")
			cancelled := workflow.Event[map[string]any]("cancelled", "org.cancelled")
			workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
				return n, workflow.Do{first.After(time.Hour)}
			})
			workflow.On(w, first, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
				return append(n, "first"), workflow.Do{paid.Listen(), cancelled.Listen()}
			})
			workflow.On(w, paid, func(n notes, _ event) (notes, workflow.Do) {
				n = append(n, "paid")
				switch name {
				case "withdrawn":
					return n, workflow.Do{workflow.Withdraw(cancelled, 0), workflow.Complete(n)}
				case "withdrawn and asked for":
					return n, workflow.Do{workflow.Withdraw(cancelled, 0), cancelled.Listen()}
				case "both":
					return n, nil
				}
				return n, workflow.Do{workflow.Withdraw(cancelled, 0), later.After(time.Hour)}
			})
			workflow.On(w, later, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
				return append(n, "later"), workflow.Do{cancelled.Listen()}
			})
			workflow.On(w, cancelled, func(n notes, _ event) (notes, workflow.Do) {
				n = append(n, "cancelled")
				return n, workflow.Do{workflow.Complete(n)}
			})
			x := aqueducttest.Definition(t, made(t, w)).Start(`{}`)
			x.EarlyEvent("org.paid", `{}`)
			x.EarlyEvent("org.cancelled", `{}`)
			x.Advance(time.Hour)
			if name == "withdrawn, listened for late" {
				if s := x.Snapshot(); len(s.Buffer) != 1 || len(s.Waits) != 1 {
					t.Errorf("kept %+v, waits %+v", s.Buffer, s.Waits)
				}
				x.Advance(time.Hour)
			}
			x.Completed(then)
		})
	}
}

// The same of an instance that is tried again: both had come meanwhile.
func TestWhatIsWithdrawnIsNotDecidedAboutByARetry(t *testing.T) {
	t.Parallel()
	w := workflow.New[notes]("t/again", "1.0.0")
	broken := true
	tick := workflow.Timer("tick")
	paid := workflow.Event[map[string]any]("paid", "org.paid")
	cancelled := workflow.Event[map[string]any]("cancelled", "org.cancelled")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{paid.Listen(), cancelled.Listen(), tick.After(time.Hour)}
	})
	workflow.On(w, tick, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
		if broken {
			panic("not yet")
		}
		n = append(n, "tick")
		return n, workflow.Do{workflow.Complete(n)}
	})
	workflow.On(w, paid, func(n notes, _ workflow.Input[map[string]any]) (notes, workflow.Do) {
		return append(n, "paid"), workflow.Do{workflow.Withdraw(cancelled, 0)}
	})
	workflow.On(w, cancelled, func(notes, workflow.Input[map[string]any]) (notes, workflow.Do) {
		panic("it was withdrawn")
	})
	x := aqueducttest.Definition(t, made(t, w)).Start(`{}`)
	x.Advance(time.Hour)
	x.EarlyEvent("org.paid", `{}`)
	x.EarlyEvent("org.cancelled", `{}`)
	broken = false
	x.Operate(engine.Retry, nil)
	x.Completed(`["paid", "tick"]`)
}

// What was withdrawn lies where it was; and so does what a decision that was broken has kept
// from being decided about.
func TestWhatIsWithdrawnStaysInItsOrder(t *testing.T) {
	t.Parallel()
	w := workflow.New[notes]("t/order", "1.0.0")
	broken := true
	first, later := workflow.Timer("first"), workflow.Timer("later")
	stop := workflow.Event[map[string]any]("stop", "org.stop")
	var ears []workflow.EventStep[map[string]any]
	for _, name := range []string{"one", "two", "three"} {
		ears = append(ears, workflow.Event[map[string]any](name, "org."+name))
	}
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{first.After(time.Hour)}
	})
	workflow.On(w, first, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
		return n, workflow.Do{stop.Listen(), ears[0].Listen(), ears[1].Listen(), ears[2].Listen()}
	})
	workflow.On(w, stop, func(n notes, _ workflow.Input[map[string]any]) (notes, workflow.Do) {
		if broken {
			panic("not yet")
		}
		return n, workflow.Do{workflow.Withdraw(ears[1], 0), workflow.Withdraw(ears[0], 0), workflow.Withdraw(ears[2], 0), later.After(time.Hour)}
	})
	for _, ear := range ears {
		workflow.On(w, ear, func(notes, workflow.Input[map[string]any]) (notes, workflow.Do) { panic("it was withdrawn") })
	}
	workflow.On(w, later, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(n)}
	})
	for _, fails := range []bool{false, true} {
		broken = fails
		x := aqueducttest.Definition(t, made(t, w)).Start(`{}`)
		for _, event := range []string{"stop", "one", "two", "three"} {
			x.EarlyEvent("org."+event, `{"of": "`+event+`"}`)
		}
		x.Advance(time.Hour)
		if fails {
			broken = false
			x.Operate(engine.Retry, nil)
		}
		got := ""
		for _, b := range x.Snapshot().Buffer {
			got += string(b.Payload)
		}
		for _, event := range []string{"one", "two", "three"} {
			if !strings.Contains(got, event) {
				t.Errorf("broken %t: %s is lost: %s", fails, event, got)
			}
		}
		if one, two, three := strings.Index(got, "one"), strings.Index(got, "two"), strings.Index(got, "three"); !fails && (one > two || two > three) {
			t.Errorf("in another order: %s", got)
		}
	}
}
