package openworkflow

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatNoColumnHoldsIsNotPublished: what a store could not keep is a finding,
// at the very length.
func TestWhatNoColumnHoldsIsNotPublished(t *testing.T) {
	t.Parallel()
	document := func(title, do string) string {
		return fmt.Sprintf("document: {dsl: '1.0.3', namespace: t, name: n, version: '1.0.0', title: %q}\ndo:\n%s", title, do)
	}
	// nested is a task within others, whose pointer has about n bytes.
	nested := func(n int) string {
		place, indent, b := len("/do/0/last"), "  ", &strings.Builder{}
		for place < n {
			name := strings.Repeat("n", min(max(n-place-len("/do/0/"), 1), 200))
			fmt.Fprintf(b, "%s- %s:\n%s    do:\n", indent, name, indent)
			indent += "      "
			place += len("/do/0/") + len(name)
		}
		fmt.Fprintf(b, "%s- last: {set: {a: 1}}\n", indent)
		return b.String()
	}
	x := strings.Repeat
	for name, c := range map[string]struct {
		document func(n int) string
		most     int
		want     string
	}{
		"task": {func(n int) string { return document("x", "  - "+x("n", n)+": {set: {a: 1}}\n") }, 256, "definition.type /do/0/n"},
		"type": {func(n int) string {
			return document("x", "  - a: {listen: {to: {one: {with: {type: "+x("t", n)+"}}}}}\n")
		}, 256, "/listen/to/one/with/type"},
		"error": {func(n int) string {
			return document("x", "  - a: {raise: {error: {type: "+x("e", n)+", status: 400}}}\n")
		}, 512, "/raise/error/type"},
		"title": {func(n int) string { return document(x("t", n), "  - a: {set: {a: 1}}\n") }, 1_000, "/document/title"},
		"place": {func(n int) string { return document("x", nested(n)) }, 3_000, "the place of the task"},
	} {
		if got := findings(c.document(c.most)); got != "ok\n" {
			t.Errorf("%s of %d bytes: %.400s", name, c.most, got)
		}
		if got := findings(c.document(c.most + 1)); !strings.Contains(got, c.want) || !strings.Contains(got, "bytes, more than") {
			t.Errorf("%s of %d bytes: %.400s", name, c.most+1, got)
		}
	}
}
