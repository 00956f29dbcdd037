package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// A feed has each dead letter that comes once, one that was committed late too, and
// none that was there before, whatever is discarded meanwhile.
func TestAFeedHasEachNewDeadLetterOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	page := func(ids string) []client.DeadLetter {
		var list []client.DeadLetter
		for _, id := range strings.Fields(ids) { // a letter is a second of its own
			list = append(list, client.DeadLetter{ID: id, DiedAt: at.Add(time.Duration(id[0]-'a') * time.Second)})
		}
		return list
	}
	f := &deadLetterFeed{seen: map[string]time.Time{}}
	old := client.DeadLetter{ID: "old", DiedAt: at.Add(-time.Hour)}
	for i, step := range []struct {
		list []client.DeadLetter
		want string
	}{
		{page("c a"), ""},
		{page("e d c a"), "d e"},
		{page("e d c b a"), "b"},
		{append(page("f e"), old), "f"},
		{nil, ""},
		{page("g"), "g"},
	} {
		var got []string
		for _, d := range f.fresh(step.list) {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, strings.Fields(step.want)) {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}
