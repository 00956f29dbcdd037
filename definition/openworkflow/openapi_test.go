package openworkflow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
)

const swagger = `{"swagger": "2.0", "host": "pets.example", "basePath": "/v2", "schemes": ["http", "https"],
"parameters": {"trace": {"name": "X-Trace", "in": "header", "type": "string"}},
"paths": {
  "/pets/{id}": {
    "parameters": [{"name": "id", "in": "path", "required": true, "type": "integer"}, {"$ref": "#/parameters/trace"}],
    "get": {"operationId": "getPet", "parameters": [
      {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}},
      {"name": "more", "in": "query", "type": "array", "collectionFormat": "multi", "items": {"type": "string"}}]},
    "put": {"operationId": "putPet", "consumes": ["application/json"], "parameters": [{"name": "pet", "in": "body", "required": true}]},
    "post": {"operationId": "formPet", "consumes": ["application/x-www-form-urlencoded"],
      "parameters": [{"name": "name", "in": "formData", "type": "string"}, {"name": "age", "in": "formData", "type": "integer"}]},
    "patch": {"operationId": "photo", "parameters": [{"name": "file", "in": "formData", "type": "file"}]}
  },
  "/far": {"get": {"operationId": "far", "parameters": [{"$ref": "other.json#/a"}]}}
}}`

const openapi3 = `
openapi: 3.1.0
servers: [{url: "/api/{stage}", variables: {stage: {default: live}}}]
paths:
  /orders:
    get:
      operationId: listOrders
      servers: [{url: https://orders.example}]
      parameters:
        - {name: state, in: query, required: true}
        - {name: ids, in: query, explode: false}
        - {name: session, in: cookie}
        - {name: key, in: header}
    post:
      operationId: placeOrder
      requestBody: {required: true, content: {application/vnd.order+json: {}}}
    put:
      operationId: textOrder
      requestBody: {content: {text/csv: {}}}
    patch:
      operationId: imageOrder
      requestBody: {content: {image/png: {}}}
`

func given() []definition.Resource {
	return []definition.Resource{
		{URI: "https://pets.example/swagger.json", Digest: "d1", Content: []byte(swagger)},
		{URI: "http://docs.example/v1/openapi.yaml", Digest: "d2", Content: []byte(openapi3)},
	}
}

// api is a document with one call of an operation.
func api(uri, id, rest string) string {
	return `
document: {dsl: '1.0.3', namespace: t, name: api, version: '1.0.0'}
use: {secrets: [pets]}
do:
  - ask:
      call: openapi
      with: {document: {endpoint: '` + uri + `'}, operationId: ` + id + rest + `}
`
}

const (
	pets   = "https://pets.example/swagger.json"
	orders = "http://docs.example/v1/openapi.yaml"
)

// asked gives the command that a call makes of data.
func asked(t *testing.T, source, data string) (string, definition.Parsed) {
	t.Helper()
	parsed, err := Parse("w.yaml", []byte(source), given()...)
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return command(t, parsed, data), parsed
}

func command(t *testing.T, parsed definition.Parsed, data string) string {
	t.Helper()
	n := parsed.Definition.(*program.Program).Root.List[0]
	v, err := jq.Decode(json.RawMessage(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Call.With.Eval(v, func(string) (any, error) { return nil, nil }, jq.Limits{})
	if err != nil {
		return err.Error()
	}
	raw, err := jq.Encode(got, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestOpenAPICallsBecomeHTTPCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ uri, id, rest, data, want string }{
		{pets, "getPet", ", parameters: {id: '${ .n }', tags: [a, '${ .t }'], more: '${ [.t, 1] }'}, output: response",
			`{"n": 7, "t": "x y"}`,
			`{"method":"GET","named":["pets"],"output":"response","path":"/v2/pets/{id}","query":{"more":["x y",1],"tags":"a,x y"},"redirect":false,"uri":"https://pets.example/v2/pets/7"}`},
		{pets, "getPet", ", parameters: {id: 'a/b', X-Trace: '${ .none }', tags: '${ .none }'}", `{}`,
			`{"headers":{},"method":"GET","named":["pets"],"output":"content","path":"/v2/pets/{id}","query":{},"redirect":false,"uri":"https://pets.example/v2/pets/a%2Fb"}`},
		{pets, "putPet", ", parameters: {id: 1, body: {name: '${ .n }'}}, redirect: true", `{"n": "Milou"}`,
			`{"body":{"name":"Milou"},"headers":{"Content-Type":"application/json"},"method":"PUT","named":["pets"],"output":"content","path":"/v2/pets/{id}","redirect":true,"uri":"https://pets.example/v2/pets/1"}`},
		{pets, "formPet", ", parameters: {id: 1, name: '${ .n }', age: 3}", `{"n": "a&b=c"}`,
			`{"body":"age=3&name=a%26b%3Dc","headers":{"Content-Type":"application/x-www-form-urlencoded"},"method":"POST","named":["pets"],"output":"content","path":"/v2/pets/{id}","redirect":false,"uri":"https://pets.example/v2/pets/1"}`},
		{orders, "listOrders", ", parameters: {state: open, ids: [1, 2], session: 'a b', key: '${ $secrets.pets.key }'}", `{}`,
			`{"headers":{"Cookie":"session=a%20b"},"method":"GET","named":["pets"],"origins":["https://orders.example"],"output":"content","query":{"ids":"1,2","state":"open"},"redirect":false,` +
				`"secrets":[{"at":"/headers/key","name":"pets","path":["key"]}],"uri":"https://orders.example/orders"}`},
		{orders, "placeOrder", ", parameters: {body: '${ . }'}", `{"a": 1}`,
			`{"body":{"a":1},"headers":{"Content-Type":"application/vnd.order+json"},"method":"POST","named":["pets"],"output":"content","redirect":false,"uri":"http://docs.example/api/live/orders"}`},
		{orders, "textOrder", ", parameters: {body: 'a;b'}", `{}`,
			`{"body":"a;b","headers":{"Content-Type":"text/csv"},"method":"PUT","named":["pets"],"output":"content","redirect":false,"uri":"http://docs.example/api/live/orders"}`},
		{pets, "getPet", ", parameters: {id: '${ .none }'}", `{}`, `error: the path needs a value for {id}`},
	} {
		got, parsed := asked(t, api(c.uri, c.id, c.rest), c.data)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.id, got, c.want)
		}
		// What is stored is complete, and gives the same again.
		again, err := Parse("w.yaml", []byte(api(c.uri, c.id, c.rest)), stored(t, parsed)...)
		if err != nil || len(again.Needs) > 0 {
			t.Errorf("%s: %v, needs %v", c.id, err, again.Needs)
			continue
		}
		if again.Ref != parsed.Ref || command(t, again, c.data) != got {
			t.Errorf("%s: stored, it is another:\n%s\n%s", c.id, parsed.Document, again.Document)
		}
	}
}

// stored takes the resources out of the canonical document.
func stored(t *testing.T, p definition.Parsed) []definition.Resource {
	t.Helper()
	var d struct {
		Resources map[string]struct {
			Digest  string
			Content json.RawMessage
		} `json:"$resources"`
	}
	if err := json.Unmarshal(p.Document, &d); err != nil {
		t.Fatal(err)
	}
	var out []definition.Resource
	for uri, r := range d.Resources {
		out = append(out, definition.Resource{URI: uri, Digest: r.Digest, Content: r.Content})
	}
	return out
}

func TestOpenAPIFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ uri, id, rest, want string }{
		{pets, "getPets", "", `has no operation "getPets" (did you mean getPet?)`},
		{pets, "getPet", ", parameters: {id: 1, tag: a}", `has no parameter "tag" (did you mean tags?)`},
		{pets, "getPet", "", `operation "getPet" needs the parameter "id" (path)`},
		{pets, "putPet", ", parameters: {id: 1}", `operation "putPet" needs a body (give it as parameter body)`},
		{pets, "photo", ", parameters: {id: 1}", `cannot be called: its parameter "file" is a file`},
		{pets, "far", "", `it refers to another document, "other.json#/a"`},
		{orders, "imageOrder", ", parameters: {body: x}", `bodies of image/png are outside the supported profile`},
		{pets, "getPet", ", parameters: {id: '${ .a | }'}", `/do/0/ask/with/parameters/id: unexpected`},
		{pets, "getPet", ", parameters: {id: '${ $secrets.pets.id }'}", `secrets in a path`},
		{"ftp://x/y", "a", "", `is not the URI of a document`},
		{"https://x/{y}", "a", "", `are outside the supported profile (write the URI out)`},
		{"https://text.example/a", "a", "", `it is neither Swagger 2.0 nor OpenAPI 3`},
		{"https://bad.example/a", "a", "", `cannot be read: line 1:`},
	} {
		_, err := Parse("w.yaml", []byte(api(c.uri, c.id, c.rest)), append(given(),
			definition.Resource{URI: "https://text.example/a", Content: []byte(`"text"`)},
			definition.Resource{URI: "https://bad.example/a", Content: []byte(`a: [`)})...)
		var p *problem.Error
		if !errors.As(err, &p) || len(p.Where) != 1 || !strings.Contains(p.Where[0].String(), c.want) {
			t.Errorf("%s%s: %v\nwant %s", c.id, c.rest, err, c.want)
		}
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	p, err := Parse("w.yaml", []byte(api(pets, "getPet", "")))
	if err != nil || len(p.Needs) != 1 || p.Needs[0].URI != pets || p.Needs[0].Place.Line != 7 || p.Definition != nil {
		t.Errorf("%+v, %v", p, err)
	}
}
