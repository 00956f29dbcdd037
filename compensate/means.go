package compensate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Targets of compensations that are no plain command; no function has such a name.
// The input of one has all that it takes, so that the parent of an instance can do
// it, too, without the definition that has recorded it.
const (
	TargetRun          = "run:workflow"      // its input is a [Run]
	TargetPerson       = "call:humanTask"    // an [Ask]
	TargetAcknowledged = "call:acknowledged" // a [Delivery]
)

// Limit is how long one may take that is no plain command.
type Limit struct {
	TimeoutNanos int64 `json:"timeoutNanos,omitzero"` // after which it has failed, and is withdrawn; 0 = without end
}

// Run is a compensation by a sub-workflow.
type Run struct {
	Limit

	Definition string          `json:"definition"`
	Version    string          `json:"version,omitempty"` // "" = the latest, when it begins
	Input      json.RawMessage `json:"input"`
}

// Ask is a compensation by a person. Of a task that names outcomes the first says that
// it is done.
type Ask struct {
	Limit

	Task     engine.Task `json:"task"`
	DueNanos int64       `json:"dueNanos,omitzero"` // from when it is asked; 0 = none
}

// Delivery is a compensation by a command whose consumer says that it is done.
type Delivery struct {
	Limit

	Call        string          `json:"call"`
	With        json.RawMessage `json:"with"`
	WithinNanos int64           `json:"withinNanos"` // see [engine.Command.Ack]
}

// Targeted says what sends a Run, an Ask or a Delivery: the target and the input of
// its compensation.
func Targeted(means any) (target string, input json.RawMessage, err error) {
	switch m := means.(type) {
	case Run:
		if target = TargetRun; len(m.Input) > engine.MaxChildBytes {
			return "", nil, fmt.Errorf("an input of %d bytes exceeds %d; pass a reference to large data", len(m.Input), engine.MaxChildBytes)
		}
	case Ask:
		target = TargetPerson
	case Delivery:
		target = TargetAcknowledged
	default:
		return "", nil, fmt.Errorf("compensate: nothing is compensated by %T", means)
	}
	input, err = jsonv2.Marshal(means, jsonv2.Deterministic(true))
	return target, input, err
}

// Send asks for one compensation, and adds the wait for its result, whose arm is the
// compensation's step. The error says that it cannot be asked for.
func Send(t *engine.Turn, c snapshot.Compensation, w snapshot.Wait) *snapshot.Error {
	if c.Lacks != "" {
		return lacking(c)
	}
	w.Arm = c.Step
	limit := w
	if c.Key == "" { // recorded before there were keys
		command := engine.Command{Target: c.Target, Input: c.Input}
		c.Key = t.Effects.KeyIn(1, engine.Effect{Pointer: c.Pointer + "/compensate", Visit: fmt.Sprintf("step%d", c.Step)}, &command)
	}
	var err error
	switch c.Target {
	case TargetRun:
		err = run(t, c, w)
	case TargetPerson:
		err = ask(t, c, w)
	case TargetAcknowledged:
		var d Delivery
		if err = jsonv2.Unmarshal(c.Input, &d); err == nil {
			perform(t, engine.Command{Target: d.Call, Input: d.With, Ack: time.Duration(d.WithinNanos)}, c, w)
		}
	default:
		perform(t, engine.Command{Target: c.Target, Input: c.Input}, c, w)
	}
	if err == nil {
		limited(t, c, limit)
		return nil
	}
	return &snapshot.Error{
		Type: TypeStuck, Status: 500, Title: "Compensation not possible", Instance: c.Pointer,
		Detail: fmt.Sprintf("the compensation of %s by %s cannot be asked for: %v", c.Pointer, c.Target, err),
	}
}

// limited has a compensation that was asked for fail after its time.
func limited(t *engine.Turn, c snapshot.Compensation, w snapshot.Wait) {
	var l Limit
	if slices.Contains([]string{TargetRun, TargetPerson, TargetAcknowledged}, c.Target) && jsonv2.Unmarshal(c.Input, &l) == nil && l.TimeoutNanos > 0 {
		w.Kind, w.Until = snapshot.WaitTimeout, t.In.Now.Add(time.Duration(l.TimeoutNanos))
		t.Await(w)
	}
}

// expired is the Left of a wait for a sub-workflow whose time is over: it ends, and
// nobody waits for it.
const expired = -1

// over withdraws what is left of a compensation that has its result, or whose time is
// over, which is an error.
func over(t *engine.Turn, w snapshot.Wait) *snapshot.Error {
	left := func(x snapshot.Wait) bool {
		return x.Branch == w.Branch && x.Pointer == w.Pointer && (x.Arm == w.Arm || x.Kind == snapshot.WaitDue)
	}
	for i, x := range t.Snap.Waits {
		if left(x) && undoes(x) {
			t.Snap.Waits[i].Left = expired
		}
	}
	if slices.ContainsFunc(t.Snap.Waits, left) {
		t.Withdraw(engine.TaskExpired, left)
	}
	if w.Kind != snapshot.WaitTimeout {
		return nil
	}
	return &snapshot.Error{Type: engine.ErrorBase + engine.ErrTimeout, Status: 408, Title: "Timeout", Detail: "it was not done in time"}
}

func perform(t *engine.Turn, command engine.Command, c snapshot.Compensation, w snapshot.Wait) {
	command.Pointer, command.Key, command.Compensates, command.Reverses = c.Pointer, c.Key, true, c.Effect
	t.Perform(command, w)
}

// run begins the sub-workflow of a compensation. Its wait has an Effect, as that of no
// other sub-workflow has: see [undoes].
func run(t *engine.Turn, c snapshot.Compensation, w snapshot.Wait) error {
	var r Run
	if err := jsonv2.Unmarshal(c.Input, &r); err != nil {
		return err
	}
	depth := 1
	if p := t.Snap.Parent; p != nil {
		depth += p.Depth
	}
	if depth > engine.MaxDepth {
		return fmt.Errorf("sub-workflows wait for each other more than %d deep", engine.MaxDepth)
	}
	w.Effect = c.Key
	return t.Spawn(signal.Start{Definition: r.Definition, Version: r.Version, Input: r.Input}, true, depth, w)
}

// undoes reports whether a wait is for a sub-workflow that compensates.
func undoes(w snapshot.Wait) bool { return w.Kind == snapshot.WaitChild && w.Effect != "" }

// ask asks the person of a compensation.
func ask(t *engine.Turn, c snapshot.Compensation, w snapshot.Wait) error {
	var a Ask
	if err := jsonv2.Unmarshal(c.Input, &a); err != nil {
		return err
	}
	a.Task.Pointer = c.Pointer
	a.Task.Name = strings.NewReplacer("~1", "/", "~0", "~").Replace(c.Pointer[strings.LastIndexByte(c.Pointer, '/')+1:])
	if a.DueNanos > 0 {
		a.Task.DueAt = t.In.Now.Add(time.Duration(a.DueNanos)).Truncate(time.Microsecond)
	}
	t.Ask(a.Task, w)
	return nil
}

// refused is the error of a person who has not done what was asked; nil = it is done.
func refused(c snapshot.Compensation, answer json.RawMessage) *snapshot.Error {
	var a Ask
	var said struct {
		Outcome string `json:"outcome"`
	}
	if c.Target != TargetPerson || jsonv2.Unmarshal(c.Input, &a) != nil || len(a.Task.Outcomes) == 0 {
		return nil
	}
	_ = jsonv2.Unmarshal(answer, &said) // an answer without an outcome is not the one that is wanted
	if said.Outcome == a.Task.Outcomes[0] {
		return nil
	}
	return &snapshot.Error{
		Type: engine.ErrorBase + engine.ErrRuntime, Status: 409, Title: "Not compensated",
		Detail: fmt.Sprintf("the person who was asked says %q, not %q", said.Outcome, a.Task.Outcomes[0]),
	}
}
