package parts

import (
	"fmt"
	"strings"
	"testing"
)

// rows are those that a memory writes: parts by number, of one instance.
type rows map[int64]bool

func (r rows) exec(statement string, args ...any) (id, changed int64, err error) {
	first, _ := args[0].(int64)
	switch statement {
	case "part_insert":
		if r[first] {
			return 0, 0, fmt.Errorf("part %d is there", first)
		}
		r[first] = true
	case "parts_delete":
		behind, _ := args[1].(int64)
		for no := range r {
			if no >= first && no < behind {
				delete(r, no)
			}
		}
	}
	return 0, 0, nil
}

// Numbers of parts that have come to their end begin anew, and nothing is left of before;
// nor where a document is written that nobody remembers.
func TestNumbersBeginAnew(t *testing.T) {
	m, r := NewMemory(1<<20), rows{}
	version := int64(0)
	write := func(anew bool) {
		t.Helper()
		version++
		doc := fmt.Sprintf(`{"a":"%d%s"}`, version, strings.Repeat("x", minPart))
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
			t.Errorf("version %d: %d parts", version, len(r))
		}
	}
	for range 3 {
		write(false)
	}
	m.byID["i"].Value.(*kept).document.next = maxParts - 1
	for range 3 {
		write(false)
	}
	if no := m.byID["i"].Value.(*kept).document.parts[0].No; no != 2 {
		t.Errorf("the part has number %d", no)
	}
	m.Forget()
	write(true)
	m = NewMemory(minPart) // too small for it
	write(true)
	write(true)
}
