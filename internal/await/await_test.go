package await

import (
	"testing"
	"testing/synctest"
	"time"
)

// What stands still is given up, by the pauses that were asked for.
func TestWhatStandsStillIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var w Wait
		for w.Again(time.Second, "the same") {
		}
		if took := time.Since(begun); took != still {
			t.Errorf("it took %s", took)
		}
	})
}

// A slow machine has as many looks as a quick one.
func TestSlowLooksAreNotHeldAgainstIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Wait
		looks := 0
		for w.Again(time.Second, "the same") {
			time.Sleep(time.Minute) // the look
			looks++
		}
		if looks != int(still/time.Second) {
			t.Errorf("%d looks", looks)
		}
	})
}

// What moves is waited for, though not for ever.
func TestWhatMovesIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var w Wait
		for n := 0; w.Again(time.Second, n); {
			if n++; time.Since(begun) > 2*most {
				t.Fatal("it is never given up")
			}
		}
		if took := time.Since(begun); took < most {
			t.Errorf("given up after %s", took)
		}
	})
}

func TestReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int, 1)
		time.AfterFunc(2*still, func() { c <- 7 })
		n := 0
		if v, ok := Receive(c, func() any { n++; return n }); !ok || v != 7 {
			t.Error(v, ok)
		}
		if v, ok := Receive(c, func() any { return nil }); ok {
			t.Error("received ", v)
		}
	})
}
