package main

import (
	"context"
	"os"
	"slices"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// stepsOf are the steps that the settings list.
func stepsOf(c config.Steps) (*steps.Set, error) {
	set := &steps.Set{Limit: c.Limit}
	if err := set.Allow(config.List(c.PLSQL)...); err != nil {
		return nil, err
	}
	if c.SQL == "" {
		return set, nil
	}
	return set, set.Read(c.SQL)
}

// prepareSteps makes the application's tables, and looks at its statements.
func prepareSteps(ctx context.Context, s database, set *steps.Set, tables string) error {
	file, embeds := s.(*embedded.Store)
	if !embeds && tables != "" {
		return problem.New(problem.Invalid, "config.needs", "steps.tables is for the embedded store").
			WithHint("on Oracle the application's tables are made by its own installation")
	}
	if !embeds {
		return oracle.CheckSteps(set)
	}
	if tables != "" {
		script, err := os.ReadFile(tables)
		if err != nil {
			return problem.Wrap(err, problem.Invalid, "config.unreadable", "steps.tables: %s cannot be read", tables)
		}
		if err := file.MakeTables(ctx, string(script)); err != nil {
			return err
		}
	}
	return file.CheckSteps(ctx, set)
}

// lookAt is what a store knows of the steps of a set.
func lookAt(db database, set *steps.Set) definition.StepCheck {
	if o, ok := db.(*oracle.Store); ok {
		return oracle.CheckStep(o)
	}
	return embedded.CheckStep(set)
}

// checkStep looks at a step that is published. A node refuses what it does not list, for
// every node lists the same. A program beside them knows what they list only as far as
// its own settings list something of that kind: else it warns.
func (n *node) checkStep(ctx context.Context, step definition.Step) (wrong, doubtful []problem.Place, err error) {
	wrong, doubtful, err = n.look(ctx, step)
	if err != nil || !n.beside || n.set.Lists(step.Target) {
		return wrong, doubtful, err
	}
	wrong = slices.DeleteFunc(wrong, func(p problem.Place) bool {
		if p.Code != "step.unknown" {
			return false
		}
		p.Code, p.Hint = "warning.unknown-step", "this program has no settings of steps; a node that publishes it would know"
		doubtful = append(doubtful, p)
		return true
	})
	return wrong, doubtful, nil
}
