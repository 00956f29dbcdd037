package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// hours are definitions that wait for an hour, each in its way.
func hours() []string {
	var many strings.Builder
	many.WriteString("\n  - all:\n      fork:\n        branches:\n")
	for i := range forkMany {
		fmt.Fprintf(&many, "          - b%d: {wait: PT1H}\n", i)
	}
	return []string{
		doc("timer", "\n  - pause: {wait: PT1H}\n"),
		doc("many", many.String()),
		doc("timeout", `
  - safe:
      try: [{ear: {timeout: {after: PT1H}, listen: {to: {one: {with: {type: go}}}}}}]
      catch: {do: [{late: {set: {late: true}}}]}
`),
		doc("retry", `
  - safe: {try: [{work: {call: effect}}], catch: {retry: {delay: PT1H, limit: {attempt: {count: 3}}}}}
`),
		doc("due", `
  - approve: {call: humanTask, with: {title: Approve, candidateUsers: [ann], due: {after: PT1H}, escalateTo: [leads]}}
`),
		doc("broken", `
  - both: {fork: {branches: [{pause: {wait: PT1H}}, {work: {call: effect}}]}}
`),
	}
}

const forkMany = 300

// aged is a node whose clock can be put forward, and that looks all the time for
// messages that are gone.
type aged struct {
	*testNode
	place string
	ahead atomic.Int64
	fails atomic.Bool // the function
	looks looking
}

// looking is what a store knows of what is overdue, and may say that there is no message.
type looking struct {
	of    backend.Overdue
	count atomic.Int64
	blind atomic.Bool
}

func (l *looking) Overdue(ctx context.Context, before time.Time, after string, limit int) (backend.Page[string], error) {
	defer l.count.Add(1)
	return l.of.Overdue(ctx, before, after, limit)
}

func (l *looking) Sent(ctx context.Context, tokens []string, due time.Time) ([]string, error) {
	if l.blind.Load() {
		return nil, nil
	}
	return l.of.Sent(ctx, tokens, due)
}

func startAged(t *testing.T, place string, set func(*runtime.Config), documents ...string) *aged {
	t.Helper()
	a := &aged{place: place}
	a.fails.Store(true)
	a.testNode = startSet(t, place, func(c *runtime.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(a.ahead.Load())) }
		c.ReconcileEvery = 10 * time.Millisecond
		a.looks.of, c.Store.Overdue = c.Store.Overdue, &a.looks
		if set != nil {
			set(c)
		}
	}, func(context.Context, json.RawMessage) (any, error) {
		if a.fails.Load() {
			return nil, errors.New("down")
		}
		return 1, nil
	}, documents...)
	return a
}

// purge empties the queues of signals and timers, by SQL, under the node.
func (a *aged) purge(t *testing.T) {
	t.Helper()
	if err := testdb.Purge(t.Context(), a.place); err != nil {
		t.Fatal(err)
	}
}

// looked waits until the node has looked twice more: one look may be under way.
func (a *aged) looked(t *testing.T) {
	t.Helper()
	from := a.looks.count.Load()
	eventually(t, "it looks again", func() bool { return a.looks.count.Load() >= from+2 })
}

// resent is for how many waits the node has sent a message again.
func (a *aged) resent(t *testing.T) int {
	t.Helper()
	return a.counted(t, "aqueduct_waits_resent_total")[""]
}

// waits waits until an instance has a wait of a kind.
func (a *aged) waits(t *testing.T, id string, kind snapshot.WaitKind) {
	t.Helper()
	eventually(t, id+" waits", func() bool {
		s, err := a.store.Writer.Load(t.Context(), id)
		return err == nil && slices.ContainsFunc(s.Waits, func(w snapshot.Wait) bool { return w.Kind == kind })
	})
}

// The queues are purged under instances that wait for an hour, one of them three
// hundred times. When the hour has passed, each goes on. What is suspended does when it
// is resumed; what has faulted stays as it is.
func TestWaitsThatHaveLostTheirMessageGetAnother(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		a := startAged(t, fresh(), nil, hours()...)
		for _, name := range []string{"timer", "many", "timeout", "retry", "due", "broken"} {
			a.begin(t, name, "t/"+name, map[string]any{})
		}
		a.begin(t, "held", "t/timer", map[string]any{})
		a.waits(t, "retry", snapshot.WaitRetry)
		a.until(t, "broken", status("faulted"))
		if _, err := a.rt.Operate(t.Context(), "held", engine.Suspend, nil, "ann"); err != nil {
			t.Fatal(err)
		}
		a.quiet(t)
		a.purge(t)
		a.looked(t)
		if n := a.resent(t); n != 0 {
			t.Fatalf("%d waits are not overdue, and get a message", n)
		}
		a.fails.Store(false)
		a.ahead.Store(int64(2 * time.Hour))
		for _, name := range []string{"timer", "many", "timeout", "retry"} {
			a.output(t, name)
		}
		eventually(t, "the task is escalated", func() bool {
			page, err := a.store.Tasks.Tasks(t.Context(), backend.TaskQuery{InstanceID: "due"})
			return err == nil && len(page.Items) == 1 && !page.Items[0].EscalatedAt.IsZero()
		})
		a.looked(t)
		if got, want := a.resent(t), forkMany+4; got != want {
			t.Errorf("%d waits get a message again, want %d", got, want)
		}
		for id, want := range map[string]string{"held": "suspended", "broken": "faulted"} {
			if row := a.until(t, id, status(want)); row.Version != 2 {
				t.Errorf("%s has version %d", id, row.Version)
			}
		}
		if _, err := a.rt.Operate(t.Context(), "held", engine.Resume, nil, "ann"); err != nil {
			t.Fatal(err)
		}
		a.output(t, "held")
		a.quiet(t)
	})
}

// What an instance leaves to its next turn has a message, too.
func TestATurnThatWasLostIsTakenAgain(t *testing.T) {
	t.Parallel()
	var tasks strings.Builder // of two turns
	for i := range 15 {
		fmt.Fprintf(&tasks, "\n  - t%d: {set: {n: %d}}", i, i)
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		a := startAged(t, fresh(), func(c *runtime.Config) {
			c.Limits.Steps, c.Rates = 10, runtime.Rates{Loops: 1, Burst: 1}
		}, doc("next", tasks.String()+"\n"))
		// Each has a second, and the first that of two hours later: the next turn of the other is as far away.
		a.ahead.Store(int64(2 * time.Hour))
		a.begin(t, "before", "t/next", map[string]any{})
		a.output(t, "before")
		a.ahead.Store(0)
		a.begin(t, "i", "t/next", map[string]any{})
		a.waits(t, "i", snapshot.WaitNext)
		a.looked(t)
		if n := a.resent(t); n != 0 {
			t.Errorf("%d turns have a message, and get another", n)
		}
		a.purge(t)
		a.ahead.Store(int64(4 * time.Hour))
		a.output(t, "i")
		if n := a.resent(t); n == 0 {
			t.Error("it went on by itself")
		}
	})
}

// A message that is late is there; and where one is sent that need not be, whichever
// comes second does nothing.
func TestAMessageThatIsLateIsNotSentAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		a := startAged(t, fresh(), nil, hours()[0], doc("twice", `
  - pause: {wait: PT1H}
  - ear: {listen: {to: {one: {with: {type: go}}}}}
`))
		a.begin(t, "late", "t/timer", map[string]any{})
		a.begin(t, "twice", "t/twice", map[string]any{})
		s, err := a.store.Writer.Load(t.Context(), "twice")
		if err != nil {
			t.Fatal(err)
		}
		a.ahead.Store(int64(2 * time.Hour))
		a.looked(t)
		if row, n := a.until(t, "late", status("waiting")), a.resent(t); row.Version != 1 || n != 0 {
			t.Errorf("version %d, %d messages", row.Version, n)
		}
		a.looks.blind.Store(true)
		a.output(t, "late")
		a.waits(t, "twice", snapshot.WaitEvent)
		// Now its own message comes.
		a.send(t, string(must(signal.Envelope{
			SignalID: "own", InstanceID: "twice", RuntimeProvider: signal.Provider, Type: signal.TimerDue, WaitingToken: s.Waits[0].Token, OccurredAt: s.UpdatedAt,
		}.Encode())))
		eventually(t, "it has come", func() bool {
			found, err := a.store.Streams.Recorded(t.Context(), "twice", "own")
			return err == nil && found
		})
		a.waits(t, "twice", snapshot.WaitEvent)
		a.until(t, "twice", status("waiting"))
	})
}
