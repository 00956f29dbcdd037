package line

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Backoff is the pause before a retry: delay, doubled with each attempt, up to most,
// less up to a fifth of jitter taken from a hash of the attempt and seed, so that a
// repeated decision repeats it.
func Backoff(delay, most time.Duration, attempt int, seed string) time.Duration {
	d := most
	if shift := max(attempt-1, 0); delay <= d>>shift {
		d = delay << shift
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", seed, attempt)
	return d - time.Duration(h.Sum32()%200)*(d/1000)
}

// Waited is how long somebody has waited before retry n by [Backoff], about; no longer
// than needed to pass limit.
func Waited(delay, most time.Duration, n int, limit time.Duration) time.Duration {
	var sum time.Duration
	for i := 1; i <= n && sum <= limit; i++ {
		sum += Backoff(delay, most, i, "")
	}
	return sum
}
