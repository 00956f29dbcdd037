package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// The first tick of a schedule that was begun by a publication has lost its message.
func TestTheFirstTickOfAScheduleIsSentAgain(t *testing.T) {
	t.Parallel()
	a := startAged(t, testdb.OnFile(t)(), nil)
	a.publish(t, scheduledDoc("hourly", "1.0.0", "{every: PT1H}"))
	const id = "schedule.t.hourly.1.0.0"
	a.testNode.schedule(t, id)
	a.quiet(t)
	a.purge(t)
	a.ahead.Store(int64(2 * time.Hour))
	a.looked(t)
	eventually(t, "a run", func() bool { return len(a.children(t, id)) > 0 })
}

// An instance that kept a schedule passes on the end of a run that it began, however long
// that takes.
func TestARunOutlivesItsSchedule(t *testing.T) {
	t.Parallel()
	of := func(version string) string {
		return "document: {dsl: '1.0.3', namespace: t, name: again, version: '" + version + "'}\nschedule: {after: PT1S}\ndo:\n  - ear: {listen: {to: {one: {with: {type: go}}}}}\n"
	}
	n := start(t, testdb.OnFile(t)(), nil, of("1.0.0"))
	const one, two, three = "schedule.t.again.1.0.0", "schedule.t.again.1.1.0", "schedule.t.again.1.2.0"
	eventually(t, "a run", func() bool { return len(n.children(t, one)) == 1 })
	run := n.children(t, one)[0].ID
	n.until(t, run, status("waiting"))
	n.publish(t, of("1.1.0"))
	n.until(t, one, status("cancelled"))
	n.publish(t, of("1.2.0"))
	n.until(t, two, status("cancelled"))
	if got := n.purged(t); got != 0 {
		t.Fatalf("%d purged", got)
	}
	if _, err := n.rt.Signal(t.Context(), signal.Envelope{SignalID: "s", InstanceID: run, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"go"}`)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next run", func() bool { return len(n.children(t, three)) == 1 })
}

// racing replays a dead letter just before it is discarded.
type racing struct {
	backend.DeadLetterStore
	t *testing.T
}

func (r racing) Discard(ctx context.Context, id string, edit int64, settle []store.Claim, by ...store.Audit) error {
	if err := r.Replay(ctx, id, 0, nil); err != nil && !errors.Is(err, store.ErrNotFound) {
		r.t.Error(err)
	}
	return r.DeadLetterStore.Discard(ctx, id, edit, settle, by...)
}

// A dead letter that is sent again while somebody discards it is performed.
func TestADiscardThatMeetsAReplayTakesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var calls atomic.Int64
		n := startSet(t, fresh(), func(c *runtime.Config) { c.Store.DeadLetters = racing{c.Store.DeadLetters, t} },
			func(context.Context, json.RawMessage) (any, error) {
				if calls.Add(1) == 1 {
					return nil, activity.Permanent(errors.New("gone"))
				}
				return nil, nil
			}, emitDoc)
		n.begin(t, "i", "t/emit", nil)
		if err := n.rt.Discard(t.Context(), n.deadLetter(t, "i").ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the discard: %v", err)
		}
		eventually(t, "performed", func() bool { return calls.Load() == 2 && *n.row(t, "i").Processed })
	})
}

// A child whose turn cannot be written, and which has something to undo, has not ended:
// its parent waits, until it goes on or is compensated.
func TestAChildThatCannotBeWrittenHasNotEnded(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	n := startSet(t, testdb.OnFile(t)(), func(*runtime.Config) {}, l.effect, `
document: {dsl: '1.0.3', namespace: t, name: par, version: '1.0.0'}
do:
  - a: {call: effect, with: {said: a!}, metadata: {compensate: {call: effect, with: {said: una!}}}}
  - kid: {run: {workflow: {namespace: t, name: kid, version: '1.0.0', input: {}}}}
`, `
document: {dsl: '1.0.3', namespace: t, name: kid, version: '1.0.0'}
do:
  - k: {call: effect, with: {said: k!}, metadata: {compensate: {call: effect, with: {said: unk!}}}}
  - pause: {wait: PT0.1S}
  - make: {set: {a: '${ reduce range(70) as $i (0; [.]) }'}}
`)
	n.begin(t, "i", "t/par", nil)
	var kid projections.Instance
	eventually(t, "the child stops", func() bool {
		n.until(t, "i", status("waiting"))
		p, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{ParentID: "i", Limit: 1})
		if err == nil && len(p.Items) > 0 {
			kid = p.Items[0]
		}
		return kid.Status == "faulted"
	})
	if _, err := n.rt.Operate(t.Context(), kid.ID, engine.Compensate, nil, "ann"); err != nil {
		t.Fatal(err)
	}
	n.until(t, "i", status("compensated"))
	if got := l.notes("!"); !slices.Equal(got, []string{"a", "k", "unk", "una"}) {
		t.Errorf("asked: %v", got)
	}
}

// What a consumer has got is compensated, though it was not reminded: that waited for a place
// until it was given up.
func TestWhatWasDeliveredIsCompensatedThoughNobodyIsReminded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	block, blocked := make(chan struct{}), make(chan struct{}, 1)
	n := startSet(t, testdb.OnFile(t)(), func(c *runtime.Config) { c.Activities = 1; c.AckAge = 15 * time.Second }, func(ctx context.Context, input json.RawMessage) (any, error) {
		if activity.Info(ctx).Target == engine.TargetEvent {
			return nil, nil
		}
		var with struct{ Said string }
		_ = json.Unmarshal(input, &with)
		mu.Lock()
		asked = append(asked, with.Said)
		mu.Unlock()
		if with.Said == "block" {
			blocked <- struct{}{}
			<-block
		}
		return map[string]any{}, nil
	}, `
document: {dsl: '1.0.3', namespace: t, name: told, version: '1.0.0'}
do:
  - ship:
      call: acknowledged
      with: {call: effect, with: {said: ship}, within: PT1S}
      metadata: {compensate: {call: effect, with: {said: unship}}}
`, doc("block", "\n  - block: {call: effect, with: {said: block}}\n"))
	n.begin(t, "i", "t/told", nil)
	n.delivered(t, "i", 1)
	n.begin(t, "b", "t/block", nil)
	<-blocked
	var s snapshot.Snapshot
	n.until(t, "i", func(i projections.Instance) bool {
		s, _ = n.store.Writer.Load(t.Context(), "i")
		return s.Error != nil
	})
	close(block)
	n.until(t, "i", status("compensated"))
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(asked, "unship") {
		t.Errorf("it was delivered, and is not undone: %v", asked)
	}
}

// A pause before a retry is no time for which it has waited for a place.
func TestARetryHasItsTimeToWaitForAPlace(t *testing.T) {
	t.Parallel()
	block, blocked := make(chan struct{}), make(chan struct{}, 1)
	var begun atomic.Int64
	n := startSet(t, testdb.OnFile(t)(), func(c *runtime.Config) { c.Activities = 1 }, func(ctx context.Context, input json.RawMessage) (any, error) {
		var with struct{ Said string }
		_ = json.Unmarshal(input, &with)
		if with.Said == "block" {
			blocked <- struct{}{}
			<-block
			return 1, nil
		}
		if begun.Add(1) == 1 {
			return nil, activity.RetryAfter(errors.New("busy"), 16*time.Second)
		}
		return 1, nil
	}, `
document: {dsl: '1.0.3', namespace: t, name: patient, version: '1.0.0'}
do:
  - call: {call: effect, with: {said: work}, metadata: {giveUpAfter: PT15S}}
`, doc("block", "\n  - block: {call: effect, with: {said: block}}\n"))
	n.begin(t, "i", "t/patient", nil)
	var due time.Time
	eventually(t, "first attempt", func() bool { due = n.row(t, "i").NextAttemptAt; return due.After(time.Now()) })
	n.begin(t, "b", "t/block", nil)
	<-blocked
	eventually(t, "the retry waits", func() bool { return time.Now().After(due.Add(700 * time.Millisecond)) })
	close(block)
	row := n.until(t, "i", func(i projections.Instance) bool { return i.Status == "faulted" || i.Status == "completed" })
	if row.Status != "completed" {
		s, _ := n.store.Writer.Load(t.Context(), "i")
		t.Errorf("%s: %+v", row.Status, s.Error)
	}
}
