package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// declareAttempts is how often a node says what it performs to its row, which a heartbeat has
// locked: nobody says it for it later.
const declareAttempts = 10

// Declare implements backend.Functions.
func (s backlog) Declare(ctx context.Context, targets []string) error {
	said, err := json.Marshal(append([]string{}, targets...))
	if err != nil {
		return wrap("declare functions", err)
	}
	s.declared.Store(&said)
	for attempt := 1; ; attempt++ {
		err = s.again(ctx)
		if !isLocked(err) || attempt == declareAttempts || ctx.Err() != nil {
			return wrap("declare functions", err)
		}
		pause(ctx, aq.Backoff(1))
	}
}

// again says what was declared to a row that is new.
func (s backlog) again(ctx context.Context) error {
	said := s.declared.Load()
	if said == nil {
		return nil
	}
	_, err := s.exec(ctx, "function_declare", *said, s.run)
	return err
}

// Declared implements backend.Functions.
func (s backlog) Declared(ctx context.Context) ([]string, error) {
	found, err := list[struct {
		Functions []byte `db:"FUNCTIONS"`
	}](ctx, s.Store, read("functions_declared", s.o.DeadAfter.Seconds()))
	if err != nil {
		return nil, wrap("functions", err)
	}
	var all []string
	for _, f := range found {
		var of []string
		if err := jsonv2.Unmarshal(f.Functions, &of); err != nil {
			return nil, wrap("functions", fmt.Errorf("WF_NODES.FUNCTIONS is no list: %w", err))
		}
		all = append(all, of...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Unclaimed implements backend.Functions.
func (s backlog) Unclaimed(ctx context.Context, limit int) ([]backend.Count, error) {
	found, err := list[backend.Count](ctx, s.Store, read("functions_unclaimed", limit))
	return found, wrap("unclaimed commands", err)
}
