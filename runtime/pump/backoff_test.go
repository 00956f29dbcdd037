package pump

import (
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
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

// What is refused is looked at again when its grace is over, and not after that.
func TestARefusedMessageHasItsWholeGrace(t *testing.T) {
	t.Parallel()
	for _, r := range []*Retries{
		{Delay: time.Second, DelayMax: 5 * time.Minute}, {Delay: 200 * time.Millisecond, DelayMax: 2 * time.Second},
		{Delay: time.Minute, DelayMax: time.Hour}, {Delay: time.Second, DelayMax: time.Second},
	} {
		r.OrderGrace, r.Max = 10*time.Second, 20
		r.Blame = func(*problem.Error) Blame { return Blame{Sender: true, Overtaken: true} }
		refusal := problem.New(problem.Conflict, "lifecycle.refused", "not now")
		m, waited, tries := store.Message{ID: "1", Queue: store.Signals}, time.Duration(0), 0
		for ; r.fate(m, refusal) == refused; tries++ {
			if tries > 100 {
				t.Fatal("it is tried for ever")
			}
			waited += r.delay(refused, m, "instance")
			m.Attempts = refused.attempts(m)
		}
		if r.fate(m, refusal) != deadLettered || waited < r.OrderGrace || waited > r.OrderGrace*13/10 {
			t.Errorf("delays from %v to %v: tried %d times in %v", r.Delay, r.DelayMax, tries, waited)
		}
	}
}
