package projections

import (
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// metadata is what an entry's row shows beside its data, as JSON; nil when that
// is nothing. Every turn writes some, and reflection was a tenth of its work.
func metadata(m *engine.Meta) ([]byte, error) {
	size := len(m.Pointer) + len(m.Actor) + len(m.Correlation) + len(m.Traceparent) + len(m.Refusal) + metadataNames
	for _, step := range m.Steps {
		size += len(step) + len(`"",`)
	}
	o := members{b: make([]byte, 0, size)}
	o.text("ptr", m.Pointer)
	o.text("actor", m.Actor)
	o.text("disposition", string(m.Disposition))
	o.text("correlationId", m.Correlation)
	o.text("traceparent", m.Traceparent)
	o.number("command", m.Command)
	o.text("sender", m.Sender)
	o.number("sequence", m.Sequence)
	o.text("refusal", m.Refusal)
	for i, step := range m.Steps {
		if i == 0 {
			o.name("steps")
			o.b = append(o.b, '[')
		} else {
			o.b = append(o.b, ',')
		}
		o.quote(step)
	}
	if len(m.Steps) > 0 {
		o.b = append(o.b, ']')
	}
	o.number("version", m.Version)
	switch {
	case o.err != nil: // text that is not UTF-8, of which the other encoder makes some
		return json.Marshal(m)
	case len(o.b) == 0:
		return nil, nil
	}
	return append(o.b, '}'), nil
}

// metadataNames is room for the names of what is mostly there.
const metadataNames = 96

// members are those of a JSON object in the making, without its end.
type members struct {
	b   []byte
	err error
}

func (o *members) name(name string) {
	open := byte(',')
	if len(o.b) == 0 {
		open = '{'
	}
	o.b = append(append(append(o.b, open, '"'), name...), '"', ':')
}

func (o *members) quote(v string) {
	var err error
	if o.b, err = jsontext.AppendQuote(o.b, v); err != nil {
		o.err = err
	}
}

func (o *members) text(name, v string) {
	if v != "" {
		o.name(name)
		o.quote(v)
	}
}

func (o *members) number(name string, n int64) {
	if n != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, n, 10)
	}
}
