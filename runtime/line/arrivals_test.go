package line

import (
	"slices"
	"testing"
)

// What was read early waits for those that came before it from its queue, and for no
// other queue's.
func TestWhatIsReadSideBySideGetsIntoLine(t *testing.T) {
	t.Parallel()
	var a Arrivals[int]
	for _, id := range []string{"1", "2", "3"} {
		a.Come("q", id)
	}
	a.Come("other", "4")
	var got []int
	next := func(n int) { got = append(got, n) }
	a.Read("q", "3", 3, next)
	a.Read("other", "4", 4, next)
	a.Read("q", "1", 1, next)
	a.Read("q", "2", 2, next)
	a.Come("q", "5")
	a.Read("q", "5", 5, next)
	if !slices.Equal(got, []int{4, 1, 2, 3, 5}) || len(a.read) != 0 {
		t.Errorf("%v, %d are kept", got, len(a.read))
	}
}
