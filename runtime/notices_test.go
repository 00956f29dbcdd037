package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// deadLetterSink takes events after it has refused some.
type deadLetterSink struct {
	mu     sync.Mutex
	ill    int
	events []map[string]any
}

func (s *deadLetterSink) take(_ context.Context, input json.RawMessage) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ill > 0 {
		s.ill--
		return nil, errors.New("not now")
	}
	var event map[string]any
	if err := json.Unmarshal(input, &event); err != nil {
		return nil, activity.Permanent(err)
	}
	s.events = append(s.events, event)
	return nil, nil
}

func (s *deadLetterSink) taken() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.events...)
}

// tells starts a node whose sink is told of dead letters.
func tells(t *testing.T, place string, sink *deadLetterSink) *testNode {
	t.Helper()
	n, err := openSet(t.Context(), place, func(c *runtime.Config) { c.DeadLetterEvents = true }, sink.take)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *testNode) die(t *testing.T, body string) {
	t.Helper()
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(body)}}}); err != nil {
		t.Fatal(err)
	}
}

// TestADeadLetterIsToldOfOnce: to log, metrics and sink, however many nodes there are
// and however often the sink does not take it; and by a restarted node not again.
func TestADeadLetterIsToldOfOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place, sink := fresh(), &deadLetterSink{ill: 2}
		a, b := tells(t, place, sink), tells(t, place, sink)
		a.die(t, "no envelope")
		var failed, told int
		eventually(t, "the letter is told of", func() bool {
			told, failed = 0, 0
			for _, n := range []*testNode{a, b} {
				told += n.counted(t, "aqueduct_dead_letters_told_total")["signal"]
				failed += n.counted(t, "aqueduct_dead_letters_untold_total")[""]
			}
			return told > 0
		})
		if told != 1 || failed != 2 {
			t.Errorf("told %d times, failed %d times", told, failed)
		}
		page, err := a.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		if err != nil || len(page.Items) != 1 {
			t.Fatal(page, err)
		}
		events := sink.taken()
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		data, _ := events[0]["data"].(map[string]any)
		if events[0]["type"] != "io.aqueduct.dead-letter.v1" || events[0]["subject"] != page.Items[0].ID || data["reason"] != "signal.not-json" || data["deadLetterId"] != page.Items[0].ID {
			t.Errorf("%v", events[0])
		}
		for _, n := range []*testNode{a, b} {
			if err := n.close(); err != nil {
				t.Fatal(err)
			}
		}
		c := tells(t, place, sink)
		defer c.close()
		c.die(t, "none either")
		eventually(t, "the other letter", func() bool { return len(sink.taken()) == 2 })
		if id := sink.taken()[1]["subject"]; id == page.Items[0].ID {
			t.Error("the first letter was told of again")
		}
	})
}

// TestADeadLetterWithoutANoticeIsOne: one whose notice is lost is listed and replayed
// as any; one that nobody was told of when it was made is told of when a node comes.
func TestADeadLetterWithoutANoticeIsOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place, sink := fresh(), &deadLetterSink{}
		st, err := testdb.Open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		made := func(id string) {
			t.Helper()
			if err := st.Writer.Commit(t.Context(), store.Change{DeadLetter: &projections.DeadLetter{ID: id, Queue: "signal", Reason: "r", Envelope: []byte("e"), DiedAt: time.Now()}}); err != nil {
				t.Fatal(err)
			}
		}
		made("lost")
		n, err := st.Notices.Next(t.Context(), time.Minute)
		if err == nil {
			err = st.Notices.Told(t.Context(), n)
		}
		if err != nil {
			t.Fatal(err)
		}
		made("waits")
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		node := tells(t, place, sink)
		defer node.close()
		eventually(t, "the letter that waits", func() bool { return len(sink.taken()) == 1 })
		if sink.taken()[0]["subject"] != "waits" {
			t.Errorf("%v", sink.taken())
		}
		if _, err := node.rt.Replay(t.Context(), "lost"); err != nil {
			t.Error(err)
		}
		eventually(t, "it dies again", func() bool { return len(sink.taken()) == 2 })
	})
}

// failNotices counts the removal of a notice as a durable operation.
type failNotices struct {
	backend.Notices
	f *failpoint
}

func (n failNotices) Told(ctx context.Context, notice backend.Notice) error {
	return n.f.around(func() error { return n.Notices.Told(ctx, notice) })
}

// noticesChild is a node that works until every notice is told of, or until its
// failpoint. It prints how many durable operations it made.
func noticesChild() int {
	at, _ := strconv.ParseInt(os.Getenv("AQUEDUCT_TEST_AT"), 10, 64)
	var count atomic.Int64
	f := &failpoint{count: &count, at: at, after: os.Getenv("AQUEDUCT_TEST_AFTER") != "", place: os.Getenv("AQUEDUCT_TEST_FILE")}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	n, err := openSet(ctx, f.place, func(c *runtime.Config) {
		c.DeadLetterEvents = true
		c.Store = f.wraps(c.Store)
		c.Store.Notices = failNotices{c.Store.Notices, f}
	}, outside(os.Getenv("AQUEDUCT_TEST_URL")))
	for told := false; err == nil && !told; {
		var page backend.Page[projections.DeadLetter]
		if page, err = n.store.DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{}); err == nil && len(page.Items) > 0 {
			_, err = n.store.Notices.Next(ctx, 0)
			if told = errors.Is(err, store.ErrNotFound); told {
				err = nil
			}
		}
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

// TestADeadLetterIsToldOfThroughEachCrash stops a process before and after each of its
// durable operations: there is one letter, the sink is told of it, each time under the
// same key, and no notice is left.
func TestADeadLetterIsToldOfThroughEachCrash(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		run := func(t *testing.T, child func(place, url string) int64) (operations int64) {
			place, w := fresh(), &world{effects: map[string]string{}}
			srv := httptest.NewServer(w)
			defer srv.Close()
			send := func(change store.Change) *testdb.Database {
				st, err := testdb.Open(t.Context(), place)
				if err == nil {
					err = st.Writer.Commit(t.Context(), change)
				}
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			if err := send(store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("no envelope")}}}).Close(); err != nil {
				t.Fatal(err)
			}
			operations = child(place, srv.URL)
			st := send(store.Change{})
			defer st.Close()
			page, err := st.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
			if err != nil || len(page.Items) != 1 || len(w.effects) != 1 {
				t.Errorf("%d letters, %v, the sink: %s", len(page.Items), err, w)
			}
			if n, err := st.Notices.Next(t.Context(), 0); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a notice is left: %+v, %v", n, err)
			}
			return operations
		}
		operations := run(t, func(place, url string) int64 { return runToEnd(t, "notices", place, url) })
		if operations < 2 {
			t.Fatalf("%d operations", operations)
		}
		for k := int64(1); k <= operations; k++ {
			for _, after := range []string{"", "1"} {
				t.Run(fmt.Sprintf("%d%s", k, after), func(t *testing.T) {
					t.Parallel()
					run(t, func(place, url string) int64 {
						killed(t, "notices", place, url, k, after)
						return runToEnd(t, "notices", place, url)
					})
				})
			}
		}
	})
}
