package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var (
	emitDoc = doc("emit", `
  - pay:
      emit: {event: {with: {type: paid, data: {order: '${ .order }', amount: 5}}}}
`)
	receiverDoc = doc("heard", `
  - paid:
      listen: {to: {one: {with: {type: paid, source: 'aqueduct:t/emit'}}}, read: envelope}
`)
)

// outsider is a Go handler of emitted events.
type outsider struct {
	mu     sync.Mutex
	events []string
	keys   map[string]int
	fail   func(attempt int) error
}

func (o *outsider) take(ctx context.Context, input json.RawMessage) (any, error) {
	a := activity.Info(ctx)
	if a.Target != engine.TargetEvent {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		o.keys = map[string]int{}
	}
	o.keys[a.Key]++
	if o.fail != nil {
		if err := o.fail(a.Number); err != nil {
			return nil, err
		}
	}
	o.events = append(o.events, string(input))
	return nil, nil
}

func (o *outsider) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events)
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await.Until(t, what, func() (bool, any) { return ok(), nil })
}

// settled waits until no command is pending.
func (n *testNode) settled(t *testing.T) {
	t.Helper()
	await.Until(t, "the end of all commands", func() (bool, any) {
		open, err := n.store.Streams.Pending(t.Context(), "", 1)
		queues, _ := n.store.Backlog.Queues(t.Context())
		return err == nil && len(open) == 0, fmt.Sprintf("%+v %v, queues %+v", open, err, queues)
	})
}

func TestEmittedEventReachesListenersAndTheOutside(t *testing.T) {
	t.Parallel()
	out := &outsider{}
	n := start(t, testdb.OnFile(t)(), out.take, emitDoc, listenDoc, receiverDoc)
	n.begin(t, "seven", "t/listen", map[string]any{"order": 7})
	n.begin(t, "eight", "t/listen", map[string]any{"order": 8})
	n.begin(t, "any", "t/heard", nil)
	n.begin(t, "i", "t/emit", map[string]any{"order": 7})
	var event struct {
		ID, Source, Type, Time, SpecVersion string
		Data                                map[string]int
	}
	if err := json.Unmarshal([]byte(n.output(t, "i")), &event); err != nil {
		t.Fatal(err)
	}
	if event.Type != "paid" || event.Source != "aqueduct:t/emit" || event.SpecVersion != "1.0" || len(event.ID) != 36 || event.Time == "" {
		t.Errorf("output %+v", event)
	}
	if got := n.output(t, "seven"); got != `{"amount":5,"order":7}` {
		t.Errorf("the listener heard %s", got)
	}
	if got := n.output(t, "any"); got != "["+n.output(t, "i")+"]" {
		t.Errorf("the listener heard %s, and %s was emitted", got, n.output(t, "i"))
	}
	n.settled(t)
	if row, err := n.store.Instances.Instance(t.Context(), "eight"); err != nil || row.Status != "waiting" {
		t.Errorf("the listener for another order: %+v, %v", row, err)
	}
	if len(out.events) != 1 || out.events[0] != n.output(t, "i") {
		t.Errorf("the outside got %q", out.events)
	}
}

func TestUndeliveredEventIsADeadLetterThatCanBeReplayed(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	out := &outsider{fail: func(int) error { return down }}
	n := start(t, testdb.OnFile(t)(), out.take, emitDoc, receiverDoc)
	n.begin(t, "any", "t/heard", nil)
	n.begin(t, "i", "t/emit", nil)
	n.output(t, "i") // the workflow does not wait for its events
	n.output(t, "any")
	var deadLetter projections.DeadLetter
	eventually(t, "dead letter", func() bool {
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Reason: "event.undelivered"})
		if err != nil || len(page.Items) == 0 {
			return false
		}
		deadLetter = page.Items[0]
		return true
	})
	if deadLetter.InstanceID != "i" || deadLetter.Queue != string(store.Commands) || deadLetter.Attempts != 5 || out.keys[n.key(t, "i", 2)] != 5 {
		t.Errorf("dead letter %+v after attempts %v", deadLetter, out.keys)
	}
	open, err := n.store.Streams.Pending(t.Context(), "i", 0)
	if err != nil || len(open) != 1 || open[0].LastError == "" || open[0].ClaimedBy != "" || open[0].Attempts != 5 {
		t.Errorf("the command of an undelivered event: %+v, %v", open, err)
	}
	out.mu.Lock()
	out.fail = nil
	out.mu.Unlock()
	if err := n.store.DeadLetters.Replay(t.Context(), deadLetter.ID, 0, nil); err != nil {
		t.Fatal(err)
	}
	n.settled(t)
	if out.count() != 1 {
		t.Errorf("after the replay the outside got %d events", out.count())
	}
}

// TestEventIsDeliveredAfterItsNodeDied stands for scenario 3: what is repeated
// has the same key and the same bytes.
func TestEventIsDeliveredAfterItsNodeDied(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.db")
	blocked := make(chan struct{})
	out := &outsider{}
	first, err := open(t.Context(), file, nil, func(ctx context.Context, input json.RawMessage) (any, error) {
		_, _ = out.take(ctx, input)
		close(blocked)
		<-ctx.Done()
		return nil, ctx.Err()
	}, emitDoc)
	if err != nil {
		t.Fatal(err)
	}
	first.rt.DrainTimeout = time.Millisecond
	first.begin(t, "i", "t/emit", nil)
	<-blocked
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second, err := open(t.Context(), file, nil, out.take, emitDoc)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	second.settled(t)
	if len(out.events) != 2 || out.events[0] != out.events[1] || out.keys[second.key(t, "i", 2)] != 2 {
		t.Errorf("the outside got %q under %v", out.events, out.keys)
	}
}

// An event that waits for its place outside is no attempt, and is not sent when somebody has ended its
// command meanwhile: it had been counted, and was sent whatever an operator had said.
func TestAnEventThatWaitsForItsPlaceOutsideCanBeEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		entered, gate, sent := make(chan string, 3), make(chan struct{}), make(chan string, 3)
		n := startSet(t, fresh(), func(c *runtime.Config) { c.Activities = 1 }, func(ctx context.Context, _ json.RawMessage) (any, error) {
			a := activity.Info(ctx)
			if a.Target == engine.TargetEvent {
				sent <- a.Instance
				return nil, nil
			}
			entered <- a.Instance
			<-gate
			return nil, nil
		}, emitDoc, callDoc)
		n.begin(t, "first", "t/call", nil)
		<-entered
		n.begin(t, "ended", "t/emit", map[string]any{"order": 1})
		eventually(t, "a place inside", func() bool { return n.rt.WaitsFor("ended", 2) != "" })
		n.begin(t, "second", "t/call", nil)
		eventually(t, "a place", func() bool { return n.rt.WaitsFor("second", 2) != "" })
		gate <- struct{}{}
		<-entered // it has the place that the event has left
		eventually(t, "an event that waits for the outside", func() bool {
			row := n.row(t, "ended")
			return row.ClaimedBy != "" && row.Attempts == 0 && n.rt.WaitsFor("ended", 2) != ""
		})
		n.settle(t, "ended", engine.Applied, ack.Ack{Outcome: ack.Processed, Actor: "ann"})
		n.begin(t, "behind", "t/emit", map[string]any{"order": 2})
		close(gate)
		if got := <-sent; got != "behind" {
			t.Errorf("the event of %s was sent", got)
		}
		n.settled(t)
		if len(sent) > 0 {
			t.Errorf("the event of %s was sent, too", <-sent)
		}
	})
}
