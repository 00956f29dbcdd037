package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// picky is a consumer of calls that takes but one input, and remembers the keys.
type picky struct {
	mu   sync.Mutex
	keys map[string]string // by input
	want string
}

func (p *picky) take(ctx context.Context, input json.RawMessage) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = map[string]string{}
	}
	p.keys[string(input)] = activity.Info(ctx).Key
	if string(input) != p.want {
		return nil, activity.Permanent(errors.New("no such order"))
	}
	return "ok", nil
}

func (p *picky) key(input string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[input]
}

var detachDoc = doc("detach", `
  - call: {call: acknowledged, with: {call: effect, with: {order: 7}, within: PT1H, await: false}}
`)

// An edited input is asked for by a new command, under a new key; the one that was given up
// is discarded by the same commit, and does not look as processed.
func TestAnEditedInputIsAnotherCommand(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		p := &picky{want: `{"order":8}`}
		place := fresh()
		n := start(t, place, p.take, detachDoc)
		n.begin(t, "i", "t/detach", nil)
		d := n.deadLetter(t, "i")
		old := n.row(t, "i")
		if *old.Processed || old.GivenUpAt.IsZero() {
			t.Fatalf("given up: %+v", old)
		}
		bad := func(e backend.DeadLetterChange) {
			t.Helper()
			_, err := n.rt.Edit(t.Context(), d.ID, e)
			code(t, err, "dead-letter.edit")
		}
		bad(backend.DeadLetterChange{Input: []byte(`{"order":`)})
		bad(backend.DeadLetterChange{Envelope: d.Envelope})
		for _, forged := range []string{`{"secrets":[]}`, `{"Origins":["https://evil"]}`, `{"authentication":null}`, `{"a":1,"a":2}`, `[]`} {
			bad(backend.DeadLetterChange{Input: []byte(forged)})
		}
		bad(backend.DeadLetterChange{})
		bad(backend.DeadLetterChange{Input: []byte(`{}`), Original: true})
		bad(backend.DeadLetterChange{Input: []byte(`{}`), Key: "other"})
		bad(backend.DeadLetterChange{Input: []byte(strings.Repeat("[", signal.MaxDepth+1) + strings.Repeat("]", signal.MaxDepth+1))})
		e, err := n.rt.Edit(t.Context(), d.ID, backend.DeadLetterChange{Input: []byte(`{"order":8}`)})
		if err != nil || e.No != 1 || e.What != backend.EditInput {
			t.Fatal(e, err)
		}
		_, err = n.rt.Edit(t.Context(), d.ID, backend.DeadLetterChange{Input: []byte(`{"order":9}`)})
		code(t, err, "dead-letter.edited")
		if edit, err := n.rt.DeadLetters.Replay(t.Context(), d.ID); err != nil || edit != 1 {
			t.Fatal(edit, err)
		}
		eventually(t, "the edited call", func() bool { return p.key(`{"order":8}`) != "" })
		if was, is := p.key(`{"order":7}`), p.key(`{"order":8}`); was == is || !strings.Contains(is, "/edited/") {
			t.Errorf("the keys are %q and %q", was, is)
		}
		if old = n.row(t, "i"); !*old.Processed || old.GivenUpAt.IsZero() {
			t.Errorf("after the replay: %+v", old)
		}
		if l := n.entries(t, "i", "CommandEdited"); len(l) != 1 || !strings.Contains(string(l[0].Data), d.ID) {
			t.Errorf("entries %+v", l)
		}
		if _, err := n.rt.DeadLetters.Replay(t.Context(), d.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("replayed twice: %v", err)
		}
		eventually(t, "its delivery", func() bool {
			r, _ := n.store.Streams.Pending(t.Context(), "i", 0)
			return len(r) == 1 && r[0].Deliveries == 1
		})
		if unverifiable, err := testdb.Replay(t.Context(), place, nil); err != nil || len(unverifiable) > 0 {
			t.Error(unverifiable, err)
		}
	})
}

// cutOff is a store that is left by who replays a dead letter before that is gone.
type cutOff struct {
	backend.DeadLetterStore
	once sync.Once
}

func (c *cutOff) Replay(ctx context.Context, id string, edit int64, body []byte, by ...store.Audit) error {
	err := error(nil)
	if c.once.Do(func() { err = context.Canceled }); err != nil {
		return err
	}
	return c.DeadLetterStore.Replay(ctx, id, edit, body, by...)
}

// Who discards the letter of a command that was asked for anew, before it could be taken away, is
// told: the command is performed.
func TestWhatWasAskedForAnewIsNotDiscarded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		p := &picky{want: `{"order":8}`}
		n := startSet(t, fresh(), func(c *runtime.Config) { c.Store.DeadLetters = &cutOff{DeadLetterStore: c.Store.DeadLetters} }, p.take, detachDoc)
		n.begin(t, "i", "t/detach", nil)
		d := n.deadLetter(t, "i")
		if _, err := n.rt.Edit(t.Context(), d.ID, backend.DeadLetterChange{Input: []byte(`{"order":8}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.rt.DeadLetters.Replay(t.Context(), d.ID); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		code(t, n.rt.Discard(t.Context(), d.ID), "command.settled")
		eventually(t, "the edited call", func() bool { return p.key(`{"order":8}`) != "" })
		if err := n.rt.Discard(t.Context(), d.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the letter is left: %v", err)
		}
	})
}

// Where nobody knows whether a command was done, another input is an operator's decision.
func TestAnotherInputOfAnUnknownOutcomeIsDecided(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, tellDoc)
		n.begin(t, "i", "t/tell", nil)
		row := n.delivered(t, "i", 1)
		change := store.Change{
			Claims:     []store.Claim{{InstanceID: "i", Position: row.Position, Any: true, Delivered: row.DeliveredAt, Deliveries: 1, Unknown: true, NextAt: row.NextAttemptAt, GivenUp: time.Now(), Error: "AckGivenUp: x"}},
			DeadLetter: &projections.DeadLetter{ID: "d", Queue: string(store.Commands), InstanceID: "i", Envelope: announced(t, row, 0), Reason: "ack.missing"},
		}
		if err := n.store.Writer.Commit(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		_, err := n.rt.Edit(t.Context(), "d", backend.DeadLetterChange{Input: []byte(`{"order":1}`)})
		code(t, err, "dead-letter.undecided")
		e, err := n.rt.Edit(t.Context(), "d", backend.DeadLetterChange{Input: []byte(`{"order":1}`), Key: backend.KeySame})
		if err != nil || e.What != backend.EditSameKey {
			t.Fatal(e, err)
		}
		if _, err := n.rt.DeadLetters.Replay(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the edited call", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.attempts) == 2
		})
		if c.attempts[0].Key != c.attempts[1].Key {
			t.Errorf("the keys are %q and %q", c.attempts[0].Key, c.attempts[1].Key)
		}
	})
}

// What an instance waits for is not edited behind its back.
func TestTheInputOfAnAwaitedCommandIsNotEdited(t *testing.T) {
	t.Parallel()
	n := start(t, testdb.OnFile(t)(), (&consumer{}).take, ackDoc)
	n.begin(t, "i", "t/ack", nil)
	row := n.delivered(t, "i", 1)
	l := projections.DeadLetter{ID: "d", Queue: string(store.Commands), InstanceID: "i", Envelope: announced(t, row, 0), Reason: "message.crash-loop"}
	if err := n.store.Writer.Commit(t.Context(), store.Change{DeadLetter: &l}); err != nil {
		t.Fatal(err)
	}
	_, err := n.rt.Edit(t.Context(), "d", backend.DeadLetterChange{Input: []byte(`{}`)})
	code(t, err, "dead-letter.edit")
	n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed})
}

var paidDoc = doc("hears", `
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
`)

// A message is edited within bounds: it decodes, is for the same instance and of the same
// type, and from the same sender; a replay sends the newest, and what died stays.
func TestAnEditedMessageIsWhatAReplaySends(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, paidDoc)
		n.begin(t, "i", "t/hears", nil)
		died := signal.Envelope{
			SignalID: "s", InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
			Headers: map[string]string{"actor": "ann"}, Principal: json.RawMessage(`{"name":"ann"}`), Payload: json.RawMessage(`{"type":"payd"}`),
		}
		body, err := died.Encode()
		if err != nil {
			t.Fatal(err)
		}
		l := projections.DeadLetter{ID: "d", Queue: string(store.Signals), InstanceID: "i", Envelope: body, Reason: "r"}
		if err := n.store.Writer.Commit(t.Context(), store.Change{DeadLetter: &l}); err != nil {
			t.Fatal(err)
		}
		text := string(body)
		for name, c := range map[string]struct{ old, new, code string }{
			"no envelope":      {text, `{"a":1}`, "signal.unknown-type"},
			"no JSON":          {text, "what", "signal.not-json"},
			"another instance": {`"workflowInstanceId":"i"`, `"workflowInstanceId":"j"`, "dead-letter.edit"},
			"another type":     {`"signalType":"ExternalSignal"`, `"signalType":"TimerDue"`, "dead-letter.edit"},
			"another sender":   {`{"name":"ann"}`, `{"name":"boss"}`, "dead-letter.edit"},
			"another actor":    {`{"actor":"ann"}`, `{"actor":"boss"}`, "dead-letter.edit"},
			"an input":         {text, "", "dead-letter.edit"},
		} {
			e := backend.DeadLetterChange{Envelope: []byte(strings.Replace(text, c.old, c.new, 1))}
			if c.new == "" {
				e = backend.DeadLetterChange{Input: []byte("{}")}
			}
			_, err := n.rt.Edit(t.Context(), "d", e)
			if t.Log(name); err == nil {
				t.Errorf("%s is taken", name)
			}
			code(t, err, c.code)
		}
		edit := func(after int64, with string) {
			t.Helper()
			e := backend.DeadLetterChange{After: after, Envelope: []byte(strings.Replace(text, "payd", with, 1))}
			if _, err := n.rt.Edit(t.Context(), "d", e); err != nil {
				t.Fatal(err)
			}
		}
		edit(0, "wrong")
		if _, err := n.rt.Edit(t.Context(), "d", backend.DeadLetterChange{After: 1, Original: true}); err != nil {
			t.Fatal(err)
		}
		edit(2, "paid")
		if edit, err := n.rt.DeadLetters.Replay(t.Context(), "d"); err != nil || edit != 3 {
			t.Fatal(edit, err)
		}
		n.output(t, "i")
		p, err := n.store.DeadLetters.DeadLetterEdits(t.Context(), "d", "", 10)
		if err != nil || len(p.Items) != 4 || string(p.Items[3].Body) != text {
			t.Errorf("%d edits, %v", len(p.Items), err)
		}
		// It counts once: its id is that of what died.
		again, err := n.rt.Signal(t.Context(), died)
		if err != nil || again != engine.Duplicate && again != engine.Closed {
			t.Errorf("what died comes again: %v, %v", again, err)
		}
	})
}

// A replay goes to the queue where the message was, with its priority and no attempts.
func TestAReplayGoesToWhereItCameFrom(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		db, err := testdb.Open(t.Context(), fresh())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for i, q := range []store.Queue{store.Signals, store.Schedule, store.Commands} {
			body := fmt.Sprintf("no envelope %d", i)
			if err := db.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: q, Body: []byte(body), Priority: 2 + i, Attempts: 4}}}); err != nil {
				t.Fatal(err)
			}
			receive := func() store.Delivery {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				d, err := db.Queue.Receive(ctx, q, nil)
				if err != nil {
					t.Fatal(q, err)
				}
				return d
			}
			id := fmt.Sprint("d", i)
			if err := receive().Commit(t.Context(), store.Change{DeadLetter: &projections.DeadLetter{ID: id, Reason: "r"}}); err != nil {
				t.Fatal(err)
			}
			if err := db.DeadLetters.Replay(t.Context(), id, 0, nil); err != nil {
				t.Fatal(err)
			}
			d := receive()
			if m := d.Message(); string(m.Body) != body || m.Priority != 2+i || m.Attempts != 0 {
				t.Errorf("%s: %+v", q, m)
			}
			if err := d.Commit(t.Context(), store.Change{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
