package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const order = `{"type": "object", "required": ["id"], "additionalProperties": false,
		"properties": {"id": {"type": "integer", "minimum": 1}, "a/b": {"$ref": "#/$defs/name"}, "n": {"type": "number"}},
		"$defs": {"name": {"type": "string", "pattern": "^[a-z]+$"}}}`
	for _, c := range []struct{ schema, data, want string }{
		{order, `{"id": 1, "a/b": "x"}`, ""},
		{order, `{"id": 12345678901234567890123}`, ""},
		{order, `{}`, "missing property 'id'"},
		{order, `{"id": "1"}`, "/id: got string, want integer"},
		{order, `{"id": 0, "a/b": "X", "c": 1}`, "/id: minimum"},
		{order, `{"id": 0, "a/b": "X"}`, "/a~1b: "},
		{order, `{"id": 1, "n": 1e999999999}`, "exponent beyond 400"},
		{order, `{"id": 1} 2`, "more than one value"},
		{order, `x`, "invalid character"},
		{`false`, `1`, "false schema"},
		{`true`, `1`, ""},
		{`{"oneOf": [{"type": "string"}, {"type": "boolean"}]}`, `1`, "got number, want string; got number, want boolean"},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}`, `[1]`, "/0: got number"},
	} {
		s, err := Compile(json.RawMessage(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		got := Summary(s.Check(json.RawMessage(c.data)))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.data, got, c.want)
		}
	}
	s, err := Compile(json.RawMessage(`{"items": {"type": "string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Check(json.RawMessage(`[` + strings.Repeat("1,", 100) + `1]`))); n != MaxPlaces {
		t.Errorf("%d places", n)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type": "sting"}`:                       "/type",
		`{"$ref": "https://x.example/s.json"}`:    "refers to another document",
		`{"$ref": "file:///etc/passwd"}`:          "refers to another document",
		`{"$ref": "#/$defs/none"}`:                "/$defs/none",
		`{"pattern": "(?=x)"}`:                    "pattern",
		`{"$schema": "https://x.example/schema"}`: "refers to another document",
		`1`:  "got number",
		`{"`: "not JSON",
	} {
		_, err := Compile(json.RawMessage(schema))
		if problem.CodeOf(err) != "schema.invalid" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), at) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	var c Cache
	a, err := c.Compile(json.RawMessage(`{}`))
	b, again := c.Compile(json.RawMessage(`{}`))
	if a != b || err != nil || again != nil {
		t.Errorf("compiled twice: %v, %v", err, again)
	}
	for i := range MaxCached {
		if _, err := c.Compile(json.RawMessage(fmt.Sprintf(`{"minimum": %d}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.kept) > MaxCached {
		t.Errorf("%d kept", len(c.kept))
	}
	if _, err := c.Compile(json.RawMessage(`1`)); err == nil {
		t.Error("no schema is compiled")
	}
}
