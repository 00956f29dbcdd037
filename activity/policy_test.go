package activity

import (
	"fmt"
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	t.Parallel()
	p := Policy{Initial: time.Second, Max: 20 * time.Second}
	for i, want := range []time.Duration{1, 1, 2, 4, 8, 16, 20, 20} {
		want *= time.Second
		got := p.Backoff(i, "i-1/7")
		if got < want || got > want+want/10 {
			t.Errorf("after attempt %d: %s, want %s to %s", i, got, want, want+want/10)
		}
	}
	if got := p.Backoff(1_000_000, "k"); got < p.Max || got > p.Max+p.Max/10 {
		t.Errorf("after very many attempts: %s", got)
	}
}

func TestBackoffIsAFunctionOfKeyAndAttempt(t *testing.T) {
	t.Parallel()
	var p Policy
	seen := map[time.Duration]bool{}
	for i := range 100 {
		key := fmt.Sprintf("i-%d/7", i)
		first, second := p.Backoff(3, key), p.Backoff(3, key)
		if first != second {
			t.Fatalf("two delays for %s: %s and %s", key, first, second)
		}
		seen[first] = true
	}
	if len(seen) < 80 {
		t.Errorf("100 keys share %d delays: they come back together", len(seen))
	}
}

func TestBackoffNeverOverflows(t *testing.T) {
	t.Parallel()
	p := Policy{Initial: time.Hour, Max: 1 << 62}
	for i := 1; i < 200; i++ {
		if d := p.Backoff(i, "k"); d < p.Initial {
			t.Fatalf("after attempt %d: %s", i, d)
		}
	}
	if d := (Policy{Initial: time.Hour, Max: time.Second}).Backoff(1, "k"); d > 2*time.Second {
		t.Errorf("a maximum under the initial delay is not kept: %s", d)
	}
}

func TestPolicyHasDefaults(t *testing.T) {
	t.Parallel()
	want := Policy{MaxAttempts: DefaultMaxAttempts, Initial: DefaultInitial, Max: DefaultMax}
	if got := (Policy{}).WithDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPerformerStopsAfterTheLastAttempt(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{Policy: Policy{MaxAttempts: 3, Initial: time.Minute}})
	for failures, want := range []bool{true, true, true, false, false} {
		delay, ok := p.Backoff(failures, "k/1")
		if ok != want || ok != (delay >= time.Minute) {
			t.Errorf("after %d failures: %s, %t", failures, delay, ok)
		}
	}
}
