package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// crashDocument has everything that makes a durable operation: a call, a task,
// a timer, a loop with calls, a fan-out, a signal, an event that leaves, a
// sub-workflow and calls that are acknowledged.
const crashDocument = `
document: {dsl: '1.0.3', namespace: t, name: crash, version: '1.0.0'}
do:
  - reserve:
      call: effect
      with: {do: reserve}
      output: {as: '${ $input + {reserved: .n} }'}
  - approve:
      call: humanTask
      with: {title: Approve, candidateUsers: [ann]}
      output: {as: '${ $input + {by: .completedBy} }'}
  - pause:
      wait: PT0.02S
  - each:
      for: {each: x, in: '[1, 2]'}
      do:
        - charge:
            call: effect
            with: {do: charge, x: '${ $x }'}
            output: {as: '${ $input + {charged: (($input.charged // []) + [.n])} }'}
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
      output: {as: '${ $input + {paid: .[0]} }'}
  - all:
      call: forEach
      with: {in: '["a", "b"]', each: g, call: effect, with: {do: '${ $g }'}}
      output: {as: '${ $input + {all: [.[] | .output.n]} }'}
  - tell:
      emit: {event: {with: {type: told, data: '${ .all }'}}}
      output: {as: '${ $input + {told: .type} }'}
  - sub:
      run: {workflow: {namespace: t, name: crash-child, input: '${ .all }'}}
      output: {as: '${ $input + {sub: .} }'}
  - order:
      call: acknowledged
      with: {call: effect, with: {do: order}, within: PT0.1S}
      output: {as: '${ $input + {order: .} }'}
  - notify:
      call: acknowledged
      with: {call: effect, with: {do: notify}, within: PT0.1S, await: false}
`

// crashChildDocument is the sub-workflow of crashDocument.
const crashChildDocument = `
document: {dsl: '1.0.3', namespace: t, name: crash-child, version: '1.0.0'}
do:
  - ship:
      call: effect
      with: {do: ship, all: '${ . }'}
`

// world counts what happened outside: effects by key, attempts in all.
type world struct {
	mu       sync.Mutex
	effects  map[string]string
	attempts int
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	if before, ok := w.effects[key]; ok && before != string(body) {
		http.Error(rw, "key used for something else", http.StatusConflict)
		return
	}
	w.effects[key] = string(body)
	fmt.Fprintf(rw, `{"n": %d}`, len(body))
}

func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for k, v := range w.effects {
		if strings.Contains(v, `"type":"io.aqueduct.ack.`) {
			continue // the stream says how many there are; their keys have versions in them
		}
		lines = append(lines, incarnation.ReplaceAllString(volatile.ReplaceAllString(k+" "+v, `"$1":"…"`), "INC$1"))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// crashChild is one node that drives the scenario until it is done, or until
// its failpoint; drive is what the outside does. AQUEDUCT_TEST_AT is the operation (0 = none) and
// AQUEDUCT_TEST_AFTER says on which side of it to stop. It prints how many
// durable operations it made.
func crashChild(drive func(context.Context, *testNode) error, documents ...string) int {
	return crashChildWith(drive, outside(os.Getenv("AQUEDUCT_TEST_URL")), documents...)
}

// crashChildWith is crashChild with a function "effect" of its own.
func crashChildWith(drive func(context.Context, *testNode) error, effect activity.Func, documents ...string) int {
	return crashChildOn(drive, &steps.Set{}, effect, nil, documents...)
}

// crashChildOn is crashChildWith on a store that has steps, and with definitions that
// are Go code.
func crashChildOn(drive func(context.Context, *testNode) error, set *steps.Set, effect activity.Func, code []engine.Definition, documents ...string) int {
	at, _ := strconv.ParseInt(os.Getenv("AQUEDUCT_TEST_AT"), 10, 64)
	var count atomic.Int64
	wrap := func(s backend.Parts) backend.Parts {
		return (&failpoint{count: &count, at: at, after: os.Getenv("AQUEDUCT_TEST_AFTER") != "", place: os.Getenv("AQUEDUCT_TEST_FILE")}).wraps(s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // on Oracle a retry's delay is a second at least
	defer cancel()
	var n *testNode
	st, err := testdb.OpenWith(ctx, os.Getenv("AQUEDUCT_TEST_FILE"), set)
	if err == nil {
		n, err = openOn(ctx, st, func(c *runtime.Config) { c.Store = wrap(c.Store); register(c, code...) }, effect, documents...)
	}
	if err == nil {
		err = drive(ctx, n)
	}
	if err == nil {
		err = n.close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	fmt.Println(count.Load())
	return 0
}

// drive plays the application and the person: it looks where the instance is
// and does the next thing, each repeatable.
func drive(ctx context.Context, n *testNode) error {
	if _, _, err := n.rt.Start(ctx, "i", signal.Start{Definition: "t/crash", Input: json.RawMessage(`{}`)}, nil); err != nil {
		return err
	}
	for ctx.Err() == nil {
		s, err := n.store.Writer.Load(ctx, "i")
		if err != nil {
			return err
		}
		if s.Status == snapshot.Completed {
			open, err := n.store.Streams.Pending(ctx, "", 1)
			if err != nil || len(open) == 0 {
				return err
			}
		}
		if s.Status == snapshot.Faulted {
			return fmt.Errorf("faulted: %+v", s.Error)
		}
		if err := errors.Join(act(ctx, n, s), acknowledge(ctx, n)); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

func act(ctx context.Context, n *testNode, s snapshot.Snapshot) error {
	w, _ := s.Primary()
	switch w.Kind {
	case snapshot.WaitTask:
		if _, err := n.rt.ClaimTask(ctx, w.TaskID, "ann", nil); err != nil {
			return done(err)
		}
		_, err := n.rt.CompleteTask(ctx, w.TaskID, "ann", nil, "yes", nil)
		return done(err)
	case snapshot.WaitEvent:
		return enqueue(ctx, n, signal.Envelope{
			SignalID: "paid-1", InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: time.Now(),
			Payload: json.RawMessage(`{"type":"paid","data":42}`),
		})
	}
	return nil
}

// acknowledge plays the consumer: what has been delivered, it has processed.
func acknowledge(ctx context.Context, n *testNode) error {
	open, err := n.store.Streams.Pending(ctx, "i", 0)
	for _, e := range open {
		if err == nil && !e.DeliveredAt.IsZero() {
			_, err = n.rt.Acknowledge(ctx, "i", e.Position, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`"here"`)})
		}
	}
	return err
}

// enqueue sends a signal the way an application does, through the queue.
func enqueue(ctx context.Context, n *testNode, env signal.Envelope) error {
	body, err := env.Encode()
	if err != nil {
		return err
	}
	return n.rt.Store.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
}

// done lets pass that another node, or this one before it died, did it first.
func done(err error) error {
	switch problem.CodeOf(err) {
	case "task.completed", "task.taken", "instance.closed":
		return nil
	}
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// child runs the test binary as a node.
func child(t *testing.T, mode, file, url string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append([]string{
		"AQUEDUCT_TEST_NODE=" + mode, "AQUEDUCT_TEST_FILE=" + file, "AQUEDUCT_TEST_URL=" + url,
	}, env...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// result is what is left when the scenario is over.
type result struct {
	state, stream, effects string
	operations             int64
}

// scenario runs the nodes one after the other on one file until the last has
// driven the scenario to its end.
func scenario(t *testing.T, place func() string, run func(file, url string) int64) result {
	t.Helper()
	file := place()
	w := &world{effects: map[string]string{}}
	srv := httptest.NewServer(w)
	defer srv.Close()
	var r result
	r.operations = run(file, srv.URL)
	r.effects = w.String()
	st, err := testdb.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := st.Writer.Load(t.Context(), "i")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := st.Streams.Stream(t.Context(), "i", 0, projections.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	settled, notices := withoutNotices(entries)
	r.stream = normal(settled)
	r.state = fmt.Sprintf("%s v%d position %d output %s", s.Status, s.Version-notices, s.Position-2*notices, s.State.Output)
	r.state += leased(t, st)
	if deadLetters := must(st.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})); len(deadLetters.Items) > 0 {
		r.state += fmt.Sprintf(" dead: %+v", deadLetters.Items)
	}
	return r
}

// leased says which queues have messages with a worker although nobody works
// any more. A server needs a moment to notice that a session's client is dead.
// A duplicate that nobody got to before the end may still be ready.
func leased(t *testing.T, st *testdb.Database) string {
	t.Helper()
	var w await.Wait
	for {
		left := ""
		for _, q := range must(st.Backlog.Queues(t.Context())) {
			if q.Leased > 0 {
				left += fmt.Sprintf(" queue %s has %d leased", q.Name, q.Leased)
			}
		}
		if left == "" || !w.Again(20*time.Millisecond, left) {
			return left
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// incarnation begins what an instance makes: keys and the ids of tasks.
var incarnation = regexp.MustCompile(`[A-Za-z0-9_-]{16}(/1/|\.1\.)`)

var volatile = regexp.MustCompile(`"(token|completedAtUtc|id|time|occurredAt|instanceId|child)":"[^"]*"`)

// notice is the event of a notice about a delivery: a crash makes one more of them.
var notice = regexp.MustCompile(`"type":"io\.aqueduct\.ack\.(re[a-z-]+)\.v1"`)

// counted is what an acknowledgement says of its command, and of its deliveries, and
// the key of its event, which has the version of the snapshot in it.
var counted = regexp.MustCompile(`"(command|deliveries|attempts)":\d+,?|,"key":"[^"]*"}$`)

// withoutNotices are the entries that there are without a crash, too, as if those
// between them were not.
func withoutNotices(entries []projections.Entry) (rest []projections.Entry, notices int64) {
	for _, e := range entries {
		switch {
		case e.Type == "AckReminderProcessedPending", e.Type == "AckRetryPending", e.Type == "AckRepeated":
			notices++
			continue
		case e.Type == engine.EntryEmitted && notice.Match(e.Data):
			continue
		}
		e.Position = int64(len(rest) + 1)
		rest = append(rest, e)
	}
	return rest, notices
}

// normal prints a stream without its times and secrets; the fan-out's results
// may come in either order.
func normal(entries []projections.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		processed := "-"
		if e.Processed != nil {
			processed = strconv.FormatBool(*e.Processed)
		}
		typ := e.Type
		data := incarnation.ReplaceAllString(volatile.ReplaceAllString(string(e.Data), `"$1":"…"`), "INC$1")
		if e.Type == "AckProcessed" || strings.Contains(data, `"io.aqueduct.ack.processed.v1"`) {
			data = counted.ReplaceAllString(data, "")
		}
		fmt.Fprintf(&b, "%d %s %s %s processed %s %s\n", e.Position, e.Kind, e.Direction, typ, processed, data)
	}
	return b.String()
}

func (r result) diff(want result) string {
	for _, f := range []struct{ name, got, want string }{
		{"state", r.state, want.state}, {"stream", r.stream, want.stream}, {"effects", r.effects, want.effects},
	} {
		if f.got != f.want {
			return fmt.Sprintf("%s\n got %s\nwant %s", f.name, f.got, f.want)
		}
	}
	return ""
}

// runToEnd runs a child that must finish, and returns its operations.
func runToEnd(t *testing.T, mode, file, url string) int64 {
	t.Helper()
	out, err := child(t, mode, file, url).Output()
	if err != nil {
		t.Errorf("undisturbed child: %v", err)
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return n
}

// TestCrashPoints stops a real process just before and just after each of its
// durable operations, and lets another finish: the end is the undisturbed one.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	crashPoints(t, testdb.OnFile(t), "crash", 1, 1)
}

// TestCrashPointsOnOracle does the same on the Oracle store: for one operation
// in four, others in every run, and for each with AQUEDUCT_FAULTS=all.
func TestCrashPointsOnOracle(t *testing.T) {
	t.Parallel()
	first, step := 1+rand.Int64N(4), int64(4)
	if os.Getenv("AQUEDUCT_FAULTS") == "all" {
		first, step = 1, 1
	}
	crashPoints(t, testdb.OnOracle(t), "crash", first, step)
}

func crashPoints(t *testing.T, place func() string, mode string, first, step int64) {
	want := scenario(t, place, func(file, url string) int64 { return runToEnd(t, mode, file, url) })
	if want.operations < 4 || !strings.Contains(want.state, "completed") {
		t.Fatalf("the undisturbed run is not one: %+v", want)
	}
	for k := first; k <= want.operations; k += step {
		for _, after := range []string{"", "1"} {
			got := scenario(t, place, func(file, url string) int64 {
				killed(t, mode, file, url, k, after)
				return runToEnd(t, mode, file, url)
			})
			if d := got.diff(want); d != "" {
				t.Errorf("operation %d, after=%q: %s", k, after, d)
			}
		}
	}
	t.Logf("%d operations; from %d on, every %d was stopped before and after", want.operations, first, step)
}

// killed runs a child up to its failpoint. A child that ends first had fewer
// operations this time: polling claims are counted only when they are made.
func killed(t *testing.T, mode, file, url string, k int64, after string) {
	t.Helper()
	cmd := child(t, mode, file, url, fmt.Sprintf("AQUEDUCT_TEST_AT=%d", k), "AQUEDUCT_TEST_AFTER="+after)
	cmd.Stdout = nil
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
		t.Errorf("operation %d: child ended with %v", k, err)
	}
	_, different := testdb.Replay(t.Context(), file, nil) // Go code is not here
	if err := errors.Join(testdb.Verify(t.Context(), file), testdb.Check(t.Context(), file), different); err != nil {
		t.Errorf("operation %d, after=%q: %v", k, after, err)
	}
}

// TestCrashPointsWithTwoNodes does the same with a second node on the file: it
// takes over when the first is stopped.
func TestCrashPointsWithTwoNodes(t *testing.T) {
	t.Parallel()
	place := testdb.OnFile(t)
	want := scenario(t, place, func(file, url string) int64 { return runToEnd(t, "crash", file, url) })
	step := int64(1)
	if testing.Short() {
		step = 5
	}
	for k := int64(1); k <= want.operations; k += step {
		for _, after := range []string{"", "1"} {
			got := scenario(t, place, func(file, url string) int64 {
				var wg sync.WaitGroup
				wg.Add(1)
				go func() { defer wg.Done(); killed(t, "crash", file, url, k, after) }()
				runToEnd(t, "crash", file, url)
				wg.Wait()
				return 0
			})
			if d := got.diff(want); d != "" {
				t.Errorf("operation %d, after=%q: %s", k, after, d)
			}
		}
	}
}
