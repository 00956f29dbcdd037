package engine

import (
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
