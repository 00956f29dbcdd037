package main

import (
	"context"
	"os"

	"github.com/aqueduct-engine/aqueduct/config"
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
