package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/prometheus/client_golang/prometheus"
)

// TestMain lets the test binary be a node: a process that tests can kill.
func TestMain(m *testing.M) {
	switch os.Getenv("AQUEDUCT_TEST_NODE") {
	case "":
		os.Exit(m.Run())
	case "crash":
		os.Exit(crashChild(drive, crashDocument, crashChildDocument))
	case "go":
		os.Exit(crashChildOn(drive, &steps.Set{}, outside(os.Getenv("AQUEDUCT_TEST_URL")), crashWorkflow(), crashChildDocument))
	case "saga":
		os.Exit(sagaChild())
	case "flow":
		os.Exit(crashChild(drive, flowDocument, crashChildDocument))
	case "trigger":
		os.Exit(crashChild(driveTriggers, crashLifecycle, crashPolicy))
	case "notices":
		os.Exit(noticesChild())
	case "publish":
		os.Exit(publishChild())
	case "chaos":
		os.Exit(chaosChild())
	case "pays":
		os.Exit(payChild())
	case "steps":
		os.Exit(stepsChild())
	case "killer":
		os.Exit(killerChild())
	}
	os.Exit(2)
}

// testNode is a node on a database file, with one function "effect" that tells
// the outside world its key.
type testNode struct {
	store   *testdb.Database
	rt      *runtime.Runtime
	cat     *definition.Catalogue
	metrics *prometheus.Registry
	stop    context.CancelFunc
	done    chan error
}

// counted is what the node counts, by label: the series of one metric.
func (n *testNode) counted(t *testing.T, name string) map[string]int {
	t.Helper()
	families, err := n.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			if n := int(m.GetCounter().GetValue()+m.GetGauge().GetValue()) + int(m.GetHistogram().GetSampleCount()); n != 0 {
				got[label] += n
			}
		}
	}
	return got
}

// open starts a node; wrap may put something between the runtime and its
// store, effect performs the function "effect".
func open(ctx context.Context, file string, wrap func(backend.Parts) backend.Parts, effect activity.Func, documents ...string) (*testNode, error) {
	set := func(c *runtime.Config) {
		if wrap != nil {
			c.Store = wrap(c.Store)
		}
	}
	return openSet(ctx, file, set, effect, documents...)
}

// openSet starts a node with settings of its own.
func openSet(ctx context.Context, file string, set func(*runtime.Config), effect activity.Func, documents ...string) (*testNode, error) {
	st, err := testdb.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	return openOn(ctx, st, set, effect, documents...)
}

// openOn starts a node on a store that is open.
func openOn(ctx context.Context, st *testdb.Database, set func(*runtime.Config), effect activity.Func, documents ...string) (_ *testNode, err error) {
	n := &testNode{store: st, metrics: prometheus.NewRegistry(), done: make(chan error, 1)}
	n.cat = definition.New(st, openworkflow.Parsers(), time.Now)
	for i, d := range documents {
		if _, _, err := n.cat.Publish(ctx, fmt.Sprintf("doc-%d.yaml", i), []byte(d)); err != nil {
			return nil, err
		}
	}
	attempts, crashes := 5, 0
	if os.Getenv("AQUEDUCT_TEST_NODE") == "chaos" {
		attempts, crashes = 1000, 1000 // each death of a node takes one of both
	}
	performer := activity.New(activity.Config{Timeout: time.Hour, Policy: activity.Policy{MaxAttempts: attempts, Initial: 10 * time.Millisecond, Max: time.Second}})
	if effect != nil {
		performer.Register("effect", effect)
		performer.Register(engine.TargetEvent, effect)
	}
	c := runtime.Config{
		Store: st.Parts, Definitions: n.cat, Performer: performer, Now: time.Now, RetryMax: 2, RetryDelay: 20 * time.Millisecond, CrashMax: crashes,
		SignalConsumers: 4, ScheduleConsumers: 4, CommandConsumers: 4, Metrics: n.metrics,
		StraysEvery: time.Second,
		BreakAfter:  1000, // most tests fail on purpose
	}
	set(&c)
	if n.rt, err = runtime.New(ctx, c); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	n.stop = stop
	go func() { n.done <- n.rt.Run(run) }()
	return n, nil
}

// close drains the node.
func (n *testNode) close() error {
	n.stop()
	err := <-n.done
	if closeErr := n.store.Close(); err == nil {
		err = closeErr
	}
	return err
}

// start opens a node for one test and closes it with it.
func start(t *testing.T, place string, effect activity.Func, documents ...string) *testNode {
	t.Helper()
	return startSet(t, place, func(*runtime.Config) {}, effect, documents...)
}

// keeping starts a node that keeps events that nobody waited for.
func keeping(t *testing.T, place string, ttl time.Duration, effect activity.Func, documents ...string) *testNode {
	t.Helper()
	return startSet(t, place, func(c *runtime.Config) { c.EventTTL = ttl }, effect, documents...)
}

// startSet is start of a node with settings of its own.
func startSet(t *testing.T, place string, set func(*runtime.Config), effect activity.Func, documents ...string) *testNode {
	t.Helper()
	n, err := openSet(t.Context(), place, set, effect, documents...)
	if err != nil {
		t.Fatal(err)
	}
	n.endsWith(t, place)
	return n
}

// endsWith closes the node with its test, and makes again what that has left.
func (n *testNode) endsWith(t *testing.T, place string) {
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if !t.Failed() {
			replayed(t, place, definition.PastOf(n.cat))
		}
	})
}

// replayed makes again what a test has left: no instance comes to something else.
func replayed(t *testing.T, place string, defs replay.Definitions) {
	t.Helper()
	unverifiable, err := testdb.Replay(context.Background(), place, defs)
	if err != nil {
		t.Error(err)
	}
	for _, f := range unverifiable {
		t.Log(f)
	}
}

// begin starts an instance of a definition.
func (n *testNode) begin(t *testing.T, id, definition string, input any) {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.rt.Start(t.Context(), id, signal.Start{Definition: definition, Input: raw}, nil); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition on an instance's row.
func (n *testNode) until(t *testing.T, id string, ok func(projections.Instance) bool) projections.Instance {
	t.Helper()
	var w await.Wait
	for {
		row, err := n.store.Instances.Instance(t.Context(), id)
		if err == nil && ok(row) {
			return row
		}
		if !w.Again(2*time.Millisecond, row) {
			t.Fatalf("instance %s: %+v, %v", id, row, err)
		}
	}
}

func status(s string) func(projections.Instance) bool {
	return func(row projections.Instance) bool { return row.Status == s }
}

// output returns a completed instance's output.
func (n *testNode) output(t *testing.T, id string) string {
	t.Helper()
	n.until(t, id, status("completed"))
	s, err := n.store.Writer.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.State.Output)
}

// failpoint is a store that stops the process at its k-th durable operation:
// just before it, or just after it.
type failpoint struct {
	handing
	count *atomic.Int64
	at    int64
	after bool
	place string // the invariants hold there after every operation
}

func (f *failpoint) around(op func() error) error {
	k := f.count.Add(1)
	if k == f.at && !f.after {
		die()
	}
	err := op()
	if k == f.at && f.after {
		die()
	}
	if f.at == 0 { // what nobody disturbs has the time to look
		if broken := testdb.Verify(context.Background(), f.place); broken != nil {
			fmt.Fprintf(os.Stderr, "after operation %d: %v\n", k, broken)
			os.Exit(1)
		}
	}
	return err
}

// die ends the process as a power switch would: no deferred call runs.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (f *failpoint) Commit(ctx context.Context, c store.Change) error {
	return f.around(func() error { return f.Writer.Commit(ctx, f.inside(c)) })
}

// inside stops the process at the steps of a change, too.
func (f *failpoint) inside(c store.Change) store.Change {
	made := c.Inside
	if made == nil {
		return c
	}
	c.Inside = func(do store.Perform) (store.Change, error) {
		return made(func(target string, input json.RawMessage) (output json.RawMessage, failed *snapshot.Error, err error) {
			err = f.around(func() error { output, failed, err = do(target, input); return err })
			return output, failed, err
		})
	}
	return c
}

// wraps puts it over a store.
func (f *failpoint) wraps(whole backend.Parts) backend.Parts {
	return f.over(whole, f, func(d store.Delivery) store.Delivery { return &failDelivery{d, f} })
}

type failDelivery struct {
	store.Delivery
	f *failpoint
}

func (d *failDelivery) Commit(ctx context.Context, c store.Change) error {
	return d.f.around(func() error { return d.Delivery.Commit(ctx, d.f.inside(c)) })
}

func (d *failDelivery) Release(ctx context.Context, cause error) error {
	return d.f.around(func() error { return d.Delivery.Release(ctx, cause) })
}

// outside returns the function "effect" of a child: it tells url the key and
// the input, and answers with what url answers.
func outside(url string) activity.Func {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(input))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Idempotency-Key", activity.Info(ctx).Key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		return json.RawMessage(strings.TrimSpace(string(body))), nil
	}
}

// key is the idempotency key of a command, as its row has it.
func (n *testNode) key(t *testing.T, id string, position int64) string {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, position-1, 1)
	if err != nil || len(rows) != 1 {
		t.Fatalf("command %d of %s: %v, %d rows", position, id, err, len(rows))
	}
	return keyOf(rows[0])
}

func keyOf(row projections.Entry) string {
	var c engine.Command
	if err := json.Unmarshal(row.Data, &c); err != nil || c.Key == "" {
		return "no key: " + string(row.Data)
	}
	return c.Key
}
