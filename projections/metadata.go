package projections

import (
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// metadata is what an entry's row shows beside its data, as JSON; nil when that
// is nothing. Every turn writes some, and reflection was a tenth of its work.
func metadata(m *engine.Meta) []byte {
	size := len(m.Pointer) + len(m.Actor) + len(m.Correlation) + len(m.Traceparent) + len(m.Refusal) + metadataNames
	for _, step := range m.Steps {
		size += len(step) + len(`"",`)
	}
	o := snapshot.NewObject(size)
	o.Text("ptr", m.Pointer)
	o.Text("actor", m.Actor)
	o.Text("disposition", string(m.Disposition))
	o.Text("correlationId", m.Correlation)
	o.Text("traceparent", m.Traceparent)
	o.Number("command", m.Command)
	o.Text("sender", m.Sender)
	o.Number("sequence", m.Sequence)
	o.Text("refusal", m.Refusal)
	o.Texts("steps", m.Steps)
	o.Number("version", m.Version)
	return o.End()
}

// metadataNames is room for the names of what is mostly there.
const metadataNames = 96
