package definition

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Step is a call of a step in the transaction of its turn, as a document writes it.
type Step struct {
	Target string                     // KIND/NAME, as in the command
	Args   []string                   // the names of its arguments
	Known  map[string]json.RawMessage // those whose value has no expression in it
	Open   bool                       // an expression gives the arguments, names and all
	Out    []string                   // the out-parameters that it asks for
}

// Called is a step, and where a document calls it.
type Called struct {
	Step
	At func(pointer string) problem.Place // of what is below the step's "with"
}

// StepCheck says what is wrong with a call of a step, and what may be: what the
// publisher cannot know. Each has the pointer below the step's "with", a code, a detail
// and a hint. An error means that nothing is known yet, and nothing is published.
type StepCheck func(ctx context.Context, step Step) (wrong, doubtful []problem.Place, err error)

// CheckSteps has f look at each step of a version that is published from now on; without
// it, a step that nobody has listed is found by the first turn that comes to it. It is
// called once, before use.
func (c *Catalogue) CheckSteps(f StepCheck) { c.steps = f }

// maxFindings bounds what is said about the steps of one version.
const maxFindings = 100

// checked refuses a version with a step that cannot be done, and gives warnings.
func (c *Catalogue) checked(ctx context.Context, p Parsed) (warnings []problem.Place, err error) {
	if c.steps == nil {
		return nil, nil
	}
	var wrong []problem.Place
	for _, s := range p.Steps {
		no, doubtful, err := c.steps(ctx, s.Step)
		if err != nil {
			return nil, err
		}
		wrong, warnings = append(wrong, s.placed(no)...), append(warnings, s.placed(doubtful)...)
	}
	if len(wrong) == 0 {
		return warnings, nil
	}
	e := problem.New(problem.Invalid, "definition.invalid", "definition %s calls steps that cannot be done: %d findings", ID(p.Ref.Name, p.Ref.Version), len(wrong))
	e.Where = wrong[:min(len(wrong), maxFindings)]
	if more := len(wrong) - len(e.Where); more > 0 {
		e.Hint = fmt.Sprintf("%d more findings are not shown", more)
	}
	return nil, e
}

// placed gives findings their places in the document.
func (s Called) placed(findings []problem.Place) []problem.Place {
	all := make([]problem.Place, 0, len(findings))
	for _, f := range findings {
		at := s.At(f.Pointer)
		at.Code, at.Detail, at.Hint = f.Code, f.Detail, f.Hint
		all = append(all, at)
	}
	return all
}
