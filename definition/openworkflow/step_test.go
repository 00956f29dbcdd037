package openworkflow

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// What is run is a name that is written out: neither data nor text of a document says it.
func TestSteps(t *testing.T) {
	t.Parallel()
	const head = "document: {dsl: '1.0.3', namespace: t, name: n, version: '1.0.0'}\n"
	for task, want := range map[string]string{
		"call: sql, with: {statement: reserve, args: {id: '${ .id }', qty: 1}}":              "",
		"call: sql, with: {statement: reserve}":                                              "",
		"call: sql, with: {statement: reserve, args: '${ .args }'}":                          "",
		"call: plsql, with: {procedure: shop.reserve, args: {p_id: '${ .id }'}, out: [p_n]}": "",
		"call: go, with: {function: reserve, args: {a: {b: [1]}}}":                           "",
		"set: {a: 1}, metadata: {compensate: {call: sql, with: {statement: undo}}}":          "",
		"call: sql":                                                             "/do/0/t",
		"call: sql, with: {args: {}}":                                           "/do/0/t/with",
		"call: sql, with: {statement: '${ .name }'}":                            "what is run is not for data to say",
		"call: sql, with: {statement: 'delete from X'}":                         "is not the name of a statement",
		"call: sql, with: {text: 'delete from X'}":                              "text",
		"call: sql, with: {statement: a, args: x}":                              "${ an expression }",
		"call: sql, with: {statement: a, out: [x]}":                             "out",
		"call: sql, with: {statement: a, idempotencyKey: x}":                    "idempotencyKey",
		"call: plsql, with: {procedure: 'a.b; commit'}":                         "is not the name of a procedure",
		"call: plsql, with: {procedure: a.b, args: {'x); commit; --': 1}}":      "is not the name of a parameter",
		"call: plsql, with: {procedure: a.b, out: []}":                          "1 to 32 names",
		"call: plsql, with: {procedure: a.b, out: ['a.b']}":                     "is not the name of a parameter",
		"call: forEach, with: {in: '${ .l }', call: sql, with: {statement: a}}": "forEach of a step",
		"call: acknowledged, with: {call: sql, with: {statement: a}}":           "acknowledged of a step",
	} {
		_, err := Parse("a.yaml", []byte(head+"do: [{t: {"+task+"}}]\n"))
		var text strings.Builder
		if e, ok := err.(*problem.Error); ok {
			text.WriteString(e.Error())
			for _, p := range e.Where {
				text.WriteString(" " + p.Pointer + " " + p.Detail + " " + p.Hint)
			}
		}
		if (want == "") != (err == nil) || !strings.Contains(text.String(), want) {
			t.Errorf("%s: %v: %s", task, err, text.String())
		}
	}
	if _, err := Parse("a.yaml", []byte(head+"use: {functions: {sql: {call: http, with: {method: get, endpoint: 'http://a.example'}}}}\ndo: [{t: {call: sql}}]\n")); err != nil {
		t.Errorf("a function of the document's own: %v", err)
	}
}
