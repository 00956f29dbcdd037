package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestGoIsCompiled: every line of Go in docs/go.md and docs/sagas.md stands in a test that
// is run, or in a program that a test runs, in that order.
func TestGoIsCompiled(t *testing.T) {
	t.Parallel()
	source := read(t, "workflow/example_test.go") + read(t, "examples/embedded/main.go")
	bare := func(text string) string {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	all := bare(source)
	for page, least := range map[string]int{"docs/go.md": 5, "docs/sagas.md": 1} {
		blocks := regexp.MustCompile("(?s)```go\n(.*?)\n```").FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) < least {
			t.Fatalf("%s has %d blocks of Go", page, len(blocks))
		}
		for _, b := range blocks {
			if !strings.Contains(all, bare(b[1])) {
				t.Errorf("%s: this is not in workflow/example_test.go or examples/embedded/main.go:\n%s", page, b[1])
			}
		}
	}
}
