package workflow_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// TestWhatCompensatesNeedNotBeAFunction: a child, a person and an acknowledged call
// compensate, one after the other, and who fails stops the instance for an operator.
func TestWhatCompensatesNeedNotBeAFunction(t *testing.T) {
	t.Parallel()
	book := workflow.Call[int, string]("book", "f")
	free := workflow.Child[int, any]("free", "t/free@1.0.0")
	unpack := workflow.Task[any]("unpack")
	credit := workflow.Call[int, any]("credit", "credit")
	w := workflow.New[notes]("t/saga", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{
			book.With(1).Of(1).CompensateBy(free.With(1).Timeout(time.Hour)),
			workflow.CompensationBy("box", unpack.With(workflow.Person{Title: "Unpack", CandidateGroups: []string{"stock"}, Due: time.Hour, Outcomes: []string{"done", "lost"}})),
			book.With(2).Of(2).CompensateBy(credit.With(2).Acknowledged(time.Minute)),
			book.With(3).Of(3),
		}
	})
	workflow.On(w, book, func(n notes, in workflow.Input[string]) (notes, workflow.Do) {
		if in.Item < 3 {
			return n, nil
		}
		return n, workflow.Do{workflow.Fail(workflow.Failure{Type: "urn:full", Status: 409})}
	})
	k := aqueducttest.Definition(t, made(t, w))
	k.OnCall("f").Return(`""`)
	k.OnCall("credit").Fail("urn:closed", 409, "closed").Return(nil)
	k.OnCall("run t/free").Fail("urn:no", 409, "no").Never()
	k.Start(`{}`)
	stuck := func(what string) {
		t.Helper()
		if s := k.Snapshot(); s.Status != snapshot.Faulted || s.Error.Type != "urn:aqueduct:error:compensation-stuck" || !strings.Contains(s.Error.Detail, what) {
			t.Fatalf("%s: %+v, not stuck with %s", s.Status, s.Error, what)
		}
		k.Operate(engine.Retry, nil)
	}
	stuck("closed")
	if c := k.Calls("credit"); len(c) != 2 || string(c[1].Input) != "2" || c[0].Key != c[1].Key {
		t.Errorf("%+v", c)
	}
	if asked := k.Task("box"); !asked.MayClaim("ann", "stock") || asked.Title != "Unpack" || asked.DueAt.IsZero() {
		t.Errorf("%+v", asked)
	}
	k.Task("box").Claim("ann", "stock").Complete("lost", nil)
	stuck(`says "lost", not "done"`)
	k.Task("box").Claim("ann", "stock").Complete("done", nil)
	stuck("no")
	k.Advance(time.Hour)
	if s := k.Snapshot(); s.Status != snapshot.Faulted || !strings.Contains(s.Error.Detail, "it was not done in time") {
		t.Errorf("%s: %+v", s.Status, s.Error)
	}
	k.Operate(engine.Skip, nil)
	if s := k.Snapshot(); s.Status != snapshot.Compensated || s.Error.Type != "urn:full" {
		t.Errorf("%s: %+v", s.Status, s.Error)
	}
	if c := k.Calls("run t/free"); len(c) != 2 || string(c[1].Input) != "1" {
		t.Errorf("%+v", c)
	}
}

// TestWhatCompensatesKnowsTheCall by the key of it, wherever its author writes that.
func TestWhatCompensatesKnowsTheCall(t *testing.T) {
	t.Parallel()
	book := workflow.Call[int, string]("book", "f")
	w := workflow.New[notes]("t/saga", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{
			book.With(1).Of(1).CompensateBy(workflow.Child[map[string]string, any]("free", "t/free").With(map[string]string{"of": workflow.CallKey})),
			book.With(2).Of(2).CompensateBy(workflow.Task[any]("unpack").With(workflow.Person{Title: "Undo " + workflow.CallKey, CandidateUsers: []string{"ann"}})),
			book.With(3).Of(3).CompensateWith("release", []string{workflow.CallKey}),
			book.With(4).Of(4),
		}
	})
	workflow.On(w, book, func(n notes, in workflow.Input[string]) (notes, workflow.Do) {
		switch in.Item {
		case 3:
			return n, workflow.Do{workflow.Compensation("book", "release", []string{workflow.CallKey, "known"})}
		case 4:
			return n, workflow.Do{workflow.Fail(workflow.Failure{Type: "urn:full"})}
		}
		return n, nil
	})
	k := aqueducttest.Definition(t, made(t, w))
	k.OnCall("*").Return(`""`)
	k.Start(`{}`)
	calls := k.Calls("f")
	if title := k.Task("book").Title; title != "Undo "+calls[1].Key {
		t.Errorf("a person is asked to %s", title)
	}
	k.Task("book").Claim("ann").Complete("", nil)
	if c := k.Calls("release"); len(c) != 1 || string(c[0].Input) != `["`+calls[2].Key+`","known"]` {
		t.Errorf("%+v", c)
	}
	if c := k.Calls("run t/free"); len(c) != 1 || string(c[0].Input) != `{"of":"`+calls[0].Key+`"}` {
		t.Errorf("%+v", c)
	}
	if k.Status() != snapshot.Compensated {
		t.Error(k.Status())
	}
}

// TestACompensationOfNoCallHasNoKeyOfOne.
func TestACompensationOfNoCallHasNoKeyOfOne(t *testing.T) {
	t.Parallel()
	w := workflow.New[notes]("t/saga", "1.0.0")
	later := workflow.Timer("later")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Compensation("book", "release", workflow.CallKey), later.After(time.Hour)}
	})
	workflow.On(w, later, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) { return n, nil })
	k := aqueducttest.Definition(t, made(t, w))
	k.Start(`{}`)
	if s := k.Snapshot(); s.Status != snapshot.Faulted || !strings.Contains(s.Error.Detail, "so there is no CallKey") {
		t.Errorf("%s: %+v", s.Status, s.Error)
	}
}

// TestWhatCannotCompensate is refused where it is asked for.
func TestWhatCannotCompensate(t *testing.T) {
	t.Parallel()
	book := workflow.Call[int, string]("book", "f")
	for want, by := range map[string]workflow.Effect{
		"timer later compensates nothing":             workflow.Timer("later").After(time.Hour),
		"what compensates, book, is a mere call":      book.With(1).Timeout(time.Hour),
		"what compensates, book, has no retry":        book.With(1).Retry(workflow.Retry{Times: 1}),
		"Title has more than":                         workflow.Task[any]("ask").With(workflow.Person{Title: strings.Repeat("x", 2000)}),
		"an input of 30002 bytes exceeds 28000; pass": workflow.Child[string, any]("free", "t/free").With(strings.Repeat("x", 30_000)),
	} {
		w := workflow.New[notes]("t/saga", "1.0.0")
		workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
			return n, workflow.Do{book.With(1).CompensateBy(by)}
		})
		workflow.On(w, book, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
			return n, workflow.Do{workflow.Complete(nil)}
		})
		k := aqueducttest.Definition(t, made(t, w))
		k.Start(`{}`)
		raw, _ := json.Marshal(k.Snapshot().Error)
		if s := k.Snapshot(); s.Status != snapshot.Faulted || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %s, not %s", s.Status, raw, want)
		}
	}
}

// TestARefusedCallIsNotCompensated when nothing could be decided about its refusal: what left the
// outcome open is.
func TestARefusedCallIsNotCompensated(t *testing.T) {
	t.Parallel()
	charge := workflow.Call[int, string]("charge", "f")
	w := workflow.New[notes]("t/charge", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{charge.With(1).CompensateWith("refund", 1)}
	})
	workflow.On(w, charge, func(notes, workflow.Input[string]) (notes, workflow.Do) { panic("no luck") })
	workflow.OnFailure(w, charge, func(notes, workflow.Input[workflow.Failure]) (notes, workflow.Do) { panic("no luck") })
	def := made(t, w)
	for answer, refunds := range map[string]int{
		`{"error":{"type":"x","status":409}}`:                0,
		`{"error":{"type":"x","status":503},"unknown":true}`: 1,
		`{"output":"r-1"}`:                                   1,
	} {
		p := play(t, def)
		p.comes(def, snapshot.WaitCommand, answer)
		if p.snap.Status != snapshot.Faulted || len(p.snap.Compensations) != refunds {
			t.Fatalf("%s: %s, to be undone %+v", answer, p.snap.Status, p.snap.Compensations)
		}
		p.asks(def, engine.Retry)
		if p.snap.Status != snapshot.Faulted {
			t.Fatalf("%s, decided again: %s", answer, p.snap.Status)
		}
		if refunds == 0 {
			continue // nothing is compensated, so that a cancellation is one
		}
		if p.asks(def, engine.Compensate); len(p.commands) != 1+refunds || p.commands[1].Target != "refund" {
			t.Errorf("%s: %d commands", answer, len(p.commands))
		}
	}
}
