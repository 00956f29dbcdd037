package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	recordName  = regexp.MustCompile(`^docs/decisions/(\d{4})-[a-z0-9-]+\.md$`)
	recordTitle = regexp.MustCompile(`\A# (\d+)\. (.+)\n`)
	replacedBy  = regexp.MustCompile(`(?m)^\*\*Status\.\*\* Replaced by \[(\d+)\]\(`)
)

// TestDecisionsAreIndexed holds the table of docs/decisions/README.md to the
// records: number, title and status of each. AQUEDUCT_UPDATE=1 writes it.
func TestDecisionsAreIndexed(t *testing.T) {
	t.Parallel()
	const page = "docs/decisions/README.md"
	var rows strings.Builder
	known := map[string]string{}
	for _, path := range pages(t) {
		if m := recordName.FindStringSubmatch(path); m != nil {
			known[strings.TrimLeft(m[1], "0")] = filepath.Base(path)
		}
	}
	for _, path := range pages(t) { // in order
		m := recordName.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		text := read(t, path)
		title := recordTitle.FindStringSubmatch(text)
		if title == nil || title[1] != strings.TrimLeft(m[1], "0") {
			t.Errorf("%s does not begin with its number and what was decided: # %s. TITLE", path, strings.TrimLeft(m[1], "0"))
			continue
		}
		status := "accepted"
		if by := replacedBy.FindStringSubmatch(text); by != nil {
			if known[by[1]] == "" {
				t.Errorf("%s is replaced by %s, which is not there", path, by[1])
			}
			status = fmt.Sprintf("replaced by [%s](%s)", by[1], known[by[1]])
		}
		fmt.Fprintf(&rows, "| %s | [%s](%s) | %s |\n", title[1], title[2], filepath.Base(path), status)
	}
	lists(t, page, "|---|---|---|\n", rows.String())
}

// lists holds the table at the end of a page, which begins under the given line, to what it
// is to be. AQUEDUCT_UPDATE=1 writes it.
func lists(t *testing.T, page, under, rows string) {
	t.Helper()
	before, listed, ok := strings.Cut(read(t, page), under)
	if !ok || rows == "" {
		t.Fatalf("%s has no table", page)
	}
	if listed == rows {
		return
	}
	if os.Getenv("AQUEDUCT_UPDATE") != "" {
		if err := os.WriteFile(filepath.Join(root, page), []byte(before+under+rows), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not list what is there: AQUEDUCT_UPDATE=1 go test ./internal/docs -run %s", page, t.Name())
}
