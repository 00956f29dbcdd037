package jq

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/itchyny/gojq"
)

// everything makes one value of all that an expression gives: its results in
// order, and the error that ends them.
const everything = `[try ((%s) | [.]) catch {error: .}]`

// variables are those of the corpus.
var variables = map[string]any{
	"$input":    map[string]any{"id": "x1", "items": []any{map[string]any{"p": 3}, map[string]any{"p": 4}}, "a": 1},
	"$context":  map[string]any{"b": []any{1, 2}},
	"$output":   "out",
	"$workflow": map[string]any{"id": "i", "input": map[string]any{"a": 1}, "startedAt": map[string]any{"iso8601": "2026-01-02T03:04:05Z"}},
	"$task":     map[string]any{"name": "t"},
	"$runtime":  map[string]any{"name": "aqueduct"},
	"$item":     map[string]any{"a": []any{1}},
	"$index":    0,
	"$error":    map[string]any{"status": 404, "type": "t"},
	"$x":        []any{"a", nil, 2},
}

var names = slices.Sorted(maps.Keys(variables))

// oracle gives what gojq makes of an expression. It ends where it takes more
// instructions than an expression may.
func oracle(src string, data any) string {
	q, err := gojq.Parse(src)
	if err != nil {
		return "expression.invalid"
	}
	code, err := gojq.Compile(q, gojq.WithVariables(names))
	if err != nil {
		return "expression.invalid"
	}
	m := newMeter()
	m.reset(Limits{Steps: 50_000}.withDefaults()) // a small part of what it may take here
	values := make([]any, len(names))
	for i, name := range names {
		values[i] = variables[name]
	}
	v, ok := code.RunWithContext(m, data, values...).Next()
	if m.err != nil {
		return m.err.Code
	}
	if !ok {
		return "null"
	}
	if err, ok := v.(error); ok {
		return clip(err.Error())
	}
	raw, err := Encode(v, 0)
	if err != nil {
		return problem.CodeOf(err)
	}
	return string(raw)
}

// guarded gives what this package makes of the same.
func guarded(t testing.TB, src string, data any) string {
	t.Helper()
	tmpl, err := Expression(src, names)
	if err != nil {
		return problem.CodeOf(err)
	}
	v, err := tmpl.Eval(data, func(name string) (any, error) { return variables[name], nil }, Limits{})
	if p, ok := err.(*problem.Error); ok && p.Code == "expression.failed" {
		return p.Detail
	}
	if err == nil {
		raw, err2 := Encode(v, 0)
		if err2 == nil {
			return string(raw)
		}
		err = err2
	}
	return problem.CodeOf(err)
}

// same compares all that an expression gives, and its first result, with what
// gojq gives. It reports whether there was something to compare: not where one
// of them runs out of its budget.
func sameAsGojq(t *testing.T, src, data string) bool {
	t.Helper()
	for _, src := range []string{src, fmt.Sprintf(everything, src)} {
		want := oracle(src, decode(t, data))
		got := guarded(t, src, decode(t, data))
		if strings.HasPrefix(got, "expression.too-") || strings.HasPrefix(want, "expression.too-") {
			return false
		}
		if got != want {
			t.Errorf("%s on %s:\n got %s\nwant %s", src, data, got, want)
		}
	}
	return true
}

// lines reads a file of fields, separated by " ~ ".
func lines(t testing.TB, file string, fields int) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var res [][]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		parts := strings.SplitN(line, " ~ ", fields)
		if len(parts) != fields {
			t.Fatalf("%s: not %d fields in %q", file, fields, line)
		}
		res = append(res, parts)
	}
	return res
}

func cases(t testing.TB) [][2]string {
	var res [][2]string
	for _, f := range lines(t, "testdata/cases.txt", 2) {
		res = append(res, [2]string{f[1], f[0]})
	}
	return res
}

func TestAnExpressionMeansWhatItMeansToGojq(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t) {
		if !sameAsGojq(t, c[0], c[1]) {
			t.Errorf("%s on %s: over its budget", c[0], c[1])
		}
	}
}

// TestDeclaredDifferences holds the list of what this package does otherwise
// than gojq, on purpose: each is still one, and gives what it says.
func TestDeclaredDifferences(t *testing.T) {
	t.Parallel()
	for _, f := range lines(t, "testdata/differences.txt", 3) {
		data, src, want := f[0], f[1], f[2]
		got, plain := guarded(t, src, decode(t, data)), oracle(src, decode(t, data))
		if got != want {
			t.Errorf("%s on %s: got %s, want %s", src, data, got, want)
		}
		if got == plain {
			t.Errorf("%s on %s is no difference: both give %s", src, data, got)
		}
	}
}

// TestExpressionsOfDocsAndExamplesMeanTheSame takes every expression that is
// written in the documentation and the examples, and tries it on some data.
func TestExpressionsOfDocsAndExamplesMeanTheSame(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, root := range []string{"../docs", "../examples", "../README.md"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".md", ".yaml", ".yml", ".json", ".go"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			for _, src := range written(string(text)) {
				found[src] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 50 {
		t.Fatalf("only %d expressions found", len(found))
	}
	for _, src := range slices.Sorted(maps.Keys(found)) {
		if _, err := Expression(src, names); err != nil {
			continue // a variable of its own, or one that is there to show an error
		}
		for _, data := range samples {
			sameAsGojq(t, src, data)
		}
	}
}

// written finds what stands between "${" and the "}" that ends an expression.
func written(text string) []string {
	var res []string
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			return res
		}
		text = text[i+2:]
		line, _, _ := strings.Cut(text, "\n")
		for end := strings.IndexByte(line, '}'); end >= 0; {
			if q, err := gojq.Parse(line[:end]); err == nil && (q.Term != nil || q.Op != 0) {
				res = append(res, strings.TrimSpace(line[:end]))
				break
			}
			next := strings.IndexByte(line[end+1:], '}')
			if next < 0 {
				break
			}
			end += 1 + next
		}
	}
}

// samples are the data of the corpus and of generated programs.
var samples = []string{
	`null`, `2`, `-1.5`, `"ab,c"`, `[]`, `{}`, `[1,[2,3],{"a":4}]`, `[3,1,2,1]`, `{"a":{"b":[1,2,3],"c":null},"b":[{"a":1},{"a":2}]}`,
	`{"a":[1,2,3,4],"b":"x","amount":120.50,"items":[{"p":3,"n":"a"},{"p":4,"n":"b"}]}`, `[{"a":1,"b":2},{"a":1},{"b":3}]`,
	`[["a",1],["b",{"a":[[]]}]]`, `{"a":{"a":{"a":null}}}`, `123456789012345678901234567890`, `["b","a",null,true,1.0]`,
}

// TestGeneratedProgramsMeanTheSame compares small programs over small data.
// They are the same at every run; GENERATED=n makes more of them.
func TestGeneratedProgramsMeanTheSame(t *testing.T) {
	t.Parallel()
	programs := 3_000 / slow
	if n := os.Getenv("GENERATED"); n != "" {
		if _, err := fmt.Sscan(n, &programs); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	for i := range programs {
		g := generator{rand.New(rand.NewPCG(9, uint64(i)))}
		src := g.program(3)
		data := samples[g.IntN(len(samples))]
		if sameAsGojq(t, src, data) {
			compared++
		}
		if t.Failed() {
			t.Fatalf("program %d", i)
		}
	}
	if compared < programs*9/10 {
		t.Errorf("only %d of %d programs compared", compared, programs)
	}
}

type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

// noArray is what # stands for: that an array is no index is a declared difference.
const noArray = `if type == "array" then 0 else . end`

// program writes an expression. @ stands for an expression in it, & for a path.
func (g generator) program(depth int) string {
	if depth == 0 {
		return g.one(".", ".a", ".b", ".[0]", ".[-1]", ".[]?", "..", "0", "1", "-1", "2.5", `"a"`, `""`, `"b,c"`, "null", "true", "false",
			"[]", "{}", "[1,2]", `["a"]`, `{"a":1}`, `[["a"]]`, "empty", "$x", "$input", "1, 2", "nan", "length", "keys?", "type")
	}
	return g.fill(depth, g.one(
		"@ + @", "@ - @", "@ * @", "@ / @", "@ % @", "@ == @", "@ < @", "@ >= @", "@ // @", "@ and @", "@ or (@ | not)", "-(@)",
		"@ | @", "@ | @", "@, @", "[@]", "{a: @}", "{(@ | tostring): @, b: @}", `{"\(@)"}`, `{"\(@)": 1}`, "@ as $x | @", "@ as [$x] | $x",
		"@ as {a: $x} ?// $x | [$x]", "if @ then @ else @ end", "try (@) catch .", "(@)?", "reduce (@) as $x (@; @)",
		"foreach (@) as $x (@; @; [$x, .])", "label $l | @, break $l, @", "def f: @; f", "def f(g): g | @; f(@)", "def f($y): $y, @; f(@)",
		"& = @", "& = @", "& |= (@)", "& |= (@)", "& |= (@)", "& += @", "& -= @", "& *= @", "& /= @", "& //= @", "del(&)", "del(&)", "[path(&)]",
		"delpaths([path(&)])", "delpaths(@)", "getpath(@ | map(#)?)", "setpath(@; @)", "setpath(@; @)", "to_entries?", "with_entries(.value |= (@))",
		"pick(&)", "map(@)", "map_values(@)", "walk(@)", "first(@)", "last(@)", "limit(2; @)", "skip(1; @)", "isempty(@)", "any(@)", "all(@)",
		"sort_by(@)", "group_by(@)", "unique_by(@)", "min_by(@)", "max_by(@)", "sort", "unique", "add", "add(@)", "min", "reverse", "flatten",
		"transpose", "tostring", "tojson", "fromjson", "tonumber", "explode", "ascii_upcase", "abs", "floor", "not", "values", "scalars",
		"pow(@; @)", "fma(@; @; @)", "ldexp(@; @)", "has(@)", "contains(@)", "inside(@)", "index(@)", "indices(@)", "join(@)", "split(@)",
		"startswith(@)", "ltrimstr(@)", "bsearch(@)", "flatten(@)", "error(@)", "range(@ | length)", `"\(@) \(@)"`, `@json "\(@)"`, "(@ | tojson)",
		`test("a")`, `gsub("(?<l>[a-c])"; "<\(.l)>")`, `[match("a|,"; "g")]`, `split(","; null)`, `sub("a"; @)`, "[splits(\",\")]", "IN(@)", "INDEX(@)",
		"tostream", "[paths]", "[leaf_paths?]", "fromstream(tostream)", "combinations", "recurse(.[]?)", "ltrimstr(@)", "@ | (@ as [$x, {a: $y}] | $y)",
		"to_entries | from_entries", "@ | getpath([\"a\", 0])", ".[@ | #]", ".[@:@]", "[.[@ | #]?]"))
}

// path writes a path expression.
func (g generator) path(depth int) string {
	if depth == 0 {
		return g.one(".", ".a", ".b", ".a.b", ".[0]", ".[1]", ".[-1]", ".[5]", ".[-9]", ".[1:]", ".[:1]", ".[1:2]", ".[-2:]", ".[1.5:]", ".[]", ".[]?", "..",
			".a[]?", ".a[1:][0]", ".a[1:][:2][1:]", "first(.[]?)", "last", "empty", "getpath([\"a\", \"b\"])", ".[1:][1:]", ".a[-1]", `.["a"]`)
	}
	return g.fill(depth, g.one("&, &", "& | &", "(& | select(@))", "& | .[@ | #]?", "&?", "if @ then & else & end", "& // &", "(& as $x | &)", "first(&)",
		"limit(2; &)", "recurse(.[]?)", "recurse(&; . != null)", ".[@ | #]", "getpath(@ | map(#)?)", "paths", "& | .[@:@]", "(&, &) | (&, &)", "reduce 1 as $x (.; &)"))
}

func (g generator) fill(depth int, form string) string {
	var b strings.Builder
	for i, c := range form {
		switch {
		case c == '@' && (i+1 == len(form) || form[i+1] < 'a' || form[i+1] > 'z'):
			b.WriteString("(" + g.program(g.IntN(depth)) + ")")
		case c == '#':
			b.WriteString(noArray)
		case c == '&':
			b.WriteString("(" + g.path(g.IntN(depth)) + ")")
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
