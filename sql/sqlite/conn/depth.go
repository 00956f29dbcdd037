package conn

import (
	"bytes"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// maxDepth is how deep SQLite reads JSON (JSON_MAX_DEPTH in its source). Deeper
// documents could be written, and neither views nor the invariants could read them.
const maxDepth = 1_000

// deeper is by how much it is deeper behind a byte.
var deeper = [256]int8{'[': 1, '{': 1, ']': -1, '}': -1}

// Readable refuses a document that, with so much more in its depth, is nested deeper than
// SQLite reads. The writer waits for it, so it looks up what a byte does, and does not
// branch for each.
func Readable(document []byte, more int) error {
	if bytes.Count(document, []byte{'['})+bytes.Count(document, []byte{'{'}) <= maxDepth-more {
		return nil
	}
	depth := 0
	for i := 0; i < len(document); i++ {
		c := document[i]
		if c == '"' {
			i = TextEnd(document, i+1)
			continue
		}
		if depth += int(deeper[c]); depth > maxDepth-more {
			return problem.New(problem.Invalid, "store.value", "the database does not take JSON that is nested deeper than %d", maxDepth)
		}
	}
	return nil
}

// TextEnd is where the text of a JSON document ends that begins at a byte, behind its
// quote; the length of the document if it does not.
func TextEnd(document []byte, from int) int {
	for i := from; ; i++ {
		next := bytes.IndexByte(document[i:], '"')
		if next < 0 {
			return len(document)
		}
		i += next
		before := i
		for before > from && document[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 0 {
			return i
		}
	}
}
