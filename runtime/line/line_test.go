package line

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

var errNotNow = errors.New("not now")

func newLines() *Lines[Message] { return &Lines[Message]{Of: func(m Message) Message { return m }} }

// message is one of a queue.
func message(signal string, sent time.Time) Message {
	return Message{Instance: "i", Signal: signal, Sent: sent, Ordered: true}
}

// come says who waits of those that come.
func come(l *Lines[Message], now time.Time, list ...Message) (got []string) {
	waits, _ := l.Follow(list, now)
	for i, m := range list {
		if waits[i] {
			m.Signal += " waits"
		}
		got = append(got, m.Signal)
	}
	return got
}

// When the first of a line comes again between new messages, it is before them; those
// behind one of the line that has not come wait.
func TestNoneOvertakesOneThatWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct{ line, come, want []string }{
		{[]string{"38"}, []string{"39", "38", "40"}, []string{"38", "39", "40"}},
		{[]string{"38"}, []string{"39", "40"}, []string{"39 waits", "40 waits"}},
		{[]string{"37", "38", "39"}, []string{"41", "39", "40", "37"}, []string{"37", "39 waits", "41 waits", "40 waits"}},
		{[]string{"37", "38", "39"}, []string{"39", "38", "40"}, []string{"38 waits", "39 waits", "40 waits"}},
	} {
		l := newLines()
		for i, signal := range c.line {
			l.Hold(message(signal, now), now, now, errNotNow, i > 0)
		}
		var list []Message
		for _, signal := range c.come {
			list = append(list, message(signal, now))
		}
		if got := come(l, now, list...); !slices.Equal(got, c.want) {
			t.Errorf("behind %v: %v, want %v", c.line, got, c.want)
		}
	}
}

// A message that was sent again by another node, or before a restart, has its place by
// when it occurred.
func TestWhatAnotherNodeHasSentAgainHasItsPlace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLines()
	at := func(n int, again bool) Message {
		m := message(fmt.Sprint(n), now)
		m.Occurred, m.Again = now.Add(time.Duration(n)*time.Second), again
		return m
	}
	for i, m := range []Message{at(1, false), at(2, false), at(5, false), at(4, true), at(3, true)} {
		l.Hold(m, now, now, errNotNow, i > 0)
	}
	if got, want := come(l, now, at(5, true), at(4, true), at(3, true), at(2, true), at(1, true)), []string{"1", "2", "3", "4", "5"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A message that the node lost with its session, or that was refused for want of one
// before it and comes again, goes before those that were behind it in the queue: it
// had to wait for them, and each of them was refused for want of it.
func TestWhatWasBeforeALineGoesBeforeIt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(n int, again bool) Message {
		m := message(fmt.Sprint(n), now)
		if m.Occurred = now.Add(time.Duration(n) * time.Millisecond); again {
			m.Again, m.Sent = true, m.Occurred
		}
		return m
	}
	for _, again := range []bool{false, true} {
		l := newLines()
		for n := 45; n < 48; n++ {
			l.Hold(at(n, false), now, now, errNotNow, n > 45)
		}
		if got, want := come(l, now, at(46, true), at(44, again)), []string{"44", "46 waits"}; !slices.Equal(got, want) {
			t.Errorf("sent again %t: %v, want %v", again, got, want)
		}
		l.Passed("i", "44")
		if got, want := come(l, now, at(45, true)), []string{"45"}; !slices.Equal(got, want) {
			t.Errorf("sent again %t: then %v, want %v", again, got, want)
		}
		l.Passed("i", "45")
		later := at(40, false) // by a sender whose clock is late
		later.Sent = now.Add(time.Second)
		l.Hold(at(46, true), now, now.Add(time.Second), errNotNow, false)
		called := at(41, false) // through the API, on a node whose clock is late
		called.Sent = time.Time{}
		l.Hold(called, now, now, errNotNow, true)
		if first, _ := l.First("i", now.Add(time.Hour)); first != "46" {
			t.Errorf("sent again %t: what is about to be sent is in front: %s", again, first)
		}
		if got, want := come(l, now, later), []string{"40 waits"}; !slices.Equal(got, want) {
			t.Errorf("sent again %t: what came into the queue later: %v, want %v", again, got, want)
		}
	}
}

// When the first of a line is given up, those that are known to be in the queue
// keep their order.
func TestThoseBehindOneThatNeverComesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	l := newLines()
	for _, signal := range []string{"lost", "a", "b"} { // by the API
		l.Hold(message(signal, time.Time{}), begun, begun, errNotNow, true)
	}
	now := begun.Add(10 * time.Second)
	for _, signal := range []string{"b", "a"} {
		if got := come(l, now, message(signal, begun)); got[0] != signal+" waits" {
			t.Fatalf("%s waits for nobody", signal)
		}
		l.Hold(message(signal, begun), now, now, errNotNow, true)
	}
	now = begun.Add(Grace + time.Millisecond)
	for _, want := range []string{"b waits", "a", "b"} {
		if got := come(l, now, message(want[:1], now)); got[0] != want {
			t.Errorf("%v, want %s", got, want)
		}
		if want == "a" {
			l.Passed("i", "a")
		}
	}
}

// A queue that is slow has nobody overtake another: the first of a line is given up when
// what was sent after it comes, not when it is late.
func TestASlowQueueKeepsTheOrder(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	l := newLines()
	l.Hold(message("first", begun), begun, begun, errNotNow, false)
	for _, c := range []struct {
		sent time.Duration
		want string
	}{{0, "second waits"}, {Grace - time.Second, "second waits"}, {Grace + time.Second, "second"}} {
		if got := come(l, begun.Add(time.Hour), message("second", begun.Add(c.sent))); got[0] != c.want {
			t.Errorf("an hour later, sent after %s: %v, want %s", c.sent, got, c.want)
		}
	}
}

// A signal that was to be queued, and of which nobody knows whether it was, does
// not keep those behind it waiting for ever: they do not put off the end of that.
func TestOneThatNeverComesIsGivenUp(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	l := newLines()
	for _, signal := range []string{"lost", "failed"} { // by the API
		l.Hold(message(signal, time.Time{}), begun, begun, errNotNow, true)
	}
	rounds := 0
	for now := begun; come(l, now, message("behind", now))[0] != "behind"; rounds++ {
		if now.Sub(begun) > Grace+2*pauseMax {
			t.Fatalf("it waits for %s", now.Sub(begun))
		}
		l.Hold(message("new", time.Time{}), now, now, errNotNow, true)
		l.Passed("i", "new") // which could not be queued, for sure
		now = l.Hold(message("behind", now), now, now.Add(Pause), errNotNow, true)
	}
	if rounds > 40 {
		t.Errorf("it came %d times", rounds)
	}
}

// Lines that are over, of instances that nothing is sent to any more, take no room
// from new ones.
func TestLinesThatAreOverMakeRoom(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(instance, signal string) Message {
		return Message{Instance: instance, Signal: signal, Sent: begun, Ordered: true}
	}
	l := newLines()
	for i := range Instances {
		l.Hold(at(fmt.Sprint(i), "1"), begun, begun, errNotNow, false)
	}
	now := begun.Add(Grace + time.Second)
	l.Hold(at("new", "1"), now, now, errNotNow, false)
	if got := come(l, now, at("new", "2")); got[0] != "2 waits" {
		t.Error("the second overtakes the first")
	}
	if len(l.held) != 1 {
		t.Errorf("%d lines are remembered", len(l.held))
	}
}

// A line of an instance is there as long as its first is awaited: what is sent to the
// instance by the API is queued behind it.
func TestALineStandsAsLongAsItsFirstIsAwaited(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLines()
	l.Hold(message("first", now), now, now.Add(5*time.Minute), errNotNow, false)
	l.Hold(message("queued", time.Time{}), now, now, errNotNow, true)
	for after, want := range map[time.Duration]bool{0: true, 5 * time.Minute: true, 5*time.Minute + Grace + time.Second: false} {
		if got := l.Standing("i", now.Add(after)); got != want {
			t.Errorf("after %s: %t, want %t", after, got, want)
		}
	}
}

// An instance that another session has locked is tried by one worker, after pauses
// that double: those behind come when that try is over. Oracle delays by whole seconds,
// from when it is sent: so none comes before one that was sent before it.
func TestALockIsTriedByOneAndLessOften(t *testing.T) {
	t.Parallel()
	now := time.Now()
	// comes is when Oracle has a message come that is sent some milliseconds later.
	comes := func(due time.Time) time.Time {
		return now.Add((due.Sub(now) - 3*time.Millisecond + time.Second - 1).Truncate(time.Second))
	}
	l := newLines()
	locked := problem.New(problem.Unavailable, "store.locked", "x")
	for i, want := range []time.Duration{1, 1, 1, 2, 4, 8, 15, 15, 15} {
		first := comes(l.Hold(message("first", now), now, now.Add(time.Second), locked, false))
		if first.Sub(now) != want*time.Second {
			t.Fatalf("it comes after %s, want %d s", first.Sub(now), want)
		}
		before := first
		for n := range 20 {
			now = now.Add(70 * time.Millisecond / 4)
			behind := comes(l.Hold(message(fmt.Sprint(n), now), now, now.Add(Pause), locked, true))
			if behind.Before(before) || behind.Sub(first) > 2*time.Second {
				t.Fatalf("try %d: number %d comes %s after the first, and %s after the one before it", i, n, behind.Sub(first), behind.Sub(before))
			}
			before = behind
		}
		now = first
	}
	l.Passed("i", "first")
	if again := l.Hold(message("0", now), now, now.Add(time.Second), locked, false); again.Sub(now) > time.Second {
		t.Errorf("when the first has passed, the next that meets a lock comes after %s", again.Sub(now))
	}
}
