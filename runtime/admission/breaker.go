package admission

import "time"

// Health is what an attempt says about its destination.
type Health int

const (
	Unknown Health = iota // it was not reached, or the attempt was given up
	Healthy
	Ill
)

// States of a breaker.
const (
	breakerClosed   = "closed"    // commands are sent
	breakerOpen     = "open"      // none is
	breakerHalfOpen = "half-open" // one is, and decides
)

// breakFirst is how long a breaker is open at first; it doubles each time that
// the command that tries has failed.
const breakFirst = time.Second

// breaker keeps commands from a destination that has failed several times in a
// row, and lets one try after a while. It has no lock of its own.
type breaker struct {
	failures int       // in a row
	until    time.Time // open before it; zero = closed
	probing  bool      // the one that tries is under way
	opens    int       // how often it has opened since it was closed
	last     string    // key of the effect that failed last: one alone says little, however often it is tried
}

// lets reports whether a command may be sent now.
func (b *breaker) lets(now time.Time) bool {
	return b.until.IsZero() || !now.Before(b.until) && !b.probing
}

// sent notes that a command is sent that lets has let; it reports whether that
// is the one that tries.
func (b *breaker) sent() (probe bool) {
	b.probing = !b.until.IsZero()
	return b.probing
}

// received notes what came of a command; it reports whether the breaker opened. It
// is open for the given time at most.
func (b *breaker) received(h Health, from string, probe bool, now time.Time, after int, open time.Duration) bool {
	counts := b.until.IsZero() || probe // what was sent before it opened says nothing new
	if probe {
		b.probing = false
	}
	switch {
	case h == Unknown || !counts:
		return false
	case h == Healthy:
		*b = breaker{}
		return false
	}
	if from == b.last && !probe {
		return false
	}
	b.last = from
	if b.failures++; b.failures < after {
		return false
	}
	b.until = now.Add(min(open, breakFirst<<min(b.opens, 30)))
	b.opens++
	return true
}

func (b *breaker) state(now time.Time) string {
	switch {
	case b.until.IsZero():
		return breakerClosed
	case now.Before(b.until):
		return breakerOpen
	}
	return breakerHalfOpen
}
