package conn

import (
	"bytes"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// maxDepth is how deep SQLite reads JSON (JSON_MAX_DEPTH in its source). Deeper
// documents could be written, and neither views nor the invariants could read them.
const maxDepth = 1_000

// Readable refuses a document that is nested deeper than SQLite reads.
func Readable(document []byte) error {
	if bytes.Count(document, []byte{'['})+bytes.Count(document, []byte{'{'}) <= maxDepth {
		return nil
	}
	depth, text := 0, false
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return problem.New(problem.Invalid, "store.value", "the database does not take JSON that is nested deeper than %d", maxDepth)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}
