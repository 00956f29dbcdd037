package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// troubled is a store whose commits fail for a while, as on a full disk.
type troubled struct {
	handing
	failures atomic.Int64
}

type troubledDelivery struct {
	store.Delivery
	s *troubled
}

func (s *troubled) trouble() error {
	if s.failures.Add(-1) >= 0 {
		return problem.New(problem.Unavailable, "store.full", "the disk is full")
	}
	return nil
}

// wraps puts it over a store.
func (s *troubled) wraps(whole backend.Parts) backend.Parts {
	return s.over(whole, s, func(d store.Delivery) store.Delivery { return &troubledDelivery{d, s} })
}

func (d *troubledDelivery) Commit(ctx context.Context, c store.Change) error {
	if err := d.s.trouble(); err != nil {
		return err
	}
	return d.Delivery.Commit(ctx, c)
}

func (d *troubledDelivery) Release(ctx context.Context, cause error) error {
	if err := d.s.trouble(); err != nil {
		return err
	}
	return d.Delivery.Release(ctx, cause)
}

func TestMessageOutlivesTheStoresTrouble(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		s := &troubled{}
		n, err := open(t.Context(), fresh(), s.wraps, nil, listenDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}()
		n.begin(t, "i", "t/listen", map[string]any{"order": 1})
		s.failures.Store(4) // the turn, and the giving back, and so on
		n.send(t, `{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"paid","data":{"order":1}}}`)
		n.output(t, "i")
		if page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("dead letters %v, %v", page, err)
		}
	})
}

// Messages of one instance that the store could not take are given back in order,
// after one pause: with a pause for each, 30 of them would take half a minute.
func TestMessagesAreGivenBackInOrder(t *testing.T) {
	t.Parallel()
	s := &troubled{}
	var log told
	n := configured(t, testdb.OnFile(t)(), func(c *runtime.Config) {
		c.Store = s.wraps(c.Store)
		c.SignalConsumers, c.RetryDelay = 30, time.Second
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	}, gatherDoc)
	n.begin(t, "g", "t/gather", nil)
	begun := time.Now()
	s.failures.Store(3) // of the first; of all together; of their first
	var c store.Change
	var want []string
	for i := range 30 {
		data := fmt.Sprint(i)
		if i == 29 {
			data = "stop"
		}
		want = append(want, data)
		c.Send = append(c.Send, store.Send{Queue: store.Signals, Body: must(signal.Envelope{
			SignalID: fmt.Sprintf("s-%d", i), InstanceID: "g", Type: signal.ExternalSignal, OccurredAt: time.Now(),
			Payload: json.RawMessage(fmt.Sprintf(`{"type":"step","data":"%s"}`, data)),
		}.Encode())})
	}
	if err := n.store.Writer.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal([]byte(n.output(t, "g")), &got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	// A busy machine may take as long without the pauses.
	if took, pauses := time.Since(begun), strings.Count(log.text(), "messages are given back"); took > 20*time.Second && pauses > 10 {
		t.Errorf("it took %s, with %d pauses", took, pauses)
	}
}

// away is a store that takes no commit at all, while it has failures left.
type away struct{ *troubled }

func (s away) Commit(ctx context.Context, c store.Change) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Writer.Commit(ctx, c)
}

// TestNodeEndsAlthoughItsStoreIsAway stops a node while a consumer retries a
// commit that the database does not take.
func TestNodeEndsAlthoughItsStoreIsAway(t *testing.T) {
	t.Parallel()
	s := away{&troubled{}}
	called := make(chan struct{}, 1)
	n, err := open(t.Context(), t.TempDir()+"/a.db", func(whole backend.Parts) backend.Parts { p := s.wraps(whole); p.Writer = s; return p },
		func(ctx context.Context, _ json.RawMessage) (any, error) {
			called <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}, callDoc)
	if err != nil {
		t.Fatal(err)
	}
	n.rt.DrainTimeout = 50 * time.Millisecond
	n.begin(t, "i", "t/call", nil)
	<-called
	s.failures.Store(1 << 30)
	// The command is given back with no attempt left: a consumer answers it.
	body := must(signal.ForCommand("i", 2, 5, time.Now(), time.Time{}).Encode())
	err = n.store.Writer.Commit(t.Context(), store.Change{
		Claims: []store.Claim{{InstanceID: "i", Position: 2, Expect: n.store.Nodes.Node(), Attempts: 5}},
		Send:   []store.Send{{Queue: store.Commands, Body: body}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for s.failures.Load() > 1<<30-2 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.close() }()
	if err, ok := await.Receive(ended, func() any { return nil }); !ok {
		t.Fatal("the node does not end")
	} else if err != nil {
		t.Errorf("close: %v", err)
	}
}

// orphaning is a store that cannot look for commands of dead nodes for a while.
type orphaning struct {
	backend.Nodes
	failures atomic.Int64
}

func (s *orphaning) Orphans(ctx context.Context, most int) (int, error) {
	if s.failures.Add(-1) >= 0 {
		return 0, problem.New(problem.Unavailable, "store.full", "the session is gone")
	}
	return s.Nodes.Orphans(ctx, most)
}

// deceased is a writer by which nothing is written once its node is dead.
type deceased struct {
	store.Writer
	dead *atomic.Bool
}

func (m deceased) Commit(ctx context.Context, c store.Change) error {
	if m.dead.Load() {
		return store.ErrClosed
	}
	return m.Writer.Commit(ctx, c)
}

// finding says in each adoption how many there still are.
type finding struct {
	backend.Nodes
	mu    sync.Mutex
	found []int
}

func (f *finding) Orphans(context.Context, int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.found) == 0 {
		return 0, nil
	}
	n := f.found[0]
	f.found = f.found[1:]
	return n, nil
}

// A batch of which others take a part is not the last one; and what is left by nobody who died, or was locked, is
// looked for by the clock.
func TestAdoptionGoesOn(t *testing.T) {
	t.Parallel()
	f := &finding{found: []int{499, 0, 1, 0}}
	n := startSet(t, t.TempDir()+"/a.db", func(c *runtime.Config) {
		c.StraysEvery = 20 * time.Millisecond
		f.Nodes, c.Store.Nodes = c.Store.Nodes, f
	}, func(context.Context, json.RawMessage) (any, error) { return 1, nil })
	eventually(t, "two adoptions", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.found) == 0
	})
	n.settled(t)
}

// A node that cannot adopt what a dead one left goes on, and tries again.
func TestAdoptionOutlivesTrouble(t *testing.T) {
	t.Parallel()
	place := t.TempDir() + "/a.db"
	var dead atomic.Bool
	whole := func(p backend.Parts) backend.Parts { p.Writer = deceased{p.Writer, &dead}; return p }
	called := make(chan struct{}, 1)
	first, err := open(t.Context(), place, whole, func(ctx context.Context, _ json.RawMessage) (any, error) {
		called <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, callDoc)
	if err != nil {
		t.Fatal(err)
	}
	first.rt.DrainTimeout = time.Millisecond
	first.begin(t, "i", "t/call", nil)
	<-called
	dead.Store(true) // it gives nothing back
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	s := &orphaning{}
	s.failures.Store(3)
	second, err := open(t.Context(), place, func(p backend.Parts) backend.Parts { s.Nodes, p.Nodes = p.Nodes, s; return p },
		func(context.Context, json.RawMessage) (any, error) { return 1, nil }, callDoc)
	if err != nil {
		t.Fatal(err)
	}
	second.until(t, "i", status("completed"))
	if err := second.close(); err != nil {
		t.Error(err)
	}
	if s.failures.Load() >= 0 {
		t.Error("nothing failed")
	}
}
