package ctk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// lookAhead is a pattern of the official schema, which Go's own package cannot
// read.
type lookAhead struct{ *regexp2.Regexp }

func (p lookAhead) MatchString(s string) bool {
	ok, err := p.Regexp.MatchString(s)
	return ok && err == nil
}

func lookAheads(s string) (jsonschema.Regexp, error) {
	p, err := regexp2.Compile(s, regexp2.ECMAScript)
	if err != nil {
		return nil, err
	}
	p.MatchTimeout = 20 * time.Second
	return lookAhead{p}, nil
}

// official compiles the schema of the specification.
func official(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(corpus(t), "schema", "workflow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := value(string(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(lookAheads)
	if err := c.AddResource("schema://official/workflow", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema://official/workflow")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mutants is how many documents are made of each example.
const mutants = 60

// looser are the rules by which we accept what the schema refuses, each a
// decision: what of a document may be wrong by the schema, and why.
var looser = []struct{ part, why string }{
	{"/for/in/", "the items of an inline collection may be any JSON, as those of an expression"},
	{"/run/workflow/input", "the input of a sub-workflow may be any JSON, as that of a workflow"},
	{"/run/workflow' [S#/$defs/runTask/allOf/1/properties/run/oneOf/3/properties/workflow/required]: missing property 'version'", "a sub-workflow without a version is the latest"},
}

// decided returns the rule that lets a document pass which the schema refuses.
func decided(err error) string {
	text := fmt.Sprintf("%#v", err)
	for _, l := range looser {
		if strings.Contains(text, l.part) {
			return l.why
		}
	}
	return ""
}

// TestVerdictsAgainstTheSchema changes examples at random and compares our
// verdict with that of the official schema: what the schema refuses we do
// not accept, unless by a decision. What we refuse and the schema accepts is counted by our code, since
// each code is a rule of the profile or a decision.
func TestVerdictsAgainstTheSchema(t *testing.T) {
	t.Parallel()
	schema := official(t)
	random := rand.New(rand.NewPCG(1, 5)) //nolint:gosec // the same documents in each run
	stricter, looserBy := map[string]int{}, map[string]int{}
	agreed, looserThan := 0, 0
	for _, file := range examples(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := value(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for range mutants {
			mutant := mutated(random, clone(doc))
			raw, err := json.Marshal(mutant)
			if err != nil {
				t.Fatal(err)
			}
			theirs := schema.Validate(clone(mutant))
			code := verdict(raw)
			switch {
			case (theirs == nil) == (code == ""):
				agreed++
			case theirs == nil:
				stricter[code]++
			case decided(theirs) != "":
				looserBy[decided(theirs)]++
			default:
				if looserThan++; looserThan <= 15 {
					t.Errorf("%s: accepted, and the official schema refuses it:\n%s\n%s", filepath.Base(file), raw, excerpt(theirs))
				}
			}
		}
	}
	t.Logf("%d verdicts agree; stricter by code: %v; looser by decision: %v", agreed, stricter, looserBy)
	if agreed < 1000 {
		t.Errorf("only %d verdicts agree", agreed)
	}
	for code := range stricter {
		if !strings.HasPrefix(code, "definition.") {
			t.Errorf("refused by %s", code)
		}
	}
}

// excerpt is the part of an error that says most.
func excerpt(err error) string {
	lines := strings.Split(fmt.Sprintf("%#v", err), "\n")
	slices.SortStableFunc(lines, func(a, b string) int { return depth(b) - depth(a) })
	return strings.Join(lines[:min(len(lines), 3)], "\n")
}

// depth is how far inside of the document an error's line is.
func depth(line string) int {
	_, rest, _ := strings.Cut(line, "at '")
	pointer, _, _ := strings.Cut(rest, "'")
	return strings.Count(pointer, "/")
}

// verdict is the code of our first finding, "" = accepted.
func verdict(raw []byte) string {
	_, err := openworkflow.Parse("mutant.json", raw)
	var p *problem.Error
	if errors.As(err, &p) && len(p.Where) > 0 {
		return p.Where[0].Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func clone(v any) any {
	raw, _ := json.Marshal(v) // it was read from JSON
	var out any
	_ = json.Unmarshal(raw, &out)
	return out
}

// words are names and values that a mutation may put anywhere.
var words = []any{
	"x", "", "set", "call", "http", "do", "with", "then", "end", "for", "each", "in", "try", "catch", "retry", "errors", "when", "use",
	"PT1S", "1.0.3", "${ .a }", 1.0, 0.0, -1.0, 404.0, true, nil, []any{}, map[string]any{}, []any{map[string]any{}}, map[string]any{"x": 1.0},
}

// mutated changes a document in one place.
func mutated(r *rand.Rand, doc any) any {
	var places []func()
	var walk func(v any)
	word := func() any { return clone(words[r.IntN(len(words))]) }
	name := func() string {
		for {
			if s, ok := words[r.IntN(len(words))].(string); ok && s != "" {
				return s
			}
		}
	}
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				places = append(places, func() { delete(v, k) }, func() { v[k] = word() }, func() { v[name()] = v[k]; delete(v, k) })
				walk(v[k])
			}
			places = append(places, func() { v[name()] = word() })
		case []any:
			for i := range v {
				places = append(places, func() { v[i] = word() })
				walk(v[i])
			}
		}
	}
	walk(doc)
	places[r.IntN(len(places))]()
	return doc
}
