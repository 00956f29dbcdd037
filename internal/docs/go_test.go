package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGoIsCompiled: every line of Go in docs/go.md and docs/sagas.md stands in a test that
// is run, in that order.
func TestGoIsCompiled(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join(root, "workflow/example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	bare := func(text string) string {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	all := bare(string(source))
	for page, least := range map[string]int{"docs/go.md": 4, "docs/sagas.md": 1} {
		blocks := regexp.MustCompile("(?s)```go\n(.*?)\n```").FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) < least {
			t.Fatalf("%s has %d blocks of Go", page, len(blocks))
		}
		for _, b := range blocks {
			if !strings.Contains(all, bare(b[1])) {
				t.Errorf("%s: this is not in workflow/example_test.go:\n%s", page, b[1])
			}
		}
	}
}
