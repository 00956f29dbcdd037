package oracle

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// CheckStep looks at a step of a document that is published: see
// definition.Catalogue.CheckSteps.
func CheckStep(s *Store) definition.StepCheck {
	return func(ctx context.Context, step definition.Step) (wrong, doubtful []problem.Place, err error) {
		return s.o.Steps.Check(steps.Use(step)), nil, nil
	}
}
