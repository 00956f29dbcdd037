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
func (c publishing) acyclic(ctx context.Context, def engine.Definition, with []*candidate) error {
	self := def.Ref()
	seen := map[string]bool{}
	var follow func(def engine.Definition, path []string) error
	follow = func(def engine.Definition, path []string) error {
		p, ok := def.(parent)
		if !ok {
			return nil
		}
		for _, child := range p.Children() {
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
	return follow(def, []string{self.Name})
}

// among finds a child among what is published, and what is published with it.
func (c publishing) among(ctx context.Context, child engine.Child, with []*candidate) (engine.Definition, error) {
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
		if p.Name == child.Definition && p.Version == version && p.parsed.Definition != nil {
			return p.parsed.Definition, nil
		}
	}
	return c.Find(ctx, child.Definition, version)
}
