package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store"
)

// configured starts a node with settings of its own.
func configured(t *testing.T, place string, set func(*runtime.Config), documents ...string) *testNode {
	t.Helper()
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{store: st, done: make(chan error, 1)}
	n.cat = definition.New(st, openworkflow.Parsers(), time.Now)
	for _, d := range documents {
		if _, _, err := n.cat.Publish(t.Context(), "d.yaml", []byte(d)); err != nil {
			t.Fatal(err)
		}
	}
	performer := activity.New(activity.Config{})
	performer.Register("effect", func(context.Context, json.RawMessage) (any, error) { return 1, nil })
	c := runtime.Config{Store: st.Parts, Definitions: n.cat, Performer: performer, Now: time.Now, RetryMax: -1, BreakAfter: 1000}
	set(&c)
	if n.rt, err = runtime.New(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.done <- n.rt.Run(ctx) }()
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestRetentionJobDeletesWhatEndedLongAgo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), func(c *runtime.Config) {
			c.RetentionKeep, c.RetentionEvery = time.Millisecond, 20*time.Millisecond
		}, callDoc, listenDoc)
		n.begin(t, "live", "t/listen", map[string]any{"order": 1})
		n.begin(t, "old", "t/call", nil)
		eventually(t, "the old one is deleted", func() bool {
			_, err := n.store.Writer.Load(t.Context(), "old")
			return errors.Is(err, store.ErrNotFound)
		})
		if _, err := n.store.Writer.Load(t.Context(), "live"); err != nil {
			t.Errorf("the live one: %v", err)
		}
	})
}

func TestDeadLetterSuspendsItsInstanceWhenAskedTo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), func(c *runtime.Config) { c.SuspendOnDeadLetter = true }, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 1})
		// A result that is none, for an instance that exists.
		n.send(t, `{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"TaskCompleted","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{}}`)
		if l := n.deadLetters(t, 1)[0]; l.Reason != "signal.invalid" || l.InstanceID != "i" {
			t.Errorf("dead letter %+v", l)
		}
		n.until(t, "i", status("suspended"))
	})
}
