package activity

import (
	"hash/fnv"
	"strconv"
	"time"
)

// Defaults of a [Policy].
const (
	DefaultMaxAttempts = 5
	DefaultInitial     = time.Second
	DefaultMax         = time.Minute
)

// jitterShare is the part of a delay that jitter adds at most: one tenth.
const jitterShare = 10

// Policy says how often and when a command is attempted again. A zero field
// means the default.
type Policy struct {
	MaxAttempts int           // with the first one
	Initial     time.Duration // delay after the first attempt; it doubles with each
	Max         time.Duration // bound of the delay, before jitter
}

// WithDefaults returns p with its zero fields set.
func (p Policy) WithDefaults() Policy {
	set(&p.MaxAttempts, DefaultMaxAttempts)
	set(&p.Initial, DefaultInitial)
	set(&p.Max, DefaultMax)
	return p
}

// Backoff returns how long to wait after a failed attempt, which counts from
// 1: Initial, twice that, four times, ... up to Max, and up to a tenth more.
// What it adds is derived from key and attempt: equal arguments give equal
// delays, and commands that failed together do not come back together.
func (p Policy) Backoff(attempt int, key string) time.Duration {
	p = p.WithDefaults()
	delay := min(p.Initial, p.Max)
	for i := 1; i < attempt && delay < p.Max; i++ {
		if delay > p.Max/2 {
			delay = p.Max
		} else {
			delay *= 2
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + "/" + strconv.Itoa(attempt))) // never fails
	const steps = 1024
	return delay + delay/jitterShare/steps*time.Duration(h.Sum64()%steps)
}
