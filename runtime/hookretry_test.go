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

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// failing is an outside that does what is asked of it unless it is told to fail, and
// counts by what it is asked.
type failing struct {
	mu    sync.Mutex
	down  map[string]int // how often more it fails, by name; below 0 = always
	calls map[string]int
}

func (f *failing) effect(_ context.Context, input json.RawMessage) (any, error) {
	var in struct {
		Hook string `json:"hook"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[in.Hook]++
	if f.down[in.Hook] != 0 {
		f.down[in.Hook]--
		return nil, errors.New("down")
	}
	return map[string]any{"by": in.Hook}, nil
}

func (f *failing) fails(hook string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[hook] = times
}

func (f *failing) called(hook string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[hook]
}

// hooked checks which fields the commands of an instance stand in, by its timeline.
func (n *testNode) hooked(t *testing.T, id, want string) {
	t.Helper()
	p, err := n.store.Moments.Moments(t.Context(), backend.MomentQuery{InstanceID: id, Kinds: []string{backend.MomentCommand}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range p.Items {
		got = append(got, m.Hook)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("hooks %q, want %s", got, want)
	}
}

const hookedDocument = `
lifecycle: '1.0'
environment: t
definition: policed
version: '1.0.0'
use: {retries: {twice: {delay: PT0.02S, limit: {attempt: {count: 2}}}}}
states:
  Draft: {category: initial, onExit: [{leave: {call: effect, with: {hook: leave}}}]}
  Review:
    retry: twice
    onEnter:
      - first: {call: effect, with: {hook: first}}
      - both: {do: [{one: {call: effect, with: {hook: one}}}, {two: {call: effect, with: {hook: two}}}], output: {as: '$input'}}
  Done: {category: final}
events: {submit: {}, back: {}, expire: {}}
transitions:
  - {from: Draft, event: submit, to: Review, set: {n: 7}}
  - {from: Review, event: back, to: Draft}
  - {from: Review, event: expire, to: Done}
`

// A hook that fails is tried again by the retries of its state, and no hook before it is:
// those of the newest policy, in the place of the lifecycle's. They are the only ones.
func TestHooksAreTriedAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		out := &failing{down: map[string]int{}, calls: map[string]int{}}
		place := fresh()
		n := start(t, place, out.effect, hookedDocument)
		other := start(t, place, out.effect)
		enter := func(reference string) string {
			t.Helper()
			id, err := n.trigger(t, "t/policed", reference, "submit")
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		rests := func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" }
		counts := func(want string, hooks ...string) {
			t.Helper()
			var got []string
			for _, hook := range hooks {
				got = append(got, fmt.Sprint(out.called(hook)))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%v were called %v, want %s", hooks, got, want)
			}
		}

		out.fails("two", 2) // as often as the lifecycle's retries make good
		a := enter("a")
		n.until(t, a, rests)
		counts("1 1 1 3", "leave", "first", "one", "two")
		if s, err := n.store.Writer.Load(t.Context(), a); err != nil || string(s.Branches[0].Data) != `{"n":7}` || len(n.entries(t, a, "RetryScheduled")) != 2 {
			t.Errorf("%s, %v, %d retries", s.Branches[0].Data, err, len(n.entries(t, a, "RetryScheduled")))
		}
		n.hooked(t, a, "onExit onEnter onEnter onEnter onEnter onEnter")
		out.fails("one", -1)
		b := enter("b")
		n.until(t, b, status("faulted"))
		counts("2 2 4 3", "leave", "first", "one", "two")

		// The newest policy is asked at each failure, also of a hook that an older one tries again.
		other.publish(t, policyOf("1.0.0", "{Review: {retry: {delay: PT0.02S}, onEnter: [{third: {call: effect, with: {hook: third}}}]}}"))
		if _, err := n.rt.Operate(t.Context(), b, engine.Retry, nil, "ops"); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "it is tried without limit", func() (bool, any) { return out.called("one") > 9, out.called("one") })
		out.fails("third", 4)
		out.fails("one", 0)
		n.until(t, b, rests)
		counts("2 2 4 5", "leave", "first", "two", "third")
		out.fails("third", -1)
		c := enter("c")
		await.Until(t, "the policy's hook is tried again", func() (bool, any) { return out.called("third") > 9, out.called("third") })
		n.publish(t, policyOf("1.1.0", "{Review: {retry: {when: '${ $error.status == 404 }'}}, Draft: {retry: {delay: PT1H, limit: {attempt: {count: 1}}}}}"))
		n.until(t, c, status("faulted"))
		if s, err := n.store.Writer.Load(t.Context(), c); err != nil || s.Error == nil || !strings.Contains(s.Error.Instance, "/policy/1.0.0/states/Review/onEnter/0/third") {
			t.Errorf("%+v, %v", s.Error, err)
		}
		out.fails("leave", -1)
		d := enter("d") // a hook on leaving
		w := n.until(t, d, func(projections.Instance) bool { return len(n.entries(t, d, "RetryScheduled")) > 0 })
		s, err := n.store.Writer.Load(t.Context(), d)
		if err != nil || len(s.Waits) != 1 || s.Waits[0].Kind != snapshot.WaitRetry || s.Waits[0].Until.Before(time.Now().Add(50*time.Minute)) || w.Status != "waiting" {
			t.Errorf("%+v, %v", s.Waits, err)
		}
		counts("4", "leave")
		n.publish(t, policyOf("1.2.0", "{Review: {retry: {delay: '${ error }', limit: {attempt: {count: 1}}}}}"))
		out.fails("leave", 0)
		out.fails("first", -1)
		e := enter("e")
		n.until(t, e, status("faulted"))
		if s, err := n.store.Writer.Load(t.Context(), e); err != nil || s.Error.Type != engine.ErrorBase+engine.ErrExpression || !strings.Contains(s.Error.Instance, "onEnter") {
			t.Errorf("%+v, %v", s.Error, err)
		}
		if err := testdb.Remade(t.Context(), place); err != nil {
			t.Error(err)
		}
	})
}

const lateDocument = `
document: {dsl: '1.0.3', namespace: t, name: late, version: '1.0.0'}
do:
  - safe:
      try: [{pay: {call: effect, with: {hook: pay}}}]
      catch:
        retry: {delay: PT30S, limit: {duration: PT38S}}
        do: [{give: {set: {up: '${ $error.title != null }'}}}]
`

// A retry that comes when the time of all is over does not begin, as if there were none:
// the catch goes on, a hook has failed. The stream says so to whoever decides it again.
func TestALateRetryDoesNotBegin(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		out := &failing{down: map[string]int{"pay": -1, "first": -1}, calls: map[string]int{}}
		place := fresh()
		n := start(t, place, out.effect, hookedDocument, lateDocument)
		n.publish(t, policyOf("1.0.0", "{Review: {retry: {delay: PT30S, limit: {duration: PT38S}}}}"))
		hooked, err := n.trigger(t, "t/policed", "late", "submit")
		if err != nil {
			t.Fatal(err)
		}
		const caught = "caught"
		n.begin(t, caught, "t/late", nil)
		var due time.Time
		for _, id := range []string{hooked, caught} {
			n.until(t, id, func(projections.Instance) bool { return len(n.entries(t, id, "RetryScheduled")) > 0 })
			if _, err := n.rt.Operate(t.Context(), id, engine.Suspend, nil, "ops"); err != nil {
				t.Fatal(err)
			}
			s, err := n.store.Writer.Load(t.Context(), id)
			if err != nil || len(s.Waits) != 1 || s.Waits[0].Kind != snapshot.WaitRetry {
				t.Fatalf("%+v, %v", s.Waits, err)
			}
			if until := s.Waits[0].Until; until.After(due) {
				due = until
			}
		}
		await.Until(t, "the time of all retries passes", func() (bool, any) {
			now := n.store.Clock.Now()
			return now.After(due.Add(9 * time.Second)), now
		})
		for _, id := range []string{hooked, caught} {
			if _, err := n.rt.Operate(t.Context(), id, engine.Resume, nil, "ops"); err != nil {
				t.Fatal(err)
			}
		}
		n.until(t, hooked, status("faulted"))
		n.until(t, caught, status("completed"))
		if out.called("first") != 1 || out.called("pay") != 1 {
			t.Errorf("called %d and %d times, not once", out.called("first"), out.called("pay"))
		}
		if err := testdb.Remade(t.Context(), place); err != nil {
			t.Error(err)
		}
	})
}
