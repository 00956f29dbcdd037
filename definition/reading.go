package definition

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Records are versions by name, and nothing more.
type Records interface {
	Definition(ctx context.Context, name, version string) (Record, error)
}

// Past finds definitions as turns were decided by them, by whichever policy.
type Past struct{ of *Catalogue }

// PastOf is what a catalogue knows.
func PastOf(c *Catalogue) Past { return Past{c} }

// Reading finds the versions that instances name, and the code that is registered with it.
// It publishes nothing, and knows no latest version.
func Reading(from Records, parsers map[string]Parser) Past {
	return Past{New(reading{from}, parsers, nil)}
}

// Register adds a definition that is Go code.
func (p Past) Register(def engine.Definition) error { return p.of.Register(def) }

// reading is a repository of which versions are read.
type reading struct{ Records }

func errReading() error {
	return problem.New(problem.Unavailable, "definition.unlisted", "definitions are read here, not listed or published")
}

// PutDefinitions implements Repository.
func (reading) PutDefinitions(context.Context, []Record) (created bool, err error) {
	return false, errReading()
}

// Versions implements Repository.
func (reading) Versions(context.Context, string, int) ([]Record, error) { return nil, errReading() }

// Definitions implements Repository.
func (reading) Definitions(context.Context, string, int) ([]Record, error) { return nil, errReading() }

// Under returns exactly the definition that an instance runs, as it was with a version
// of its policy; "" = with none. Problems: those of Catalogue.Pinned.
func (p Past) Under(ctx context.Context, ref snapshot.Definition, policy string) (engine.Definition, error) {
	c := laying{p.of}
	def, err := c.exactly(ctx, ref)
	if over, ok := def.(policed); err == nil && ok && policy != "" && over.ByPolicy() != nil {
		return c.by(ctx, ref, engine.Policy{Name: over.ByPolicy().Name, Version: policy}, ref.Policy)
	}
	return def, err
}
