package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
)

// faultDocument has one of each: a command, a timer, a signal.
var faultDocument = doc("fault", `
  - reserve:
      call: effect
      with: {do: reserve}
      output: {as: '${ {reserved: .} }'}
  - pause:
      wait: PT0.01S
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
      output: {as: '${ $input + {paid: .[0]} }'}
`)

// faultActions are the ways in which a call can fail.
var faultActions = []string{"error=1555", "error_after=1013", "cut", "cut_after"}

// faultWorkers run scenarios side by side, each on a database of its own: they
// mostly wait.
const faultWorkers = 6

// Every call of every session of a node fails once, in each way: from the
// connecting to the end, through start, command, timer, signal and completion.
// The end is the undisturbed run's. With AQUEDUCT_FAULTS=all every call has its
// turn, otherwise every seventh, from a random one.
func TestEveryCallOfAScenarioMayFailOnOracle(t *testing.T) {
	t.Parallel()
	step, first := 7, 1+rand.IntN(7)
	if os.Getenv("AQUEDUCT_FAULTS") == "all" {
		step, first = 1, 1
	}
	calm := newFaulty(t)
	want := calm.scenario("all:0:none")
	calls := calm.calls
	if !strings.Contains(want, "completed") || calls < 30 {
		t.Fatalf("the undisturbed run made %d calls: %s", calls, want)
	}
	jobs := make(chan string)
	var wg sync.WaitGroup
	var ran, hit atomic.Int64
	for range faultWorkers {
		f := newFaulty(t)
		wg.Go(func() {
			for fault := range jobs {
				if got := f.scenario(fault); got != want {
					t.Errorf("%s:\n got %s\nwant %s\n%s", fault, got, want, f.log)
				}
				ran.Add(1)
				var k int
				if _, err := fmt.Sscanf(fault, "all:%d:", &k); err == nil && f.calls >= k {
					hit.Add(1)
				}
			}
		})
	}
	for k := first; k <= calls; k += step {
		for _, action := range faultActions {
			jobs <- fmt.Sprintf("all:%d:%s", k, action)
		}
	}
	close(jobs)
	wg.Wait()
	t.Logf("report: faults: %d calls in the undisturbed scenario; %d scenarios with a fault (calls %d, %d, ...; %s), %d met it",
		calls, ran.Load(), first, first+step, strings.Join(faultActions, ", "), hit.Load())
}

// faulty is a database, and who watches it by connections that no fault meets.
type faulty struct {
	t     *testing.T
	d     *ocisim.Database
	watch *oracletest.Watcher
	runs  int

	document string
	steps    *steps.Set

	calls int // counted in the last scenario
	log   *logged
}

// logged keeps what a node logs, for the day on which a scenario fails.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	d := oracletest.StandIn(t, testdb.Install)
	return &faulty{t: t, d: d, watch: oracletest.Watch(t, d), document: faultDocument}
}

func (f *faulty) number(query string) (n int) {
	f.watch.Row(query, nil, &n)
	return n
}

// scenario lives the life of a node under a fault, and says how it ended.
func (f *faulty) scenario(fault string) string {
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	f.runs++
	id := fmt.Sprintf("i-%d", f.runs)
	effects := &sync.Map{}
	f.log = &logged{}
	f.watch.Arm(fault)
	n, err := f.node(ctx, effects)
	if err != nil {
		return err.Error()
	}
	err = f.play(ctx, n, id)
	closed := n.close()
	f.calls = f.watch.Counted()
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("close: %w", closed)
	}
	if err != nil {
		return err.Error()
	}
	return f.end(id, effects)
}

// again repeats what may fail once.
func again(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// node opens a node with few sessions.
func (f *faulty) node(ctx context.Context, effects *sync.Map) (*testNode, error) {
	n := &testNode{done: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	err := again(ctx, func() (err error) {
		n.store, err = testdb.At(oracle.Open(ctx, oracle.Options{DSN: f.d.DSN(), Steps: f.steps, Consumers: 1, Wait: time.Second, Heartbeat: 2 * time.Second, DeadAfter: 6 * time.Second, Log: log}))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	n.cat = definition.New(n.store, openworkflow.Parsers(), time.Now)
	if err := again(ctx, func() error { _, _, err := n.cat.Publish(ctx, "f.yaml", []byte(f.document)); return err }); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	performer := activity.New(activity.Config{Policy: activity.Policy{MaxAttempts: 5, Initial: 10 * time.Millisecond, Max: time.Second}})
	performer.Register("effect", func(ctx context.Context, _ json.RawMessage) (any, error) {
		effects.Store(activity.Info(ctx).Key, true)
		return 1, nil
	})
	err = again(ctx, func() (err error) {
		n.rt, err = runtime.New(ctx, runtime.Config{
			Store: n.store.Parts, Definitions: n.cat, Performer: performer, Now: time.Now, Log: log, RetryMax: 5, RetryDelay: 20 * time.Millisecond,
			SignalConsumers: 1, ScheduleConsumers: 1, CommandConsumers: 1,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	run, stop := context.WithCancel(ctx)
	n.stop = stop
	go func() {
		n.done <- again(run, func() error { return n.rt.Run(run) }) // as a service manager does
	}()
	return n, nil
}

// play is the application: it starts, signals, and waits.
func (f *faulty) play(ctx context.Context, n *testNode, id string) error {
	err := again(ctx, func() error {
		_, _, err := n.rt.Start(ctx, id, signal.Start{Definition: "t/fault", Input: json.RawMessage(`{}`)}, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	body, err := signal.Envelope{
		SignalID: "paid-1", InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"paid","data":42}`),
	}.Encode()
	if err != nil {
		return err
	}
	if err := f.status(ctx, id, "waiting"); err != nil {
		return err
	}
	err = again(ctx, func() error {
		return n.store.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
	})
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	if err := f.status(ctx, id, "completed"); err != nil {
		return err
	}
	return again(ctx, func() error { // a signal of unknown outcome was sent twice
		if left := f.number("select count(*) from AQ$WF_SIGNAL_QTAB") + f.number("select count(*) from AQ$WF_SCHEDULE_QTAB") + f.number("select count(*) from AQ$WF_COMMAND_QTAB"); left > 0 {
			return problem.New(problem.Internal, "test.left", "%d messages are left", left)
		}
		return nil
	})
}

// status waits until the instance has one; a waiting one waits for the signal.
func (f *faulty) status(ctx context.Context, id, want string) error {
	return again(ctx, func() error {
		var status, kind string
		found := f.watch.Row("select RUNTIME_STATUS, nvl(WAITING_KIND, '-') from WF_RUNTIME_STATES where INSTANCE_ID = :1", []any{id}, &status, &kind)
		if !found || status != want || want == "waiting" && kind != "Event" {
			return fmt.Errorf("%s is %s for %s, not %s", id, status, kind, want)
		}
		return nil
	})
}

// end is what is left of an instance, by a node that nothing disturbs.
func (f *faulty) end(id string, effects *sync.Map) string {
	f.watch.Arm("all:0:none")
	st, err := testdb.Open(f.t.Context(), f.d.DSN())
	if err != nil {
		return err.Error()
	}
	defer st.Close()
	s, err := st.Writer.Load(f.t.Context(), id)
	if err != nil {
		return err.Error()
	}
	entries, err := st.Streams.Stream(f.t.Context(), id, 0, projections.MaxLimit)
	if err != nil {
		return err.Error()
	}
	deadLetters := f.number("select count(*) from WF_DEAD_LETTERS")
	keys := 0
	effects.Range(func(any, any) bool { keys++; return true })
	return fmt.Sprintf("%s v%d position %d output %s; %d effects, %d dead letters\n%s", s.Status, s.Version, s.Position, s.State.Output, keys, deadLetters, normal(entries))
}
