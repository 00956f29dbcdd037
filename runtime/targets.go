package runtime

import (
	"log/slog"

	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
)

// targets are the destinations of a node's commands, as operators see them.
type targets struct {
	admission *admission.Admission[*dispatch.Job]
	log       *slog.Logger
}

// Targets are the destinations that this node remembers, in the order of their
// names.
func (t *targets) Targets() []admission.State { return t.admission.States() }

// ResetTarget closes the breaker of a destination on this node.
func (t *targets) ResetTarget(name string) error {
	if err := t.admission.Reset(name); err != nil {
		return err
	}
	t.log.Info("circuit breaker is reset", "target", name)
	return nil
}
