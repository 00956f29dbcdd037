package openworkflow

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/program"
)

const functionsDoc = `
document: {dsl: '1.0.3', namespace: t, name: functions, version: '1.0.0'}
evaluate: {language: jq, mode: strict}
use:
  catalogs:
    shop: {endpoint: {uri: 'https://github.com/acme/catalog/tree/main/'}}
  functions:
    checked:
      input: {schema: {document: {required: [id]}}}
      call: http
      with: {method: get, endpoint: 'https://a.example/{id}'}
      output: {as: .name}
    steps: {do: [one: {set: {n: '${ .n + 1 }'}}, two: {call: checked, with: {id: '${ .n }'}}]}
do:
  - a: {call: steps, with: {n: '${ .start }'}, then: end}
  - b: {call: 'log:1.2.0@shop', with: {text: hello}}
  - c: {call: 'https://b.example/f/function.yaml'}
  - d: {call: 'human-task:1.0.0@default', with: {title: Hi}}
  - e: {call: 'score:2.0.0@default', with: {x: 1}}
`

func TestFunctions(t *testing.T) {
	t.Parallel()
	files := []definition.Resource{
		{URI: "https://raw.githubusercontent.com/acme/catalog/main/functions/log/1.2.0/function.yaml", Digest: "l", Content: []byte(`
input: {schema: {document: {required: [text]}}}
set: {logged: '${ .text }'}
`)},
		{URI: "https://b.example/f/function.yaml", Digest: "f", Content: []byte(`wait: PT1S`)},
	}
	p, err := Parse("w.yaml", []byte(functionsDoc))
	if err != nil || len(p.Needs) != 2 || p.Needs[0].URI != files[0].URI && p.Needs[1].URI != files[0].URI {
		t.Fatalf("%+v, %v", p.Needs, err)
	}
	p, err = Parse("w.yaml", []byte(functionsDoc), files...)
	if err != nil {
		t.Fatal(err)
	}
	list := p.Definition.(*program.Program).Root.List
	inner := list[0].Body.List[0].Body.List[1]
	if list[0].Kind != program.KindDo || list[0].Then.Directive != program.FlowEnd || inner.Pointer != "/do/0/a/function/0/steps/do/1/two" ||
		inner.Body.List[0].Schemas.Input == nil || inner.Body.List[0].Kind != program.KindCall {
		t.Errorf("steps: %+v", list[0])
	}
	if f := list[1].Body.List[0]; f.Kind != program.KindSet || f.Schemas.Input == nil || f.Name != "log:1.2.0@shop" {
		t.Errorf("of a catalog: %+v", f)
	}
	if f := list[2].Body.List[0]; f.Kind != program.KindWait {
		t.Errorf("at a URI: %+v", f)
	}
	if list[3].Kind != program.KindPerson || list[4].Call.Target != "score:2.0.0" {
		t.Errorf("of the node: %+v, %+v", list[3], list[4])
	}
	again, err := Parse("w.yaml", []byte(functionsDoc), stored(t, p)...)
	if err != nil || again.Ref != p.Ref {
		t.Errorf("stored: %v, %s", err, p.Document)
	}
}

func TestFunctionFindings(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"log:1.2.0@shop|log:1.2.0@shp":                       `unknown-reference /do/1/b/call: no catalog is named "shp" (did you mean shop?)`,
		"log:1.2.0@shop|log@shop":                            `"log@shop" is not a name of a function`,
		"https://github.com/acme/catalog/tree/main/|catalog": `is not the address of a catalog`,
		"call: checked, with|call: steps, with":              `function "steps" calls itself`,
		"mode: strict|mode: loose":                           `unsupported /evaluate/mode: expressions in loose mode are outside the supported profile`,
		"language: jq|language: js":                          `unsupported /evaluate/language: expressions in "js" are outside the supported profile`,
		"mode: strict|mode: strikt":                          `did you mean strict?`,
		"do: [one|doo: [one":                                 `/use/functions/steps: task does not say what it does`,
		"then: end|input: {from: .}":                         `unsupported /do/0/a/input: input.from together`,
		"call: 'human-task:1.0.0@default', with: {title: Hi}|call: forEach, with: {in: '[1]', call: steps}": `a function that is a task, called by "steps"`,
	} {
		old, replacement, _ := strings.Cut(change, "|")
		source := strings.Replace(functionsDoc, old, replacement, 1)
		if got := findings(source); source == functionsDoc || !strings.Contains(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", change, got, want)
		}
	}
	bad := definition.Resource{URI: "https://b.example/f/function.yaml", Content: []byte(`run: {shell: {command: ls}}`)}
	if _, err := Parse("w.yaml", []byte(functionsDoc), bad); err == nil || !strings.Contains(err.Error(), `/do/2/c/call: function "https://b.example/f/function.yaml": `) {
		t.Errorf("%v", err)
	}
}
