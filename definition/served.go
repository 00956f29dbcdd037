package definition

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// ServedBy says which of some functions no node has that is at work: calls of those in a
// version that is published from now on are warnings. It is called once, before use.
func (c *Catalogue) ServedBy(unserved func(ctx context.Context, functions []string) ([]string, error)) {
	c.served = unserved
}

// unserved warns of calls of functions that no node has.
func (c *Catalogue) unserved(ctx context.Context, p Parsed) (warnings []problem.Place, err error) {
	if c.served == nil || len(p.Functions) == 0 {
		return nil, nil
	}
	nobodys, err := c.served(ctx, slices.Sorted(maps.Keys(p.Functions)))
	for _, name := range nobodys[:min(len(nobodys), maxFindings)] {
		at := p.Functions[name]
		at.Code, at.Detail = "warning.unserved-function", fmt.Sprintf("no node that is at work has the function %s", name)
		at.Hint = "start one that has: until then the calls wait, and fail after about half an hour"
		warnings = append(warnings, at)
	}
	return warnings, err
}
