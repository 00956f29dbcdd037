package lists

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/projections"
)

func TestPagesAreCut(t *testing.T) {
	t.Parallel()
	list := []DeadLetterRow{{No: 3}, {No: 2}, {No: 1}}
	if p := Cut(list, 2, DeadLetterRow.Item, DeadLetterRow.Mark); len(p.Items) != 2 || p.Next != "2" {
		t.Errorf("%d items, then %q", len(p.Items), p.Next)
	}
	if p := Cut(list, 3, DeadLetterRow.Item, DeadLetterRow.Mark); len(p.Items) != 3 || p.Next != "" {
		t.Errorf("%d items, then %q", len(p.Items), p.Next)
	}
	list[0].Envelope = make([]byte, projections.MaxPageBytes) // a page of one, which says where the next begins
	if p := Cut(list[:1], 2, DeadLetterRow.Item, DeadLetterRow.Mark); p.Next != "3" {
		t.Errorf("after a large one %q", p.Next)
	}
}
