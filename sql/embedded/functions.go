package embedded

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Declare implements backend.Functions.
func (s backlog) Declare(ctx context.Context, targets []string) error {
	list, err := json.Marshal(append([]string{}, targets...))
	if err != nil {
		return wrap("declare functions", err)
	}
	return wrap("declare functions", s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("function_declare", string(list), s.Node())
		return err
	}))
}

// Declared implements backend.Functions.
func (s backlog) Declared(ctx context.Context) ([]string, error) {
	found, err := sqlite.List[backend.Count](ctx, s.Store, read("functions_declared"))
	var all []string
	for _, f := range found {
		all = append(all, f.Name)
	}
	return all, wrap("functions", err)
}

// Unclaimed implements backend.Functions.
func (s backlog) Unclaimed(ctx context.Context, limit int) ([]backend.Count, error) {
	found, err := sqlite.List[backend.Count](ctx, s.Store, read("functions_unclaimed", limit))
	return found, wrap("unclaimed commands", err)
}
