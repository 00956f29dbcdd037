package engine

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Schemas are what the data of a task or a workflow must fit; nil = anything.
type Schemas struct {
	Input  *schema.Schema // of the input as it comes, before input.from
	Output *schema.Schema // of the output, after output.as
	Export *schema.Schema // of the context, after export.as
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
		return raise(ErrValidation, 400, "Invalid "+what, "the "+what+" does not fit its schema: "+schema.Summary(places))
	}
	return nil
}

// askable checks that a form's schema is one, so that nobody is asked what he
// cannot answer.
func askable(form json.RawMessage) error {
	s, ok := FormSchema(form)
	if !ok {
		return nil
	}
	if _, err := schema.Compile(s); err != nil {
		return raise(ErrValidation, 400, "Invalid form", err.Error())
	}
	return nil
}

// FormSchema returns the schema that answers to a human task must fit, when its
// form has one.
func FormSchema(form json.RawMessage) (json.RawMessage, bool) {
	var f struct {
		Schema json.RawMessage `json:"schema"`
	}
	if json.Unmarshal(form, &f) != nil || len(f.Schema) == 0 || string(f.Schema) == "null" {
		return nil, false // a form may be any JSON
	}
	return f.Schema, true
}
