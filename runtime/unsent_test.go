package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
)

// sink is the target of events of a node, and counts what it gets by type.
type sink struct {
	mu     sync.Mutex
	events map[string]int
}

func (s *sink) take(ctx context.Context, input json.RawMessage) (any, error) {
	if activity.Info(ctx).Target != engine.TargetEvent {
		return nil, nil
	}
	var e struct{ Type string }
	if err := json.Unmarshal(input, &e); err != nil {
		return nil, activity.Permanent(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.events = map[string]int{}
	}
	s.events[e.Type]++
	return nil, nil
}

func (s *sink) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for typ, n := range s.events {
		list = append(list, fmt.Sprint(typ, " ", n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// noticesOf are the commands of an instance's notices that are open, and those that are done.
func (n *testNode) noticesOf(t *testing.T, id string) (open, done []projections.Entry) {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 200)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		switch {
		case r.Type != engine.EntryEmitted || !strings.Contains(string(r.Data), `"io.aqueduct.`):
		case *r.Processed:
			done = append(done, r)
		default:
			open = append(open, r)
		}
	}
	return open, done
}

// TestNoticesWaitForASink has notices of nodes without a sink: they stay, are counted, and
// are sent once by a node that has one, from which the others take none. What a
// definition emits is done when the instances have it.
func TestNoticesWaitForASink(t *testing.T) {
	t.Parallel()
	emits := doc("emits", "\n  - say: {emit: {event: {with: {type: told.v1, source: 'x:y'}}}}\n")
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		often := func(c *runtime.Config) { c.UnsentEvery = 20 * time.Millisecond }
		n := startSet(t, place, often, nil, tellDoc, emits)
		n.begin(t, "emits", "t/emits", nil)
		n.begin(t, "i", "t/tell", nil)
		n.until(t, "i", status("completed"))
		for range 2 { // the second is AckRepeated
			if _, err := n.rt.Acknowledge(t.Context(), "i", 2, ack.Ack{Outcome: ack.Processed}); err != nil {
				t.Fatal(err)
			}
		}
		unsent := func() bool {
			open, done := n.noticesOf(t, "i")
			return len(open) == 2 && len(done) == 0 && !slices.ContainsFunc(open, func(r projections.Entry) bool {
				return r.ClaimedBy != "" || !strings.HasPrefix(r.LastError, "NoticeUnsent: ") || r.Attempts != 0 || !r.NextAttemptAt.IsZero()
			})
		}
		eventually(t, "unsent notices", unsent)
		eventually(t, "count", func() bool { return n.counted(t, "aqueduct_notices_unsent")[""] == 2 })
		n.output(t, "emits")
		eventually(t, "the author's event", func() bool {
			rows, err := n.store.Streams.Pending(t.Context(), "emits", 0)
			return err == nil && len(rows) == 0
		})
		if !unsent() {
			open, done := n.noticesOf(t, "i")
			t.Errorf("open %+v, done %+v", open, done)
		}

		s := &sink{}
		startSet(t, place, often, s.take) // beside the one that has none
		eventually(t, "sent", func() bool {
			open, done := n.noticesOf(t, "i")
			return len(open) == 0 && len(done) == 2
		})
		if got, want := s.got(), "io.aqueduct.ack.processed.v1 1, io.aqueduct.ack.repeated.v1 1"; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		eventually(t, "none waits", func() bool { return n.counted(t, "aqueduct_notices_unsent")[""] == 0 })
		if _, err := n.rt.Acknowledge(t.Context(), "i", 2, ack.Ack{Outcome: ack.Processed}); err != nil { // no notice more
			t.Fatal(err)
		}
		n.begin(t, "j", "t/tell", nil) // its notices are made by the node without a sink
		n.until(t, "j", status("completed"))
		if _, err := n.rt.Acknowledge(t.Context(), "j", 2, ack.Ack{Outcome: ack.Processed}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "sent by the other", func() bool { return s.got() == "io.aqueduct.ack.processed.v1 2, io.aqueduct.ack.repeated.v1 1" })
	})
}

// TestUnsentNoticesExpire has notices that no node could send end by age, and none kept
// where the operator wants none.
func TestUnsentNoticesExpire(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, keep := range []time.Duration{time.Second, -1} {
			n := startSet(t, fresh(), func(c *runtime.Config) { c.UnsentEvery, c.NoticeKeep = 20*time.Millisecond, keep }, nil, tellDoc)
			n.begin(t, "i", "t/tell", nil)
			n.until(t, "i", status("completed"))
			if _, err := n.rt.Acknowledge(t.Context(), "i", 2, ack.Ack{Outcome: ack.Processed}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "end", func() bool {
				open, done := n.noticesOf(t, "i")
				return len(open) == 0 && len(done) == 1
			})
			eventually(t, "count", func() bool { // behind its commit
				return n.counted(t, "aqueduct_notices_expired_total")[""] == int(max(0, keep/time.Second))
			})
		}
	})
}
