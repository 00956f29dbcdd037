package openworkflow

import (
	"fmt"
	"slices"
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

// Every step of a document is known when it is published: also one in a named function,
// once, and in a compensation; what of it is data, and where it stands.
func TestStepsAreKnownBeforeTheyRun(t *testing.T) {
	t.Parallel()
	const text = `document: {dsl: '1.0.3', namespace: t, name: n, version: '1.0.0'}
use: {functions: {f: {call: sql, with: {statement: inner}}}}
do:
- a: {call: f}
- b: {call: f}
- c:
    set: {x: 1}
    metadata: {compensate: {call: go, with: {function: back, args: '${ . }'}}}
- d:
    call: plsql
    with: {procedure: shop.reserve, args: {p_a: 1, p_b: '${ .b }', p_c: {deep: ['${ 1 }']}, p_d: [1, 'a ${ .b }']}, out: [p_e]}
`
	p, err := Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		got = append(got, fmt.Sprintf("%s %v open=%t %s out=%v %s", s.Target, s.Args, s.Open, s.Known, s.Out, s.At("").String()))
	}
	want := []string{
		"sql/inner [] open=false map[] out=[] a.yaml:2:34: /use/functions/f/with",
		"go/back [] open=true map[] out=[] a.yaml:8:39: /do/2/c/metadata/compensate/with",
		"plsql/SHOP.RESERVE [p_a p_b p_c p_d] open=false map[p_a:1 p_d:[1,\"a ${ .b }\"]] out=[p_e] a.yaml:11:5: /do/3/d/with",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range p.Steps {
		if s.Out != nil {
			if at := s.At("/args/p_a").String(); at != "a.yaml:11:44: /do/3/d/with/args/p_a" {
				t.Errorf("an argument is at %s", at)
			}
		}
	}
}
