package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Differences are lines of what a JSON document has no more (-) and has now (+), each with
// the JSON pointer of its place, as of an edited dead letter. None says that both are the
// same but for how they are written.
func Differences(old, now json.RawMessage) []string { return differences("", old, now) }

// EnvelopeDifferences are those of two envelopes, but what the engine writes of each
// itself: the checksum of its bytes, and that it is for any version.
func EnvelopeDifferences(old, now json.RawMessage) []string {
	return slices.DeleteFunc(Differences(old, now), func(line string) bool {
		return strings.HasPrefix(line[1:], " /checksum ") || line == "+ /expectedVersion 0"
	})
}

func differences(at string, old, now json.RawMessage) (lines []string) {
	a, b := as[map[string]json.RawMessage](old), as[map[string]json.RawMessage](now)
	x, y := as[[]json.RawMessage](old), as[[]json.RawMessage](now)
	switch was, is := compact(old), compact(now); {
	case was == is:
	case a != nil && b != nil:
		both := maps.Clone(a)
		maps.Copy(both, b)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			lines = append(lines, differences(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), a[name], b[name])...)
		}
	case x != nil && y != nil && len(x) == len(y):
		for i := range x {
			lines = append(lines, differences(fmt.Sprintf("%s/%d", at, i), x[i], y[i])...)
		}
	default:
		if old != nil {
			lines = append(lines, "- "+at+" "+was)
		}
		if now != nil {
			lines = append(lines, "+ "+at+" "+is)
		}
	}
	return lines
}

// as is a value as a type that has none of its own for another kind of value.
func as[T any](raw json.RawMessage) T {
	var v, none T
	if jsonv2.Unmarshal(raw, &v) != nil {
		return none
	}
	return v
}

// compact is a value in one line, whose texts are escaped no more than they need be.
func compact(raw json.RawMessage) string {
	v := jsontext.Value(bytes.Clone(raw))
	_ = v.Format() // what is no JSON stays
	return string(v)
}
