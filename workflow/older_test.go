package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// played is an instance whose turns a test makes one by one, by whatever definition.
type played struct {
	t        *testing.T
	in       engine.Input
	snap     snapshot.Snapshot
	commands []*engine.Command // so far
}

func play(t *testing.T, def engine.Definition) *played {
	t.Helper()
	p := &played{t: t, in: engine.Input{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Key: []byte("k"), Incarnation: "inc"}}
	out, err := engine.Begin(def, "i", signal.Start{Input: []byte(`{}`)}, p.in)
	p.took(out, err)
	return p
}

func (p *played) took(out *engine.Outcome, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	p.snap = out.Snapshot
	for _, e := range out.Entries {
		if e.Command != nil {
			p.commands = append(p.commands, e.Command)
		}
	}
}

// comes gives the first wait of a kind what comes for it.
func (p *played) comes(def engine.Definition, kind snapshot.WaitKind, payload string) {
	p.t.Helper()
	for _, w := range p.snap.Waits {
		if w.Kind != kind {
			continue
		}
		p.in.Signal = signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: w.Token, Payload: []byte(payload), DueAt: w.Until}
		switch kind {
		case snapshot.WaitRetry:
			p.in.Signal.Type = signal.RetryDue
		case snapshot.WaitTimeout:
			p.in.Signal.Type = signal.TimerDue
		case snapshot.WaitChild:
			p.in.Signal.Type = signal.SubWorkflowCompleted
		}
		p.took(engine.Step(def, p.snap, p.in))
		return
	}
	p.t.Fatalf("nothing waits by %s: %s, %+v", kind, p.snap.Status, p.snap.Waits)
}

// asks has an operator ask for something.
func (p *played) asks(def engine.Definition, op engine.Operation) {
	p.t.Helper()
	p.in.Signal = signal.Envelope{}
	p.took(operate.Operate(def, p.snap.Clone(), op, nil, p.in))
}

// charging is a workflow of one call that is compensated. Its upcast from 1.0.0 fails while it is
// to, by a panic or by an error.
func charging(t *testing.T, version string, fails *string) *workflow.Definition {
	t.Helper()
	charge := workflow.Call[int, string]("charge", "f")
	w := workflow.New[notes]("t/charge", version)
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{charge.With(1).Timeout(time.Hour).CompensateWith("refund", 1).Retry(workflow.Retry{Times: 1, Delay: time.Minute})}
	})
	workflow.On(w, charge, func(n notes, in workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(fmt.Sprintf("receipt %q", in.Value))}
	})
	workflow.OnFailure(w, charge, func(n notes, in workflow.Input[workflow.Failure]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(fmt.Sprintf("failed with %d, unknown %t", in.Value.Status, in.Value.Unknown))}
	})
	if fails != nil {
		workflow.Upcast(w, "1.0.0", version, func(n notes) (notes, error) {
			switch *fails {
			case "panic":
				panic("no luck")
			case "error":
				return nil, errors.New("no luck")
			}
			return n, nil
		})
	}
	return made(t, w)
}

// TestWhatCameWhileAnUpcastFailedIsNoSuccess: the end of a pause before a retry asks for the
// step again, and a timeout is one, when the upcast is mended.
func TestWhatCameWhileAnUpcastFailedIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"panic", "error"} {
		fails := how
		first := charging(t, "1.0.0", nil)
		present := charging(t, "2.0.0", &fails)
		older, _ := present.From(first.Ref())
		for kind, want := range map[snapshot.WaitKind]string{
			snapshot.WaitRetry:   `"receipt \"r-1\""`,
			snapshot.WaitTimeout: `"failed with 408, unknown true"`,
		} {
			fails = how
			p := play(t, first)
			if kind == snapshot.WaitRetry {
				p.comes(first, snapshot.WaitCommand, `{"error":{"type":"x","status":409}}`)
			}
			p.comes(older, kind, "")
			if s := p.snap; s.Status != snapshot.Faulted || s.Definition != first.Ref() || s.Error.Instance != "/charge" || !strings.Contains(s.Error.Detail, "no luck") {
				t.Fatalf("%s, %s: %s %+v", how, kind, s.Status, s.Error)
			}
			fails = ""
			p.asks(older, engine.Retry)
			if kind == snapshot.WaitRetry {
				if n := len(p.commands); n != 2 || p.commands[0].Key != p.commands[1].Key || len(p.snap.Compensations) != 1 || !p.snap.Compensations[0].Open {
					t.Fatalf("%s: %d commands, to be undone %+v", how, n, p.snap.Compensations)
				}
				p.comes(present, snapshot.WaitCommand, `{"output":"r-1"}`)
			}
			if s := p.snap; s.Status != snapshot.Completed || string(s.State.Output) != want {
				t.Errorf("%s, %s: %s %s, want %s", how, kind, s.Status, s.State.Output, want)
			}
		}
	}
}

// TestCompensationNeedsNoUpcast: the state of the present version is asked for by functions, and
// none decides about what compensates.
func TestCompensationNeedsNoUpcast(t *testing.T) {
	t.Parallel()
	fails := "panic"
	first, present := charging(t, "1.0.0", nil), charging(t, "2.0.0", &fails)
	older, _ := present.From(first.Ref())
	p := play(t, first)
	p.asks(older, engine.Compensate)
	p.comes(older, snapshot.WaitCommand, `{"error":{"type":"x","status":409}}`)
	if s := p.snap; s.Status != snapshot.Faulted || !strings.Contains(s.Error.Type, "compensation-stuck") {
		t.Fatalf("%s %+v", s.Status, s.Error)
	}
	p.asks(older, engine.Retry)
	p.comes(older, snapshot.WaitCommand, `{"output":null}`)
	if s := p.snap; s.Status != snapshot.Compensated || len(p.commands) != 3 {
		t.Errorf("%s after %d commands: %+v", s.Status, len(p.commands), s.Error)
	}
}

// TestTheEndOfAChildThatWasLeftNeedsNoUpcast: nobody decides about it.
func TestTheEndOfAChildThatWasLeftNeedsNoUpcast(t *testing.T) {
	t.Parallel()
	ship, rest := workflow.Child[int, string]("ship", "t/ship"), workflow.Timer("rest")
	v := func(version string) *workflow.Definition {
		w := workflow.New[notes]("t/leaves", version)
		workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
			return n, workflow.Do{ship.With(1).Timeout(time.Hour)}
		})
		workflow.On(w, ship, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) { return n, nil })
		workflow.OnFailure(w, ship, func(n notes, _ workflow.Input[workflow.Failure]) (notes, workflow.Do) {
			return n, workflow.Do{rest.After(time.Hour)}
		})
		workflow.On(w, rest, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
			return n, workflow.Do{workflow.Complete(n)}
		})
		if version != "1.0.0" {
			workflow.Upcast(w, "1.0.0", version, func(notes) (notes, error) { panic("no luck") })
		}
		return made(t, w)
	}
	first := v("1.0.0")
	older, _ := v("2.0.0").From(first.Ref())
	p := play(t, first)
	p.comes(first, snapshot.WaitTimeout, "")
	p.comes(older, snapshot.WaitChild, `{"child":"`+p.snap.SubFrames[0].InstanceID+`","error":{"type":"x","status":500}}`)
	if s := p.snap; s.Status != snapshot.Waiting || len(s.Waits) != 1 || s.Waits[0].Kind != snapshot.WaitTimer {
		t.Errorf("%s, waits %+v, %+v", s.Status, s.Waits, s.Error)
	}
}

// A step listens for the same when its type and the paths of its keys are the same, in any
// order; one that is no event step any more listens for nothing.
func TestListensOtherwise(t *testing.T) {
	t.Parallel()
	version := func(paid workflow.EventStep[map[string]any]) *workflow.Definition {
		w := workflow.New[notes]("t/listens", "1.0.0")
		workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) { return n, nil })
		workflow.On(w, paid, func(n notes, _ workflow.Input[map[string]any]) (notes, workflow.Do) { return n, nil })
		return made(t, w)
	}
	old := version(workflow.Event[map[string]any]("paid", "org.paid", "data.a", "data.b"))
	timer := workflow.New[notes]("t/listens", "2.0.0")
	pause := workflow.Timer("paid")
	workflow.Start(timer, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) { return n, nil })
	workflow.On(timer, pause, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) { return n, nil })
	for name, c := range map[string]struct {
		def  *workflow.Definition
		want int
	}{
		"the same":        {old, 0},
		"another order":   {version(workflow.Event[map[string]any]("paid", "org.paid", "data.b", "data.a")), 0},
		"another key":     {version(workflow.Event[map[string]any]("paid", "org.paid", "data.a")), 1},
		"another type":    {version(workflow.Event[map[string]any]("paid", "org.settled", "data.a", "data.b")), 1},
		"another kind":    {made(t, timer), 1},
		"it is not there": {version(workflow.Event[map[string]any]("settled", "org.paid", "data.a", "data.b")), 0},
	} {
		if got := c.def.ListensOtherwise(old.Declared()); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
