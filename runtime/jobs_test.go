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
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
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

// stuckPurge is a database whose purge does not end.
type stuckPurge struct {
	backend.Locks
	begun chan struct{}
}

func (s *stuckPurge) Lock(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	if name == "retention" {
		s.begun <- struct{}{}
		<-ctx.Done()
		return false, ctx.Err()
	}
	return s.Locks.Lock(ctx, name, ttl)
}

// oneDies are nodes of which another one dies.
type oneDies struct {
	backend.Nodes
	died    chan struct{}
	adopted chan struct{}
}

func (n *oneDies) PeerFailures() <-chan struct{} { return n.died }

func (n *oneDies) Orphans(ctx context.Context, limit int) (int, error) {
	select {
	case n.adopted <- struct{}{}:
	case <-ctx.Done():
	}
	return n.Nodes.Orphans(ctx, limit)
}

// A purge that takes long holds up nothing: the commands of a node that dies meanwhile are
// performed again at once.
func TestCommandsOfADeadNodeAreNotHeldUpByAPurge(t *testing.T) {
	t.Parallel()
	locks := &stuckPurge{begun: make(chan struct{})}
	nodes := &oneDies{died: make(chan struct{}, 1), adopted: make(chan struct{})}
	configured(t, testdb.OnFile(t)(), func(c *runtime.Config) {
		locks.Locks, c.Store.Locks = c.Store.Locks, locks
		nodes.Nodes, c.Store.Nodes = c.Store.Nodes, nodes
		c.RetentionKeep, c.RetentionEvery = time.Hour, time.Millisecond
	})
	comes := func(what string, from <-chan struct{}) {
		t.Helper()
		if _, ok := await.Receive(from, func() any { return nil }); !ok {
			t.Fatal(what)
		}
	}
	comes("what dead nodes had is not looked for at the start", nodes.adopted)
	comes("nothing is purged", locks.begun)
	nodes.died <- struct{}{}
	comes("what a dead node had waits for the purge", nodes.adopted)
}

// What the engine has sent to an instance is not looked at by anybody when that has ended and
// been deleted meanwhile: a timeout of 60 days outlives one that is kept for 30.
func TestATimerOfADeletedInstanceIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), func(*runtime.Config) {}, listenDoc)
		for _, of := range []string{"TimerDue", "TimerDueAll", "RetryDue", "RetryDueAll", "InternalContinue", "InternalContinueAll", "SubWorkflowCompleted", "CancelRequest"} {
			n.send(t, `{"signalId":"`+of+`","workflowInstanceId":"deleted","runtimeProvider":"aqueduct","signalType":"`+of+`","waitingToken":"t","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{}}`)
		}
		n.settles(t)
		for _, l := range n.deadLetters(t, 0) {
			t.Errorf("%s: %s %s", l.Reason, l.Detail, l.Envelope)
		}
	})
}
