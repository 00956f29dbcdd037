package pump

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/line"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// delivered is a message, sent at a time, that does nothing.
type delivered struct {
	store.Delivery
	at time.Time
}

func (d delivered) Message() store.Message {
	return store.Message{Queue: store.Signals, EnqueuedAt: d.at}
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
		return &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i", SignalID: sid}, Delivery: delivered{at: now}}}
	}
	s := &server{Config: &Config{Streams: recorded{ids: map[string]bool{"1": true, "2": true}}, Now: func() time.Time { return now }}, lines: newLines()}
	for _, sid := range []string{"1", "2", "3"} {
		s.lines.Hold(at(sid), now, now, errors.New("not now"), sid != "1")
	}
	fourth := at("4")
	if s.follow(t.Context(), []*post{fourth}); fourth.Behind == nil {
		t.Error("the first is not late yet, and the fourth does not wait")
	}
	now = begun.Add(line.Late)
	third := at("3")
	fourth = at("4")
	if s.follow(t.Context(), []*post{third, fourth}); third.Behind != nil || fourth.Behind != nil {
		t.Errorf("the third waits: %v, the fourth: %v", third.Behind, fourth.Behind)
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
