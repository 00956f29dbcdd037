package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Arguments of the function humanTask, and of what stands in them.
var (
	PersonFields = []string{
		"title", "assignee", "candidateUsers", "candidateGroups", "excludedUsers", "form", "payload", "priority", "due", "escalateTo", "outcomes",
	}
	DueFields  = []string{"after"}
	FormFields = []string{"ref", "version", "schema"}
)

// asked are the arguments of a human task as an instance computes them.
type asked struct {
	Title           string          `json:"title"`
	Assignee        string          `json:"assignee"`
	CandidateUsers  []string        `json:"candidateUsers"`
	CandidateGroups []string        `json:"candidateGroups"`
	ExcludedUsers   []string        `json:"excludedUsers"`
	Payload         json.RawMessage `json:"payload"`
	Form            json.RawMessage `json:"form"`
	Priority        *int            `json:"priority"`
	Outcomes        []string        `json:"outcomes"`
	EscalateTo      []string        `json:"escalateTo"`
	Due             *struct {
		After string `json:"after"`
	} `json:"due"`
}

// person asks a person.
func (r *run) person(n *Node, in *scope) error {
	with, err := r.eval(n.Person.With, in)
	if err != nil {
		return err
	}
	raw, err := with.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return err
	}
	var a asked
	if err := strictly(raw, &a, "with", slices.Concat(PersonFields, DueFields)); err != nil {
		return raise(engine.ErrValidation, 400, "Invalid task", err.Error())
	}
	task, err := a.task(r.t.In.Now)
	if err != nil {
		return raise(engine.ErrValidation, 400, "Invalid task", err.Error())
	}
	if err := askable(task.Form); err != nil {
		return raise(engine.ErrValidation, 400, "Invalid form", err.Error())
	}
	task.Name, task.Pointer = n.Name, n.Pointer
	r.t.Ask(task, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer})
	return nil
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
		if n, ok := problem.Nearest(name, fields); ok {
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
	t := engine.Task{
		Title: a.Title, Assignee: a.Assignee, CandidateUsers: a.CandidateUsers, CandidateGroups: a.CandidateGroups,
		ExcludedUsers: a.ExcludedUsers, Payload: a.Payload, Form: a.Form, Priority: engine.DefaultPriority,
		Outcomes: a.Outcomes, EscalateTo: a.EscalateTo,
	}
	if a.Priority != nil {
		t.Priority = *a.Priority
	}
	if t.Priority < 0 || t.Priority > engine.MaxPriority {
		return t, fmt.Errorf("with.priority is %d, not 0 to %d", t.Priority, engine.MaxPriority)
	}
	if n := utf8.RuneCountInString(t.Title); n > engine.MaxTitle {
		return t, fmt.Errorf("with.title has %d characters; at most %d", n, engine.MaxTitle)
	}
	if n := utf8.RuneCountInString(t.Assignee); n > engine.MaxName {
		return t, fmt.Errorf("with.assignee has %d characters; at most %d", n, engine.MaxName)
	}
	for _, l := range []struct {
		field string
		names []string
	}{
		{"candidateUsers", t.CandidateUsers}, {"candidateGroups", t.CandidateGroups}, {"excludedUsers", t.ExcludedUsers},
		{"outcomes", t.Outcomes}, {"escalateTo", t.EscalateTo}, {"candidateGroups and with.escalateTo", slices.Concat(t.CandidateGroups, t.EscalateTo)},
	} {
		if err := engine.CheckNames(l.names); err != nil {
			return t, fmt.Errorf("with.%s %w", l.field, err)
		}
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
