package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// patient has what was refused for want of one before it wait as long as a busy machine takes.
func patient(c *runtime.Config) { c.OrderGrace = time.Minute }

// Somebody has a row of an instance locked, for as long as it takes: twice as many
// signals for it as the node has consumers hold up no other instance, nor does a call
// of the API wait; they are applied in their order when the lock is gone (issue: a
// signal to another instance took 35 s, then as long as the lock lasted).
func TestALockedInstanceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"its state":         "update WF_RUNTIME_STATES set LAST_EXECUTED_BY = 'dba' where INSTANCE_ID = 'locked'",
		"what people query": "update WF_INSTANCES set STATE = STATE where INSTANCE_ID = 'locked'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := testdb.OnOracle(t)()
			n := startSet(t, place, patient, nil, circleDoc) // 4 consumers
			send := func(reference string, i int) store.Send {
				s := trigger("t/ring", reference, fmt.Sprintf("e-%d", i), "")
				s.Signal.Type, s.Signal.Data = []string{"ab", "bc", "ca"}[i%3], json.RawMessage(`{}`)
				return store.Send{Queue: store.Signals, Body: must(signal.Envelope{
					SignalID: fmt.Sprintf("s-%d", i), InstanceID: reference, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: must(json.Marshal(s)),
				}.Encode())}
			}
			commit := func(list ...store.Send) {
				t.Helper()
				if err := n.store.Writer.Commit(t.Context(), store.Change{Send: list}); err != nil {
					t.Fatal(err)
				}
			}
			applied := func(reference string, count int) {
				t.Helper()
				n.until(t, reference, func(projections.Instance) bool { return len(n.signals(t, reference)) == count })
			}
			commit(send("locked", 0))
			applied("locked", 1)
			release, err := testdb.Lock(t.Context(), place, lock)
			if err != nil {
				t.Fatal(err)
			}
			const events = 9
			var list []store.Send
			for i := 1; i < events; i++ {
				list = append(list, send("locked", i))
			}
			commit(list...)
			for i := range 5 { // again and again: the signals of the locked one come again, too
				commit(send("free", i))
				applied("free", i+1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // which the lock of this test outlasts
			defer cancel()
			s := trigger("t/ring", "locked", fmt.Sprintf("e-%d", events), "")
			s.Signal.Type, s.Signal.Data = "ab", json.RawMessage(`{}`)
			want := events
			switch _, _, err := n.rt.Start(ctx, "locked", s, nil); {
			case err == nil: // it is queued, behind the others
				want++
			case ctx.Err() != nil:
				t.Errorf("a call waits for the lock: %v", err)
			case problem.CodeOf(err) != "store.locked":
				t.Error(err)
			}
			eventually(t, "its messages come again", func() bool { return n.counted(t, "aqueduct_message_retries_total")["signal"] > 20 })
			if got := len(n.signals(t, "locked")); got != 1 {
				t.Errorf("%d signals were applied to a locked instance", got)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			applied("locked", want)
			for i, got := range n.signals(t, "locked") {
				if got != fmt.Sprintf("e-%d", i) {
					t.Errorf("signal %d is %s", i, got)
				}
			}
			n.quiet(t)
		})
	}
}

// Somebody has other rows of more instances locked than the node has workers: what waits
// for events, tasks, commands under way. Others go on, calls are answered with whose rows
// they are, the node stops in time, and when the lock is gone all is done, once.
func TestLockedRowsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	const many, drain = 12, 3 * time.Second
	name := func(i int) string { return fmt.Sprintf("locked-%d", i) }
	for table, k := range map[string]struct {
		definition string
		answer     func(ctx context.Context, n *testNode, id string) error // what the instance waits for; nil = its command comes to its end
		told       bool                                                    // who answers hears of the lock
	}{
		"WF_WAITS": {"t/listen", func(ctx context.Context, n *testNode, id string) error {
			event := must(json.Marshal(map[string]any{"specversion": "1.0", "id": "e-" + id, "type": "paid", "source": "s", "data": map[string]any{"order": id}}))
			_, err := n.rt.PublishEvent(ctx, event, nil)
			return err
		}, false},
		"WF_TASKS": {"t/ask", func(ctx context.Context, n *testNode, id string) error {
			page, err := n.store.Tasks.Tasks(ctx, backend.TaskQuery{InstanceID: id})
			if err != nil || len(page.Items) != 1 {
				return fmt.Errorf("%d tasks, %w", len(page.Items), err)
			}
			k := page.Items[0]
			if k.Assignee == "" {
				_, err = n.rt.ClaimTask(ctx, k.ID, "ann", nil)
			}
			if err == nil {
				_, err = n.rt.CompleteTask(ctx, k.ID, "ann", nil, "yes", nil)
			}
			return err
		}, true},
		"WF_STREAM": {"t/call", nil, false},
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			place := testdb.OnOracle(t)()
			locked, effects := make(chan struct{}), new(sync.Map)
			effect := func(ctx context.Context, in json.RawMessage) (any, error) {
				var call struct{ N int }
				if err := json.Unmarshal(in, &call); err != nil {
					return nil, err
				}
				if n, _ := effects.LoadOrStore(call.N, new(atomic.Int64)); n.(*atomic.Int64).Add(1) == 1 && call.N < many {
					<-locked
				}
				return nil, nil
			}
			n, err := openSet(t.Context(), place, func(c *runtime.Config) { c.DrainTimeout = drain }, effect, listenDoc, askDoc, callDoc)
			if err != nil {
				t.Fatal(err)
			}
			begin := func(id string, i int) {
				n.begin(t, id, k.definition, map[string]any{"order": id, "n": i})
				if k.answer != nil {
					n.until(t, id, status("waiting"))
				}
			}
			for i := range many {
				begin(name(i), i)
			}
			if k.answer == nil {
				eventually(t, "commands are under way", func() bool {
					open, err := n.store.Streams.Pending(t.Context(), "", many)
					return err == nil && len(open) == many && slices.ContainsFunc(open, func(e projections.Entry) bool { return e.ClaimedBy != "" })
				})
			}
			release, err := testdb.Lock(t.Context(), place, "update "+table+" set INSTANCE_ID = INSTANCE_ID where INSTANCE_ID like 'locked-%'")
			if err != nil {
				t.Fatal(err)
			}
			close(locked)
			for i := range many {
				if k.answer == nil {
					break
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // which no lock of this test outlasts
				err := k.answer(ctx, n, name(i))
				late := ctx.Err() != nil
				cancel()
				switch {
				case late:
					t.Fatalf("call %d waits for the lock: %v", i, err)
				case err != nil && (problem.CodeOf(err) != "store.locked" || !strings.Contains(err.Error(), table)):
					t.Error(err)
				case err == nil && k.told:
					t.Errorf("call %d was answered while its rows were locked", i)
				}
			}
			for i := range 5 {
				id := fmt.Sprintf("free-%d", i)
				begin(id, many+i)
				if k.answer != nil {
					if err := k.answer(t.Context(), n, id); err != nil {
						t.Fatal(id, err)
					}
				}
				n.until(t, id, status("completed"))
			}
			closed := make(chan error, 1)
			go func() { closed <- n.close() }()
			if err, ok := await.Receive(closed, func() any { return nil }); err != nil || !ok {
				t.Errorf("while the lock lasts it has stopped: %t, %v", ok, err)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			n = start(t, place, effect)
			for i := range many {
				if k.told {
					if err := k.answer(t.Context(), n, name(i)); err != nil {
						t.Error(i, err)
					}
				}
				n.until(t, name(i), status("completed"))
			}
			n.quiet(t)
		})
	}
}

// More signals wait for an instance that is locked than come at once, each a message that comes
// again: signals of another instance are applied meanwhile, few messages are sent again
// in a second, and when the lock is gone all are applied in their order, each once.
func TestALongLineKeepsItsOrder(t *testing.T) {
	t.Parallel()
	place := testdb.OnOracle(t)()
	n := startSet(t, place, patient, nil, circleDoc)
	send := func(reference string, first, last int) {
		t.Helper()
		var list []store.Send
		for i := first; i <= last; i++ {
			s := trigger("t/ring", reference, fmt.Sprintf("e-%d", i), "")
			s.Signal.Type, s.Signal.Data = []string{"ab", "bc", "ca"}[i%3], json.RawMessage(`{}`)
			list = append(list, store.Send{Queue: store.Signals, Body: must(signal.Envelope{
				SignalID: fmt.Sprintf("s-%d", i), InstanceID: reference, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: must(json.Marshal(s)),
			}.Encode())})
		}
		if err := n.store.Writer.Commit(t.Context(), store.Change{Send: list}); err != nil {
			t.Fatal(err)
		}
	}
	applied := func(reference string, count int) {
		t.Helper()
		n.until(t, reference, func(projections.Instance) bool { return len(n.signals(t, reference)) == count })
	}
	send("locked", 0, 0)
	applied("locked", 1)
	release, err := testdb.Lock(t.Context(), place, "update WF_RUNTIME_STATES set LAST_EXECUTED_BY = 'dba' where INSTANCE_ID = 'locked'")
	if err != nil {
		t.Fatal(err)
	}
	const signals = 150 // whose entries are a page
	send("locked", 1, signals-1)
	again := func() int { return n.counted(t, "aqueduct_message_retries_total")["signal"] }
	eventually(t, "all have come once", func() bool { return again() >= signals-1 })
	for i := range 10 {
		send("free", i, i)
		applied("free", i+1)
	}
	since, before := time.Now(), again()
	// For some rounds: those that fall due while a busy machine stands still come at once.
	eventually(t, "all have come again", func() bool { return again() >= before+2*signals })
	if rate := float64(again()-before) / time.Since(since).Seconds(); rate > 150 {
		t.Errorf("%.0f messages are sent again in a second", rate)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	applied("locked", signals)
	for i, got := range n.signals(t, "locked") {
		if got != fmt.Sprintf("e-%d", i) {
			t.Fatalf("signal %d is %s", i, got)
		}
	}
	n.quiet(t)
}
