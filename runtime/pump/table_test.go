package pump

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/cache"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// told is a message for an instance that does not exist, and a store that has only
// it. It notes what is done.
type told struct {
	store.Ledger
	projections.StreamReader
	message store.Message
	done    []string
}

func (m *told) Message() store.Message               { return m.message }
func (m *told) Release(context.Context, error) error { m.note("release"); return nil }
func (m *told) Enter(store.Delivery)                 {}
func (m *told) Leave(store.Delivery)                 {}
func (m *told) note(what string)                     { m.done = append(m.done, what) }

func (m *told) Load(context.Context, string) (snapshot.Snapshot, error) {
	m.note("turn")
	return snapshot.Snapshot{}, store.ErrNotFound
}

func (m *told) Commit(_ context.Context, c store.Change) error {
	switch {
	case c.DeadLetter != nil:
		m.note("dead letter " + c.DeadLetter.Reason)
		for _, s := range c.Send {
			m.note("sent: " + string(s.Body))
		}
	case len(c.Send) > 0:
		m.note("again")
	default:
		m.note("consumed")
	}
	return nil
}

// uncounted counts nothing.
type uncounted struct{}

func (uncounted) Retried(store.Queue, string) {}
func (uncounted) DeadLetter(store.Queue)      {}
func (uncounted) Count(engine.Disposition)    {}
func (uncounted) Over(turn.Made)              {}

// config is that of a pump with a table.
func (m *told) config(table map[signal.Type]*Handler, suspend bool) Config {
	now := time.Now
	retries := &Retries{Max: 2, Delay: time.Second, DelayMax: time.Minute, Now: now, Blame: noBlame}
	c := Config{
		Ledger: m, Joins: true, Streams: m, Node: "n", Retries: retries, Log: slog.New(slog.DiscardHandler), Now: now, Handlers: table, AtOnce: 1, CrashMax: 3, Metrics: uncounted{},
		Turns: turn.New(turn.Config{
			Inside:  func(*engine.Outcome, engine.Input) turn.GoOn { return nil },
			Refused: func(_ context.Context, _ engine.Definition, err error) error { return err },
			Writer:  m, Joins: true, Memory: &memory.Budget{}, Log: slog.New(slog.DiscardHandler), Now: now, Cache: cache.New(1<<10, 0), Blocks: retries.Blocks, Metrics: uncounted{},
		}),
		OnCommand: func(_, _ context.Context, d store.Delivery, _ signal.Envelope) error {
			m.note("announced")
			return d.Commit(context.Background(), store.Change{})
		},
		Committed: func(turn.Committed) {},
	}
	if suspend {
		c.Suspend = func(context.Context, string) error { m.note("suspend"); return nil }
	}
	return c
}

// handled has a pump with a table handle a message.
func (m *told) handled(t *testing.T, table map[signal.Type]*Handler, suspend bool) {
	t.Helper()
	u := New(m.config(table, suspend))
	u.server.mail.arrived(m.message)
	u.handle(t.Context(), t.Context(), m)
	if boxes, slots := len(u.server.mail.open), len(u.server.slots); boxes != 0 || slots != 0 {
		t.Errorf("left behind: %d mailboxes, %d slots", boxes, slots)
	}
}

// TestTheTableSaysWhatIsDoneWithAMessage: every field of a handler has its part, and
// none of them is missed where it is absent: an extra that is taken out of the table
// takes nothing else with it.
func TestTheTableSaysWhatIsDoneWithAMessage(t *testing.T) {
	t.Parallel()
	came := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		queue    store.Queue
		attempts int
		suspend  bool
		table    func(m *told) *Handler // for the type of the message; nil = it is not in the table
		want     []string
	}{
		"no table":             {want: []string{"turn", "again"}},
		"no table, at the end": {attempts: 2, want: []string{"turn", "dead letter instance.unknown"}},
		"another of its type": {
			table: func(m *told) *Handler {
				return &Handler{For: func(signal.Envelope) bool { return false }, Outside: func(context.Context, store.Delivery, signal.Envelope) error { panic("not for it") }}
			},
			want: []string{"turn", "again"},
		},
		"outside": {
			table: func(m *told) *Handler {
				return &Handler{Outside: func(ctx context.Context, d store.Delivery, _ signal.Envelope) error {
					m.note("outside")
					return d.Commit(ctx, store.Change{})
				}}
			},
			want: []string{"outside", "consumed"},
		},
		"alone": {
			table: func(m *told) *Handler {
				return &Handler{Alone: func(ctx context.Context, d store.Delivery, _ signal.Envelope, now time.Time) error {
					m.note("alone at " + now.Format(time.DateOnly))
					return d.Commit(ctx, store.Change{})
				}}
			},
			want: []string{"alone at 2026-01-03", "consumed"},
		},
		"completed": {
			table: func(m *told) *Handler {
				return &Handler{Complete: func(_ context.Context, _ store.Delivery, env signal.Envelope) (signal.Envelope, error) {
					m.note("complete")
					return env, nil
				}}
			},
			want: []string{"complete", "turn", "again"},
		},
		"not to be completed": {
			table: func(m *told) *Handler {
				return &Handler{Complete: func(_ context.Context, _ store.Delivery, env signal.Envelope) (signal.Envelope, error) {
					return env, problem.New(problem.Invalid, "signal.invalid", "x")
				}}
			},
			want: []string{"dead letter signal.invalid"},
		},
		"bound": {
			table: func(m *told) *Handler {
				return &Handler{Bind: func(_ context.Context, s *turn.Signal) { m.note("bind " + s.Envelope.SignalID) }}
			},
			want: []string{"bind s", "turn", "again"},
		},
		"moot, not yet": {attempts: 1, table: moot, want: []string{"turn", "again"}},
		"moot":          {attempts: 2, table: moot, want: []string{"turn", "consumed"}},
		"refused": {
			attempts: 2, suspend: true,
			table: func(*told) *Handler {
				return &Handler{Refusal: func(env signal.Envelope, cause error) (store.Send, bool) {
					return store.Send{Body: []byte(env.SignalID + " " + problem.CodeOf(cause))}, true
				}}
			},
			want: []string{"turn", "dead letter instance.unknown", "sent: s instance.unknown", "suspend"},
		},
		"a command": {queue: store.Commands, want: []string{"announced", "consumed"}},
		"a command has no handler": {
			queue: store.Commands,
			table: func(*told) *Handler {
				return &Handler{Outside: func(context.Context, store.Delivery, signal.Envelope) error { return errors.New("not for it") }}
			},
			want: []string{"announced", "consumed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &told{message: store.Message{ID: "1", Queue: store.Signals, Attempts: c.attempts, EnqueuedAt: came}}
			if c.queue != "" {
				m.message.Queue = c.queue
			}
			body, err := signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: came, Payload: []byte(`{}`)}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			m.message.Body = body
			var table map[signal.Type]*Handler
			if c.table != nil {
				table = map[signal.Type]*Handler{signal.ExternalSignal: c.table(m)}
			}
			m.handled(t, table, c.suspend)
			if !slices.Equal(m.done, c.want) {
				t.Errorf("%q, want %q", m.done, c.want)
			}
		})
	}
}

func moot(*told) *Handler {
	return &Handler{Moot: func(err error) bool { return problem.CodeOf(err) == "instance.unknown" }}
}
