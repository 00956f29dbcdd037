package ctk_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/problem"
)

var rewrite = flag.Bool("rewrite", false, "write the table of the examples; read the diff")

// table is the page that says what becomes of each official example.
const table = "../../docs/reference/examples.md"

const tableHead = `# The official examples

What becomes of each example of the specification when it is published. A test holds this page to the parser; an example
is refused for what the profile leaves out, never for its form.

| example | outcome |
|---|---|
`

// TestExamplesTable compares the page with what the parser says.
func TestExamplesTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(tableHead)
	for _, file := range examples(t) {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.TrimSuffix(filepath.Base(file), ".yaml"), outcome(t, file))
	}
	if *rewrite {
		if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(b.String(), "\n"), strings.Split(string(page), "\n")
	for i := range max(len(got), len(want)) {
		if g, w := line(got, i), line(want, i); g != w {
			t.Errorf("%s:%d: run with -rewrite and read the diff\n got %s\nwant %s", table, i+1, g, w)
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus(t), "examples", "*.yaml"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	return files
}

func outcome(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := openworkflow.Parse(file, text)
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		why := map[string]bool{}
		for _, w := range p.Where {
			if w.Code != "definition.unsupported" {
				t.Errorf("%s: %v", file, w)
			}
			why[w.Detail] = true
		}
		return "refused: " + strings.Join(slices.Sorted(maps.Keys(why)), "; ")
	case err != nil:
		t.Fatal(err)
	case len(parsed.Needs) > 0:
		return "accepted, with the document at " + parsed.Needs[0].URI
	}
	return "accepted"
}
