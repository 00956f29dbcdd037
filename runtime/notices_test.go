package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
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
		if events[0]["type"] != runtime.DeadLetterEvent || events[0]["subject"] != page.Items[0].ID || data["reason"] != "signal.not-json" || data["deadLetterId"] != page.Items[0].ID {
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
		if err := node.rt.Replay(t.Context(), "lost"); err != nil {
			t.Error(err)
		}
		eventually(t, "it dies again", func() bool { return len(sink.taken()) == 2 })
	})
}
