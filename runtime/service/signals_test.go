package service

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// recorder is a pump that answers as it is told, and notes what it was asked.
type recorder struct {
	Pump
	standing bool
	err      error
	turns    int
	sent     []string // signals that went to the queue
}

func (r *recorder) Standing(string) bool { return r.standing }

func (r *recorder) Submit(context.Context, turn.Signal) (*engine.Outcome, error) {
	r.turns++
	return &engine.Outcome{Disposition: engine.Applied}, r.err
}

func (r *recorder) Enqueue(_ context.Context, _ store.Writer, env signal.Envelope, _ []byte) error {
	r.sent = append(r.sent, env.SignalID)
	return nil
}

// TestSignalIsQueuedOrRefused: what is the sender's fault is told, what is ours is
// queued, and so is what comes behind messages that are in line.
func TestSignalIsQueuedOrRefused(t *testing.T) {
	t.Parallel()
	refused := problem.New(problem.Conflict, "signal.stale", "x")
	for _, c := range []struct {
		name   string
		pump   recorder
		want   engine.Disposition
		err    error
		turns  int
		queued bool
	}{
		{name: "applied", want: engine.Applied, turns: 1},
		{name: "refused", pump: recorder{err: refused}, want: engine.Applied, err: refused, turns: 1},
		{name: "store in trouble", pump: recorder{err: store.ErrUnknown}, want: engine.Queued, turns: 1, queued: true},
		{name: "busy", pump: recorder{err: problem.New(problem.Unavailable, "instance.contended", "x")}, want: engine.Queued, turns: 1, queued: true},
		{name: "no definition here", pump: recorder{err: problem.New(problem.NotFound, "definition.unknown", "x")}, want: engine.Queued, turns: 1, queued: true},
		{name: "others in line", pump: recorder{standing: true}, want: engine.Queued, queued: true},
	} {
		var told error
		s := &Signals{Pump: &c.pump, Log: slog.New(slog.DiscardHandler), Now: time.Now, Refused: func(_ context.Context, _ signal.Envelope, err error) (overtaken bool) { told = err; return false }}
		env := signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: []byte(`{}`)}
		did, err := s.Signal(t.Context(), env)
		if did != c.want || err != c.err || told != c.err || c.pump.turns != c.turns || (len(c.pump.sent) == 1) != c.queued {
			t.Errorf("%s: %q %v, %d turns, %q queued", c.name, did, err, c.pump.turns, c.pump.sent)
		}
	}
}

// TestReservedIDs: what begins as a schedule's id does is refused, before the store
// is asked.
func TestReservedIDs(t *testing.T) {
	t.Parallel()
	s := &Starts{Now: time.Now}
	_, _, err := s.Start(t.Context(), schedule.Prefix+"1", signal.Start{Definition: "t/a"}, nil)
	if problem.CodeOf(err) != CodeReserved {
		t.Errorf("%v, want %s", err, CodeReserved)
	}
	if err := Reserved("1" + schedule.Prefix); err != nil {
		t.Error(err)
	}
}
