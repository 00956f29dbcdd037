package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// Begin decides the first turn of an instance. A signal that belongs to the start is part of it: heard, kept, or,
// when the problem says so, reason not to begin.
func Begin(def Definition, instanceID string, start signal.Start, in Input) (*Outcome, error) {
	if in.Incarnation == "" {
		return nil, fmt.Errorf("engine: %s: a first turn needs an incarnation", instanceID)
	}
	t := newTurn(snapshot.Snapshot{
		InstanceID: instanceID,
		Definition: def.Ref(),
		Business:   snapshot.BusinessReference(start.Business()),
		Status:     snapshot.Running,
		Headers:    lasting(in.Signal.Headers),
		State:      snapshot.State{Input: start.Input},
		Parent:     (*snapshot.Parent)(start.Parent),

		Incarnation: in.Incarnation,
	}, in)
	t.Snap.StartedAt = t.In.Now
	if s := start.Schedule; s != nil {
		t.Snap.Schedule = &snapshot.Schedule{Generation: s.Generation, Due: s.Due}
	}
	t.Basis.begun(*t.Snap)
	watch(t, def)
	intake{t}.started()
	var err error
	if s, scheduled := def.(Scheduled); start.Schedule == nil {
		err = def.Begin(t, start.Input)
	} else if scheduled {
		err = s.BeginSchedule(t)
	} else {
		err = errNotScheduled(t.Snap)
	}
	if err != nil {
		return nil, err
	}
	if start.Signal == nil {
		return t.finish()
	}
	env, err := start.Signal.Envelope(instanceID, in.Signal)
	if err != nil {
		return nil, err
	}
	t.In.Signal = env
	t.settle()
	if t.Snap.Status.Closed() {
		return intake{t}.ignore(Closed) // it ran to its end and did not listen
	}
	if env.Sequence > 0 {
		return intake{t}.numbered(def)
	}
	return intake{t}.external(def)
}

// started records that the instance has begun.
func (t intake) started() {
	m := Meta{Actor: t.In.Signal.Headers[signal.HeaderActor]}
	t.Append(Entry{Kind: KindEvent, Dir: In, Type: EntryStarted, Data: t.Snap.State.Input, Meta: m})
	t.Tell(LifecycleEvent{Type: WorkflowStartedEvent})
}

// Step decides what a signal does to an instance. Its errors are problems: the signal cannot be applied now or ever,
// and the snapshot is untouched, unless it is in.Own.
//
// Token before version: a signal with a token resumes exactly the wait that has it, and is stale without one. Only a
// signal without a token is held to its expectedVersion.
//
// With the signal it applies those that were kept until their turn came, when
// it has: the disposition is that of the signal itself.
func Step(def Definition, snap snapshot.Snapshot, in Input) (*Outcome, error) {
	out, err := step(def, &snap, in)
	if err != nil {
		return nil, err
	}
	return followed(def, out, in), nil
}

// step is Step for one signal.
func step(def Definition, snap *snapshot.Snapshot, in Input) (*Outcome, error) {
	if def.Ref() != snap.Definition.Alone() {
		return nil, problem.New(problem.Internal, "definition.digest", "instance %s runs %s@%s with digest %.12s, not %.12s",
			snap.InstanceID, snap.Definition.Name, snap.Definition.Version, snap.Definition.Digest, def.Ref().Digest)
	}
	env := in.Signal
	s := *snap
	if !in.Own {
		s = snap.Clone()
	}
	t := newTurn(s, in)
	watch(t, def)
	switch {
	case env.Type == signal.StartRequest:
		return nil, problem.New(problem.Conflict, "instance.exists", "instance %s has been started", snap.InstanceID)
	case snap.Status.Closed():
		passOn(t)
		return intake{t}.ignore(Closed)
	case env.Type == signal.CancelRequest:
		return intake{t}.onCancel(def)
	case env.WaitingToken != "":
		return intake{t}.token(def)
	case env.Sequence > 0:
		return intake{t}.numbered(def)
	case env.ExpectedVersion > 0 && env.ExpectedVersion != snap.Version:
		return intake{t}.ignore(Stale)
	case env.Type == signal.ExternalSignal:
		return intake{t}.external(def)
	}
	return nil, problem.New(problem.Invalid, "signal.invalid", "%s needs a waitingToken", env.Type)
}

func errNotScheduled(s *snapshot.Snapshot) error {
	return fmt.Errorf("engine: %s has no schedule", s.Definition.Name)
}

// lasting are the headers that follow everything an instance does. Who started it is said once, where it was started.
func lasting(headers map[string]string) map[string]string {
	if _, ok := headers[signal.HeaderActor]; !ok {
		return headers
	}
	rest := maps.Clone(headers)
	delete(rest, signal.HeaderActor)
	return rest
}

// token applies a signal to the wait that has its token.
func (t intake) token(def Definition) (*Outcome, error) {
	w, ok := t.Snap.Wait(t.In.Signal.WaitingToken)
	env := &t.In.Signal
	if !ok || !fits(env.Type, w.Kind) || (env.Type == signal.TimerDue || env.Type == signal.RetryDue) && w.Until.After(t.In.Now) && w.Until.After(env.DueAt) {
		return t.ignore(Stale)
	}
	if t.Snap.Status == snapshot.Suspended {
		return t.keep(nil)
	}
	r, err := result(t.In.Signal)
	if err != nil {
		return nil, err
	}
	return t.resume(def, w, r)
}

// fits reports whether a type of signal can satisfy a kind of wait, so that a timer's token, say, is no way to forge
// a result. Nor is it one to have it earlier: a timer that is not due yet is stale.
func fits(t signal.Type, k snapshot.WaitKind) bool {
	switch k {
	case snapshot.WaitCommand, snapshot.WaitTask:
		return t == signal.TaskCompleted
	case snapshot.WaitTimer, snapshot.WaitTimeout, snapshot.WaitDue:
		return t == signal.TimerDue
	case snapshot.WaitRetry:
		return t == signal.RetryDue
	case snapshot.WaitEvent:
		return t == signal.ExternalSignal
	case snapshot.WaitChild:
		return t == signal.SubWorkflowCompleted
	case snapshot.WaitNext:
		return t == signal.InternalContinue
	}
	return false
}

// result reads what a signal says about its wait.
func result(env signal.Envelope) (Result, error) {
	if env.Type == signal.ExternalSignal {
		return Result{Output: env.Payload, Actor: env.Headers[signal.HeaderActor]}, nil
	}
	if env.Type != signal.TaskCompleted && env.Type != signal.SubWorkflowCompleted {
		return Result{}, nil
	}
	actor := env.Headers[signal.HeaderActor]
	if output, ok := outputOf(env.Payload); ok {
		return Result{Output: output, Actor: actor}, nil
	}
	var p struct {
		Output        json.RawMessage         `json:"output"`
		Error         *snapshot.Error         `json:"error"`
		Compensations []snapshot.Compensation `json:"compensations"`
		Unknown       bool                    `json:"unknown"`
		Open          bool                    `json:"open"`
	}
	if len(env.Payload) > 0 {
		if err := jsonv2.Unmarshal(env.Payload, &p); err != nil {
			return Result{}, problem.Wrap(err, problem.Invalid, "signal.invalid", "payload is not a result")
		}
	}
	return Result{Output: p.Output, Error: p.Error, Unknown: p.Unknown, Open: p.Open, Actor: actor, Compensations: p.Compensations}, nil
}

// outputOf reads a payload that says nothing but its output, as most do: a part of its bytes.
func outputOf(payload json.RawMessage) (json.RawMessage, bool) {
	rest, object := bytes.CutPrefix(payload, []byte(`{"output":`))
	output, closed := bytes.CutSuffix(rest, []byte(`}`))
	return bytes.TrimSpace(output), object && closed && json.Valid(output)
}

// resume consumes w and goes on.
func (t intake) resume(def Definition, w snapshot.Wait, r Result) (*Outcome, error) {
	if err := t.apply(def, w, r, t.In.Signal); err != nil {
		return nil, err
	}
	return t.finish()
}

// apply records a signal, consumes w with it, and has the definition go on.
func (t intake) apply(def Definition, w snapshot.Wait, r Result, env signal.Envelope) error {
	t.take(w, r.Error != nil && r.Unknown)
	t.Effects.remember(w, r.Error == nil, r.Unknown)
	m := Meta{Pointer: w.Pointer, Actor: r.Actor, Command: w.Command, Sender: env.Sender, Sequence: env.Sequence}
	e := Entry{Kind: KindEvent, Dir: In, Type: string(env.Type), Data: env.Payload, Meta: m}
	if env.Type == signal.ExternalSignal {
		e.SignalID = env.SignalID
	}
	t.Append(e)
	switch w.Kind {
	case snapshot.WaitTask:
		t.out.Tasks = append(t.out.Tasks, completion(w, r))
	case snapshot.WaitDue:
		return t.escalate(w)
	}
	if t.Snap.Schedule != nil {
		if s, ok := def.(Scheduled); ok {
			return s.ResumeSchedule(t.Turn, w, r)
		}
		return errNotScheduled(t.Snap)
	}
	return def.Resume(t.Turn, w, r)
}

func completion(w snapshot.Wait, r Result) TaskChange {
	var answer struct {
		Outcome string `json:"outcome"`
	}
	_ = jsonv2.Unmarshal(r.Output, &answer) // an answer without an outcome is fine
	return TaskChange{ID: w.TaskID, Event: TaskCompleted, Actor: r.Actor, Outcome: answer.Outcome, Output: r.Output}
}

// external gives an application's signal to the state in which the instance
// rests, or to the listens that it satisfies, or keeps it for a listen to come.
func (t intake) external(def Definition) (*Outcome, error) {
	m, ok := def.(Stateful)
	stateful := ok && m.HasStates()
	if w, rests := t.Snap.Resting(); rests && stateful {
		r := Result{Output: t.In.Signal.Payload, Actor: t.In.Signal.Headers[signal.HeaderActor]}
		if err := m.Admit(t.Turn, w, r); err != nil {
			return nil, err
		}
		return t.resume(def, w, r)
	}
	var later []string
	if t.Snap.Status != snapshot.Suspended && t.Snap.Status != snapshot.Faulted {
		took, rest, err := t.deliverEvent(def, t.In.Signal, t.In.Signal.Headers[signal.HeaderActor], nil)
		if err != nil {
			return nil, err
		}
		if len(took) > 0 && len(rest) > 0 && !t.Snap.Status.Closed() {
			if err := t.buffer(took, rest); err != nil {
				return nil, err
			}
		}
		if len(took) > 0 {
			return t.finish()
		}
		later = rest
	}
	if stateful {
		return nil, inTransition(t.Snap)
	}
	return t.keep(later)
}

// Passing are the codes of events which come between two states, or to who is held.
var Passing = []string{"lifecycle.in-transition", "lifecycle.held"}

// inTransition is the problem of an event that comes while an instance rests in no state.
func inTransition(s *snapshot.Snapshot) error {
	code, why, hint := Passing[0], "is between two states", "trigger it again when it rests in a state"
	if s.Status == snapshot.Suspended || s.Status == snapshot.Faulted {
		code, why, hint = Passing[1], "is "+string(s.Status), "resume a suspended one, retry or skip what has failed, and trigger it again then"
	}
	return problem.New(problem.Conflict, code, "instance %s %s and takes no event now", s.InstanceID, why).
		WithHint("%s", hint)
}

// deliverEvent gives an event to every listen that it satisfies now: branches that wait side by side all get it, each
// once. A listen that the event brings about does not. Later are the listens that shall get it and are at work on the
// event before. With only, nobody else gets it.
func (t intake) deliverEvent(def Definition, env signal.Envelope, actor string, only []string) (took, later []string, err error) {
	for _, w := range slices.Clone(t.Snap.Waits) {
		at := w.Pointer
		if w.Kind != snapshot.WaitEvent || slices.Contains(took, at) || only != nil && !slices.Contains(only, at) {
			continue
		}
		if _, there := t.Snap.Wait(w.Token); !there {
			continue
		}
		ok, err := def.Matches(t.Snap, w, env.Payload)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if p, ok := def.(Postponer); ok && p.Postpones(t.Snap, w) {
			later = append(later, at)
			continue
		}
		if len(took) > 0 {
			env.SignalID = "" // it is recorded, with its data, where it went first
		}
		took = append(took, at)
		if err := t.apply(def, w, Result{Output: env.Payload, Actor: actor}, env); err != nil {
			return nil, nil, err
		}
		if t.Snap.Status.Closed() || t.Snap.Status == snapshot.Faulted {
			break
		}
	}
	return took, later, nil
}

// keep puts the signal into the continuation buffer: for the listens at later, or for whoever listens first.
func (t intake) keep(later []string) (*Outcome, error) {
	if err := t.buffer(nil, later); err != nil {
		return nil, err
	}
	return t.ignore(Buffered)
}

func (t intake) buffer(took, later []string) error {
	env := t.In.Signal
	if len(t.Snap.Buffer) >= snapshot.MaxBuffered || t.roomFor(env) != nil {
		t.Snap.Buffer = slices.DeleteFunc(slices.Clone(t.Snap.Buffer), t.Snap.Over)
	}
	if len(t.Snap.Buffer) >= snapshot.MaxBuffered {
		return problem.New(problem.TooLarge, "limit.buffer", "instance %s keeps %d early signals already", env.InstanceID, snapshot.MaxBuffered)
	}
	if err := t.roomFor(env); err != nil {
		return err
	}
	b, _ := buffered(env).Left(took, later)
	t.Snap.Buffer, t.Basis.Occurred = append(t.Snap.Buffer, b), env.OccurredAt
	return nil
}

// roomFor refuses to keep a signal when those kept have too much in them. What
// the instance waits for, and gets while it is suspended, has its place anyway.
func (t intake) roomFor(env signal.Envelope) error {
	if env.WaitingToken != "" {
		return nil
	}
	n := len(env.Payload) + len(env.Principal)
	for _, kept := range slices.Concat(t.Snap.Buffer, t.Snap.Ahead) {
		if kept.Token == "" {
			n += len(kept.Payload) + len(kept.Principal)
		}
	}
	if n > snapshot.MaxBufferedBytes {
		return problem.New(problem.TooLarge, "limit.buffer", "instance %s would keep %d bytes of signals, more than %d", env.InstanceID, n, snapshot.MaxBufferedBytes)
	}
	return nil
}

// buffered is a signal as it is kept.
func buffered(env signal.Envelope) snapshot.Buffered {
	return snapshot.Buffered{
		SignalID: env.SignalID, Type: string(env.Type), Token: env.WaitingToken, OccurredAt: env.OccurredAt,
		Actor: env.Headers[signal.HeaderActor], Payload: env.Payload, Principal: env.Principal,
	}
}

// ignore records a signal that changes nothing else.
func (t intake) ignore(d Disposition) (*Outcome, error) {
	t.out.Disposition = d
	m := Meta{Disposition: d, Actor: t.In.Signal.Headers[signal.HeaderActor]}
	m.Sender, m.Sequence, m.Refusal = t.In.Signal.Sender, t.In.Signal.Sequence, t.refusal
	t.Append(Entry{
		Kind: KindEvent, Dir: In, Type: string(t.In.Signal.Type), Data: t.In.Signal.Payload, Meta: m, SignalID: t.In.Signal.SignalID,
	})
	status := t.Snap.Status
	out, err := t.finish()
	out.Snapshot.Status = status
	return out, err
}
