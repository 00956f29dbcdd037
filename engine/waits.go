package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Resume goes on where w waited.
func (p *Program) Resume(t *Turn, w snapshot.Wait, res Result) error {
	if t.Snap.Schedule != nil {
		return p.ticked(t, w, res)
	}
	r := p.branch(t, w.Branch)
	n := p.nodes[w.Pointer]
	if r == nil || n == nil || len(r.b.Frames) == 0 {
		return fmt.Errorf("engine: %s: nothing waits at %s", t.Snap.InstanceID, w.Pointer)
	}
	waits, err := r.resumed(n, w, res)
	if err != nil {
		if err = r.settle(n, err); err != nil {
			return err
		}
	}
	if waits {
		return r.save()
	}
	return r.advance()
}

// resumed applies a result to the task on top; it reports whether the branch
// still waits there.
func (r *run) resumed(n *Node, w snapshot.Wait, res Result) (waits bool, err error) {
	switch {
	case w.Kind == snapshot.WaitNext:
		return false, nil
	case w.Kind == snapshot.WaitTimeout:
		return false, r.timeout(n, w)
	case n.Kind == KindEach:
		r.node, r.input = n, r.data
		return r.gather(n, w, res)
	case res.Error != nil:
		return false, &raised{*res.Error}
	}
	if r.top().Pointer != n.Pointer {
		return false, fmt.Errorf("engine: %s: %s is not the task that runs", r.t.Snap.InstanceID, n.Pointer)
	}
	r.input = r.data
	switch n.Kind {
	case KindWait:
		return false, r.complete(n, r.data, n.Then)
	case KindListen:
		return false, r.heard(n, res.Output)
	default:
		return false, r.complete(n, rawValue(orNull(res.Output)), n.Then)
	}
}

// timeout ends everything inside the task whose deadline w was, and raises.
func (r *run) timeout(n *Node, w snapshot.Wait) error {
	for i := range r.b.Frames {
		if r.b.Frames[i].Deadline != w.Token {
			continue
		}
		r.b.Frames[i].Deadline = ""
		r.unwind(i, TaskExpired)
		if f := r.b.Frames[i]; i > 0 {
			if f.Raw != nil {
				r.data = rawValue(f.Raw)
			}
			r.pop() // the error is raised at the task, not inside it
		}
		return raise(ErrTimeout, 408, "Timeout", fmt.Sprintf("%s was not done in time", n.Pointer))
	}
	return fmt.Errorf("engine: %s: no task has the deadline at %s", r.t.Snap.InstanceID, w.Pointer)
}

// unwind drops the frames behind index i, with all that they wait for.
func (r *run) unwind(i int, how TaskEvent) {
	deadlines := map[string]bool{}
	for _, f := range r.b.Frames[:i+1] {
		if f.Deadline != "" {
			deadlines[f.Deadline] = true
		}
	}
	r.b.Frames = r.b.Frames[:i+1]
	r.t.Withdraw(how, func(w snapshot.Wait) bool { return w.Branch == r.b.ID && !deadlines[w.Token] })
}

// listen waits for an event, or takes one that came early.
func (r *run) listen(n *Node) (waits bool, err error) {
	w := snapshot.Wait{Kind: snapshot.WaitEvent, Branch: r.b.ID, Pointer: n.Pointer, Event: n.Listen.Type}
	for _, c := range n.Listen.Correlate {
		if c.Expect == nil {
			continue
		}
		v, err := r.eval(c.Expect)
		if err != nil {
			return false, err
		}
		raw, err := v.Raw(maxKeyBytes)
		if err != nil {
			return false, err
		}
		if w.Key == nil {
			w.Key = map[string]string{}
		}
		w.Key[c.Name] = string(raw)
	}
	event, early, err := r.t.Unbuffer(r.p, w)
	if err != nil {
		return false, err
	}
	if early {
		return false, r.heard(n, event)
	}
	r.t.Await(w)
	return true, nil
}

// maxKeyBytes bounds one value of a correlation key.
const maxKeyBytes = 1 << 10

// heard completes a listen: its output is an array, as the language has it,
// of the event's data or of the whole event.
func (r *run) heard(n *Node, event json.RawMessage) error {
	item := event
	if !n.Listen.Envelope {
		var e struct {
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(event, &e); err != nil {
			return raise(ErrValidation, 400, "Not an event", err.Error())
		}
		item = orNull(e.Data)
	}
	var out bytes.Buffer
	out.WriteByte('[')
	out.Write(item)
	out.WriteByte(']')
	return r.complete(n, rawValue(out.Bytes()), n.Then)
}

// Matches reports whether an event satisfies an event wait: its type, its
// further attributes, and the correlation values expected.
func (p *Program) Matches(s *snapshot.Snapshot, w snapshot.Wait, event json.RawMessage) (bool, error) {
	n := p.nodes[w.Pointer]
	if n == nil || n.Listen == nil {
		return false, fmt.Errorf("engine: %s: nothing listens at %s", s.InstanceID, w.Pointer)
	}
	found, ok, err := p.correlate(n, event)
	if err != nil || !ok {
		return false, err
	}
	for name, want := range w.Key {
		if found[name] != want {
			return false, nil
		}
	}
	return true, nil
}

// Correlate returns the key of an event for the waits at pointer.
func (p *Program) Correlate(pointer string, event json.RawMessage) (string, bool, error) {
	n := p.nodes[pointer]
	if n == nil || n.Listen == nil {
		return "", false, fmt.Errorf("engine: nothing listens at %s in %s", pointer, p.ID.Name)
	}
	found, ok, err := p.correlate(n, event)
	if err != nil || !ok {
		return "", false, err
	}
	for _, c := range n.Listen.Correlate {
		if c.Expect == nil {
			delete(found, c.Name)
		}
	}
	return Key(found), true, nil
}

// Key is the canonical form of correlation values.
func Key(values map[string]string) string {
	if len(values) == 0 {
		return ""
	}
	b, _ := json.Marshal(values) // keys in order; strings cannot fail
	return string(b)
}

// correlate evaluates the filter and the correlations of a listen on an event.
// An event on which an expression fails simply does not match.
func (p *Program) correlate(n *Node, event json.RawMessage) (map[string]string, bool, error) {
	e, err := jq.Decode(event)
	if err != nil {
		return nil, false, nil
	}
	attributes, ok := e.(map[string]any)
	if !ok || (n.Listen.Type != "" && text(attributes["type"]) != n.Listen.Type) {
		return nil, false, nil
	}
	for name, t := range n.Listen.With {
		v, err := t.Eval(e, nil, jq.Limits{})
		if err != nil {
			return nil, false, nil
		}
		if yes, isBool := v.(bool); isBool && !t.Constant() {
			if !yes {
				return nil, false, nil
			}
			continue
		}
		if text(v) != text(attributes[name]) {
			return nil, false, nil
		}
	}
	found := map[string]string{}
	for _, c := range n.Listen.Correlate {
		v, err := c.From.Eval(e, nil, jq.Limits{})
		if err != nil {
			return nil, false, nil
		}
		raw, err := jq.Encode(v, maxKeyBytes)
		if err != nil {
			return nil, false, nil
		}
		found[c.Name] = string(raw)
	}
	return found, true, nil
}

// DefaultPriority is the priority of a human task that does not say; smaller
// comes first.
const DefaultPriority = 50

// person asks a person.
func (r *run) person(n *Node) error {
	with, err := r.eval(n.Person.With)
	if err != nil {
		return err
	}
	raw, err := with.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return err
	}
	var ask struct {
		Task
		Due *struct {
			After string `json:"after"`
		} `json:"due"`
	}
	if err := json.Unmarshal(raw, &ask); err != nil {
		return raise(ErrValidation, 400, "Invalid task", err.Error())
	}
	task := ask.Task
	if task.Priority == 0 {
		task.Priority = DefaultPriority
	}
	task.Name, task.Pointer = n.Name, n.Pointer
	if ask.Due != nil && ask.Due.After != "" {
		due, err := After(r.t.In.Now, ask.Due.After)
		if err != nil {
			return raise(ErrValidation, 400, "Invalid task", err.Error())
		}
		task.DueAt = due.Truncate(time.Microsecond)
	}
	r.t.Ask(task, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer})
	return nil
}
