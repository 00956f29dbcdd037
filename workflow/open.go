package workflow

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// open asks the outside for the step of a frame. An event that was kept for it comes
// at once.
func (r *run) open(f *snapshot.Frame) []arrival {
	e, err := r.d.effectOf(f)
	if err != nil { // this package has written it
		panic(err)
	}
	return r.openWith(f, e)
}

// openWith is open with the effect of the frame.
func (r *run) openWith(f *snapshot.Frame, e Effect) []arrival {
	w := snapshot.Wait{Pointer: f.Pointer, Arm: f.Next}
	limited := func(w snapshot.Wait) bool {
		return w.Kind == snapshot.WaitTimeout && w.Pointer == f.Pointer && w.Arm == f.Next
	}
	if e.Limit > 0 && !slices.ContainsFunc(r.t.Snap.Waits, limited) { // it holds for all attempts
		r.t.Await(snapshot.Wait{Kind: snapshot.WaitTimeout, Pointer: f.Pointer, Arm: f.Next, Until: r.t.In.Now.Add(e.Limit)})
	}
	switch e.Kind {
	case kindCall, kindHTTP:
		c := engine.Command{Target: e.Target, Input: e.Input, Pointer: f.Pointer, Ack: e.Ack}
		c.Key = r.key(f, &c)
		if e.Compensate != nil {
			undoes := compensations{r}.of(f)
			if undoes == nil { // not yet, or it was refused before
				undoes = compensations{r}.record(f, e.Compensate, c.Key)
			}
			undoes.Effect, undoes.Open = c.Key, true
		}
		w.Effect, w.Visit = c.Key, visitOf(f)
		r.t.Perform(c, w)
	case kindTask:
		r.t.Ask(personOf(f, e, r.t.In.Now), w)
	case kindTimer:
		w.Kind, w.Until = snapshot.WaitTimer, e.Until
		r.t.Await(w)
	case kindEvent:
		w.Kind, w.Event, w.Key = snapshot.WaitEvent, e.Target, e.Keys
		before := r.t.Snap.Buffer
		if r.order == nil {
			r.order = slices.Clone(before)
		}
		if _, event, ok, _ := r.t.Early([]snapshot.Wait{w}); ok { // Matches has no errors
			r.withdraw(f, engine.TaskCancelled)
			return []arrival{{f.Pointer, f.Next, engine.Result{Output: event}, takenOf(before, r.t.Snap.Buffer)}}
		}
		r.t.Await(w)
	case kindChild:
		name, version, _ := strings.Cut(e.Target, "@")
		start := signal.Start{Definition: name, Version: version, Input: e.Input}
		if err := r.t.Spawn(start, true, depth(r.t.Snap), w); err != nil {
			panic(err) // JSON already
		}
	}
	return nil
}

// takenOf is what was taken from a buffer.
func takenOf(before, after []snapshot.Buffered) *snapshot.Buffered {
	for i, b := range before {
		if i == len(after) || after[i].SignalID != b.SignalID {
			return &b
		}
	}
	return nil
}

// depth is how many instances wait above a child.
func depth(s *snapshot.Snapshot) int {
	if s.Parent != nil {
		return s.Parent.Depth + 1
	}
	return 1
}

// key is that of a step's command: the same whenever it is sent.
func (r *run) key(f *snapshot.Frame, c *engine.Command) string {
	if e := (engine.Effect{Pointer: f.Pointer, Visit: visitOf(f), Arm: f.Next}); r.t.Retry != engine.RetryNew {
		return r.t.Effects.KeyIn(f.Epoch, e, c)
	}
	r.b.Arm = r.next()
	f.Epoch, f.Jumps = r.t.Snap.Epoch, -r.b.Arm // by an operator's word it is another effect
	return r.t.Effects.KeyIn(f.Epoch, engine.Effect{Pointer: f.Pointer, Visit: visitOf(f), Arm: f.Next}, c)
}

// personOf is the task of a step, which has been checked.
func personOf(f *snapshot.Frame, e Effect, now time.Time) engine.Task {
	p, err := person(e.Input)
	if err != nil {
		panic(err)
	}
	t := taskOf(p)
	t.Name, t.Pointer = strings.NewReplacer("~1", "/", "~0", "~").Replace(f.Pointer[1:]), f.Pointer
	if p.Due > 0 {
		t.DueAt = now.Add(p.Due).Truncate(time.Microsecond)
	}
	return t
}

// taskOf is what a person is asked, wherever that is.
func taskOf(p Person) engine.Task {
	t := engine.Task{
		Title: p.Title, Assignee: p.Assignee, CandidateUsers: p.CandidateUsers, CandidateGroups: p.CandidateGroups, ExcludedUsers: p.ExcludedUsers,
		Form: p.Form, Priority: humantask.DefaultPriority, EscalateTo: p.EscalateTo, Outcomes: p.Outcomes,
	}
	if p.Priority != nil {
		t.Priority = *p.Priority
	}
	if p.Payload != nil {
		t.Payload, _ = encode(p.Payload) // it was JSON
	}
	return t
}

// emit publishes an event; i is its place among the effects of a decision.
func (r *run) emit(e Effect, i int) error {
	raw, key, err := r.event(e, i)
	if err == nil {
		r.t.Emit(raw, pointerOf(e.Target), key)
	}
	return err
}

// event is an event to be published, and the key of that.
func (r *run) event(e Effect, i int) (json.RawMessage, string, error) {
	c := engine.Command{Target: engine.TargetEvent, Input: e.Input}
	at := r.asking(pointerOf(e.Target), i)
	key := r.t.Effects.KeyIn(at.Epoch, engine.Effect{Pointer: at.Pointer, Visit: visitOf(&at), Arm: i}, &c)
	raw, err := encode(map[string]any{
		"specversion": "1.0", "id": uuid.NewSHA1(engine.EventSpace, []byte(key)).String(), "source": engine.EventSource(r.d.ref.Name),
		"type": e.Target, "time": r.t.In.Now.Format(time.RFC3339Nano), "data": e.Input,
	})
	return raw, key, err
}
