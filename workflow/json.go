package workflow

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options are how values of authors are JSON: exact, with maps in order, so that
// one value has one form. A duration is its nanoseconds.
var options = jsonv2.JoinOptions(jsonv2.Deterministic(true), jsonv1.FormatDurationAsNano(true), jsontext.EscapeForHTML(false))

func encode(v any) (json.RawMessage, error) { return jsonv2.Marshal(v, options) }

func decode(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	return jsonv2.Unmarshal(raw, v, options)
}

// canonical is a value in the one form that equal values have.
func canonical(v any) (json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, err
	}
	c := jsontext.Value(raw)
	err = c.Canonicalize()
	return json.RawMessage(c), err
}
