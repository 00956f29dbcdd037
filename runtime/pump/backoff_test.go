package pump

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	t.Parallel()
	r := &Retries{Delay: time.Second, DelayMax: 5 * time.Minute}
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second,
		10: 5 * time.Minute, 70: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		got := r.Backoff(attempt, "seed")
		if got > want || got < want*8/10 {
			t.Errorf("attempt %d: %s, want up to a fifth less than %s", attempt, got, want)
		}
		if again := r.Backoff(attempt, "seed"); again != got {
			t.Errorf("attempt %d: %s, then %s", attempt, got, again)
		}
	}
	r.Delay = 24 * time.Hour
	if got := r.Backoff(30, "x"); got <= 0 || got > r.DelayMax {
		t.Errorf("a delay over the maximum: %s", got)
	}
}
