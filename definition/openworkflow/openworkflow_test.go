package openworkflow

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests give into testdata; read the diff")

// golden compares text with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			t.Errorf("%s:%d differs; run with -rewrite and read the diff\n got %s\nwant %s", file, i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
			return
		}
	}
	t.Errorf("%s has more lines", file)
}

// findings shows the findings of a source, one a line.
func findings(source string) string {
	_, err := Parse("w.yaml", []byte(source))
	if err == nil {
		return "ok\n"
	}
	var p *problem.Error
	if !errors.As(err, &p) {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for _, w := range p.Where {
		fmt.Fprintf(&b, "%d:%d %s %s: %s", w.Line, w.Column, w.Code, w.Pointer, w.Detail)
		if w.Hint != "" {
			fmt.Fprintf(&b, " (%s)", w.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// blocks splits a file of cases: the source, a line ----, and what it gives,
// up to a line ====.
func blocks(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var res []string
	for b := range strings.SplitSeq(string(text), "====\n") {
		if source, _, ok := strings.Cut(b, "----\n"); ok {
			res = append(res, source)
		}
	}
	return res
}

func cases(t *testing.T, file string, give func(source string) string) {
	t.Helper()
	var b strings.Builder
	for _, source := range blocks(t, file) {
		b.WriteString(source + "----\n" + give(source) + "====\n")
	}
	golden(t, file, b.String())
}

// head completes a source that begins with its do.
func head(source string) string {
	if strings.HasPrefix(source, "do:") || strings.HasPrefix(source, "use:") {
		return "document: { dsl: '1.0.3', namespace: t, name: n, version: '1.0.0' }\n" + source
	}
	return source
}

func TestFindings(t *testing.T) {
	t.Parallel()
	cases(t, "testdata/findings.txt", func(s string) string { return findings(head(s)) })
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	cases(t, "testdata/programs.txt", func(s string) string {
		p, err := Parse("w.yaml", []byte(head(s)))
		if err != nil {
			return err.Error() + "\n"
		}
		var b strings.Builder
		dump(&b, 0, reflect.ValueOf(p.Definition.(*program.Program)).Elem())
		return b.String()
	})
}

// dump shows the exported fields of a program that are not empty.
func dump(b *strings.Builder, depth int, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && f.Name != "ID" && f.Name != "Info" {
			show(b, depth, f.Name, v.Field(i))
		}
	}
}

func show(b *strings.Builder, depth int, name string, v reflect.Value) {
	in := strings.Repeat("  ", depth)
	if !v.IsValid() || v.IsZero() {
		return
	}
	if t, ok := v.Interface().(*jq.Template); ok {
		fmt.Fprintf(b, "%s%s %s\n", in, name, t)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		show(b, depth, name, v.Elem())
	case reflect.Struct:
		fmt.Fprintf(b, "%s%s\n", in, name)
		dump(b, depth+1, v)
	case reflect.Slice:
		for i := range v.Len() {
			show(b, depth, fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	case reflect.Map:
		for _, k := range keys(v.Interface().(map[string]*jq.Template)) {
			show(b, depth, name+"."+k, v.MapIndex(reflect.ValueOf(k)))
		}
	default:
		fmt.Fprintf(b, "%s%s %v\n", in, name, v.Interface())
	}
}

// corpus returns the folder of the specification's examples, which are not
// part of this repository.
func corpus(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("AQUEDUCT_CNCF")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cncf")
	}
	if _, err := os.Stat(filepath.Join(dir, "examples")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the specification's examples are missing: %v", err)
		}
		t.Skipf("SKIPPED: the specification's examples are missing (set AQUEDUCT_CNCF): %v", err)
	}
	return dir
}

// TestExamples shows for each example of the specification whether it is in
// the profile. An example is valid: all that may be said against it is that it
// uses what the profile lacks.
func TestExamples(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	files, err := filepath.Glob(filepath.Join(dir, "examples", "*.yaml"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", filepath.Base(file))
		parsed, err := Parse(file, text)
		var p *problem.Error
		if err != nil && !errors.As(err, &p) {
			t.Fatal(err)
		}
		if err == nil {
			b.WriteString("  accepted\n")
			for _, n := range parsed.Needs {
				fmt.Fprintf(&b, "  needs %s\n", n.URI)
			}
			continue
		}
		for _, w := range p.Where {
			fmt.Fprintf(&b, "  %s %s\n", strings.TrimPrefix(w.Code, "definition."), w.Detail)
			if w.Code != codeUnsupported {
				t.Errorf("%s: %v", filepath.Base(file), w)
			}
		}
	}
	golden(t, "testdata/examples.txt", b.String())
}

func TestInvalidExamples(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	for file, want := range map[string]string{
		"two-tasks-in-one-item.yaml":      "list item has 2 tasks, not one",
		"listen-any-until-any-until.yaml": `key "do" is there twice`,
		"extra-property-in-call.yaml":     `field "foo" is not known here`,
	} {
		text, err := os.ReadFile(filepath.Join(dir, "examples-invalid", file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(file, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestConformanceDefinitions parses the definitions of the conformance kit.
func TestConformanceDefinitions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(corpus(t), "ctk", "*.feature"))
	if err != nil || len(files) < 11 {
		t.Fatalf("%d features: %v", len(files), err)
	}
	accepted := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(text), "Given a workflow with definition:")[1:] {
			source := strings.Split(part, `"""`)[1]
			_, err := Parse(file, []byte(strings.TrimPrefix(source, "yaml")))
			var p *problem.Error
			if err == nil {
				accepted++
			} else if errors.As(err, &p) {
				for _, w := range p.Where {
					if w.Code != codeUnsupported {
						t.Errorf("%s %d: %v", filepath.Base(file), i, w)
					}
				}
			}
		}
	}
	if accepted < 15 {
		t.Errorf("%d definitions of the kit are accepted", accepted)
	}
}

const prefix = "document: { dsl: '1.0.3', namespace: t, name: n, version: '1.0.0' }\n"

func TestHostileSources(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	many := prefix + "do:\n"
	for i := range 300 {
		many += fmt.Sprintf("  - t%d: { sett: 1 }\n", i)
	}
	for name, c := range map[string]struct{ source, want string }{
		"aliases":     {bomb, "anchors are not part of the language"},
		"flow depth":  {strings.Repeat("[", 5000), "w.yaml has 1 finding"},
		"depth":       {prefix + "do: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested deeper than 64"},
		"block depth": {strings.Repeat("- ", 20000) + "x", "w.yaml has 1 finding"},
		"size":        {strings.Repeat("#", MaxSourceBytes+1), "exceeds 1048576"},
		"utf-8":       {prefix + "do: \"\xff\"", "2:6: source is not UTF-8 (save the file as UTF-8)"},
		"empty":       {"", "source is empty"},
		"null":        {"~", "want an object, not nothing"},
		"documents":   {prefix + "do: []\n---\na: 1\n", "more than one document"},
		"tag":         {prefix + "do: !!binary aGk=\n", "tags (!!binary) are not part"},
		"merge":       {"a: &x {b: 1}\nc:\n  <<: *x\n", "merge keys (<<) are not part"},
		"number key":  {prefix + "do: []\n1: x\n", `key "1" is not a string (quote it)`},
		"twice":       {prefix + "do: []\ndo: []\n", `3:1: /do: key "do" is there twice (the first one is in line 2)`},
		"syntax":      {prefix + "do: [\n", "w.yaml:"},
		"many":        {many, "200 more findings are not shown"},
	} {
		_, err := Parse("w.yaml", []byte(c.source))
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != "definition.invalid" || !strings.Contains(err.Error(), c.want) || len(p.Where) > MaxFindings {
			t.Errorf("%s:\n got %.300v\nwant %s", name, err, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1e3": "1e3", "123456789012345678901234567890": "123456789012345678901234567890", "1.10": "1.10", "+5": "5", "-0": "-0",
		"2026-01-01": `"2026-01-01"`, "2026-01-01T00:00:00Z": `"2026-01-01T00:00:00Z"`, "12:30": `"12:30"`, "1_a": `"1_a"`,
		"yes": `"yes"`, "on": `"on"`, "~": "null", "true": "true", "'1'": `"1"`, `"a\u0041"`: `"aA"`, "1.0.0": `"1.0.0"`, "{on: no}": `{"on":"no"}`,
	} {
		p, err := Parse("w.yaml", []byte(prefix+"do: [ a: { set: { v: "+text+" } } ]"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want := `"set":{"v":` + want + "}"; !strings.Contains(string(p.Document), want) {
			t.Errorf("%s: got %s, want %s", text, p.Document, want)
		}
	}
	for _, text := range []string{"007", "0x1F", "0o17", ".5", "1_000", ".inf", "-.inf", ".nan", "5."} {
		if _, err := Parse("w.yaml", []byte(prefix+"do: [ a: { set: { v: "+text+" } } ]")); err == nil || !strings.Contains(err.Error(), "may be meant as a number") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	yaml, err := Parse("", []byte(prefix+"do:\n  - a: # comment\n      set: { x: \"\U0001F600 \\\\ud83d\", y: 1.0 }\n"))
	if err != nil {
		t.Fatal(err)
	}
	json, err := Parse("", []byte(`{"do":[{"a":{"set":{"y":1.0,"x":"\ud83d\ude00 \\ud83d"}}}],
		"document":{"version":"1.0.0","name":"n","namespace":"t","dsl":"1.0.3"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if yaml.Ref != json.Ref || yaml.Ref.Name != "t/n" || yaml.Ref.Version != "1.0.0" || len(yaml.Ref.Digest) != 64 || yaml.Title != "t/n" {
		t.Errorf("%+v\n%s\n%+v\n%s", yaml.Ref, yaml.Document, json.Ref, json.Document)
	}
}

func TestURI(t *testing.T) {
	t.Parallel()
	p, err := Parse("", []byte(prefix+"do: [ a: { call: http, with: { method: get, endpoint: 'https://x/{id}/a?b={q}&c=1' } } ]"))
	if err != nil {
		t.Fatal(err)
	}
	with := p.Definition.(*program.Program).Root.List[0].Call.With
	for data, want := range map[string]string{
		`{"id":7,"q":"a b&c/ü"}`: "https://x/7/a?b=a%20b%26c%2F%C3%BC&c=1",
		`{"id":"../..","q":""}`:  "https://x/..%2F../a?b=&c=1",
		`{"id":1}`:               "",
		`{"id":[1],"q":1}`:       "",
	} {
		var in any
		if err := json.Unmarshal([]byte(data), &in); err != nil {
			t.Fatal(err)
		}
		v, err := with.Eval(in, nil, jq.Limits{})
		if want == "" {
			if problem.CodeOf(err) != "expression.failed" {
				t.Errorf("%s: %v, %v", data, v, err)
			}
		} else if m, _ := v.(map[string]any); m["uri"] != want || m["method"] != "GET" {
			t.Errorf("%s: %v, %v", data, v, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/findings.txt", "testdata/programs.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for b := range strings.SplitSeq(string(text), "====\n") {
			source, _, _ := strings.Cut(b, "----\n")
			f.Add(head(source))
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Parse("w.yaml", []byte(source))
		if err != nil {
			if problem.CodeOf(err) != "definition.invalid" {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse("w.yaml", []byte(source))
		if err != nil || again.Ref != p.Ref {
			t.Fatalf("%v, then %v: %v", p.Ref, again.Ref, err)
		}
		if !json.Valid(p.Document) {
			t.Fatalf("document is not JSON: %s", p.Document)
		}
	})
}

// TestSyntaxErrorsAreOnTheirLine: the parser of the YAML package counts lines
// from 0, its scanner from 1.
func TestSyntaxErrorsAreOnTheirLine(t *testing.T) {
	t.Parallel()
	const head = "document: {dsl: '1.0.3', namespace: t, name: x, version: '1.0.0'}\ndo:\n  - a: {set: {b: 1}}\n"
	for text, line := range map[string]int{
		head + "  - c: {set: {b: 1}\n  - d: {set: {e: 1}}\n":                                    4,
		head + "  - c: {set: {b: [1, 2}}\n  - d: {set: {}}\n":                                   4,
		head + "  - c: {set: {b: 1}}}\n  - d: {set: {e: 1}}\n":                                  4,
		head + "  - c: {call: http,\n      with: {method: get endpoint: x},\n      if: true}\n": 5,
		head + " - c: 1\n":                            4,
		head + "  - c: \"x\n  - d: 1\n":               4,
		"{\"document\": {},\n \"do\": [\"a\" \"b\"]}": 2,
	} {
		_, err := Parse("a.yaml", []byte(text))
		var p *problem.Error
		if !errors.As(err, &p) || len(p.Where) != 1 || p.Where[0].Code != "definition.yaml" || p.Where[0].Line != line {
			t.Errorf("want line %d of\n%s\ngot %v", line, text, err)
		}
	}
}

// TestWhatIsMeantGivesNoWarning: events that begin instances reach nobody who
// waits, and where tokens are given is no token.
func TestWhatIsMeantGivesNoWarning(t *testing.T) {
	t.Parallel()
	const text = `document: {dsl: '1.0.3', namespace: t, name: x, version: '1.0.0'}
use: {secrets: [idp]}
schedule: {on: {any: [{with: {type: placed}}, {with: {type: moved}}]}}
do:
  - a:
      call: http
      with:
        method: get
        endpoint:
          uri: https://a.example
          authentication:
            oauth2:
              authority: https://idp.example
              grant: client_credentials
              endpoints: {token: /oauth2/token}
              client: {id: c, secret: '${ $secrets.idp.secret }'}
`
	p, err := Parse("a.yaml", []byte(text))
	if err != nil || len(p.Warnings) != 0 {
		t.Errorf("%v, %v", p.Warnings, err)
	}
}
