package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Arguments of the function humanTask, and of what stands in them.
var (
	PersonArguments = arguments(reflect.TypeFor[asked](), nil)
	PersonFields    = slices.Sorted(maps.Keys(PersonArguments))
	DueFields       = []string{"after"}
	FormFields      = []string{"ref", "version", "schema"}
)

// argument is what an argument of humanTask takes: a text of at most so many
// characters, a list of names, or what has a check of its own.
type argument struct {
	Max   int
	Names bool
	field []int // of a task
}

// asked are the arguments of a human task as an instance computes them: what a task has
// of a document, and what becomes something of it.
type asked struct {
	engine.Task
	Priority *int `json:"priority"`
	Due      *struct {
		After string `json:"after"`
	} `json:"due"`
}

// arguments are the fields of a struct by their names in JSON, those of the ones
// embedded in it, too.
func arguments(t reflect.Type, all map[string]argument) map[string]argument {
	if all == nil {
		all = map[string]argument{}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			arguments(f.Type, all)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue // no document says it
		}
		most, _ := strconv.Atoi(f.Tag.Get("max"))
		all[name] = argument{Max: most, Names: f.Type == reflect.TypeFor[[]string](), field: f.Index}
	}
	return all
}

// person asks a person.
func (r calls) person(n *Node, in *scope) error {
	with, err := r.evals.eval(n.Person.With, in)
	if err != nil {
		return err
	}
	raw, err := with.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return err
	}
	task, err := r.task(raw)
	if err != nil {
		return err
	}
	task.Name, task.Pointer = n.Name, n.Pointer
	r.t.Ask(task, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer})
	return nil
}

// task is what a person is asked, of its arguments as an expression has made them.
func (r calls) task(raw []byte) (engine.Task, error) {
	var a asked
	if err := strictly(raw, &a, "with", slices.Concat(PersonFields, DueFields)); err != nil {
		return engine.Task{}, raise(engine.ErrValidation, 400, "Invalid task", err.Error())
	}
	task, err := a.task(r.t.In.Now)
	if err != nil {
		return engine.Task{}, raise(engine.ErrValidation, 400, "Invalid task", err.Error())
	}
	if err := askable(task.Form); err != nil {
		return engine.Task{}, raise(engine.ErrValidation, 400, "Invalid form", err.Error())
	}
	return task, nil
}

// strictly decodes what an expression may have made: a field that nobody reads
// is an error, as it is where a document says it outright.
func strictly(raw []byte, to any, what string, fields []string) error {
	err := jsonv2.Unmarshal(raw, to, jsonv2.RejectUnknownMembers(true))
	var wrong *jsonv2.SemanticError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(err, jsonv2.ErrUnknownName):
		name := wrong.JSONPointer.LastToken()
		if n, ok := nearest.Name(name, fields); ok {
			return fmt.Errorf("%s has the unknown field %q: did you mean %s?", what, name, n)
		}
		return fmt.Errorf("%s has the unknown field %q: known are %s", what, name, strings.Join(fields, ", "))
	}
	path, kind := strings.Join(slices.Collect(wrong.JSONPointer.Tokens()), "."), kinds[wrong.JSONKind]
	if wrong.JSONKind == '0' && len(wrong.JSONValue) > 0 {
		kind += " " + string(wrong.JSONValue)
	}
	return fmt.Errorf("%s.%s cannot be a %s", what, path, kind)
}

// kinds are the words for kinds of JSON values.
var kinds = map[jsontext.Kind]string{'n': "null", 't': "boolean", 'f': "boolean", '"': "string", '0': "number", '{': "object", '[': "array"}

// task checks the arguments.
func (a *asked) task(now time.Time) (engine.Task, error) {
	t := a.Task
	t.Priority = humantask.DefaultPriority
	if a.Priority != nil {
		t.Priority = *a.Priority
	}
	if t.Priority < 0 || t.Priority > humantask.MaxPriority {
		return t, fmt.Errorf("with.priority is %d, not 0 to %d", t.Priority, humantask.MaxPriority)
	}
	of := reflect.ValueOf(&t).Elem()
	for _, name := range slices.Sorted(maps.Keys(PersonArguments)) {
		switch x := PersonArguments[name]; {
		case x.Names:
			if err := humantask.CheckNames(of.FieldByIndex(x.field).Interface().([]string)); err != nil {
				return t, fmt.Errorf("with.%s %w", name, err)
			}
		case x.Max > 0:
			if n := utf8.RuneCountInString(of.FieldByIndex(x.field).String()); n > x.Max {
				return t, fmt.Errorf("with.%s has %d characters; at most %d", name, n, x.Max)
			}
		}
	}
	if err := humantask.CheckNames(slices.Concat(t.CandidateGroups, t.EscalateTo)); err != nil {
		return t, fmt.Errorf("with.candidateGroups and with.escalateTo %w", err)
	}
	if t.Assignee != "" && slices.Contains(t.ExcludedUsers, t.Assignee) {
		return t, fmt.Errorf("with.assignee %s is one of with.excludedUsers", t.Assignee)
	}
	if a.Due == nil {
		if len(t.EscalateTo) > 0 {
			return t, errors.New("with.escalateTo needs with.due: it says when")
		}
		return t, nil
	}
	due, err := duration.After(now, a.Due.After)
	if err != nil {
		return t, fmt.Errorf("with.due.after: %w", err)
	}
	t.DueAt = due.Truncate(time.Microsecond)
	return t, nil
}

// askable checks a form: {schema}, or {ref, version} of one that the
// application knows, or none. Nobody is asked what he cannot answer.
func askable(form json.RawMessage) error {
	if len(form) == 0 || string(form) == "null" {
		return nil
	}
	var f struct {
		Ref     *string         `json:"ref"`
		Version json.RawMessage `json:"version"`
		Schema  json.RawMessage `json:"schema"`
	}
	if err := strictly(form, &f, "the form", FormFields); err != nil {
		return err
	}
	switch {
	case (f.Ref == nil) == (f.Schema == nil) || f.Schema != nil && f.Version != nil:
		return errors.New("with.form is neither {ref, version} nor {schema}")
	case f.Schema != nil:
		_, err := schema.Compile(f.Schema)
		return err
	case *f.Ref == "":
		return errors.New("with.form.ref is empty")
	}
	var number uint32
	var text string
	if (jsonv2.Unmarshal(f.Version, &number) != nil || number == 0) && (jsonv2.Unmarshal(f.Version, &text) != nil || text == "") {
		return errors.New("with.form.version must be a whole number from 1, or a text")
	}
	return nil
}
