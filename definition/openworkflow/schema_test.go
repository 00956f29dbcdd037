package openworkflow

import (
	"errors"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
)

const schemaDoc = `
document: {dsl: '1.0.3', namespace: t, name: schema, version: '1.0.0'}
input: {schema: SCHEMA}
do:
  - ask: {call: humanTask, with: {form: FORM}}
`

func TestSchemaFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, form, want string }{
		{`{document: {type: sting}}`, `{schema: {}}`, "definition.schema /input/schema/document: schema is not one: /type: value must be one of"},
		{`{document: {$ref: 'https://x.example/y'}}`, `{schema: {}}`, "refers to another document"},
		{`{document: 1}`, `{schema: {}}`, "schema is not one"},
		{`{}`, `{schema: {}}`, "has either a document or a resource"},
		{`{document: {}, resource: {endpoint: 'https://x.example/s'}}`, `{schema: {}}`, "has either a document or a resource"},
		{`{format: avro, document: {}}`, `{schema: {}}`, `unsupported /input/schema/format: schemas of the format "avro"`},
		{`{resource: {endpoint: 'https://x.example/bad'}}`, `{schema: {}}`, "definition.schema /input/schema/resource: schema is not one"},
		{`{document: {}}`, `{schema: {type: sting}}`, "definition.schema /do/0/ask/with/form/schema: schema is not one"},
		{`{document: {}}`, `{schema: {type: '${ .t }'}}`, "ok"},
		{`{resource: {name: s, endpoint: {uri: 'https://x.example/good'}}}`, `{ref: form-1, version: 3}`, "ok"},
	} {
		source := strings.NewReplacer("SCHEMA", c.schema, "FORM", c.form).Replace(schemaDoc)
		p, err := Parse("w.yaml", []byte(source),
			definition.Resource{URI: "https://x.example/bad", Content: []byte(`{"type": 1}`)},
			definition.Resource{URI: "https://x.example/good", Digest: "d", Content: []byte("type: object\nrequired: [a]\n")})
		got := "ok"
		var e *problem.Error
		if errors.As(err, &e) {
			got = e.Where[0].Code + " " + e.Where[0].Pointer + ": " + e.Where[0].Detail
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s\nwant %s", c.schema, c.form, got, c.want)
		}
		if err != nil || !strings.Contains(c.schema, "good") {
			continue
		}
		again, err := Parse("w.yaml", []byte(source), stored(t, p)...)
		if err != nil || again.Ref != p.Ref || again.Definition.(*program.Program).Schemas.Input.Check([]byte(`{}`)) == nil {
			t.Errorf("stored: %v, %s", err, p.Document)
		}
	}
}
