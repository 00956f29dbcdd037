package runtime_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// sagaSteps is how many steps a saga has, each with a compensation.
const sagaSteps = 5

// sagaEffect asks the books.
func sagaEffect(url string) activity.Func {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		info := activity.Info(ctx)
		if info.Target == engine.TargetEvent { // of an acknowledgement
			return nil, nil
		}
		return enter(ctx, url, input, info.Key, info.Reverses)
	}
}

// enter has something entered into the books.
func enter(ctx context.Context, url string, input json.RawMessage, key, reverses string) (any, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Aqueduct-Reverses", reverses)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, activity.Unknown(err)
	case resp.StatusCode == http.StatusUnprocessableEntity:
		return nil, activity.Permanent(errors.New("refused"))
	case resp.StatusCode == http.StatusGatewayTimeout:
		return nil, activity.Permanent(activity.Unknown(errors.New("no answer")))
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	}
	return json.RawMessage(body), nil
}

// brink is a store that stops each instance at its k-th durable operation, just
// before it or just after it, and keeps it there: when all are, the process ends.
type brink struct {
	handing
	at    int
	after bool

	mu      sync.Mutex
	root    map[string]string // of a child: the saga that it is part of
	count   map[string]int
	stopped map[string]bool
}

func (b *brink) wraps(whole backend.Parts) backend.Parts {
	return b.over(whole, b, func(d store.Delivery) store.Delivery { return &brinkDelivery{d, b} })
}

// around counts an operation of instances, and stops at it.
func (b *brink) around(ids []string, op func() error) error {
	b.mu.Lock()
	stops := false
	for _, id := range ids {
		b.count[id]++
		stops = stops || b.at > 0 && b.count[id] >= b.at
	}
	b.mu.Unlock()
	if stops && !b.after {
		b.stop(ids)
	}
	err := op()
	if stops {
		b.stop(ids)
	}
	return err
}

func (b *brink) stop(ids []string) {
	b.mu.Lock()
	for _, id := range ids {
		b.stopped[id] = true
	}
	b.mu.Unlock()
	select {} // until the process ends
}

// idsOf are the sagas that a change is of.
func (b *brink) idsOf(c store.Change) (ids []string) {
	b.mu.Lock()
	switch {
	case c.Snapshot != nil:
		id := c.Snapshot.InstanceID
		if p := c.Snapshot.Parent; p != nil {
			b.root[id] = cmp.Or(b.root[p.InstanceID], p.InstanceID)
		}
		ids = append(ids, cmp.Or(b.root[id], id))
	case len(c.Claims) > 0:
		id := c.Claims[0].InstanceID
		ids = append(ids, cmp.Or(b.root[id], id))
	}
	b.mu.Unlock()
	for _, other := range c.With {
		ids = append(ids, b.idsOf(other)...)
	}
	return ids
}

func (b *brink) Commit(ctx context.Context, c store.Change) error {
	return b.around(b.idsOf(c), func() error { return b.Writer.Commit(ctx, c) })
}

type brinkDelivery struct {
	store.Delivery
	b *brink
}

func (d *brinkDelivery) Commit(ctx context.Context, c store.Change) error {
	return d.b.around(d.b.idsOf(c), func() error { return d.Delivery.Commit(ctx, c) })
}

// sagaChild is a node that drives sagas to their ends, or ends when all have come to
// the brink. It prints how many operations the longest has made.
func sagaChild() int {
	at, _ := strconv.Atoi(os.Getenv("AQUEDUCT_TEST_AT"))
	b := &brink{at: at, after: os.Getenv("AQUEDUCT_TEST_AFTER") != "", root: map[string]string{}, count: map[string]int{}, stopped: map[string]bool{}}
	url := os.Getenv("AQUEDUCT_TEST_URL")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ids := strings.Split(os.Getenv("AQUEDUCT_TEST_SAGAS"), ",")
	held := len(ids) * (sagaSteps + 1) // each saga that is stopped may hold a delivery of each of its items or children, and of its own
	st, err := testdb.OpenWide(ctx, os.Getenv("AQUEDUCT_TEST_FILE"), held)
	if err == nil {
		var n *testNode
		set := func(c *runtime.Config) {
			c.Store = b.wraps(c.Store)
			register(c, sagaCode("go", plain))
			register(c, sagaCode("gomeans", means))
			c.SignalConsumers, c.CommandConsumers, c.Handlers = held, held, 2*held
		}
		if n, err = openOn(ctx, st, set, sagaEffect(url), sagaDocuments()...); err == nil {
			err = b.drive(ctx, n, url, ids)
		}
		if err == nil {
			err = n.close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		if errors.Is(err, context.DeadlineExceeded) { // who waits for whom
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		}
		return 1
	}
	most := 0
	for _, n := range b.count {
		most = max(most, n)
	}
	fmt.Println(most)
	return 0
}

// drive plays the application for each saga, until all have ended or stand at the
// brink.
func (b *brink) drive(ctx context.Context, n *testNode, url string, ids []string) error {
	type end struct {
		id  string
		err error
	}
	ends, over := make(chan end, len(ids)), map[string]bool{}
	for _, id := range ids {
		go func() { ends <- end{id, driveSaga(ctx, n, url, sagaOf(id))} }()
	}
	for len(over) < len(ids) {
		select {
		case e := <-ends:
			if e.err != nil {
				return fmt.Errorf("%s: %w", e.id, e.err)
			}
			over[e.id] = true
		case <-time.After(5 * time.Millisecond):
		}
		b.mu.Lock()
		if len(b.stopped) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return !over[id] && !b.stopped[id] }) {
			die()
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, done := range b.count {
		if b.at > 0 && done >= b.at { // its last operation has just been made, and stops there
			die()
		}
	}
	return nil
}

// driveSaga starts a saga, and cancels it when its step is under way, if so it shall
// be.
func driveSaga(ctx context.Context, n *testNode, url string, s saga) error {
	if _, _, err := n.rt.Start(ctx, s.id(), signal.Start{Definition: "t/saga-" + s.language, Input: json.RawMessage(`{}`)}, nil); err != nil {
		return err
	}
	var snap snapshot.Snapshot
	var err error
	for ctx.Err() == nil {
		snap, err = n.store.Writer.Load(ctx, s.id())
		switch {
		case err != nil:
			return err
		case snap.Status.Closed():
			return nil
		case snap.Status == snapshot.Faulted && s.status() == snapshot.Faulted && snap.Error.Type == "urn:lost":
			return nil
		case snap.Status == snapshot.Faulted && (s.last() > 0 || snap.Error.Detail != "refused"):
			return fmt.Errorf("faulted: %+v", snap.Error)
		case snap.Status == snapshot.Faulted:
			return nil // it has done nothing
		case snap.Compensating == nil && (s.how == "cancelled" && underWay(ctx, url, s) || s.how == "ended" && caught(&snap)):
			if _, err := n.rt.Operate(ctx, s.id(), engine.Compensate, nil, "ann"); !passing(err) {
				return err
			}
		}
		if err := answer(ctx, n, url, &snap); err != nil {
			return err
		}
		select { // between two looks at the database
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return fmt.Errorf("%w: it is %s, waits for %+v, and has %d steps to compensate", ctx.Err(), snap.Status, snap.Waits, len(snap.Compensations))
}

// caught reports whether a compensation in a catch is under way.
func caught(snap *snapshot.Snapshot) bool {
	return slices.ContainsFunc(snap.Waits, func(w snapshot.Wait) bool { return w.Arm > 0 && strings.Contains(w.Pointer, "/catch/") })
}

// answer plays the person and the consumer that an instance waits for when it compensates.
func answer(ctx context.Context, n *testNode, url string, snap *snapshot.Snapshot) error {
	if len(snap.Compensations) == 0 {
		return nil
	}
	c := snap.Compensations[len(snap.Compensations)-1]
	i := slices.IndexFunc(snap.Waits, func(w snapshot.Wait) bool { return w.Arm == c.Step })
	if i < 0 {
		return nil
	}
	var err error
	switch w := snap.Waits[i]; c.Target {
	case "call:humanTask":
		var asked struct{ Task engine.Task }
		if err := json.Unmarshal(c.Input, &asked); err != nil {
			return err
		}
		key := "person of " + snap.InstanceID + c.Pointer
		if _, err := enter(ctx, url, asked.Task.Payload, key, c.Effect); err != nil {
			return nil //nolint:nilerr // he will try again
		}
		_, err = n.rt.CompleteTask(ctx, w.TaskID, "ann", nil, "done", nil)
	case "call:acknowledged":
		var asked struct{ With booking }
		if err := json.Unmarshal(c.Input, &asked); err != nil {
			return err
		}
		if asked.With.Of = ""; has(ctx, url, asked.With) {
			_, err = n.rt.Acknowledge(ctx, snap.InstanceID, w.Command, ack.Ack{Outcome: ack.Processed})
		}
	}
	if passing(err) {
		return nil
	}
	return err
}

// passing reports whether what was asked may be asked again: the snapshot was old, or
// somebody else wrote just then.
func passing(err error) bool {
	k := problem.KindOf(err)
	return err == nil || k == problem.Conflict || k == problem.NotFound || k == problem.Unavailable
}

// underWay reports whether the outside has been asked for the step of a saga.
func underWay(ctx context.Context, url string, s saga) bool {
	return has(ctx, url, booking{Saga: s.id(), Step: s.at})
}

// has reports whether the outside has been asked for something.
func has(ctx context.Context, url string, asked booking) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?saga=%s&step=%d&back=%t", url, asked.Saga, asked.Step, asked.Back), nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && string(body) == "true"
}

// sagasRun runs sagas to their ends, after a crash at the k-th durable operation of
// each; 0 = undisturbed. It gives how many operations the last node counted.
func sagasRun(t *testing.T, place string, all []saga, k int, after string) int {
	t.Helper()
	b := &books{
		booked: map[booking]string{}, reached: map[booking]bool{}, back: map[booking]string{}, order: map[string][]int{},
		refused: map[string]bool{}, attempts: map[booking]int{},
	}
	srv := httptest.NewServer(b)
	defer srv.Close()
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = s.id()
	}
	list := "AQUEDUCT_TEST_SAGAS=" + strings.Join(ids, ",")
	if k > 0 {
		cmd := child(t, "saga", place, srv.URL, list, fmt.Sprintf("AQUEDUCT_TEST_AT=%d", k), "AQUEDUCT_TEST_AFTER="+after)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Run(); err == nil && k <= 2*sagaSteps {
			t.Errorf("no saga has %d operations", k)
		} else if err != nil && cmd.ProcessState.ExitCode() != -1 {
			t.Errorf("operation %d%s: child ended with %v: %s", k, after, err, said.String())
		}
		if err := errors.Join(testdb.Verify(t.Context(), place), testdb.Check(t.Context(), place)); err != nil {
			t.Error(err)
		}
	}
	out, err := child(t, "saga", place, srv.URL, list).Output()
	if err != nil {
		t.Fatalf("the node that finishes: %v", err)
	}
	for _, wrong := range b.wrong {
		t.Error(wrong)
	}
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ended := 0
	for _, s := range all {
		snap, err := st.Writer.Load(t.Context(), s.id())
		want := s.status()
		switch {
		case k > 0 && s.how == "fails" && s.last() == 0:
			want = snap.Status // the crash may have left its first attempt open
		case s.how == "ended" && snap.Status == snapshot.Compensated: // before the catch was over
			want, ended = snap.Status, ended+1
		case s.how == "ended" && snap.Status == snapshot.Cancelled: // when all was taken back already
			want = snap.Status
		}
		if err != nil || snap.Status != want {
			t.Errorf("%s is %s: %v", s.id(), snap.Status, err)
		}
		if err := b.agree(s, k > 0); err != nil {
			t.Error(err)
		}
	}
	if k == 0 && ended == 0 && slices.ContainsFunc(all, func(s saga) bool { return s.how == "ended" }) {
		t.Error("none was cancelled while a catch compensated")
	}
	if dead := must(st.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})); len(dead.Items) > 0 {
		t.Errorf("%+v", dead.Items)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n
}

// TestSagasSurviveEachCrash runs sagas of five steps, as documents and in Go, of which
// each step in turn fails, has an unknown outcome, or is cancelled meanwhile. What
// undoes a step is a call, a sub-workflow, a person or an acknowledged command; the
// steps of some are the items of a fan-out, or in a loop and in a try inside another,
// where some are cancelled when a catch has begun to compensate. The process is killed just before and just
// after each durable operation of every saga and of its sub-workflows, and another
// finishes: what was or may have been done is taken back once, in reverse, and the
// books of the outside agree.
func TestSagasSurviveEachCrash(t *testing.T) {
	t.Parallel()
	for name, languages := range map[string][]string{"calls": {"doc", "go"}, "means": {"means", "gomeans", "items", "levels"}} {
		t.Run(name, func(t *testing.T) {
			place, all := testdb.OnFile(t), sagas(languages, 1, 2, 3, 4, 5)
			most := sagasRun(t, place(), all, 0, "")
			if most < 2*sagaSteps {
				t.Fatalf("the longest saga has %d operations", most)
			}
			step := 1
			if testing.Short() {
				step = 5
			}
			for k := 1; k <= most; k += step {
				for _, after := range []string{"", "1"} {
					t.Run(fmt.Sprintf("%d%s", k, after), func(t *testing.T) { sagasRun(t, place(), all, k, after) })
				}
			}
			t.Logf("%d sagas of at most %d operations, each stopped before and after", len(all), most)
		})
	}
}

// TestSagasSurviveACrashOnOracle does so on the Oracle store, at one operation, another
// in every run, of sagas that go wrong at one step.
func TestSagasSurviveACrashOnOracle(t *testing.T) {
	t.Parallel()
	for name, languages := range map[string][]string{"calls": {"doc", "go"}, "means": {"means", "gomeans", "items", "levels"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []saga
			for _, language := range languages {
				all = append(all, saga{language, "fails", 4}, saga{language, "unknown", 3}, saga{language, "cancelled", 4})
			}
			if name == "means" {
				all = append(all, saga{"levels", "ended", 4})
			}
			place, k := testdb.OnOracle(t), 2+rand.IntN(2*sagaSteps-4)
			sagasRun(t, place(), all, k, []string{"", "1"}[rand.IntN(2)])
		})
	}
}
