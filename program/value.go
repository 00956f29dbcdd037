package program

import (
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/jq"
)

// value is a JSON value as bytes, as Go data, or both: it is converted only
// when the other form is asked for, and most turns never ask.
type value struct {
	raw json.RawMessage
	any any
	has bool // any is set
}

func rawValue(raw json.RawMessage) value { return value{raw: raw} }
func anyValue(v any) value               { return value{any: v, has: true} }

// there is false of the zero value, which is none.
func (v *value) there() bool { return v.raw != nil || v.has }

// Any returns the Go form. It must not be changed.
func (v *value) Any() (any, error) {
	if !v.has {
		a, err := jq.Decode(v.raw)
		if err != nil {
			return nil, err
		}
		v.any, v.has = a, true
	}
	return v.any, nil
}

// Raw returns the bytes, canonical when they were made from the Go form.
func (v *value) Raw(max int) (json.RawMessage, error) {
	if v.raw == nil {
		raw, err := jq.Encode(v.any, max)
		if err != nil {
			return nil, err
		}
		v.raw = raw
	}
	return v.raw, nil
}

// moment is how a time is shown to expressions.
func moment(t time.Time) any {
	return map[string]any{
		"iso8601": t.UTC().Format(time.RFC3339Nano),
		"epoch":   map[string]any{"seconds": int(t.Unix()), "milliseconds": int(t.UnixMilli())},
	}
}
