package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// notes is a state that notes what came.
type notes []string

// one is a workflow of one step, whose result and failure are noted; then it is over.
func one[O any](t *testing.T, s workflow.Step[O], do func() workflow.Effect) *workflow.Definition {
	t.Helper()
	w := workflow.New[notes]("t/one", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) { return n, workflow.Do{do()} })
	workflow.On(w, s, func(n notes, in workflow.Input[O]) (notes, workflow.Do) {
		n = append(n, fmt.Sprintf("%s %v by %q", in.Step, in.Value, in.Actor))
		return n, workflow.Do{workflow.Complete(n)}
	})
	workflow.OnFailure(w, s, func(n notes, in workflow.Input[workflow.Failure]) (notes, workflow.Do) {
		n = append(n, fmt.Sprintf("%s failed: %s, unknown %t", in.Step, in.Value.Type[strings.LastIndexByte(in.Value.Type, '/')+1:], in.Value.Unknown))
		return n, workflow.Do{workflow.Complete(n)}
	})
	return made(t, w)
}

func TestAPersonAnswers(t *testing.T) {
	t.Parallel()
	approve := workflow.Task[struct{ Why string }]("approve")
	def := one(t, approve, func() workflow.Effect {
		return approve.With(workflow.Person{Title: "Approve", CandidateGroups: []string{"bosses"}, Outcomes: []string{"yes"}, Due: time.Hour}).Timeout(3 * time.Hour)
	})
	w := aqueducttest.Definition(t, def).Start(`{}`)
	w.Task("approve").Claim("ann", "bosses").Complete("yes", `{"Why": "so"}`)
	var out []string
	if w.Output(&out); len(out) != 1 || !strings.HasPrefix(out[0], "approve {yes {so} ann") {
		t.Errorf("%q", out)
	}
	late := aqueducttest.Definition(t, def).Start(`{}`)
	late.Advance(2 * time.Hour) // due, and escalated
	if s := late.Snapshot(); s.Status != snapshot.Waiting {
		t.Fatalf("%s", s.Status)
	}
	late.Advance(2 * time.Hour)
	late.Completed(`["approve failed: timeout, unknown true"]`)
}

func TestAnEventIsTakenBeforeAndAfterItIsListenedFor(t *testing.T) {
	t.Parallel()
	by := workflow.Event[map[string]int]("paid", "org.paid", "data.order")
	def := one(t, by, func() workflow.Effect { return by.Listen(7) })
	w := aqueducttest.Definition(t, def).Start(`{}`)
	if w.ListensFor("org.paid", `{"order": 8}`) || w.ListensFor("org.other", `{"order": 7}`) || !w.ListensFor("org.paid", `{"order": 7.0}`) {
		t.Error("it listens for another event than that of order 7")
	}
	w.EarlyEvent("org.unknown", `{}`) // kept, not lost
	if s := w.Snapshot(); len(s.Buffer) != 1 {
		t.Errorf("kept %+v", s.Buffer)
	}
	w.Event("org.paid", `{"order": 7}`)
	w.Completed(`["paid map[order:7] by \"\""]`)

	first := workflow.Timer("first")
	late := workflow.New[notes]("t/late", "1.0.0")
	workflow.Start(late, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{first.After(time.Hour)}
	})
	workflow.On(late, first, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
		return n, workflow.Do{by.Listen(7)}
	})
	workflow.On(late, by, func(n notes, in workflow.Input[map[string]int]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(in.Value)}
	})
	e := aqueducttest.Definition(t, made(t, late)).Start(`{}`)
	e.EarlyEvent("org.paid", `{"order": 7}`).Advance(time.Hour).Completed(`{"order": 7}`)
}

func TestAChildAnswers(t *testing.T) {
	t.Parallel()
	ship := workflow.Child[int, string]("ship", "t/ship@2.0.0")
	w := aqueducttest.Definition(t, one(t, ship, func() workflow.Effect { return ship.With(7) }))
	w.OnCall("run t/ship").Return(`"there"`)
	w.Start(`{}`).Completed(`["ship there by \"\""]`)
	w = aqueducttest.Definition(t, one(t, ship, func() workflow.Effect { return ship.With(7) }))
	w.OnCall("run t/ship").Fail("runtime", 500, "sunk")
	w.Start(`{}`).Completed(`["ship failed: runtime, unknown false"]`)
}

// TestAnAuthorsRetriesReplaceTheNodes: so many attempts, so far apart, under one key.
func TestAnAuthorsRetriesReplaceTheNodes(t *testing.T) {
	t.Parallel()
	call := workflow.Call[int, string]("call", "f")
	w := aqueducttest.Definition(t, one(t, call, func() workflow.Effect {
		return call.With(1).Retry(workflow.Retry{Times: 2, Delay: time.Minute, Factor: 2})
	}))
	w.OnCall("f").Do(func(aqueducttest.Call) (any, error) { return nil, errors.New("not now") })
	w.Start(`{}`)
	w.Advance(time.Minute)
	w.Advance(2*time.Minute - time.Second)
	if n := len(w.Calls("f")); n != 2 {
		t.Errorf("%d calls before the second delay is over", n)
	}
	w.Advance(time.Second)
	calls := w.Calls("f")
	if len(calls) != 3 || calls[0].Key != calls[2].Key {
		t.Errorf("calls %+v", calls)
	}
	w.Completed(`["call failed: runtime, unknown false"]`)
}

// TestATimeoutIsOfAllAttempts and of the pauses between them: past it the step is not tried
// again.
func TestATimeoutIsOfAllAttempts(t *testing.T) {
	t.Parallel()
	call := workflow.Call[int, string]("call", "f")
	def := one(t, call, func() workflow.Effect {
		return call.With(1).Timeout(time.Hour).Retry(workflow.Retry{Times: 9, Delay: 25 * time.Minute})
	})
	w := aqueducttest.Definition(t, def)
	w.OnCall("f").Fail("urn:no", 409, "no")
	w.Start(`{}`)
	w.Advance(59 * time.Minute)
	if n := len(w.Calls("f")); n != 3 {
		t.Errorf("%d calls in an hour", n)
	}
	w.Advance(time.Minute)
	w.Completed(`["call failed: timeout, unknown true"]`)
	if n := len(w.Calls("f")); n != 3 {
		t.Errorf("%d calls", n)
	}
	w = aqueducttest.Definition(t, def)
	w.OnCall("f").Fail("urn:no", 409, "no").Return(`"done"`)
	w.Start(`{}`).Advance(25 * time.Minute).Completed(`["call done by \"\""]`)
}

// TestTwoVisitsAreTwoEffects: what the flow comes to again by its own will has another
// key.
func TestTwoVisitsAreTwoEffects(t *testing.T) {
	t.Parallel()
	call := workflow.Call[int, string]("call", "f")
	w := workflow.New[int]("t/twice", "1.0.0")
	workflow.Start(w, func(n int, _ workflow.Input[any]) (int, workflow.Do) { return n, workflow.Do{call.With(1)} })
	workflow.On(w, call, func(n int, _ workflow.Input[string]) (int, workflow.Do) {
		if n++; n < 2 {
			return n, workflow.Do{call.With(1)}
		}
		return n, workflow.Do{workflow.Complete(n)}
	})
	k := aqueducttest.Definition(t, made(t, w))
	k.OnCall("f").Return(`""`)
	k.Start(`{}`).Completed(`2`)
	if c := k.Calls("f"); c[0].Key == c[1].Key || c[0].Key == "" {
		t.Errorf("keys %s, %s", c[0].Key, c[1].Key)
	}
}

// TestABrokenDecisionIsMadeAgain: it changes nothing, what came is kept, and a retry
// with a mended program goes on. A skip gives what should have come.
func TestABrokenDecisionIsMadeAgain(t *testing.T) {
	t.Parallel()
	call, other := workflow.Call[int, string]("call", "f"), workflow.Call[int, string]("other", "g")
	for _, c := range []struct{ mode, code, detail string }{
		{"panic", "workflow.panic", "steps_test.go:"},
		{"stuck", "workflow.stuck", "waited for"},
		{"undeclared", "workflow.undeclared", "other"},
		{"open", "workflow.effect-open", "call"},
		{"unknown", "workflow.step-unknown", "gone"},
		{"nameless", "workflow.effect-name", "no step"},
		{"value", "workflow.effect", "func()"},
		{"input", "workflow.input", "string"},
	} {
		mode := c.mode
		w := workflow.New[int]("t/broken", "1.0.0")
		workflow.Start(w, func(n int, _ workflow.Input[any]) (int, workflow.Do) { return 1, workflow.Do{call.With(1)} })
		workflow.On(w, call, func(n int, in workflow.Input[string]) (int, workflow.Do) {
			switch mode {
			case "panic":
				panic("no luck")
			case "stuck":
				return 7, nil
			case "undeclared":
				return 7, workflow.Do{other.With(1)}
			case "open":
				return 7, workflow.Do{call.With(1), call.With(2)}
			case "unknown":
				return 7, workflow.Do{workflow.Timer("gone").After(0)}
			case "nameless":
				return 7, workflow.Do{{Kind: "timer"}}
			case "value":
				return 7, workflow.Do{workflow.Complete(func() {})}
			}
			return n + 1, workflow.Do{workflow.Complete(map[string]any{"n": n + 1, "got": in.Value})}
		}, workflow.To(call))
		workflow.On(w, other, func(n int, _ workflow.Input[string]) (int, workflow.Do) { return n, nil })
		k := aqueducttest.Definition(t, made(t, w))
		answer, want := `"x"`, `{"got": "x", "n": 2}`
		if mode == "input" {
			answer = `{"not": "a text"}`
		}
		k.OnCall("f").Return(answer)
		k.Start(`{}`)
		s := k.Snapshot()
		if s.Status != snapshot.Faulted || s.Error.Type != workflow.TypeBase+c.code || s.Error.Instance != "/call" || !strings.Contains(s.Error.Detail, c.detail) {
			t.Fatalf("%s: %s, %+v", mode, s.Status, s.Error)
		}
		if string(s.Branches[0].Data) != "1" {
			t.Errorf("%s: the state is %s", mode, s.Branches[0].Data)
		}
		op, output := engine.Retry, any(nil)
		if mode == "input" {
			op, output, want = engine.Skip, any(`"y"`), `{"got": "y", "n": 2}`
		}
		mode = "mended"
		k.Operate(op, output).Completed(want)
		if n := len(k.Calls("f")); n != 1 {
			t.Errorf("%s: %d calls", c.mode, n)
		}
	}
}

// TestWhatIsOpenIsAskedAgain: a failure withdraws what is open beside it, and a retry
// asks for it again, under its key.
func TestWhatIsOpenIsAskedAgain(t *testing.T) {
	t.Parallel()
	call, wait := workflow.Call[int, string]("call", "f"), workflow.Timer("wait")
	w := workflow.New[notes]("t/both", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{call.With(1), call.With(2).Of(1), wait.After(time.Hour)}
	})
	workflow.On(w, call, func(n notes, in workflow.Input[string]) (notes, workflow.Do) { return append(n, in.Value), nil })
	workflow.On(w, wait, func(n notes, _ workflow.Input[workflow.Fired]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(len(n))}
	})
	k := aqueducttest.Definition(t, made(t, w))
	bad := true
	k.OnCall("f").Do(func(c aqueducttest.Call) (any, error) {
		if string(c.Input) == "2" && bad {
			bad = false
			return nil, &notMended{}
		}
		return json.RawMessage(`"done"`), nil
	})
	k.Attempts(1).Start(`{}`)
	if s := k.Snapshot(); s.Status != snapshot.Faulted || len(s.Waits) > 0 {
		t.Fatalf("%s: %+v", s.Status, s.Waits)
	}
	k.Operate(engine.Retry, nil)
	k.Operate(engine.Suspend, nil)
	k.Operate(engine.Resume, nil)
	k.Advance(time.Hour).Completed(`2`)
}

type notMended struct{}

func (*notMended) Error() string { return "no" }

// TestFailCompensatesTheLastFirst, and the instance says why.
func TestFailCompensatesTheLastFirst(t *testing.T) {
	t.Parallel()
	a, b := workflow.Call[int, string]("a", "f"), workflow.Call[int, string]("b", "f")
	w := workflow.New[notes]("t/saga", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{a.With(1).CompensateWith("release", "a")}
	})
	workflow.On(w, a, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Compensation("a-result", "release", "a2"), b.With(2).CompensateWith("release", "b")}
	})
	workflow.On(w, b, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Fail(workflow.Failure{Type: "urn:full", Status: 409, Detail: "full"})}
	})
	k := aqueducttest.Definition(t, made(t, w))
	k.OnCall("f").Return(`""`)
	k.OnCall("release").Return(`null`)
	k.Start(`{}`)
	var order []string
	for _, c := range k.Calls("release") {
		order = append(order, string(c.Input))
	}
	if got := strings.Join(order, " "); got != `"b" "a2" "a"` {
		t.Errorf("compensated %s", got)
	}
	if s := k.Snapshot(); s.Error == nil || s.Error.Type != "urn:full" || !s.Compensating.Done {
		t.Errorf("%+v", s.Error)
	}
}

// TestAnAuthorsErrorUndoesNothing: a call that fails by the configuration faults the
// instance, which goes on after a retry, and is reversed when somebody asks.
func TestAnAuthorsErrorUndoesNothing(t *testing.T) {
	t.Parallel()
	a, b := workflow.Call[int, string]("a", "f"), workflow.Call[int, string]("b", "g")
	w := workflow.New[notes]("t/saga", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{a.With(1).CompensateWith("release", workflow.CallKey)}
	})
	workflow.On(w, a, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) { return n, workflow.Do{b.With(2)} })
	workflow.On(w, b, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(n)}
	})
	def := made(t, w)
	in := engine.Input{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Key: []byte("k"), Incarnation: "inc"}
	out, err := engine.Begin(def, "i", signal.Start{}, in)
	answer := func(payload string) {
		t.Helper()
		if err != nil || len(out.Snapshot.Waits) != 1 {
			t.Fatalf("%v: %+v", err, out)
		}
		in.Signal = signal.Envelope{
			SignalID: "s", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: out.Snapshot.Waits[0].Token, Payload: json.RawMessage(payload),
		}
		out, err = engine.Step(def, out.Snapshot, in)
	}
	answer(`{"output":"id of a"}`)
	answer(`{"error":{"type":"https://serverlessworkflow.io/spec/1.0.0/errors/configuration","status":400}}`)
	if s := out.Snapshot; err != nil || s.Status != snapshot.Faulted || len(s.Compensations) != 1 || s.Compensating != nil {
		t.Fatalf("%v: %+v", err, s)
	}
	in.Signal = signal.Envelope{}
	stopped := out.Snapshot
	reversed, err := operate.Operate(def, stopped, engine.Compensate, nil, in)
	if err != nil || reversed.Entries[2].Command.Target != "release" {
		t.Fatalf("%v: %+v", err, reversed)
	}
	out, err = operate.Operate(def, stopped, engine.Retry, nil, in)
	answer(`{"output":""}`)
	if s := out.Snapshot; err != nil || s.Status != snapshot.Completed {
		t.Fatalf("%v: %+v", err, s)
	}
}

// TestWhatOneAttemptLeftOpenIsCompensated: the refusal of a later attempt says nothing of the
// one before, and what is known from a result takes the place of what was not.
func TestWhatOneAttemptLeftOpenIsCompensated(t *testing.T) {
	t.Parallel()
	a, b := workflow.Call[int, string]("a", "f"), workflow.Call[int, string]("b", "g")
	w := workflow.New[notes]("t/saga", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{a.With(1).CompensateWith("release", "a")}
	})
	workflow.On(w, a, func(n notes, in workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Compensation("a", "release", in.Value), b.With(2).CompensateWith("release", "b").Retry(workflow.Retry{Times: 1})}
	})
	workflow.On(w, b, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(n)}
	})
	def := made(t, w)
	for _, unknown := range []bool{true, false} {
		in := engine.Input{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Key: []byte("k"), Incarnation: "inc"}
		out, err := engine.Begin(def, "i", signal.Start{}, in)
		var released []string
		answer := func(kind snapshot.WaitKind, payload string) {
			t.Helper()
			for _, w := range out.Snapshot.Waits {
				if err == nil && w.Kind == kind {
					in.Signal = signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: w.Token, Payload: json.RawMessage(payload)}
					if kind == snapshot.WaitRetry {
						in.Signal.Type, in.Signal.DueAt = signal.RetryDue, w.Until
					}
					out, err = engine.Step(def, out.Snapshot, in)
					for _, e := range out.Entries {
						if e.Command != nil && e.Command.Target == "release" {
							released = append(released, string(e.Command.Input))
						}
					}
					return
				}
			}
			t.Fatalf("%v: nothing waits by %s: %+v", err, kind, out)
		}
		answer(snapshot.WaitCommand, `{"output":"id of a"}`)
		answer(snapshot.WaitCommand, fmt.Sprintf(`{"error":{"type":"x","status":503},"unknown":%t}`, unknown))
		answer(snapshot.WaitRetry, ``)
		answer(snapshot.WaitCommand, `{"error":{"type":"x","status":409}}`)
		for len(out.Snapshot.Waits) > 0 {
			answer(snapshot.WaitCommand, `{"output":null}`)
		}
		want := []string{`"b"`, `"id of a"`}
		if !unknown {
			want = want[1:]
		}
		if !slices.Equal(released, want) {
			t.Errorf("unknown %t: released %q, want %q", unknown, released, want)
		}
	}
}

// TestImpureDecisionsAreFound, by the order of a map and by a random number.
func TestImpureDecisionsAreFound(t *testing.T) {
	t.Parallel()
	call := workflow.Call[string, string]("call", "f")
	w := workflow.New[notes]("t/impure", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7} {
			n = append(n, k)
		}
		return n, workflow.Do{call.With("x")}
	})
	workflow.On(w, call, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		n = append(n, fmt.Sprint(rand.Int64()))
		return n, workflow.Do{workflow.Complete(n)}
	})
	def := made(t, w)
	random := workflow.New[notes]("t/random", "1.0.0")
	fails := false
	workflow.Start(random, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		if !fails {
			n = append(n, fmt.Sprint(rand.Int64()))
		}
		return n, workflow.Do{call.With("x")}
	})
	workflow.On(random, call, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		if fails {
			panic("no luck")
		}
		return n, workflow.Do{workflow.Complete(rand.Int64())}
	})
	inATurn := made(t, random)
	for name, f := range map[string]func(aqueducttest.TB){
		"a start": func(tb aqueducttest.TB) {
			k := aqueducttest.Definition(tb, inATurn)
			k.OnCall("f").Never()
			k.Start(`{}`)
		},
		"a recovery": func(tb aqueducttest.TB) {
			k := aqueducttest.Definition(tb, inATurn)
			k.OnCall("f").Return(`""`)
			fails = true
			k.Start(`{}`)
			fails = false
			k.Operate(engine.Retry, nil)
		},
		"map":    func(tb aqueducttest.TB) { aqueducttest.Given(tb, def, nil).WhenStarted(nil) },
		"random": func(tb aqueducttest.TB) { aqueducttest.Given(tb, def, notes{}).When(call, "") },
		"in an instance": func(tb aqueducttest.TB) {
			k := aqueducttest.Definition(tb, def)
			k.OnCall("f").Return(`""`)
			k.Start(`{}`)
		},
	} {
		if r := judged(f); !strings.Contains(r.said, "workflow.impure") {
			t.Errorf("%s: %q", name, r.said)
		}
	}
}

// judge is a test that may fail.
type judge struct {
	aqueducttest.TB
	said string
}

func judged(f func(aqueducttest.TB)) (j *judge) {
	j = &judge{}
	defer func() { _ = recover() }()
	f(j)
	return j
}

func (j *judge) Helper()                   {}
func (j *judge) Cleanup(func())            {}
func (j *judge) Errorf(f string, a ...any) { j.said += fmt.Sprintf(f, a...) }
func (j *judge) Fatalf(f string, a ...any) { j.Errorf(f, a...); panic(j) }

// The other face: decide and evolve.
type (
	happening interface{ happened() }
	booked    struct{ ID string }
	refused   struct{ Why string }
)

func (booked) happened()  {}
func (refused) happened() {}

func TestADeciderRecordsItsEvents(t *testing.T) {
	t.Parallel()
	book := workflow.Call[int, string]("book", "f")
	w := workflow.Decided("t/decider", "1.0.0", workflow.Decider[notes, happening]{
		Decide: func(n notes, in workflow.Input[any]) ([]happening, workflow.Do) {
			switch v := in.Value.(type) {
			case int:
				return nil, workflow.Do{book.With(v)}
			case string:
				return []happening{booked{v}}, workflow.Do{workflow.Complete(append(n, v))}
			case workflow.Failure:
				return []happening{refused{v.Detail}}, workflow.Do{workflow.Complete("refused")}
			}
			panic("an input of no type")
		},
		Evolve: func(n notes, e happening) notes {
			if b, ok := e.(booked); ok {
				n = append(n, b.ID)
			}
			return n
		},
		Takes: []workflow.Taken{workflow.Begins[int](workflow.To(book)), workflow.Takes(book), workflow.TakesFailure(book)},
	})
	def := made(t, w)
	aqueducttest.Given(t, def, nil).WhenStarted(5).Then(notes{}, book.With(5)).ThenEvents()
	aqueducttest.Given(t, def, notes{}).When(book, "b-1").Then(notes{"b-1"}, workflow.Complete(notes{"b-1"})).ThenEvents(booked{"b-1"})
	aqueducttest.Given(t, def, notes{}).When(book, workflow.Failure{Detail: "full"}).Then(notes{}, workflow.Complete("refused")).ThenEvents(refused{"full"})
	k := aqueducttest.Definition(t, def)
	k.OnCall("f").Return(`"b-1"`)
	k.Start(`5`).Completed(`["b-1"]`)
	if line := k.Timeline(); !strings.Contains(line, "booked") {
		t.Errorf("no event in the stream:\n%s", line)
	}
}

// TestAnInstanceGoesOnInANewerVersion, by two upcasts, with the event for it.
func TestAnInstanceGoesOnInANewerVersion(t *testing.T) {
	t.Parallel()
	paid := workflow.Event[int]("paid", "paid")
	v := func(version string, upcasts bool) *workflow.Definition {
		w := workflow.New[map[string]int]("t/v", version)
		workflow.Start(w, func(map[string]int, workflow.Input[any]) (map[string]int, workflow.Do) {
			return map[string]int{"v": 1}, workflow.Do{paid.Listen()}
		})
		workflow.On(w, paid, func(s map[string]int, _ workflow.Input[int]) (map[string]int, workflow.Do) {
			return s, workflow.Do{workflow.Complete(s)}
		})
		if upcasts {
			for from, to := range map[string]string{"1.0.0": "1.1.0", "1.1.0": "2.0.0"} {
				workflow.Upcast(w, from, to, func(s map[string]int) (map[string]int, error) { s["v"]++; return s, nil })
			}
		}
		return made(t, w)
	}
	old, present := v("1.0.0", false), v("2.0.0", true)
	in := engine.Input{Now: time.Unix(1, 0), Key: []byte("k"), Incarnation: "i"}
	out, err := engine.Begin(old, "i", signal.Start{Input: []byte(`{}`)}, in)
	if err != nil {
		t.Fatal(err)
	}
	was, ok := present.From(old.Ref())
	if _, unknown := present.From(snapshot.Definition{Name: "t/v", Version: "0.9.0"}); !ok || unknown {
		t.Fatal("it goes on from another version than those that it has upcasts for")
	}
	in.Signal = signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, Payload: []byte(`{"type":"paid","data":1}`), Sender: "x", Sequence: 1}
	if out, err = engine.Step(was, out.Snapshot, in); err != nil {
		t.Fatal(err)
	}
	if s := out.Snapshot; s.Definition != present.Ref() || string(s.State.Output) != `{"v":3}` {
		t.Errorf("%+v: %s", s.Definition, s.State.Output)
	}
}

// TestDecisionsOfOneTurnAskForDifferentEffects: what an instance took while it was suspended is
// decided about in one turn, and each decision publishes an event, calls and records of its own.
func TestDecisionsOfOneTurnAskForDifferentEffects(t *testing.T) {
	t.Parallel()
	item, next := workflow.Call[int, string]("item", "f"), workflow.Call[int, string]("next", "g")
	w := workflow.New[notes]("t/parts", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{item.With(1).Of(1), item.With(2).Of(2), item.With(3).Of(3)}
	})
	workflow.On(w, item, func(n notes, in workflow.Input[string]) (notes, workflow.Do) {
		do := workflow.Do{workflow.Emit("step.done", map[string]int{}), workflow.Compensation("part", "undo", 1)}
		if len(n) > 0 {
			do = append(do, workflow.Withdraw(next, 0))
		}
		return append(n, in.Value), append(do, next.With(1))
	})
	workflow.On(w, next, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) { return n, nil })
	def := made(t, w)
	p := play(t, def)
	p.asks(def, engine.Suspend)
	for range 2 {
		p.comes(def, snapshot.WaitCommand, `{"output":"x"}`)
		p.snap.Waits = append(p.snap.Waits[1:], p.snap.Waits[0]) // the next result is another's
	}
	p.asks(def, engine.Resume)
	keys := map[string]int{}
	ids := map[string]bool{}
	for _, c := range p.commands[3:] {
		keys[c.Key]++
		var event struct{ ID string }
		if json.Unmarshal(c.Input, &event) == nil && event.ID != "" {
			ids[event.ID] = true
		}
	}
	for _, c := range p.snap.Compensations {
		keys[c.Key]++
	}
	if len(keys) != 6 || len(ids) != 2 {
		t.Errorf("%d keys of six effects, %d ids of two events: %v", len(keys), len(ids), keys)
	}
}
