package pump

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// delivered is a message that does nothing.
type delivered struct{ store.Delivery }

func (delivered) Message() store.Message { return store.Message{Queue: store.Signals} }

// TestNoneOvertakesOneThatWaits: when the first of a line comes again between two
// new messages, the one that came before it waits, and so does the one behind.
func TestNoneOvertakesOneThatWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(sid string) *post {
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: sid}, Delivery: delivered{}}}
	}
	l := newLines()
	l.hold(at("38"), now, now, holdGrace, errors.New("not now"), false)
	posts := []*post{at("39"), at("38"), at("40")}
	l.follow(posts, now)
	for i, waits := range []bool{true, false, true} {
		if p := posts[i]; (p.Behind != nil) != waits {
			t.Errorf("%s waits: %t, want %t", p.Envelope.SignalID, !waits, waits)
		}
	}
}

// When the first of a line is given up, those that are known to be in the queue
// keep their order.
func TestThoseBehindOneThatNeverComesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(sid string) *post {
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: sid}, Delivery: delivered{}}}
	}
	l := newLines()
	for _, sid := range []string{"lost", "a", "b"} { // by the API
		l.hold(&post{Signal: turn.Signal{Envelope: at(sid).Envelope}}, now, now, holdGrace, errors.New("queued"), true)
	}
	for _, sid := range []string{"b", "a"} {
		p := at(sid)
		if l.follow([]*post{p}, now); p.Behind == nil {
			t.Fatalf("%s waits for nobody", sid)
		}
		l.hold(p, now, now, holdGrace, p.Behind, true)
	}
	now = now.Add(holdGrace + time.Millisecond)
	a, b := at("a"), at("b")
	if l.follow([]*post{b}, now); b.Behind == nil {
		t.Error("b overtakes a")
	}
	if l.follow([]*post{a}, now); a.Behind != nil {
		t.Error("a waits for one that was given up")
	}
	l.passed(a, now)
	b = at("b")
	if l.follow([]*post{b}, now); b.Behind != nil {
		t.Error("b waits when a is done")
	}
}

// A signal that was to be queued, and of which nobody knows whether it was, does
// not keep those behind it waiting for ever: they do not put off the end of that.
func TestOneThatNeverComesIsGivenUp(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(sid string) *post {
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: sid}, Delivery: delivered{}}}
	}
	l := newLines()
	for _, sid := range []string{"lost", "failed"} { // by the API
		l.hold(&post{Signal: turn.Signal{Envelope: at(sid).Envelope}}, begun, begun, holdGrace, errors.New("queued"), true)
	}
	rounds := 0
	for now := begun; ; rounds++ {
		p := at("behind")
		if l.follow([]*post{p}, now); p.Behind == nil {
			if late := now.Sub(begun); late > holdGrace+2*holdPauseMax {
				t.Errorf("it waited for %s", late)
			}
			break
		}
		if now.Sub(begun) > time.Hour {
			t.Fatal("it waits for ever")
		}
		l.hold(at("new"), now, now, holdGrace, errors.New("queued"), true)
		l.passed(at("new"), now) // which could not be queued, for sure
		now = l.hold(p, now, now.Add(holdPause), holdGrace, p.Behind, true)
	}
	if rounds > 40 {
		t.Errorf("it came %d times", rounds)
	}
}

type recorded struct {
	projections.StreamReader
	ids map[string]bool
}

func (r recorded) Recorded(_ context.Context, _, sid string) (bool, error) { return r.ids[sid], nil }

// What another node has applied keeps nobody waiting on this one.
func TestWhatAnotherNodeHadKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	now := begun
	at := func(sid string) *post {
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: sid}, Delivery: delivered{}}}
	}
	s := &server{Config: &Config{Streams: recorded{ids: map[string]bool{"1": true, "2": true}}, Now: func() time.Time { return now }}, lines: newLines()}
	for _, sid := range []string{"1", "2", "3"} {
		s.lines.hold(at(sid), now, now, holdGrace, errors.New("not now"), sid != "1")
	}
	fourth := at("4")
	if s.follow(t.Context(), []*post{fourth}); fourth.Behind == nil {
		t.Error("the first is not late yet, and the fourth does not wait")
	}
	now = begun.Add(heldLate)
	third := at("3")
	fourth = at("4")
	if s.follow(t.Context(), []*post{third, fourth}); third.Behind != nil || fourth.Behind != nil {
		t.Errorf("the third waits: %v, the fourth: %v", third.Behind, fourth.Behind)
	}
}

// Lines that are over, of instances that nothing is sent to any more, take no room
// from new ones.
func TestLinesThatAreOverMakeRoom(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(id, sid string) *post {
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: id, SignalID: sid}, Delivery: delivered{}}}
	}
	l := newLines()
	for i := range heldMax {
		l.hold(at(fmt.Sprint(i), "1"), begun, begun, holdGrace, errors.New("not now"), false)
	}
	now := begun.Add(holdGrace + time.Second)
	l.hold(at("new", "1"), now, now, holdGrace, errors.New("not now"), false)
	second := at("new", "2")
	if l.follow([]*post{second}, now); second.Behind == nil {
		t.Error("the second overtakes the first")
	}
	if len(l.held) != 1 {
		t.Errorf("%d lines are remembered", len(l.held))
	}
}

// given is a message of a store in trouble, which counts how often it was given
// back.
type given struct {
	delivered
	times *int
}

func (g given) Release(context.Context, error) error { *g.times++; return nil }

// A call of the API, or the result of a command, may serve messages that came
// behind it: what the store could not take of those is given back as ever.
func TestMessagesBehindACallAreGivenBack(t *testing.T) {
	t.Parallel()
	c := &Config{Now: time.Now, Log: slog.New(slog.DiscardHandler), Retries: &Retries{Blame: noBlame}}
	s := &server{Config: c, lines: newLines(), ends: &ends{Config: c}}
	full := problem.New(problem.Unavailable, "store.full", "the disk is full")
	times := 0
	call := &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: "1"}, Err: full}}
	message := &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: "2"}, Delivery: given{times: &times}, Err: full}, stop: t.Context()}
	s.sendAgain(t.Context(), []*post{call, message})
	if times != 1 || !message.settled {
		t.Errorf("given back %d times, settled %t", times, message.settled)
	}
}

// An instance that another session has locked is tried by one worker, after pauses
// that double: those behind come when that try is over.
func TestALockIsTriedByOneAndLessOften(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(sid string) *post {
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: sid}, Delivery: delivered{}}}
	}
	l := newLines()
	locked := problem.New(problem.Unavailable, "store.locked", "x")
	pause := time.Second / 4
	for range 12 {
		due := l.hold(at("first"), now, now.Add(time.Second), holdGrace, locked, false)
		if want := now.Add(min(pause, lockedMax)); !due.Equal(want) {
			t.Fatalf("it comes after %s, want %s", due.Sub(now), want.Sub(now))
		}
		if behind := l.hold(at("second"), now, now.Add(holdPause), holdGrace, locked, true); behind.Sub(due) != lockedGap {
			t.Fatalf("the one behind comes %s after it", behind.Sub(due))
		}
		now, pause = due, 2*pause
	}
}
