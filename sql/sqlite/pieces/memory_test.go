package pieces

import (
	"fmt"
	"strings"
	"testing"
)

// rows are those that a memory writes: pieces by number, of one instance.
type rows map[int64]bool

func (r rows) exec(statement string, args ...any) (id, changed int64, err error) {
	first, _ := args[0].(int64)
	switch statement {
	case "piece_insert":
		if r[first] {
			return 0, 0, fmt.Errorf("piece %d is there", first)
		}
		r[first] = true
	case "pieces_delete":
		behind, _ := args[1].(int64)
		for no := range r {
			if no >= first && no < behind {
				delete(r, no)
			}
		}
	}
	return 0, 0, nil
}

// Numbers of pieces that have come to their end begin anew, and nothing is left of before;
// nor where a document is written that nobody remembers.
func TestNumbersBeginAnew(t *testing.T) {
	m, r := NewMemory(1<<20), rows{}
	version := int64(0)
	write := func(anew bool) {
		t.Helper()
		version++
		doc := fmt.Sprintf(`{"a":"%d%s"}`, version, strings.Repeat("x", minPiece))
		n, err := m.Next("i", version-1, []byte(doc), version)
		if err != nil {
			t.Fatal(err)
		}
		if anew && n.Expected != nil {
			n.Anew()
		}
		if err := n.Written(5, version, r.exec); err != nil {
			t.Fatal(err)
		}
		if len(r) != 1 {
			t.Errorf("version %d: %d pieces", version, len(r))
		}
	}
	for range 3 {
		write(false)
	}
	m.byID["i"].Value.(*kept).document.next = maxPieces - 1
	for range 3 {
		write(false)
	}
	if no := m.byID["i"].Value.(*kept).document.pieces[0].No; no != 2 {
		t.Errorf("the piece has number %d", no)
	}
	m.Forget()
	write(true)
	m = NewMemory(minPiece) // too small for it
	write(true)
	write(true)
}
