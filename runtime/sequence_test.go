package runtime_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// numbered is the signal of the sender crm with a sequence; in a ring each
// sequence has the only event that its state takes.
func numbered(id, signalID string, sequence int) signal.Envelope {
	return signal.Envelope{
		SignalID: signalID, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Sender: "crm", Sequence: int64(sequence),
		Payload: json.RawMessage(`{"type":"` + []string{"ca", "ab", "bc"}[sequence%3] + `","data":{}}`),
	}
}

// taken are the sequences that an instance has applied, in their order.
func (n *testNode) taken(t *testing.T, id string) []int {
	t.Helper()
	entries, err := n.store.Streams.Stream(t.Context(), id, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, e := range entries {
		var m engine.Meta
		if err := json.Unmarshal(e.Metadata, &m); err != nil {
			t.Fatal(err)
		}
		if m.Sequence > 0 && m.Disposition == "" {
			got = append(got, int(m.Sequence))
		}
	}
	return got
}

func upTo(n int) []int {
	var list []int
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// Signals of one sender with a sequence are applied in it, over two nodes, the
// API and the queue, in whatever order they come; what waits outlives the nodes.
func TestSequenceIsKeptAcrossNodes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		const signals = 61
		place := fresh()
		a, err := open(t.Context(), place, nil, nil, circleDoc)
		if err != nil {
			t.Fatal(err)
		}
		b := start(t, place, nil)
		first := trigger("t/ring", "R", "s-2", "")
		first.Signal.Type, first.Signal.Data, first.Signal.Sender, first.Signal.Sequence = "bc", json.RawMessage(`{}`), "crm", 2
		id, created, did, err := a.rt.StartOrSignal(t.Context(), "", first, nil)
		if err != nil || !created || did != engine.Buffered {
			t.Fatalf("%t %s, %v", created, did, err)
		}
		for i, at := range rand.Perm(signals - 1) {
			if at++; at >= 2 { // the second has been sent
				at++
			}
			env := numbered(id, fmt.Sprintf("s-%d", at), at)
			switch i % 3 {
			case 0:
				_, err = a.rt.Signal(t.Context(), env)
			case 1:
				_, err = b.rt.Signal(t.Context(), env)
			default:
				err = a.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: must(env.Encode())}}})
			}
			if err != nil {
				t.Fatalf("sequence %d: %v", at, err)
			}
		}
		b.until(t, id, func(projections.Instance) bool { return len(b.taken(t, id)) == signals })
		if got := b.taken(t, id); !slices.Equal(got, upTo(signals)) {
			t.Fatalf("applied in the order %v", got)
		}
		told := func(n *testNode, what string, at int, want engine.Disposition) { // by the queue where one before it comes again
			t.Helper()
			if did, err := n.rt.Signal(t.Context(), numbered(id, what, at)); did != want && did != engine.Queued || err != nil {
				t.Errorf("%s: %s, %v, want %s", what, did, err, want)
			}
		}
		told(b, "other", 5, engine.Duplicate)
		told(a, "ahead", signals+2, engine.Buffered)
		eventually(t, "a gap to be measured", func() bool {
			return b.counted(t, "aqueduct_sequence_gaps")[""] == 1 && b.counted(t, "aqueduct_sequence_ahead")[""] == 1
		})
		if err := a.close(); err != nil {
			t.Fatal(err)
		}
		c := start(t, place, nil)
		told(c, "gap", signals+1, engine.Applied)
		c.until(t, id, func(projections.Instance) bool { return len(c.taken(t, id)) == signals+2 })
		if got := c.taken(t, id); !slices.Equal(got, upTo(signals+2)) {
			t.Errorf("after the restart %v", got)
		}
		if gaps, ahead := c.counted(t, "aqueduct_sequence_gaps")[""], c.counted(t, "aqueduct_sequence_ahead")[""]; gaps+ahead != 0 {
			t.Errorf("measured without a gap: %d, %d", gaps, ahead)
		}
		c.quiet(t)
	})
}

// What an instance keeps of signals with a sequence is bounded.
func TestWaitingForATurnIsBounded(t *testing.T) {
	t.Parallel()
	n := start(t, testdb.OnFile(t)(), nil, circleDoc)
	n.begin(t, "r", "t/ring", nil)
	for i := range snapshot.MaxAhead {
		if did, err := n.rt.Signal(t.Context(), numbered("r", fmt.Sprintf("s-%d", i), i+2)); did != engine.Buffered || err != nil {
			t.Fatalf("%s, %v", did, err)
		}
	}
	if _, err := n.rt.Signal(t.Context(), numbered("r", "over", snapshot.MaxAhead+2)); problem.CodeOf(err) != "limit.ahead" {
		t.Errorf("over the bound: %v", err)
	}
	if did, err := n.rt.Signal(t.Context(), numbered("r", "first", 1)); did != engine.Applied || err != nil {
		t.Errorf("the first: %s, %v", did, err)
	}
	s, err := n.store.Writer.Load(t.Context(), "r")
	if want := int64(snapshot.MaxAhead + 1); err != nil || len(s.Ahead) > 0 || s.Senders[0].Last != want || s.Version != 2*want {
		t.Errorf("%d ahead, version %d, %+v, %v", len(s.Ahead), s.Version, s.Senders, err)
	}
	for i := range snapshot.MaxSenders {
		env := numbered("r", fmt.Sprintf("x-%d", i), 2)
		env.Sender = fmt.Sprintf("other-%d", i)
		_, err = n.rt.Signal(t.Context(), env)
	}
	if problem.CodeOf(err) != "limit.senders" {
		t.Errorf("a sender too many: %v", err)
	}
}
