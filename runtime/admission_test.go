package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/prometheus/client_golang/prometheus"
)

// wire is an outside without sockets: what each request gets.
type wire func(*http.Request) int

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	code := w(r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// sending starts a node that calls the outside, with the default policies of a
// node but for their times.
func sending(t *testing.T, place string, outside wire, set func(*runtime.Config), documents ...string) *testNode {
	t.Helper()
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{store: st, metrics: prometheus.NewRegistry(), done: make(chan error, 1)}
	n.cat = definition.New(st, openworkflow.Parsers(), time.Now)
	for _, d := range append(documents, callDoc) {
		if _, _, err := n.cat.Publish(t.Context(), "d.yaml", []byte(d)); err != nil {
			t.Fatal(err)
		}
	}
	performer := activity.New(activity.Config{Transport: outside, Timeout: time.Hour, Policy: activity.Policy{Initial: 10 * time.Millisecond}})
	performer.Register("effect", func(context.Context, json.RawMessage) (any, error) { return 1, nil })
	c := runtime.Config{Store: st.Parts, Definitions: n.cat, Performer: performer, Now: time.Now, Metrics: n.metrics}
	if set != nil {
		set(&c)
	}
	if n.rt, err = runtime.New(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.done <- n.rt.Run(ctx) }()
	t.Cleanup(func() {
		if n.stop == nil {
			return
		}
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	// Before this the node does not accept commands yet.
	ready := fmt.Sprint("ready", time.Now().UnixNano())
	n.begin(t, ready, "t/call", nil)
	n.until(t, ready, status("completed"))
	return n
}

func getDoc(name, path string) string {
	return doc(name, fmt.Sprintf(`
  - get: {call: http, with: {method: get, endpoint: 'http://h%s'}}
`, path))
}

// A healthy host that is slow faults nobody, however many wait for it: what is
// not sent is no attempt.
func TestAFullHostFaultsNobody(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		const instances, perHost = 600, 16
		var requests, at, most atomic.Int64
		n := sending(t, fresh(), func(*http.Request) int {
			requests.Add(1)
			now := at.Add(1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			time.Sleep(40 * time.Millisecond) // the host is slow
			at.Add(-1)
			return 204
		}, func(c *runtime.Config) { c.PerHost = perHost }, getDoc("slow", "/"))
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < instances; i += 8 {
					n.begin(t, fmt.Sprint("i", i), "t/slow", nil)
				}
			})
		}
		wg.Wait()
		for i := range instances {
			n.until(t, fmt.Sprint("i", i), status("completed"))
		}
		if requests.Load() != instances || most.Load() > perHost {
			t.Errorf("%d requests, %d at once", requests.Load(), most.Load())
		}
	})
}

// A path in trouble holds up nobody else at its host, costs those that wait for
// it no attempt, and goes on when an operator says so.
func TestASickPathIsNotItsHost(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	var sick atomic.Int64
	enough := make(chan struct{}) // are there to open the breaker: else one of them fails again and again
	n := sending(t, t.TempDir()+"/a.db", func(r *http.Request) int {
		if strings.HasPrefix(r.URL.Path, "/sick/") && !mended.Load() {
			if sick.Add(1) == runtime.DefaultBreakAfter {
				close(enough)
			}
			select {
			case <-enough:
			case <-r.Context().Done():
			}
			return 503
		}
		return 204
	}, func(c *runtime.Config) { c.BreakFor = time.Hour }, getDoc("sick", "/sick/{id}"), getDoc("well", "/well"))
	const instances = 40
	shows := func(what string, ok func(admission.State) bool) (shown admission.State) {
		t.Helper()
		eventually(t, what, func() bool {
			for _, target := range n.rt.Targets() {
				if target.Target == "GET h/sick/{id}" {
					shown = target
				}
			}
			return ok(shown)
		})
		return shown
	}
	for i := range instances {
		if i == runtime.DefaultBreakAfter { // else a busy machine sends all at once
			shows("the breaker opens", func(s admission.State) bool { return s.Breaker == "open" })
		}
		n.begin(t, fmt.Sprint("sick", i), "t/sick", map[string]any{"id": i})
		n.begin(t, fmt.Sprint("well", i), "t/well", nil)
	}
	for i := range instances {
		n.until(t, fmt.Sprint("well", i), status("completed"))
	}
	shown := shows("all wait for the breaker", func(s admission.State) bool { // but for one now and then, which tries
		return s.Running == 0 && s.Waiting == instances && s.Breaker == "open" && n.rt.WaitsFor("sick7", 2) == s.WaitsFor
	})
	if shown.Breaker != "open" || shown.Host != "h" || !strings.HasPrefix(shown.WaitsFor, "the circuit breaker of GET h/sick/{id}, which is open until ") {
		t.Errorf("target %+v", shown)
	}
	if sent := sick.Load(); sent > 4*runtime.DefaultBreakAfter {
		t.Errorf("%d requests before it was left alone", sent)
	}
	mended.Store(true)
	if err := n.rt.ResetTarget("GET h/sick/{id}"); err != nil {
		t.Fatal(err)
	}
	for i := range instances {
		n.until(t, fmt.Sprint("sick", i), status("completed"))
	}
	if err := n.rt.ResetTarget("GET h/nowhere"); err == nil {
		t.Error("a destination that nobody knows was reset")
	}
}

// counting counts what is announced on the command queue.
type counting struct {
	store.Writer
	announced atomic.Int64
}

func (c *counting) Commit(ctx context.Context, change store.Change) error {
	for _, s := range change.Send {
		if s.Queue == store.Commands {
			c.announced.Add(1)
		}
	}
	return c.Writer.Commit(ctx, change)
}

// A fan-out wider than the slots waits in the memory of its node.
func TestAWideFanOutStaysOffTheQueue(t *testing.T) {
	t.Parallel()
	c := &counting{}
	n := sending(t, t.TempDir()+"/a.db", nil, func(rc *runtime.Config) {
		c.Writer, rc.Store.Writer = rc.Store.Writer, c
		rc.Activities = 8
	}, doc("wide", `
  - all: {call: forEach, with: {in: '${ [range(300)] }', call: effect}}
`))
	before := c.announced.Load()
	n.begin(t, "i", "t/wide", nil)
	n.until(t, "i", status("completed"))
	if got := c.announced.Load() - before; got != 0 {
		t.Errorf("%d commands went by way of the queue", got)
	}
}

// taking refuses the first commit that begins several commands, as if one were gone.
type taking struct {
	store.Writer
	together, alone atomic.Int64
}

func (w *taking) Commit(ctx context.Context, change store.Change) error {
	switch {
	case change.Snapshot != nil || len(change.Claims) == 0:
	case len(change.Claims) == 1:
		w.alone.Add(1)
	case w.together.Add(1) == 1:
		return store.ErrTaken
	}
	return w.Writer.Commit(ctx, change)
}

// Commands that have waited for their places are counted together; where one of them
// cannot be, each is by itself, and all are performed once.
func TestThoseThatWaitedBeginTogether(t *testing.T) {
	t.Parallel()
	const calls = 300
	var performed atomic.Int64
	w := &taking{}
	n := sending(t, t.TempDir()+"/a.db", func(*http.Request) int { performed.Add(1); return 204 }, func(c *runtime.Config) {
		w.Writer, c.Store.Writer = c.Store.Writer, w
		c.Activities = 16
	}, doc("wide", `
  - all: {call: forEach, with: {in: '${ [range(300)] }', call: http, with: {method: get, endpoint: 'http://h/same'}}}
`))
	n.begin(t, "i", "t/wide", nil)
	n.until(t, "i", status("completed"))
	if performed.Load() != calls {
		t.Errorf("%d calls of %d", performed.Load(), calls)
	}
	rows, err := n.store.Streams.Stream(t.Context(), "i", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Processed != nil && row.Attempts != 1 {
			t.Errorf("%d attempts of %d", row.Attempts, row.Position)
		}
	}
	if w.together.Load() < 2 || w.together.Load()+w.alone.Load() > calls*3/4 {
		t.Errorf("%d commits began several commands, %d one", w.together.Load(), w.alone.Load())
	}
}

// Thousands of callers at once, far beyond the slots, wait in the memory of their node: the
// command queue would have their commands come again later and later, in no order.
func TestABurstStaysOffTheQueue(t *testing.T) {
	t.Parallel()
	const callers, each = 64, 64
	c, free := &counting{}, make(chan struct{})
	n := sending(t, t.TempDir()+"/a.db", func(*http.Request) int { <-free; return 204 }, func(rc *runtime.Config) {
		c.Writer, rc.Store.Writer = rc.Store.Writer, c
	}, getDoc("held", "/"))
	before := c.announced.Load()
	var all sync.WaitGroup
	for k := range callers {
		all.Go(func() {
			for i := range each {
				if _, _, err := n.rt.Start(t.Context(), fmt.Sprint("i-", k, "-", i), signal.Start{Definition: "t/held"}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := c.announced.Load() - before; got != 0 {
		t.Errorf("%d of %d commands went by way of the queue", got, callers*each)
	}
	close(free)
	for k := range callers {
		n.until(t, fmt.Sprint("i-", k, "-", each-1), status("completed"))
	}
}

// Small instances beside a fan-out of slow calls wait for one place at most.
func TestAWideInstanceStarvesNobody(t *testing.T) {
	t.Parallel()
	const slow = 250 * time.Millisecond
	n := sending(t, t.TempDir()+"/a.db", func(r *http.Request) int { time.Sleep(slow); return 204 }, func(c *runtime.Config) { c.PerHost, c.Activities = 4, 8 },
		getDoc("same", "/same"), strings.ReplaceAll(getDoc("other", "/"), "http://h", "http://g"), doc("wide", `
  - all: {call: forEach, with: {in: '${ [range(300)] }', call: http, with: {method: get, endpoint: 'http://h/same'}}}
`))
	n.begin(t, "wide", "t/wide", nil) // takes more than eighteen seconds
	begun := time.Now()
	for _, name := range []string{"same", "other"} {
		for i := range 5 {
			id := fmt.Sprint(name, i)
			n.begin(t, id, "t/"+name, nil)
			n.until(t, id, status("completed"))
		}
	}
	took := time.Since(begun)
	row, err := n.store.Instances.Instance(t.Context(), "wide")
	if err != nil || row.Status == "completed" {
		t.Fatalf("ten small instances took %s, as long as the wide one: %+v, %v", took, row, err)
	}
	n.until(t, "wide", status("completed"))
}

// What waits when a node stops is given back without an attempt, and so is what the stop has cut off, which may be
// done: five nodes that stop, one after the other, would use up the attempts of a long call.
func TestWaitingIsNoAttempt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		release := make(chan struct{})
		place := fresh()
		blocked := func(r *http.Request) int {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return 204
		}
		one := func(c *runtime.Config) { c.PerHost, c.DrainTimeout = 1, time.Nanosecond } // the request ends before the line is closed
		n := sending(t, place, blocked, one, getDoc("slow", "/"))
		n.begin(t, "a", "t/slow", nil)
		n.begin(t, "b", "t/slow", nil)
		eventually(t, "both are claimed", func() bool { return n.row(t, "a").ClaimedBy != "" && n.row(t, "b").ClaimedBy != "" })
		if a, b := n.row(t, "a"), n.row(t, "b"); a.Attempts != 1 || b.Attempts != 0 {
			t.Errorf("attempts %d and %d", a.Attempts, b.Attempts)
		}
		if err := n.close(); err != nil {
			t.Error(err)
		}
		n.stop = nil
		peek, err := testdb.Open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := peek.Streams.Pending(t.Context(), "a", 0)
		if err != nil || len(rows) != 1 || rows[0].ClaimedBy != "" || rows[0].Attempts != 0 || !rows[0].Unknown {
			t.Errorf("left: %+v, %v", rows, err)
		}
		if err := peek.Close(); err != nil {
			t.Error(err)
		}
		close(release)
		n = sending(t, place, blocked, one)
		for _, id := range []string{"a", "b"} {
			n.until(t, id, status("completed"))
		}
		if a, b := n.row(t, "a"), n.row(t, "b"); a.Attempts != 1 || b.Attempts != 1 {
			t.Errorf("attempts %d and %d in the end", a.Attempts, b.Attempts)
		}
	})
}

// A command that finds no place is given up by the age that its definition
// says, as an error that can be caught, and a definition of its own counts.
func TestNotSentIsGivenUpByAge(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	hold := make(chan struct{})
	n := sending(t, t.TempDir()+"/a.db", func(r *http.Request) int {
		requests.Add(1)
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		return 204
	}, func(c *runtime.Config) { c.PerHost = 1 }, getDoc("first", "/"), `
document: {dsl: '1.0.3', namespace: t, name: hasty, version: '1.0.0', metadata: {giveUpAfter: PT1H}}
do:
  - safe:
      try:
        - get: {call: http, with: {method: get, endpoint: 'http://h/'}, metadata: {giveUpAfter: PT0.05S}}
      catch: {do: [{told: {set: {error: '${ $error }'}}}]}
`)
	n.begin(t, "first", "t/first", nil)
	eventually(t, "the host is full", func() bool { return requests.Load() == 1 })
	n.begin(t, "i", "t/hasty", nil)
	got := n.output(t, "i")
	if !strings.Contains(got, `"title":"Not sent"`) || !strings.Contains(got, "a place at host h: 1 requests are under way") || !strings.Contains(got, `"status":503`) {
		t.Error(got)
	}
	close(hold)
	n.until(t, "first", status("completed"))
	if requests.Load() != 1 {
		t.Errorf("%d requests", requests.Load())
	}
	if got := n.counted(t, "aqueduct_commands_given_up_total")[""]; got != 1 {
		t.Errorf("%d commands are given up", got)
	}
}

// What nobody waits for any more leaves the line.
func TestWithdrawnCommandsLeaveTheLine(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	hold := make(chan struct{})
	n := sending(t, t.TempDir()+"/a.db", func(*http.Request) int { requests.Add(1); <-hold; return 204 },
		func(c *runtime.Config) { c.PerHost = 1 }, getDoc("slow", "/"))
	n.begin(t, "a", "t/slow", nil)
	n.begin(t, "b", "t/slow", nil)
	if _, err := n.rt.Operate(t.Context(), "b", "cancel", nil, "test"); err != nil {
		t.Fatal(err)
	}
	for _, target := range n.rt.Targets() {
		if target.Waiting != 0 {
			t.Errorf("target %+v", target)
		}
	}
	close(hold)
	n.until(t, "a", status("completed"))
	if requests.Load() != 1 {
		t.Errorf("%d requests", requests.Load())
	}
}

// A sink in trouble does not hold up events inside, and is not attempted in
// vain.
func TestASickSinkHoldsUpNothingInside(t *testing.T) {
	t.Parallel()
	var sick atomic.Bool
	sick.Store(true)
	n, err := open(t.Context(), t.TempDir()+"/a.db", nil, func(context.Context, json.RawMessage) (any, error) {
		if sick.Load() {
			return nil, errors.New("down")
		}
		return nil, nil
	}, doc("tell", `
  - tell: {emit: {event: {with: {source: 'https://t', type: paid, data: {order: 7}}}}}
`), listenDoc)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}()
	n.begin(t, "heard", "t/listen", map[string]any{"order": 7})
	n.begin(t, "i", "t/tell", nil)
	n.until(t, "heard", status("completed"))
	sick.Store(false)
}
