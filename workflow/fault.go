package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

type rawJSON = json.RawMessage

// TypeBase begins the types of errors of instances about which nothing could be
// decided; the code of the fault follows, such as workflow.panic.
const TypeBase = "urn:aqueduct:error:"

// fault says that a decision cannot be made, for which its author is to blame.
type fault struct{ code, detail, hint string }

func (f *fault) Error() string { return f.detail + f.hint }

func faultOf(code, detail string, args ...any) *fault {
	return &fault{code: code, detail: fmt.Sprintf(detail, args...)}
}

// with returns f after saying what to do about it.
func (f *fault) with(hint string, args ...any) *fault {
	f.hint = " (" + fmt.Sprintf(hint, args...) + ")"
	return f
}

// panicked is the fault of a function that panics.
func panicked(v any) *fault {
	return faultOf("workflow.panic", "panic: %s", strings.TrimSpace(fmt.Sprint(v))).with("at %s", panickedAt())
}

// panickedAt is the first place outside of this package and the Go runtime.
func panickedAt() string {
	var at [32]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(4, at[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return filepath.Base(f.File) + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// broken stops the instance at an arrival about which nothing could be decided. Who
// waits for the instance is not told, for it may yet go on.
func (r *run) broken(a arrival, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	if err := r.keep(a); err != nil {
		return err
	}
	r.halt(a.pointer, f)
	return nil
}

// halt stops the instance at a step.
func (r *run) halt(pointer string, f *fault) {
	r.t.Halt(snapshot.Error{Type: TypeBase + f.code, Status: 500, Title: "Decision failed", Detail: f.Error(), Instance: pointer})
}

// keep keeps an arrival in its frame, to be decided about later. A failure that says that
// nothing was done leaves nothing to undo, whatever will be decided: but while something is
// being undone, what there is to undo stays as it is.
func (r *run) keep(a arrival) error {
	f := r.frame(a.pointer, a.item)
	if f == nil {
		return fmt.Errorf("workflow: %s: nothing is open at %s", r.t.Snap.InstanceID, a.pointer)
	}
	k := kept{Output: a.result.Output, Error: a.result.Error, Actor: a.result.Actor, Unknown: a.result.Unknown, Open: a.result.Open}
	if a.early != nil {
		k.Early = new(*a.early)
		k.Early.Payload = nil
	}
	raw, err := encode(k)
	if f.Phase, f.Raw = phaseDecide, raw; a.result.Error != nil && r.t.Snap.Compensating == nil {
		compensations{r}.settle(f, a.result)
	}
	return err
}

// fail ends the workflow with the failure of a step that no function takes.
func (r *run) fail(a arrival) error {
	f := r.frame(a.pointer, a.item)
	if f == nil {
		return fmt.Errorf("workflow: %s: nothing is open at %s", r.t.Snap.InstanceID, a.pointer)
	}
	r.told(a)
	compensations{r}.settle(f, a.result)
	f.Phase = phaseFailed
	e := *a.result.Error
	if e.Instance == "" {
		e.Instance = a.pointer
	}
	r.end(e)
	return nil
}

// failed ends the workflow as its author says.
func (r *run) failed(a arrival, e Effect) error {
	var f Failure
	if err := decode(e.Input, &f); err != nil {
		return err
	}
	if len(f.Type) > snapshot.MaxErrorType {
		return r.broken(a, faultOf("workflow.effect", "the type of a failure has %d bytes; at most %d", len(f.Type), snapshot.MaxErrorType))
	}
	if err := r.keep(a); err != nil {
		return err
	}
	if f.Type == "" {
		f.Type = engine.ErrorBase + engine.ErrRuntime
	}
	if f.Status == 0 {
		f.Status = 500
	}
	compensations{r}.settle(r.frame(a.pointer, a.item), a.result)
	r.end(snapshot.Error{Type: f.Type, Status: f.Status, Title: f.Title, Detail: f.Detail, Instance: a.pointer})
	return nil
}

// end compensates what is recorded, which ends the instance; without that it is faulted.
func (r *run) end(e snapshot.Error) {
	compensate.All(r.t, e)
}

// Recover has a faulted instance go on: it decides again about what could not be
// decided, and asks again for the steps that were open, under their keys. A skip
// takes the step that failed as done with output.
func (d *Definition) Recover(t *engine.Turn, op engine.Operation, output json.RawMessage) error {
	r, err := d.at(t)
	if err != nil || compensate.Recover(t, op) {
		return err
	}
	if op == engine.Skip && !slices.ContainsFunc(r.b.Frames, func(f snapshot.Frame) bool { return f.Phase != "" }) {
		return problem.New(problem.Conflict, "workflow.not-skippable", "instance %s did not fail at a step", t.Snap.InstanceID).WithHint("retry it, or cancel it")
	}
	t.Snap.Error = nil
	var arrivals []arrival
	skipped := false
	for i := range r.b.Frames {
		f := &r.b.Frames[i]
		phase := f.Phase
		a := arrival{pointer: f.Pointer, item: f.Next}
		switch {
		case op == engine.Skip && phase != "" && !skipped:
			skipped = true
			a.result = engine.Result{Output: output, Actor: t.In.Signal.Headers["actor"]}
			arrivals = append(arrivals, a)
		case phase == phaseDecide:
			var k kept
			if err := decode(f.Raw, &k); err != nil {
				return err
			}
			a.result = engine.Result{Output: k.Output, Error: k.Error, Actor: k.Actor, Unknown: k.Unknown, Open: k.Open}
			if a.early = k.Early; a.early != nil {
				a.early.Payload = k.Output
			}
			arrivals = append(arrivals, a)
		default:
			f.Attempt = 0
			compensations{r}.settle(f, timedOut(f.Pointer)) // it was withdrawn while it may have been under way
			t.Tell(engine.LifecycleEvent{Type: engine.TaskRetriedEvent, Task: f.Pointer})
			arrivals = append(arrivals, r.open(f)...)
		}
		f.Phase, f.Raw = "", nil
	}
	return r.drive(arrivals...)
}
