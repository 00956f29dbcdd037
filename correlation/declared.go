package correlation

import (
	"encoding/json"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Declared gives the key of an event for those who listen at a step of Go code, by what
// the code declares: a program without the code finds the same instances as one with it.
// ok is false when the event cannot match there, declared when no such step is.
func Declared(document []byte, pointer string, event json.RawMessage) (key string, ok, declared bool) {
	var d struct {
		Steps []struct {
			Name   string   `json:"name"`
			Kind   string   `json:"kind"`
			Target string   `json:"target"`
			Keys   []string `json:"correlate"`
		} `json:"steps"`
	}
	if err := jsonv2.Unmarshal(document, &d); err != nil {
		return "", false, false
	}
	for _, s := range d.Steps {
		if s.Kind != "event" || "/"+escape.Replace(s.Name) != pointer {
			continue
		}
		var typ string
		if v, has := at(event, "type"); !has || jsonv2.Unmarshal(v, &typ) != nil || typ != s.Target {
			return "", false, true
		}
		found := map[string]string{}
		for _, path := range s.Keys {
			v, has := at(event, path)
			if !has {
				return "", false, true
			}
			found[path] = string(v)
		}
		return engine.Key(found), true, true
	}
	return "", false, false
}

// escape writes a key of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// at is the value at a path of an object, in the one form that equal values have.
func at(object json.RawMessage, path string) (json.RawMessage, bool) {
	var fields map[string]jsontext.Value
	if jsonv2.Unmarshal(object, &fields) != nil {
		return nil, false
	}
	name, rest, deeper := strings.Cut(path, ".")
	v, ok := fields[name]
	if !ok {
		return nil, false
	}
	if deeper {
		return at(json.RawMessage(v), rest)
	}
	return json.RawMessage(v), v.Canonicalize() == nil
}
