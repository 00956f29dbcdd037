package projections

import (
	"github.com/aqueduct-engine/aqueduct/appendjson"
	"github.com/aqueduct-engine/aqueduct/engine"
)

// metadata is what an entry's row shows beside its data, as JSON; nil when that
// is nothing. Every turn writes some, and reflection was a tenth of its work.
func metadata(m *engine.Meta) []byte {
	size := len(m.Pointer) + len(m.Actor) + len(m.Correlation) + len(m.Traceparent) + len(m.Refusal) + metadataNames
	for _, step := range m.Steps {
		size += len(step) + len(`"",`)
	}
	o := appendjson.New(size)
	o.Opt("ptr", m.Pointer)
	o.Opt("actor", m.Actor)
	o.Opt("disposition", string(m.Disposition))
	o.Opt("correlationId", m.Correlation)
	o.Opt("traceparent", m.Traceparent)
	o.OptNum("command", m.Command)
	o.Opt("sender", m.Sender)
	o.OptNum("sequence", m.Sequence)
	o.Opt("refusal", m.Refusal)
	o.OptTexts("steps", m.Steps)
	o.OptNum("version", m.Version)
	return o.End()
}

// metadataNames is room for the names of what is mostly there.
const metadataNames = 96
