package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Definition is a workflow that instances run.
//
// Of a snapshot it uses the root branch: its data is the author's state, its arm the
// number of the last decision, and its frames are the steps that are open, each with
// the effect that asked for it, so that a retry asks for the same.
type Definition struct {
	compensate.Compensator

	ref      snapshot.Definition
	document json.RawMessage
	start    *handler
	steps    map[string]*step // by pointer
	upcasts  map[string]chain // by the version that they begin at
}

// Phases of a frame whose step is not simply open.
const (
	phaseFailed = "failed" // nothing takes its failure
	phaseDecide = "decide" // it has its result, in Raw, about which nothing could be decided
)

// startPointer is where the input of an instance is decided about.
const startPointer = "/"

// Ref names the definition. Its digest is that of what it declares: steps, their
// targets, where functions lead to. Code behind the functions may change.
func (d *Definition) Ref() snapshot.Definition { return d.ref }

// IsTask: every step has lifecycle events.
func (d *Definition) IsTask(pointer string) bool { return d.steps[pointer] != nil }

// Outermost: no step runs inside another, and what one needs for a retry is in its
// frame.
func (d *Definition) Outermost(*snapshot.Snapshot) (pointer, visit string, ok bool) {
	return "", "", false
}

// NewKey: a step is sent anew under its key.
func (d *Definition) NewKey(string) bool { return false }

// run is one turn of an instance.
type run struct {
	d     *Definition
	t     *engine.Turn
	b     *snapshot.Branch
	ready []arrival           // events that came before somebody listened
	visit int                 // number of the decision in the making
	order []snapshot.Buffered // the kept signals before any was taken
}

// arrival is a result of a step, before it is decided about.
type arrival struct {
	pointer string
	item    int
	result  engine.Result
	early   *snapshot.Buffered // the kept event that its step took when it began to listen
}

// kept is an arrival as a frame keeps it.
type kept struct {
	Output  json.RawMessage `json:"output,omitempty"`
	Error   *snapshot.Error `json:"error,omitempty"`
	Actor   string          `json:"actor,omitempty"`
	Unknown bool            `json:"unknown,omitempty"`
	Open    bool            `json:"open,omitempty"`

	Early *snapshot.Buffered `json:"early,omitempty"` // without its payload, which is the output
}

// Begin decides about the start.
func (d *Definition) Begin(t *engine.Turn, input json.RawMessage) error {
	t.Snap.Branches = []*snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: startPointer}}}}
	r := &run{d: d, t: t, b: t.Snap.Branches[0]}
	return r.drive(arrival{pointer: startPointer, result: engine.Result{Output: input}})
}

// Resume decides about what came for a step, or sends it again.
func (d *Definition) Resume(t *engine.Turn, w snapshot.Wait, res engine.Result) error {
	r, err := d.at(t)
	if err != nil || compensate.Resume(t, w, res) || w.Left > 0 {
		return err
	}
	f := r.frame(w.Pointer, w.Arm)
	if f == nil {
		return fmt.Errorf("workflow: %s: nothing is open at %s", t.Snap.InstanceID, w.Pointer)
	}
	a := arrival{pointer: w.Pointer, item: w.Arm, result: res}
	switch w.Kind {
	case snapshot.WaitRetry:
		t.Tell(engine.LifecycleEvent{Type: engine.TaskRetriedEvent, Task: f.Pointer})
		return r.drive(r.open(f)...)
	case snapshot.WaitTimeout:
		a.result = timedOut(f.Pointer)
		r.withdraw(f, engine.TaskExpired)
		return r.drive(a)
	}
	if again, err := r.retry(f, a.result); again || err != nil {
		return err
	}
	r.withdraw(f, engine.TaskCancelled) // its timeout
	return r.drive(a)
}

// at prepares a turn of an instance that has begun.
func (d *Definition) at(t *engine.Turn) (*run, error) {
	b := t.Snap.Branch(0)
	if b == nil {
		return nil, fmt.Errorf("workflow: %s: the snapshot has no state", t.Snap.InstanceID)
	}
	return &run{d: d, t: t, b: b}, nil
}

// frame is that of an open step; nil = it is not.
func (r *run) frame(pointer string, item int) *snapshot.Frame {
	if i := r.index(pointer, item); i >= 0 {
		return &r.b.Frames[i]
	}
	return nil
}

func (r *run) index(pointer string, item int) int {
	return slices.IndexFunc(r.b.Frames, func(f snapshot.Frame) bool { return f.Pointer == pointer && f.Next == item })
}

// drive decides about arrivals until none is left. Those behind a decision that could
// not be made stay in their frames.
func (r *run) drive(arrivals ...arrival) error {
	r.ready = append(r.ready, arrivals...)
	for len(r.ready) > 0 {
		a := r.ready[0]
		r.ready = r.ready[1:]
		if s := r.t.Snap.Status; s.Closed() {
			return nil
		} else if s == snapshot.Faulted || r.t.Snap.Compensating != nil {
			if err := r.keep(a); err != nil {
				return err
			}
			continue
		}
		r.t.Step(a.pointer)
		if err := r.happens(a); err != nil {
			return err
		}
	}
	return nil
}

// happens decides about one arrival.
func (r *run) happens(a arrival) error {
	s, h := r.d.steps[a.pointer], r.d.start
	if a.pointer != startPointer {
		if h = nil; s != nil {
			h = s.done
		}
		if s != nil && a.result.Error != nil {
			if h = s.failed; h == nil {
				return r.fail(a)
			}
		}
	}
	if h == nil {
		return r.broken(a, faultOf("workflow.step-unknown", "version %s has no function for the results of %s", r.d.ref.Version, a.pointer))
	}
	in, err := r.input(s, a)
	if err != nil {
		return err
	}
	did, err := asked(h, r.b.Data, in)
	if err != nil {
		return r.broken(a, err)
	}
	if n := len(did.do); n > 0 && did.do[n-1].Kind == kindFail && did.do[n-1].err == nil {
		return r.failed(a, did.do[n-1])
	}
	r.visit = r.next()
	plan, err := r.plan(a, h, did)
	if err != nil {
		return r.broken(a, err)
	}
	return r.apply(a, did, plan)
}

// input is what a function gets.
func (r *run) input(s *step, a arrival) (Input[json.RawMessage], error) {
	snap := r.t.Snap
	in := Input[json.RawMessage]{
		Value: a.result.Output, Raw: a.result.Output, Item: a.item, Now: r.t.In.Now, Actor: a.result.Actor,
		Instance: snap.InstanceID, Key: snap.Business.Key,
	}
	if s != nil {
		in.Step = s.Name
	}
	if e := a.result.Error; e != nil {
		raw, err := encode(Failure{Type: e.Type, Status: e.Status, Title: e.Title, Detail: e.Detail, Unknown: a.result.Unknown})
		in.Value, in.Raw = raw, raw
		return in, err
	}
	if s != nil && s.Kind == kindEvent {
		in.Value, _ = eventOf(a.result.Output).at("data")
	}
	return in, nil
}

// apply makes a decision that holds the state of the instance.
func (r *run) apply(a arrival, did *decision, plan []opening) error {
	r.told(a)
	recorded := 0
	if i := r.index(a.pointer, a.item); i >= 0 {
		if c := (compensations{r}).settle(&r.b.Frames[i], a.result); c != nil {
			recorded = c.Step
		}
		r.b.Frames = slices.Delete(slices.Clone(r.b.Frames), i, i+1)
	}
	r.b.Data, r.b.Arm = did.state, r.visit
	for _, e := range did.events {
		r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: e.Type, Data: e.Data, Meta: engine.Meta{Pointer: a.pointer}})
	}
	for i, e := range did.do {
		switch e.Kind {
		case kindWithdraw:
			dismiss(r, pointerOf(e.Step), e.Item)
			if f := r.frame(pointerOf(e.Step), e.Item); f != nil {
				r.t.Tell(engine.LifecycleEvent{Type: engine.TaskCancelledEvent, Task: f.Pointer})
				r.withdraw(f, engine.TaskCancelled)
				r.b.Frames = slices.DeleteFunc(slices.Clone(r.b.Frames), func(f snapshot.Frame) bool { return f.Pointer == pointerOf(e.Step) && f.Next == e.Item })
			}
		case kindEmit:
			if err := r.emit(e, i); err != nil {
				return err
			}
		case kindCompensate:
			compensations{r}.replace(a, recorded, i, e)
		case kindComplete:
			r.t.Complete(e.Input)
			return nil
		default:
			f := plan[0].frame
			e = plan[0].effect
			plan = plan[1:]
			r.b.Frames = append(r.b.Frames, f)
			r.t.Tell(engine.LifecycleEvent{Type: engine.TaskCreatedEvent, Task: f.Pointer})
			r.t.Tell(engine.LifecycleEvent{Type: engine.TaskStartedEvent, Task: f.Pointer})
			r.ready = append(r.ready, r.openWith(&r.b.Frames[len(r.b.Frames)-1], e)...)
		}
	}
	return nil
}

// dismiss drops the results of a step that is withdrawn before anything was decided about
// them. An event that had come early stays for who listens next.
func dismiss(r *run, pointer string, item int) {
	r.ready = slices.DeleteFunc(r.ready, func(a arrival) bool {
		is := a.pointer == pointer && a.item == item
		if is && a.early != nil {
			putBack(r, *a.early)
		}
		return is
	})
}

// putBack puts a kept event back before those that came after it. Of one that a former turn
// has taken it is not known which these are.
func putBack(r *run, b snapshot.Buffered) {
	at := func(id string) int {
		return slices.IndexFunc(r.order, func(o snapshot.Buffered) bool { return o.SignalID == id })
	}
	place := slices.IndexFunc(r.t.Snap.Buffer, func(o snapshot.Buffered) bool { return at(o.SignalID) > at(b.SignalID) })
	if place < 0 {
		place = len(r.t.Snap.Buffer)
	}
	r.t.Snap.Buffer = slices.Insert(slices.Clone(r.t.Snap.Buffer), place, b)
}

// told tells how a step ended.
func (r *run) told(a arrival) {
	typ := engine.TaskCompletedEvent
	if a.result.Error != nil {
		typ = engine.TaskFaultedEvent
	}
	r.t.Tell(engine.LifecycleEvent{Type: typ, Task: a.pointer, Error: a.result.Error})
}

// withdraw removes the waits of a step.
func (r *run) withdraw(f *snapshot.Frame, how engine.TaskEvent) {
	if !slices.ContainsFunc(r.t.Snap.Waits, func(w snapshot.Wait) bool { return w.Pointer == f.Pointer }) {
		return
	}
	task := ""
	for _, w := range r.t.Snap.Waits {
		if w.Pointer == f.Pointer && w.Arm == f.Next && w.TaskID != "" && w.Kind == snapshot.WaitTask {
			task = w.TaskID
		}
	}
	r.t.Withdraw(how, func(w snapshot.Wait) bool {
		return w.Pointer == f.Pointer && (w.Kind == snapshot.WaitDue && w.TaskID == task && task != "" || w.Kind != snapshot.WaitDue && w.Arm == f.Next)
	})
}

func timedOut(pointer string) engine.Result {
	return engine.Result{Unknown: true, Error: &snapshot.Error{Type: TypeTimeout, Status: 408, Title: "Timeout", Detail: "it took too long", Instance: pointer}}
}

// retry arranges another attempt at a step that failed, when its policy has one.
func (r *run) retry(f *snapshot.Frame, res engine.Result) (bool, error) {
	if res.Error == nil {
		return false, nil
	}
	e, err := r.d.effectOf(f)
	if err != nil || e.Again == nil || f.Attempt >= e.Again.Times {
		return false, err
	}
	delay := float64(e.Again.Delay)
	for range f.Attempt {
		delay *= float64(max(e.Again.Factor, 1))
	}
	f.Attempt++
	compensations{r}.settle(f, res)
	until := r.t.In.Now.Add(min(time.Duration(min(delay, float64(maxDelay))), maxDelay))
	r.t.Await(snapshot.Wait{Kind: snapshot.WaitRetry, Pointer: f.Pointer, Arm: f.Next, Until: until})
	data, err := encode(map[string]any{"attempt": f.Attempt, "dueAtUtc": until, "error": res.Error})
	r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryRetry, Data: data, Meta: engine.Meta{Pointer: f.Pointer}})
	return true, err
}

// maxDelay is the longest between two attempts.
const maxDelay = 365 * 24 * time.Hour

// entryRetry is the stream's record of a retry, as documents have it.
const entryRetry = "RetryScheduled"

// Retries: the author's policy replaces the node's.
func (d *Definition) Retries(t *engine.Turn, w snapshot.Wait, _ snapshot.Error) (bool, error) {
	r, err := d.at(t)
	if err != nil {
		return false, err
	}
	f := r.frame(w.Pointer, w.Arm)
	if f == nil {
		return false, nil
	}
	e, err := d.effectOf(f)
	return err == nil && e.Again != nil, err
}

// stored is an effect as its frame has it: what the step declares is not repeated.
func stored(e Effect) (json.RawMessage, error) {
	e.Kind, e.Step, e.Target, e.Item = "", "", "", 0
	if e.Keys == nil && e.Until.IsZero() && e.Limit == 0 && e.Ack == 0 && e.Again == nil && e.Compensate == nil && len(e.Input) > 0 {
		return slices.Concat([]byte(`{"input":`), e.Input, []byte("}")), nil // as most do
	}
	return encode(e)
}

// effectOf is what asked for an open step.
func (d *Definition) effectOf(f *snapshot.Frame) (e Effect, err error) {
	if len(f.Input) > 0 {
		err = decode(f.Input, &e)
	}
	if s := d.steps[f.Pointer]; s != nil {
		e.Kind, e.Step, e.Target = s.Kind, s.Name, s.Target
	}
	e.Item = f.Next
	return e, err
}

// visitOf is the place of a decision in the run of an instance, for keys: its number, below
// zero, or for engines before the version that it wrote. What a retry sends again has that of
// the decision that asked first.
func visitOf(f *snapshot.Frame) string { return strconv.Itoa(f.Jumps) }

// next numbers the decision to come. The number goes back with a rewind, as a version does
// not, so that what is decided again asks under the keys of before.
func (r *run) next() int { return r.b.Arm + 1 }

// asking is a frame of what the decision in the making asks for.
func (r *run) asking(pointer string, item int) snapshot.Frame {
	return snapshot.Frame{Pointer: pointer, Next: item, Jumps: -r.visit, Epoch: r.t.Snap.Epoch}
}
