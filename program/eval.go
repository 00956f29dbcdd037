package program

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Version is what $runtime.version shows: of the language semantics, not of a
// build, so that two nodes of different builds decide alike.
const Version = "1"

// scope is what an expression sees beside its data, the context, and the
// variables of the frames around it. Who evaluates one says of which task it is,
// and passes that down.
type scope struct {
	node  *Node                      // the task, for $task; nil = none
	input value                      // $input
	raw   json.RawMessage            // the input before input.from, where that has made another of it
	since time.Time                  // when the task began, for $task
	out   *value                     // $output; nil = there is none
	made  value                      // $task.output, the output before output.as; zero = there is none
	vars  map[string]json.RawMessage // that no frame has: of an error that may be caught, of an event that may be taken

	inside int // how many frames on top of the branch's are not around the expression
}

// about is the scope of a task whose frame is f. What the frame does not keep, no
// expression of the task asks for.
func about(n *Node, f *snapshot.Frame) scope {
	in := scope{node: n, raw: f.Raw, since: f.StartedAt}
	if f.Input != nil {
		in.input = rawValue(f.Input)
	}
	return in
}

// eval evaluates a template on the branch's data.
func (r evals) eval(t *jq.Template, in *scope) (value, error) {
	v, err := r.evalAny(t, in)
	if err != nil {
		return value{}, err
	}
	return anyValue(v), nil
}

// fits checks a value; what it is names it in the error.
func (r evals) fits(s *schema.Schema, v value, what string) error {
	if s == nil {
		return nil
	}
	raw, err := v.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	if places := s.Check(raw); len(places) > 0 {
		return raise(engine.ErrValidation, 400, "Invalid "+what, "the "+what+" does not fit its schema: "+schema.Summary(places))
	}
	return nil
}

func (r evals) evalAny(t *jq.Template, in *scope) (any, error) { return r.evalOn(t, &r.data, in) }

// evalOn evaluates a template on data that are not the branch's.
func (r evals) evalOn(t *jq.Template, data *value, in *scope) (any, error) {
	if t.Constant() {
		return t.Eval(nil, nil, r.t.In.Limits.Expression)
	}
	v, err := data.Any()
	if err != nil {
		return nil, err
	}
	r.seen = *in // a copy, so that no scope is on the heap
	res, err := t.Eval(v, r.lookup, r.t.In.Limits.Expression)
	in.input, in.made = r.seen.input, r.seen.made // decoded once
	return res, err
}

// lookup gives the variables of the language (dsl-facts 1.2): all from the
// snapshot and the signal, so that a repeated decision sees the same.
func (r evals) lookup(name string) (any, error) {
	switch name {
	case "$context":
		if len(r.t.Snap.State.Context) == 0 {
			return map[string]any{}, nil
		}
		return jq.Decode(r.t.Snap.State.Context)
	case "$input":
		return r.seen.input.Any()
	case "$output":
		if r.seen.out == nil {
			return nil, nil
		}
		return r.seen.out.Any()
	case "$workflow":
		return r.workflow()
	case "$task":
		return r.task()
	case "$runtime":
		return map[string]any{"name": "aqueduct", "version": Version, "metadata": map[string]any{}}, nil
	}
	if raw, ok := r.seen.vars[name[1:]]; ok {
		return jq.Decode(raw)
	}
	inside := r.seen.inside
	for b := r.b; b != nil; b, inside = r.t.Snap.Branch(b.Parent), 0 {
		for i := len(b.Frames) - 1 - inside; i >= 0; i-- {
			if raw, ok := b.Frames[i].Vars[name[1:]]; ok {
				return jq.Decode(raw)
			}
		}
		if b.ID == 0 {
			break
		}
	}
	return nil, nil
}

func (r evals) workflow() (any, error) {
	s := r.t.Snap
	input, err := jq.Decode(s.State.Input)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"id":          s.InstanceID,
		"definition":  r.p.Info.Document,
		"input":       input,
		"startedAt":   moment(s.StartedAt),
		"businessKey": s.Business.Key,
	}, nil
}

func (r evals) task() (any, error) {
	in := &r.seen
	if in.node == nil {
		return nil, nil
	}
	raw := in.input
	if in.raw != nil {
		raw = rawValue(in.raw)
	}
	input, err := raw.Any()
	if err != nil {
		return nil, err
	}
	shown := in.node
	if of := r.p.node(shown.Of); of != nil {
		shown = of
	}
	task := map[string]any{
		"name": shown.Name, "reference": shown.Pointer, "input": input, "definition": r.p.definition(shown.Pointer),
	}
	if !in.since.IsZero() {
		task["startedAt"] = moment(in.since)
	}
	if in.made.there() {
		if task["output"], err = in.made.Any(); err != nil {
			return nil, err
		}
	}
	return task, nil
}

// definition is what the document says at a pointer; nil where a task stands
// in no document.
func (p *Program) definition(pointer string) any {
	at := p.Info.Document
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}
