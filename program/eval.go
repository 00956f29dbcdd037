package program

import (
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Version is what $runtime.version shows: of the language semantics, not of a
// build, so that two nodes of different builds decide alike.
const Version = "1"

// eval evaluates a template on the current data.
func (r *run) eval(t *jq.Template) (value, error) {
	v, err := r.evalAny(t)
	if err != nil {
		return value{}, err
	}
	return anyValue(v), nil
}

// fits checks a value; what it is names it in the error.
func (r *run) fits(s *schema.Schema, v value, what string) error {
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

func (r *run) evalAny(t *jq.Template) (any, error) {
	if t.Constant() {
		return t.Eval(nil, nil, r.t.In.Limits.Expression)
	}
	data, err := r.data.Any()
	if err != nil {
		return nil, err
	}
	return t.Eval(data, r.lookup, r.t.In.Limits.Expression)
}

// lookup gives the variables of the language (dsl-facts 1.2): all from the
// snapshot and the signal, so that a repeated decision sees the same.
func (r *run) lookup(name string) (any, error) {
	switch name {
	case "$context":
		if len(r.t.Snap.State.Context) == 0 {
			return map[string]any{}, nil
		}
		return jq.Decode(r.t.Snap.State.Context)
	case "$input":
		return r.input.Any()
	case "$output":
		if r.out == nil {
			return nil, nil
		}
		return r.out.Any()
	case "$workflow":
		return r.workflow()
	case "$task":
		return r.task()
	case "$runtime":
		return map[string]any{"name": "aqueduct", "version": Version, "metadata": map[string]any{}}, nil
	}
	for b := r.b; b != nil; b = r.t.Snap.Branch(b.Parent) {
		for i := len(b.Frames) - 1; i >= 0; i-- {
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

func (r *run) workflow() (any, error) {
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

func (r *run) task() (any, error) {
	if r.node == nil {
		return nil, nil
	}
	raw := r.input
	if r.raw != nil {
		raw = rawValue(r.raw)
	}
	input, err := raw.Any()
	if err != nil {
		return nil, err
	}
	shown := r.node
	if of := r.p.nodes[shown.Of]; of != nil {
		shown = of
	}
	task := map[string]any{
		"name": shown.Name, "reference": shown.Pointer, "input": input, "definition": r.p.definition(shown.Pointer),
	}
	if !r.since.IsZero() {
		task["startedAt"] = moment(r.since)
	}
	if r.made.there() {
		if task["output"], err = r.made.Any(); err != nil {
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
