package conn

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// What is refused for its depth is what SQLite itself cannot read.
func TestDocumentsAreAsDeepAsSQLiteReads(t *testing.T) {
	t.Parallel()
	c, err := Open(t.TempDir()+"/a.db", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	arrays := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, document := range []string{
		`{}`, arrays(maxDepth - 1), arrays(maxDepth), arrays(maxDepth + 1), arrays(5 * maxDepth),
		strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth),
		strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1),
		"[" + strings.Repeat("[],", 2*maxDepth) + "1]", `["` + strings.Repeat(`[{\"`, 2*maxDepth) + `"]`, `["` + strings.Repeat(`\\`, 3) + `",` + arrays(maxDepth) + "]",
	} {
		valid, err := c.Number("select json_valid('" + document + "')")
		if err != nil {
			t.Fatal(err)
		}
		if err := Readable([]byte(document), 0); (err == nil) != (valid == 1) || err != nil && problem.CodeOf(err) != "store.value" {
			t.Errorf("%.40s of %d bytes: %v, SQLite says %d", document, len(document), err, valid)
		}
	}
}

func BenchmarkReadable(b *testing.B) {
	document := []byte("[" + strings.Repeat(`{"sku":"sku-07919","n":31},`, 4_000) + "1]")
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if err := Readable(document, 0); err != nil {
			b.Fatal(err)
		}
	}
}
