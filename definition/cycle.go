package definition

import (
	"context"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// parent is a definition that says which others it runs and waits for.
type parent interface {
	Children() []engine.Child
}

// maxLineage bounds how many definitions are looked at for one publication;
// what leads back by way of more is left to the depth limit at run time.
const maxLineage = 1_000

// acyclic refuses a definition that, by way of what is published now or with it, would
// wait for another run of itself. What is not published yet cannot be seen;
// the depth limit of the engine bounds it.
func (c publishing) acyclic(ctx context.Context, self *candidate, with []*candidate) error {
	seen := map[string]bool{}
	var follow func(runs []engine.Child, path []string) error
	follow = func(runs []engine.Child, path []string) error {
		for _, child := range runs {
			if child.Definition == self.Name && (child.Version == "" || child.Version == self.Version) {
				return problem.New(problem.Invalid, "definition.cyclic", "definition %s waits for another run of itself: %s",
					ID(self.Name, self.Version), strings.Join(append(path, self.Name), " runs ")).
					WithHint("loop with then or for, or start it with await: false")
			}
			id := ID(child.Definition, child.Version)
			if seen[id] || len(seen) >= maxLineage {
				continue
			}
			seen[id] = true
			next, err := c.among(ctx, child, with)
			if problem.KindOf(err) == problem.NotFound || problem.CodeOf(err) == engine.CodeElsewhere {
				continue
			}
			if err != nil {
				return err
			}
			if err := follow(next, append(slices.Clone(path), child.Definition)); err != nil {
				return err
			}
		}
		return nil
	}
	return follow(self.runs, []string{self.Name})
}

// among is what a child waits for that is published, or published with it.
func (c publishing) among(ctx context.Context, child engine.Child, with []*candidate) ([]engine.Child, error) {
	version := child.Version
	if version == "" {
		var err error
		if version, err = c.latest(ctx, child.Definition); err != nil && problem.KindOf(err) != problem.NotFound {
			return nil, err
		}
		for _, p := range with {
			if p.Name == child.Definition {
				version = higher(version, p.Version)
			}
		}
	}
	for _, p := range with {
		if p.Name == child.Definition && p.Version == version && p.Kind != KindPolicy {
			return p.runs, nil
		}
	}
	def, err := c.Find(ctx, child.Definition, version)
	if p, ok := def.(parent); ok && err == nil {
		return p.Children(), nil
	}
	return nil, err
}
