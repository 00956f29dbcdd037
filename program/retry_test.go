package program

import (
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
)

func TestBackoffGrows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    Backoff
		want [5]int
	}{
		{BackoffConstant, [5]int{3, 3, 3, 3, 3}}, {BackoffLinear, [5]int{3, 6, 9, 12, 15}}, {BackoffExponential, [5]int{3, 6, 12, 24, 48}},
	} {
		for n, want := range c.want {
			if got := c.b.delayed(3*time.Second, n+1); got != time.Duration(want)*time.Second {
				t.Errorf("%q: delay %d is %v, not %d s", c.b, n+1, got, want)
			}
		}
	}
	for _, n := range []int{100, 10_000, MaxRetries} {
		if got := BackoffExponential.delayed(time.Hour, n); got != duration.Longest {
			t.Errorf("delay %d is %v, not the longest there is", n, got)
		}
	}
}

// TestJitterSpreads holds that tokens fall evenly into the range, and the same
// token always to the same place.
func TestJitterSpreads(t *testing.T) {
	t.Parallel()
	const tokens, parts = 10_000, 10
	var fell [parts]int
	from, to := 2*time.Second, 4*time.Second
	for i := range tokens {
		token := fmt.Sprintf("token-%d", i)
		j := jitter(from, to, token)
		if j < from || j >= to || j != jitter(from, to, token) {
			t.Fatalf("jitter of %s is %v", token, j)
		}
		fell[int(j-from)*parts/int(to-from)]++
	}
	for i, n := range fell {
		if n < tokens/parts*8/10 || n > tokens/parts*12/10 {
			t.Errorf("part %d has %d of %d", i, n, tokens)
		}
	}
	if got := jitter(to, from, "x"); got != to {
		t.Errorf("an empty range gives %v, not its begin", got)
	}
}
