package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// saga is a definition that is Go code, with no language: it sends two commands,
// one after the other, and undoes the first when the second fails.
type saga struct{ request string } // of the second

const booking, payment = "/booking", "/payment"

func (saga) Ref() snapshot.Definition { return snapshot.Definition{Name: "t/saga", Version: "1.0.0"} }

func send(t *engine.Turn, pointer, input string) error {
	t.Tell(engine.LifecycleEvent{Type: engine.TaskStartedEvent, Task: pointer})
	c := engine.Command{Target: "run", Input: json.RawMessage(input), Pointer: pointer}
	if e := t.Effects.Identify(&c, engine.Effect{Pointer: pointer}); e != nil {
		t.Halt(*e)
		return nil
	}
	t.Perform(c, snapshot.Wait{Pointer: pointer, Effect: c.Key})
	return nil
}

func (saga) Begin(t *engine.Turn, _ json.RawMessage) error { return send(t, booking, `1`) }

func (s saga) Resume(t *engine.Turn, w snapshot.Wait, r engine.Result) error {
	switch {
	case compensate.Resume(t, w, r):
	case r.Unknown:
		t.Fault(*r.Error)
	case r.Error != nil:
		compensate.All(t, *r.Error)
	case w.Pointer == booking:
		compensate := engine.Command{Target: "cancel", Input: r.Output, Compensates: true}
		t.Snap.Compensations = []snapshot.Compensation{{
			Step: 1, Pointer: booking, Target: compensate.Target, Input: compensate.Input, Key: t.Effects.Key(engine.Effect{Pointer: booking}, &compensate),
		}}
		return send(t, payment, s.request)
	default:
		t.Complete(r.Output)
	}
	return nil
}

func (s saga) Recover(t *engine.Turn, op engine.Operation, _ json.RawMessage) error {
	if compensate.Recover(t, op) {
		return nil
	}
	t.Snap.Error = nil
	return send(t, payment, s.request)
}

func (saga) Matches(*snapshot.Snapshot, snapshot.Wait, json.RawMessage) (bool, error) {
	return false, nil
}

func (saga) Correlate(string, int, int, json.RawMessage) (string, bool, error) {
	return "", false, nil
}

// The payment may be repeated, and only the booking is a task.
func (saga) Outermost(*snapshot.Snapshot) (pointer, visit string, ok bool) { return payment, "", true }
func (saga) NewKey(string) bool                                            { return false }
func (saga) IsTask(pointer string) bool                                    { return pointer == booking }

// run is an instance of a saga.
type run struct {
	*testing.T
	def  saga
	snap snapshot.Snapshot
	out  *engine.Outcome
	n    int
}

func (r *run) input() engine.Input {
	r.n++
	return engine.Input{Now: time.Unix(int64(r.n), 0), Key: []byte("k"), Incarnation: "inc", Lifecycle: true}
}

func (r *run) accept(out *engine.Outcome, err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	r.out, r.snap = out, out.Snapshot
}

func (r *run) begin() {
	r.Helper()
	r.accept(engine.Begin(r.def, "i", signal.Start{Input: json.RawMessage(`{}`)}, r.input()))
}

func (r *run) answer(payload string) {
	r.Helper()
	in := r.input()
	in.Signal = signal.Envelope{
		SignalID: fmt.Sprint("s", r.n), InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: r.snap.Waits[0].Token, Payload: json.RawMessage(payload),
	}
	r.accept(engine.Step(r.def, r.snap, in))
}

func (r *run) operate(op engine.Operation) error {
	out, err := operate.Operate(r.def, r.snap, op, nil, r.input())
	if err == nil {
		r.out, r.snap = out, out.Snapshot
	}
	return err
}

// sent is the command that the last turn has sent to a performer; nil = none.
func (r *run) sent() *engine.Command {
	for _, e := range r.out.Entries {
		if e.Type == engine.EntryCall {
			return e.Command
		}
	}
	return nil
}

// told are the lifecycle events that the last turn publishes.
func (r *run) told() (list []string) {
	for _, e := range r.out.Entries {
		if e.Type != engine.EntryLifecycle {
			continue
		}
		var l engine.Lifecycle
		if err := json.Unmarshal(e.Command.Input, &l); err != nil {
			r.Fatal(err)
		}
		for _, e := range l.Events {
			list = append(list, strings.TrimPrefix(e.Type, "io.serverlessworkflow.")+" "+e.Task)
		}
	}
	return list
}

const (
	failed  = `{"error": {"type": "https://example.org/e", "status": 500, "detail": "no"}}`
	unknown = `{"error": {"type": "https://example.org/e", "status": 500}, "unknown": true}`
)

// TestATurnCompensatesByItself: once Go code has it begin, the turn takes every
// answer and every operation until all is compensated.
func TestATurnCompensatesByItself(t *testing.T) {
	t.Parallel()
	r := &run{T: t, def: saga{"2"}}
	r.begin()
	r.answer(`{"output": 7}`)
	key := r.snap.Compensations[0].Key
	r.answer(failed)
	asked := func(when string) {
		t.Helper()
		c := r.sent()
		if c == nil || !c.Compensates || c.Target != "cancel" || string(c.Input) != "7" || c.Key != key || r.snap.Waits[0].Pointer != booking {
			t.Fatalf("%s: %+v with %+v", when, c, r.snap.Waits)
		}
	}
	asked("after the failure")
	r.answer(failed)
	if r.snap.Status != snapshot.Faulted || r.snap.Error.Type != compensate.TypeStuck || r.snap.Error.Detail != "compensation of /booking failed: no (https://example.org/e)" || r.snap.Error.Instance != booking {
		t.Fatalf("%s: %+v", r.snap.Status, r.snap.Error)
	}
	before := r.snap
	if err := r.operate(engine.Skip); err != nil || r.sent() != nil || r.snap.Status != snapshot.Compensated || !r.snap.Compensating.Done {
		t.Errorf("skip: %v, %s, %+v", err, r.snap.Status, r.snap.Compensating)
	}
	r.snap = before
	if err := r.operate(engine.Retry); err != nil {
		t.Fatal(err)
	}
	asked("after the retry")
	r.answer(`{"output": null}`)
	if r.snap.Status != snapshot.Compensated || r.snap.Error.Detail != "no" || !r.snap.Compensating.Done || len(r.snap.Compensations) > 0 {
		t.Errorf("%s: %+v, %+v, %+v", r.snap.Status, r.snap.Error, r.snap.Compensating, r.snap.Compensations)
	}
	if err := r.operate(engine.Retry); problem.CodeOf(err) != "instance.closed" {
		t.Errorf("a retry of what is compensated: %v", err)
	}
}

// TestARepeatedEffectHasItsKey: of a command whose outcome is unknown the same
// request has the same key, and another one is the operator's to choose.
func TestARepeatedEffectHasItsKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, request string
		op            engine.Operation
		same, asks    bool
	}{
		{"the same request", "2", engine.Retry, true, false},
		{"another request", "3", engine.Retry, false, true},
		{"another request, by the operator's word", "3", engine.RetryNew, false, false},
	} {
		r := &run{T: t, def: saga{"2"}}
		r.begin()
		r.answer(`{"output": 7}`)
		key := r.sent().Key
		r.answer(unknown)
		r.def.request = c.request
		if err := r.operate(c.op); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		sent := r.sent()
		if c.asks {
			if sent != nil || r.snap.Error == nil || r.snap.Error.Type != engine.TypeUndecided || r.snap.Error.Instance != payment || len(r.snap.Waits) > 0 {
				t.Errorf("%s: sends %+v, %+v", c.name, sent, r.snap.Error)
			}
			continue
		}
		if sent == nil || (sent.Key == key) != c.same || string(sent.Input) != c.request {
			t.Errorf("%s: sends %+v after %s", c.name, sent, key)
		}
	}
}

// TestOnlyTasksAreTold: an event of what the definition does not call a task is
// not published, and the turn tells the workflow's own.
func TestOnlyTasksAreTold(t *testing.T) {
	t.Parallel()
	r := &run{T: t, def: saga{"2"}}
	r.begin()
	if got := r.told(); !slices.Equal(got, []string{"workflow.started.v1 ", "task.started.v1 " + booking}) {
		t.Errorf("the first turn tells %q", got)
	}
	r.answer(`{"output": 7}`)
	if got := r.told(); len(got) > 0 {
		t.Errorf("the second turn tells %q", got)
	}
	r.answer(`{"output": 8}`)
	if got := r.told(); !slices.Equal(got, []string{"workflow.completed.v1 "}) {
		t.Errorf("the last turn tells %q", got)
	}
}

// TestAnEndedScheduleSendsOn what was on its way to it, once.
func TestAnEndedScheduleSendsOn(t *testing.T) {
	t.Parallel()
	snap := snapshot.Snapshot{
		InstanceID: "schedule.t.s.1.0.0", Version: 4, Status: snapshot.Cancelled, Definition: saga{}.Ref(), Schedule: &snapshot.Schedule{Successor: "next"},
	}
	for typ, want := range map[signal.Type]int{signal.ExternalSignal: 1, signal.SubWorkflowCompleted: 1, signal.TimerDue: 0} {
		env := signal.Envelope{SignalID: "s", InstanceID: snap.InstanceID, Type: typ, Payload: []byte(`{}`), WaitingToken: "t"}
		out, err := engine.Step(saga{}, snap, engine.Input{Signal: env, Now: time.Unix(1, 0)})
		if err != nil || out.Disposition != engine.Closed || len(out.Send) != want {
			t.Fatalf("%s: %+v, %v", typ, out, err)
		}
		if want > 0 && (out.Send[0].Envelope.InstanceID != "next" || out.Send[0].Envelope.SignalID != "s" || out.Send[0].Envelope.WaitingToken != "t") {
			t.Errorf("%s: sends %+v", typ, out.Send[0])
		}
	}
}
