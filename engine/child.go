package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Limits of sub-workflows.
const (
	// MaxDepth bounds how many instances wait for each other: what a definition that calls itself runs into.
	MaxDepth = 32
	// MaxChildBytes bounds the input of a sub-workflow, as JSON: it travels in a message.
	// A larger output stays in the child's snapshot, and is read from there.
	MaxChildBytes = 28_000
)

// childSpace is the namespace of the ids of child instances.
var childSpace = uuid.MustParse("8e0f8f5b-20e1-5a4c-8a47-1d5b8a0c8d8e")

// Spawn starts a child instance, whose parent the turn sets, and, when its end is awaited, adds the wait for it.
// Depth is how many instances wait above the child. Its id is derived: a repeated decision starts the same one.
func (t *Turn) Spawn(child signal.Start, await bool, depth int, w snapshot.Wait) error {
	id := uuid.NewSHA1(childSpace, []byte(t.NewToken())).String()
	parent := &signal.Parent{InstanceID: t.Snap.InstanceID, Depth: depth}
	child.Parent = parent
	if await {
		w.Kind = snapshot.WaitChild
		w = t.Await(w)
		parent.Token = w.Token
		t.Snap.SubFrames = append(t.Snap.SubFrames, snapshot.SubFrame{InstanceID: id, Token: w.Token, Pointer: w.Pointer})
	}
	if err := t.Start(id, child); err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"instanceId": id, "definition": child.Definition, "version": child.Version, "await": await})
	if err != nil {
		return err
	}
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryChild, Data: data, Meta: Meta{Pointer: w.Pointer}})
	return nil
}

// Start asks for an instance, which the turn's commit sends.
func (t *Turn) Start(id string, start signal.Start) error {
	payload, err := json.Marshal(start)
	if err == nil {
		t.send(id, signal.StartRequest, "", time.Time{}, payload)
	}
	return err
}

// forgetChild forgets the child that a wait was for. One that has not ended stays, as one that was left: it may
// complete, and its answer says so. It is told to undo what it has done, but not who undoes something: that goes on.
func forgetChild(t *Turn, w *snapshot.Wait, ended bool) (stays bool) {
	var kept []snapshot.SubFrame
	for _, f := range t.Snap.SubFrames {
		if f.Token == w.Token && !ended && w.Left <= 0 && t.Snap.Schedule == nil { // the end of a schedule ends no run
			if stays = !t.keeps && w.Left == 0; stays {
				w.Branch, w.Left, t.Snap.LastStep = 0, t.Snap.LastStep+1, t.Snap.LastStep+1
			}
			if payload, _ := json.Marshal(signal.Cancellation{Token: w.Token, Compensate: !t.keeps, Await: stays}); w.Effect == "" || !stays { // strings cannot fail
				t.send(f.InstanceID, signal.CancelRequest, "", time.Time{}, payload)
			}
		}
		if f.Token != w.Token || stays {
			kept = append(kept, f)
		}
	}
	t.Snap.SubFrames = kept
	return stays
}

// Adopt makes the parent's what undoes a child that was waited for at w.
func Adopt(t *Turn, w snapshot.Wait, done []snapshot.Compensation) {
	for _, c := range done {
		t.Snap.LastStep++
		c.Step, c.Pointer = t.Snap.LastStep, w.Pointer
		t.Snap.Compensations = append(slices.Clip(t.Snap.Compensations), c)
	}
}

// ended takes the end of a child in a turn that does nothing else with it: it is told once. Its output is not asked for.
func ended(t *Turn) {
	var end ChildEnd
	w, ok := t.Snap.Wait(t.In.Signal.WaitingToken)
	if !ok || w.Kind != snapshot.WaitChild || !fits(t.In.Signal.Type, w.Kind) || jsonv2.Unmarshal(t.In.Signal.Payload, &end) != nil {
		return
	}
	end.Output = nil
	data, _ := json.Marshal(end) // JSON already
	t.Append(Entry{Kind: KindEvent, Dir: In, Type: string(t.In.Signal.Type), Data: data, Meta: Meta{Pointer: w.Pointer}})
	t.take(w, false)
	if w.Effect == "" {
		Adopt(t, w, end.Compensations)
		return
	}
	i := slices.IndexFunc(t.Snap.Compensations, func(c snapshot.Compensation) bool { return c.Step == w.Arm })
	if i >= 0 && end.Error == nil { // it has undone something, and what undoes that nobody wants
		t.Effects.Compensated(t.Snap.Compensations[i])
		t.Snap.Compensations = slices.Delete(slices.Clone(t.Snap.Compensations), i, i+1)
	}
}

// ChildEnd is the payload of a SubWorkflowCompleted. Its token names the wait that it answers.
type ChildEnd struct {
	Child  string          `json:"child"`            // the instance that ended
	Output json.RawMessage `json:"output,omitempty"` // absent with Stored or Error
	Stored bool            `json:"stored,omitempty"` // output and compensations are in the child's snapshot
	Error  *snapshot.Error `json:"error,omitempty"`

	Compensations []snapshot.Compensation `json:"compensations,omitempty"` // what undoes a child that has completed
}

// TellParent sends what the instance came to, to the instance that waits for it.
func TellParent(t *Turn, output json.RawMessage, e *snapshot.Error, done ...snapshot.Compensation) {
	p := t.Snap.Parent
	if p == nil || p.Token == "" {
		return
	}
	end := ChildEnd{Child: t.Snap.InstanceID, Compensations: done}
	raw, _ := json.Marshal(done) // JSON already
	switch {
	case e != nil:
		end.Error = ChildError(t.Snap.Definition.Name, t.Snap.InstanceID, *e)
	case len(output)+len(raw) > MaxChildBytes:
		end.Stored, end.Compensations = true, nil
		t.Snap.Compensations = done
	case len(output) == 0:
		end.Output = json.RawMessage("null")
	default:
		end.Output = output
	}
	payload, _ := json.Marshal(end) // JSON already
	t.send(p.InstanceID, signal.SubWorkflowCompleted, p.Token, time.Time{}, payload)
}

// maxChildDetail bounds the text of a child's error, in bytes.
const maxChildDetail = 4_000

// ChildError is a child's error as its parent sees it: with the child's type and status, and a reference to it. Where
// it was raised in the parent is added there.
func ChildError(definition, instanceID string, e snapshot.Error) *snapshot.Error {
	where := ""
	if e.Instance != "" {
		where = " at " + e.Instance
	}
	e.Detail = strings.TrimPrefix(fmt.Sprintf("%s (in sub-workflow %s, instance %s%s)", e.Detail, definition, instanceID, where), " ")
	e.Instance = ""
	if len(e.Detail) > maxChildDetail {
		cut := maxChildDetail
		for !utf8.RuneStart(e.Detail[cut]) {
			cut--
		}
		e.Detail = e.Detail[:cut]
	}
	return &e
}

// cancel ends the instance without a result.
func cancel(t *Turn) {
	t.keeps = true
	if t.Snap.Status != snapshot.Faulted && t.Snap.Compensating == nil { // else they have ended with the fault
		t.TellAll(TaskCancelledEvent)
	}
	t.Withdraw(TaskCancelled, func(snapshot.Wait) bool { return true })
	t.Snap.Branches, t.Snap.Buffer, t.Snap.Ahead, t.Snap.Compensations, t.Snap.Compensating = nil, nil, nil, nil, nil
	t.Snap.Status = snapshot.Cancelled
	t.Tell(LifecycleEvent{Type: WorkflowCancelledEvent})
}

// Cancel ends the instance, and tells its parent.
func (t *Turn) Cancel() {
	cancel(t)
	TellParent(t, nil, &snapshot.Error{Type: ErrorBase + ErrRuntime, Status: 500, Title: "Cancelled", Detail: "it was cancelled"})
}

// onCancel applies a CancelRequest: the parent does not wait any more.
func (t intake) onCancel(def Definition) (*Outcome, error) {
	c, err := signal.DecodeCancellation(t.In.Signal.Payload)
	if err != nil {
		return nil, err
	}
	if p := t.Snap.Parent; p == nil || p.Token != c.Token {
		return t.ignore(Stale)
	}
	data, _ := json.Marshal(map[string]string{"by": t.Snap.Parent.InstanceID}) // strings cannot fail
	t.Append(Entry{
		Kind: KindEvent, Dir: In, Type: EntryCancelled, Data: data, SignalID: t.In.Signal.SignalID,
	})
	if c.Compensate {
		t.Basis.With, _ = json.Marshal(signal.Cancellation{Compensate: true, Await: c.Await}) // the token is the parent's
	}
	switch d, ok := def.(Compensator); {
	case ok && c.Compensate && d.Compensate(t.Turn, !c.Await):
	case c.Await:
		t.Cancel()
	default:
		cancel(t.Turn)
	}
	return t.finish()
}

// passOn sends what an instance that kept a schedule gets after its end to the one that goes on: an event that was
// on its way to it, or the end of a run that was waited for, whose output no schedule asks for.
func passOn(t *Turn) {
	s, env := t.Snap.Schedule, t.In.Signal
	if s == nil || s.Successor == "" || env.Type != signal.ExternalSignal && env.Type != signal.SubWorkflowCompleted {
		return
	}
	env.InstanceID = s.Successor
	env.Sender, env.Sequence = "", 0 // the successor begins to count anew
	if env.Type == signal.SubWorkflowCompleted {
		env.Payload = json.RawMessage(`{"output":null}`)
	}
	t.out.Send = append(t.out.Send, Message{Envelope: env})
}
