package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// overtaken is a store where another node, which lives, is the faster to claim an announced
// command, from when it is told.
type overtaken struct {
	handing
	faster string
	now    atomic.Bool
}

type overtakenDelivery struct {
	store.Delivery
	s *overtaken
}

// wraps puts it over a store.
func (s *overtaken) wraps(whole backend.Parts) backend.Parts {
	return s.over(whole, s, func(d store.Delivery) store.Delivery { return &overtakenDelivery{d, s} })
}

func (d *overtakenDelivery) Commit(ctx context.Context, c store.Change) error {
	if d.s.now.Load() && len(c.Claims) == 1 && c.Claims[0].Owner != "" {
		theirs := c.Claims[0]
		theirs.Owner = d.s.faster
		if err := d.s.Commit(ctx, store.Change{Claims: []store.Claim{theirs}}); err != nil {
			return err
		}
	}
	return d.Delivery.Commit(ctx, c)
}

// living is the name of another node that lives, and does nothing: what a dead one has
// claimed is announced again.
func living(t *testing.T, place string) string {
	t.Helper()
	other, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	return other.Nodes.Node()
}

// blocked performs a function that ends when its test lets it.
func blocked(t *testing.T) (effect func(context.Context, json.RawMessage) (any, error), release func()) {
	open := make(chan struct{})
	t.Cleanup(func() {
		select {
		case <-open:
		default:
			close(open)
		}
	})
	return func(ctx context.Context, _ json.RawMessage) (any, error) {
		select {
		case <-open:
		case <-ctx.Done():
		}
		return "done", ctx.Err()
	}, func() { close(open) }
}

// TestAnnouncementOfATakenCommandIsConsumed: between a look at a command and
// its claim another node may be faster. The message is this node's all the
// same, and must not stay so for ever.
func TestAnnouncementOfATakenCommandIsConsumed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		effect, release := blocked(t)
		place := fresh()
		s := &overtaken{faster: living(t, place)}
		n, err := open(t.Context(), place, s.wraps, effect, callDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}()
		n.begin(t, "i", "t/call", nil)
		var row projections.Entry
		eventually(t, "the command is performed", func() bool { row = n.row(t, "i"); return row.ClaimedBy != "" })
		s.now.Store(true)
		body, err := signal.ForCommand("i", row.Position, 1, time.Now(), time.Time{}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := n.store.Writer.Commit(t.Context(), store.Change{
			Claims: []store.Claim{{InstanceID: "i", Position: row.Position, Any: true}},
			Send:   []store.Send{{Queue: store.Commands, Body: body}},
		}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the announcement is consumed", func() bool { return n.idle(t) })
		if row := n.row(t, "i"); row.ClaimedBy != s.faster {
			t.Errorf("the command is claimed by %q", row.ClaimedBy)
		}
		release()
		n.output(t, "i")
	})
}

// TestResultOfASettledCommandIsADeadLetter: a stream that says processed where
// the snapshot still waits was not written by a node. The message that meets it
// is kept for an operator, and does not stay locked.
func TestResultOfASettledCommandIsADeadLetter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		effect, release := blocked(t)
		n := start(t, fresh(), effect, callDoc)
		n.begin(t, "i", "t/call", nil)
		row := n.row(t, "i")
		if err := n.store.Writer.Commit(t.Context(), store.Change{Claims: []store.Claim{{InstanceID: "i", Position: row.Position, Any: true, Done: true}}}); err != nil {
			t.Fatal(err)
		}
		s, err := n.store.Writer.Load(t.Context(), "i")
		if err != nil {
			t.Fatal(err)
		}
		body, err := signal.Envelope{
			SignalID: "r", InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.TaskCompleted,
			WaitingToken: s.Waits[0].Token, OccurredAt: time.Now(), Payload: json.RawMessage(`{"output":"mine"}`),
		}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		n.send(t, string(body))
		if deadLetter := n.deadLetter(t, "i"); deadLetter.Reason != "command.settled" || string(deadLetter.Envelope) != string(body) {
			t.Errorf("dead letter %+v", deadLetter)
		}
		eventually(t, "nothing is left on the queues", func() bool { return n.idle(t) })
		release()
	})
}

// forgetful is a store whose first delivery no worker gets.
type forgetful struct {
	store.Receiver
	forgot atomic.Bool
}

func (s *forgetful) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := s.Receiver.Receive(ctx, q, arrived)
	if err == nil && q == store.Signals && s.forgot.CompareAndSwap(false, true) {
		return s.Receiver.Receive(ctx, q, arrived)
	}
	return d, err
}

// TestStrayMessageIsGivenBack: a message that this node has locked and that none
// of its workers has is found, and handled.
func TestStrayMessageIsGivenBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		s := &forgetful{}
		n, err := open(t.Context(), fresh(), func(p backend.Parts) backend.Parts { s.Receiver, p.Queue = p.Queue, s; return p }, nil, listenDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}()
		n.begin(t, "i", "t/listen", map[string]any{"order": 1})
		n.send(t, `{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"paid","data":{"order":1}}}`)
		n.output(t, "i")
		got := 0 // it is handled as soon as it is given back, and counted then
		for got == 0 && t.Context().Err() == nil {
			got = n.counted(t, "aqueduct_messages_stray_total")[""]
		}
		if !s.forgot.Load() || got != 1 {
			t.Errorf("%d messages were strays, forgot one: %v", got, s.forgot.Load())
		}
	})
}

// worn is a store whose stream of one instance is damaged.
type worn struct {
	backend.StreamReader
	id string
}

func (s worn) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	if id == s.id {
		return nil, problem.New(problem.Internal, "stream.corrupt", "entry %d of instance %s does not have its checksum", after+1, id)
	}
	return s.StreamReader.Stream(ctx, id, after, limit)
}

// TestDamagedCommandIsNotPerformed: a command whose row is not what a node wrote
// is a dead letter at once.
func TestDamagedCommandIsNotPerformed(t *testing.T) {
	t.Parallel()
	n, err := open(t.Context(), testdb.OnFile(t)(), func(p backend.Parts) backend.Parts { p.Streams = worn{p.Streams, "i"}; return p }, nil, listenDoc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.close() })
	n.begin(t, "i", "t/listen", map[string]any{"order": 1})
	body := must(signal.ForCommand("i", 1, 0, time.Now(), time.Time{}).Encode())
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Commands, Body: body}}}); err != nil {
		t.Fatal(err)
	}
	if deadLetter := n.deadLetter(t, "i"); deadLetter.Reason != "stream.corrupt" || deadLetter.Attempts > 1 || string(deadLetter.Envelope) != string(body) {
		t.Errorf("dead letter %+v", deadLetter)
	}
}

// TestDamagedMessageIsADeadLetter: what a node wrote, and is not what it wrote,
// changes no instance.
func TestDamagedMessageIsADeadLetter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 1})
		body, err := signal.Envelope{
			SignalID: "s", InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
			Payload: json.RawMessage(`{"type":"paid","data":{"order":1}}`),
		}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		damaged := strings.Replace(string(body), `"paid"`, `"said"`, 1)
		n.send(t, damaged)
		if deadLetter := n.deadLetter(t, "i"); deadLetter.Reason != "signal.corrupt" || string(deadLetter.Envelope) != damaged {
			t.Errorf("dead letter %+v", deadLetter)
		}
		n.send(t, string(body))
		n.output(t, "i")
	})
}
