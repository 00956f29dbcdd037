package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxHops bounds a walk.
const maxHops = 12

// hop is a function of a walk.
type hop struct{ file, function, given string }

var step = regexp.MustCompile("^\\| (\\d+) \\| `([a-z/_]+\\.go):([A-Za-z]+)` \\|(.*)\\|$")

// walks are the tables of hops on a page.
func walks(page string) [][]hop {
	var all [][]hop
	var walk []hop
	for line := range strings.Lines(page + "\n\n") {
		m := step.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if len(walk) > 0 {
				all = append(all, walk)
			}
			walk = nil
			continue
		}
		h := hop{file: m[2], function: m[3]}
		if g := regexp.MustCompile("\\(`([A-Za-z]+)`\\)").FindStringSubmatch(m[4]); g != nil {
			h.given = g[1]
		}
		walk = append(walk, h)
	}
	return all
}

// said are the identifiers in the bodies of a function; none = there is no such
// function.
func said(t *testing.T, h hop) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, h.file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]bool
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != h.function {
			continue
		}
		all = map[string]bool{}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				all[id.Name] = true
			}
			return true
		})
	}
	return all
}

// follow says what is wrong with a walk.
func follow(t *testing.T, walk []hop) []string {
	t.Helper()
	var wrong []string
	left := map[string]bool{}
	for i, h := range walk {
		dir := filepath.Dir(h.file)
		if left[dir] {
			wrong = append(wrong, h.function+" is back in "+dir)
		}
		ids := said(t, h)
		if ids == nil {
			wrong = append(wrong, h.file+" has no "+h.function)
			continue
		}
		if i+1 == len(walk) {
			break
		}
		next := walk[i+1]
		if filepath.Dir(next.file) != dir {
			left[dir] = true
		}
		switch {
		case h.given != "" && !ids[h.given]:
			wrong = append(wrong, h.function+" gives nothing to "+h.given)
		case h.given == "" && !ids[next.function] && !ids[through(t, h, next)]:
			wrong = append(wrong, h.function+" does not call "+next.function)
		}
	}
	if len(walk) > maxHops {
		wrong = append(wrong, "the walk is too long")
	}
	return wrong
}

// through is a function of the same file that calls the next one for a hop: a
// short one that is not worth a line. "" = there is none.
func through(t *testing.T, h, next hop) string {
	t.Helper()
	for name := range said(t, h) {
		if inner := said(t, hop{file: h.file, function: name}); inner[next.function] {
			return name
		}
	}
	return ""
}

func TestWalksAreWalked(t *testing.T) {
	t.Parallel()
	all := walks(read(t, "docs/architecture.md"))
	if len(all) != 3 {
		t.Fatalf("%d walks", len(all))
	}
	for _, walk := range all {
		for _, wrong := range follow(t, walk) {
			t.Error(wrong)
		}
	}
	signal := all[0]
	for name, planted := range map[string][]hop{
		"too long":      append(append([]hop{}, signal...), all[2]...),
		"no call":       {signal[0], signal[3]},
		"no function":   {{file: signal[0].file, function: "consume"}},
		"nothing given": {{file: signal[0].file, function: signal[0].function, given: "jobs"}, signal[1]},
		"back up":       {signal[5], signal[9], signal[6]},
	} {
		if len(follow(t, planted)) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}
