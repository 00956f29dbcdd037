package admission

import (
	"fmt"
	"testing"
	"time"
)

// A breaker opens after several commands in a row, lets one try after a while,
// and goes by what came of that one alone.
func TestBreaker(t *testing.T) {
	t.Parallel()
	now, open := time.Unix(100, 0), 3*breakFirst/2
	b := &breaker{}
	n := int64(0)
	received := func(h Health, probe bool) bool {
		n++
		return b.received(h, fmt.Sprint("key-", n), probe, now, 3, open)
	}
	expect := func(what, state string, lets bool) {
		t.Helper()
		if b.state(now) != state || b.lets(now) != lets {
			t.Fatalf("%s: it is %s and lets is %t", what, b.state(now), b.lets(now))
		}
	}
	for range 5 {
		received(Ill, false)
		received(Ill, false)
		received(Healthy, false)
	}
	expect("never three in a row", breakerClosed, true)
	for range 5 {
		b.received(Ill, "one", false, now, 3, open)
	}
	expect("one command that fails again and again", breakerClosed, true)
	received(Ill, false)
	received(Unknown, false)
	if opened := received(Ill, false); !opened {
		t.Fatal("three commands have failed, and nothing was told")
	}
	expect("three in a row", breakerOpen, false)
	if received(Ill, false) || received(Healthy, false) {
		t.Error("what was sent before opened it again")
	}
	now = now.Add(breakFirst - 1)
	expect("just before its time", breakerOpen, false)
	now = now.Add(1)
	expect("at its time", breakerHalfOpen, true)
	if !b.sent() {
		t.Fatal("the next command is not the one that tries")
	}
	expect("while one tries", breakerHalfOpen, false)
	received(Healthy, false)
	expect("another one is no answer", breakerHalfOpen, false)
	received(Unknown, true)
	expect("the one that tried was given up", breakerHalfOpen, true)
	if b.sent(); !received(Ill, true) {
		t.Fatal("the one that tried failed, and nothing was told")
	}
	now = now.Add(open - 1)
	expect("it failed, and is open longer", breakerOpen, false)
	now = now.Add(1)
	b.sent()
	received(Healthy, true)
	expect("it worked", breakerClosed, true)
	if received(Ill, false); b.failures != 1 {
		t.Errorf("%d failures after one", b.failures)
	}
}
