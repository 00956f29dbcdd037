package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func doc(name, tasks string) string {
	return "document: {dsl: '1.0.3', namespace: t, name: " + name + ", version: '1.0.0'}\ndo:\n" + tasks
}

var (
	askDoc = doc("ask", `
  - approve:
      call: humanTask
      with: {title: Approve, candidateUsers: [ann], candidateGroups: [staff], excludedUsers: [eve], outcomes: [yes, no], payload: '${ . }'}
      output: {as: '${ {outcome, by: .completedBy, data} }'}
`)
	listenDoc = doc("listen", `
  - paid:
      listen:
        to: {one: {with: {type: paid}, correlate: {order: {from: .data.order, expect: '${ .order }'}}}}
      output: {as: '${ .[0] }'}
`)
	callDoc = doc("call", `
  - do:
      call: effect
      with: {n: '${ .n }'}
`)
)

// code fails the test unless err has the code.
func code(t *testing.T, err error, want string) {
	t.Helper()
	if problem.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStartIsIdempotent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var calls atomic.Int64
		n := start(t, fresh(), func(context.Context, json.RawMessage) (any, error) { return calls.Add(1), nil }, callDoc)
		req := signal.Start{Definition: "t/call", BusinessKey: "o-1", StartKey: "k", Input: json.RawMessage(`{"n":1}`)}
		var mu sync.Mutex
		ids, created := map[string]bool{}, 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				id, isNew, err := n.rt.Start(t.Context(), "", req, nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
				if isNew {
					created++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || created != 1 {
			t.Errorf("%d instances, %d created", len(ids), created)
		}
		for id := range ids {
			if out := n.output(t, id); out != "1" || calls.Load() != 1 {
				t.Errorf("output %s after %d calls", out, calls.Load())
			}
		}
		if id, isNew, err := n.rt.Start(t.Context(), "mine", signal.Start{Definition: "t/call"}, nil); id != "mine" || !isNew || err != nil {
			t.Errorf("%s %t %v", id, isNew, err)
		}
		if _, isNew, err := n.rt.Start(t.Context(), "mine", signal.Start{Definition: "t/call"}, nil); isNew || err != nil {
			t.Errorf("again: %t %v", isNew, err)
		}
		_, _, err := n.rt.Start(t.Context(), "", signal.Start{Definition: "t/none"}, nil)
		code(t, err, "definition.unknown")
		_, _, err = n.rt.Start(t.Context(), "", signal.Start{}, nil)
		code(t, err, "signal.invalid-start")
		_, _, err = n.rt.Start(t.Context(), "a b", signal.Start{Definition: "t/call"}, nil)
		code(t, err, "signal.invalid")
	})
}

func TestTaskIsCompletedOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, askDoc)
		n.begin(t, "i", "t/ask", map[string]any{"amount": 5})
		n.until(t, "i", status("waiting"))
		page, err := n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{User: "bob", Groups: []string{"staff"}})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("tasks %v, %v", page, err)
		}
		ctx, id := t.Context(), page.Items[0].ID
		_, err = n.rt.CompleteTask(ctx, id, "bob", nil, "yes", nil)
		code(t, err, "task.not-claimed")
		_, err = n.rt.ClaimTask(ctx, id, "eve", []string{"staff"})
		code(t, err, "task.denied")
		_, err = n.rt.ClaimTask(ctx, id, "joe", []string{"others"})
		code(t, err, "task.denied")
		_, err = n.rt.ClaimTask(ctx, id, "", nil)
		code(t, err, "task.user-missing")
		for range 2 { // the second claim of the same person is a no-op
			if got, err := n.rt.ClaimTask(ctx, id, "bob", []string{"staff"}); err != nil || got.Assignee != "bob" {
				t.Errorf("claim: %+v, %v", got, err)
			}
		}
		_, err = n.rt.ClaimTask(ctx, id, "ann", nil)
		code(t, err, "task.taken")
		_, err = n.rt.ReleaseTask(ctx, id, "ann")
		code(t, err, "task.not-yours")
		if got, err := n.rt.ReleaseTask(ctx, id, "bob"); err != nil || got.Status != projections.TaskReady {
			t.Errorf("release: %+v, %v", got, err)
		}
		if _, err := n.rt.ClaimTask(ctx, id, "ann", nil); err != nil {
			t.Fatal(err)
		}
		_, err = n.rt.CompleteTask(ctx, id, "bob", nil, "yes", nil)
		code(t, err, "task.not-yours")
		_, err = n.rt.CompleteTask(ctx, id, "ann", nil, "perhaps", nil)
		code(t, err, "task.invalid-outcome")

		var wins atomic.Int64
		var wg sync.WaitGroup
		for range 6 { // an impatient person clicks six times at once
			wg.Go(func() {
				_, err := n.rt.CompleteTask(ctx, id, "ann", nil, "yes", json.RawMessage(`{"note":"grün"}`))
				if err == nil {
					wins.Add(1)
				} else if problem.CodeOf(err) != "task.completed" || !strings.Contains(err.Error(), "completed by ann at 2") {
					t.Errorf("a later click: %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Errorf("%d completions", wins.Load())
		}
		if out := n.output(t, "i"); out != `{"by":"ann","data":{"note":"grün"},"outcome":"yes"}` {
			t.Errorf("output %s", out)
		}
		events, err := n.store.Tasks.TaskEvents(ctx, id)
		var names []string
		for _, e := range events {
			names = append(names, e.Event+":"+e.Actor)
		}
		if got := strings.Join(names, " "); err != nil || got != "created: claimed:bob released:bob claimed:ann completed:ann" {
			t.Errorf("events %s, %v", got, err)
		}
		_, err = n.rt.ClaimTask(ctx, "none", "ann", nil)
		code(t, err, "task.unknown")
	})
}

func TestSignalSaysWhatItDid(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 7})
		send := func(id, payload string) (engine.Disposition, error) {
			return n.rt.Signal(t.Context(), signal.Envelope{
				SignalID: id, InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(payload),
			})
		}
		for _, c := range []struct {
			id, payload string
			want        engine.Disposition
		}{
			{"s1", `{"type":"other"}`, engine.Buffered},
			{"s1", `{"type":"other"}`, duplicate},
			{"s2", `{"type":"paid","data":{"order":8}}`, engine.Buffered},
			{"s3", `{"type":"paid","data":{"order":7}}`, engine.Applied},
			{"s3", `{"type":"paid","data":{"order":7}}`, duplicate}, // though the instance is closed now (B7)
		} {
			if got, err := send(c.id, c.payload); got != c.want || err != nil {
				t.Errorf("%s %s: %s, %v, want %s", c.id, c.payload, got, err, c.want)
			}
		}
		_, err := send("s4", `{"type":"paid"}`)
		code(t, err, "instance.closed")
		_, err = send("s5", `[]`)
		code(t, err, "signal.invalid")
		_, err = n.rt.Signal(t.Context(), signal.Envelope{SignalID: "s", InstanceID: "none", Type: signal.ExternalSignal, OccurredAt: time.Now()})
		code(t, err, "instance.unknown")

		n.begin(t, "j", "t/listen", map[string]any{"order": 7})
		env := signal.Envelope{SignalID: "s", InstanceID: "j", Type: signal.ExternalSignal, OccurredAt: time.Now(), WaitingToken: "forged"}
		_, err = n.rt.Signal(t.Context(), env)
		code(t, err, "signal.stale")
		env.WaitingToken, env.ExpectedVersion = "", 9
		_, err = n.rt.Signal(t.Context(), env)
		code(t, err, "signal.stale")
		if s, err := n.store.Writer.Load(t.Context(), "j"); err != nil || s.Version != 1 {
			t.Errorf("a refused signal left version %d, %v", s.Version, err)
		}
	})
}

const duplicate engine.Disposition = "duplicate"

func TestEventReachesThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		for i := range 5 {
			n.begin(t, fmt.Sprintf("i%d", i), "t/listen", map[string]any{"order": i % 2})
		}
		event := json.RawMessage(`{"specversion":"1.0","id":"e1","source":"shop","type":"paid","data":{"order":1}}`)
		if got, err := n.rt.PublishEvent(t.Context(), event, nil); got != 2 || err != nil {
			t.Fatalf("reached %d, %v", got, err)
		}
		for _, id := range []string{"i1", "i3"} {
			if out := n.output(t, id); out != `{"order":1}` {
				t.Errorf("%s: %s", id, out)
			}
		}
		if got, err := n.rt.PublishEvent(t.Context(), event, nil); got != 0 || err != nil {
			t.Errorf("the same event again reached %d, %v", got, err)
		}
		if row, err := n.store.Instances.Instance(t.Context(), "i0"); err != nil || row.Status != "waiting" {
			t.Errorf("another's event: %+v, %v", row, err)
		}
		for _, bad := range []string{`{"id":"1","source":"s"}`, `{"type":"paid","id":"1"}`, `7`, ``} {
			_, err := n.rt.PublishEvent(t.Context(), json.RawMessage(bad), nil)
			code(t, err, "event.invalid")
		}
	})
}

func TestFailingCommandIsRepeatedUnderOneKey(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var mu sync.Mutex
		keys, attempts := map[string]int{}, []int{}
		n := start(t, fresh(), func(ctx context.Context, _ json.RawMessage) (any, error) {
			a := activity.Info(ctx)
			mu.Lock()
			defer mu.Unlock()
			keys[a.Key]++
			attempts = append(attempts, a.Number)
			if a.Number < 3 {
				return nil, errors.New("not yet")
			}
			return "done", nil
		}, callDoc)
		n.begin(t, "i", "t/call", map[string]any{"n": 1})
		if out := n.output(t, "i"); out != `"done"` {
			t.Errorf("output %s", out)
		}
		if len(keys) != 1 || keys[n.key(t, "i", 2)] != 3 || fmt.Sprint(attempts) != "[1 2 3]" {
			t.Errorf("keys %v, attempts %v", keys, attempts)
		}
	})
}

func TestPermanentFailureFaultsAndAnOperatorMends(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var broken atomic.Bool
		broken.Store(true)
		n := start(t, fresh(), func(context.Context, json.RawMessage) (any, error) {
			if broken.Load() {
				return nil, activity.Permanent(errors.New("card declined"))
			}
			return "ok", nil
		}, callDoc)
		n.begin(t, "i", "t/call", nil)
		row := n.until(t, "i", status("faulted"))
		if !strings.Contains(row.ErrorDetail, "card declined") {
			t.Errorf("the row does not say why: %+v", row)
		}
		_, err := n.rt.Operate(t.Context(), "i", engine.Resume, nil, "olga")
		code(t, err, "instance.not-suspended")
		broken.Store(false)
		if _, err := n.rt.Operate(t.Context(), "i", engine.Retry, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		if out := n.output(t, "i"); out != `"ok"` {
			t.Errorf("output %s", out)
		}
		entries, err := n.store.Streams.Stream(t.Context(), "i", 0, 50)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range entries {
			found = found || e.Type == engine.EntryRetried && strings.Contains(string(e.Metadata), `"actor":"olga"`)
		}
		if !found {
			t.Error("the stream does not say who retried")
		}
		_, err = n.rt.Operate(t.Context(), "none", engine.Cancel, nil, "")
		code(t, err, "instance.unknown")
	})
}

// send puts raw bytes on the signal queue.
func (n *testNode) send(t *testing.T, body string) {
	t.Helper()
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(body)}}}); err != nil {
		t.Fatal(err)
	}
}

// letters waits for a number of dead letters.
func (n *testNode) deadLetters(t *testing.T, want int) []projections.DeadLetter {
	t.Helper()
	var w await.Wait
	for {
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) >= want {
			return page.Items
		}
		if !w.Again(5*time.Millisecond, len(page.Items)) {
			t.Fatalf("%d dead letters, want %d", len(page.Items), want)
		}
	}
}

func TestHopelessMessagesBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		envelope := func(more string) string {
			return `{"signalId":"s","workflowInstanceId":"none","runtimeProvider":"aqueduct","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z",` + more + `}`
		}
		for _, c := range []struct {
			name, body, reason string
			queue              store.Queue
		}{
			{"not JSON", "\x00\xff{", "signal.not-utf8", store.Signals},
			{"not an envelope", `{"hello": 1}`, "signal.unknown-type", store.Signals},
			{"a bad start", envelope(`"signalType":"StartRequest","payload":{}`), "signal.invalid-start", store.Signals},
			{"an unknown instance", envelope(`"signalType":"ExternalSignal", "payload":{}`), "instance.unknown", store.Signals},
			{"an unknown definition", envelope(`"signalType":"StartRequest","payload":{"definition":"t/none"}`), "definition.unknown", store.Signals},
			{"a start that is announced as a command", envelope(`"signalType":"StartRequest","payload":{"definition":"t/listen"}`), "signal.invalid", store.Commands},
		} {
			if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: c.queue, Body: []byte(c.body)}}}); err != nil {
				t.Fatal(err)
			}
			deadLetters := n.deadLetters(t, 1)
			if l := deadLetters[0]; l.Reason != c.reason || string(l.Envelope) != c.body || l.Queue != string(c.queue) || l.Node == "" || l.DiedAt.IsZero() {
				t.Errorf("%s: %+v", c.name, l)
			}
			if err := n.store.DeadLetters.Discard(t.Context(), deadLetters[0].ID, backend.AnyEdit, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestReplayedDeadLetterIsApplied(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		body := `{"signalId":"s","workflowInstanceId":"late","runtimeProvider":"aqueduct","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","signalType":"ExternalSignal","payload":{"type":"paid","data":{"order":1}},"later":true}`
		n.send(t, body)
		l := n.deadLetters(t, 1)[0]
		n.begin(t, "late", "t/listen", map[string]any{"order": 1})
		if err := n.store.DeadLetters.Replay(t.Context(), l.ID, 0, nil); err != nil {
			t.Fatal(err)
		}
		if out := n.output(t, "late"); out != `{"order":1}` {
			t.Errorf("output %s", out)
		}
		if page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("the dead letter is still there: %v, %v", page, err)
		}
	})
}

func TestApplicationStartsThroughTheQueue(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		body := `{"signalId":"s","workflowInstanceId":"q","runtimeProvider":"aqueduct","signalType":"StartRequest","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"definition":"t/listen","businessKey":"b","input":{"order":1}}}`
		n.send(t, body)
		n.send(t, body)
		row := n.until(t, "q", status("waiting"))
		if row.BusinessKey != "b" {
			t.Errorf("row %+v", row)
		}
		n.send(t, strings.Replace(strings.Replace(body, "StartRequest", "ExternalSignal", 1), `{"definition":"t/listen","businessKey":"b","input":{"order":1}}`, `{"type":"paid","data":{"order":1}}`, 1))
		n.output(t, "q")
		if page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("dead letters %v, %v", page, err)
		}
	})
}

func TestSnapshotOverItsLimitFaultsTheInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		// Each round trip doubles the data: 1 KB, 2 KB, … until the limit.
		n := start(t, fresh(), nil, doc("grow", `
  - grow:
      set: '${ {s: (.s + .s)} }'
  - hold:
      export: {as: '${ {kept: ((($context.kept // []) + [.s])) } }'}
      set: '${ . }'
  - again:
      switch:
        - more: {then: grow}
`))
		n.begin(t, "i", "t/grow", map[string]any{"s": strings.Repeat("x", 1024)})
		row := n.until(t, "i", status("faulted"))
		if !strings.Contains(row.ErrorType, "expression") && !strings.Contains(row.ErrorDetail, "limit") {
			t.Errorf("row %+v", row)
		}
	})
}

func TestRetentionDeletesOnlyWhatEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), func(context.Context, json.RawMessage) (any, error) { return 1, nil }, callDoc, listenDoc)
		n.begin(t, "old", "t/call", nil)
		n.begin(t, "live", "t/listen", map[string]any{"order": 1})
		n.output(t, "old")
		if got, err := n.store.Retention.Purge(t.Context(), time.Now().Add(time.Minute), 100); got != 1 || err != nil {
			t.Fatalf("purged %d, %v", got, err)
		}
		if _, err := n.store.Writer.Load(t.Context(), "old"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the old one: %v", err)
		}
		if _, err := n.store.Writer.Load(t.Context(), "live"); err != nil {
			t.Errorf("the live one: %v", err)
		}
	})
}

func TestStartKeyFindsAnInstanceWithAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, listenDoc)
		req := signal.Start{Definition: "t/listen", BusinessKey: "b", StartKey: "k", Input: json.RawMessage(`{"order":1}`)}
		for _, c := range []struct {
			id      string
			want    string
			created bool
		}{{"mine", "mine", true}, {"", "mine", false}, {"other", "mine", false}, {"mine", "mine", false}} {
			id, created, err := n.rt.Start(t.Context(), c.id, req, nil)
			if id != c.want || created != c.created || err != nil {
				t.Errorf("start %q: %s %t %v", c.id, id, created, err)
			}
		}
	})
}

func TestSkippedIntoAnotherFaultShowsTheNewError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, doc("two", `
  - first: {raise: {error: {type: 'x:first', status: 500, title: First}}}
  - second: {raise: {error: {type: 'x:second', status: 500, title: Second}}}
`))
		n.begin(t, "i", "t/two", nil)
		n.until(t, "i", status("faulted"))
		if _, err := n.rt.Operate(t.Context(), "i", engine.Skip, nil, ""); err != nil {
			t.Fatal(err)
		}
		if row := n.until(t, "i", status("faulted")); row.ErrorType != "x:second" || row.Position != "second" {
			t.Errorf("row %+v", row)
		}
		_, err := n.rt.Operate(t.Context(), "i", engine.Suspend, nil, "")
		code(t, err, "instance.faulted")
	})
}

func TestAnotherPersonsTaskIsNotCompleted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, doc("assigned", `
  - approve:
      call: humanTask
      with: {title: Approve, assignee: ann, excludedUsers: [eve]}
`))
		n.begin(t, "i", "t/assigned", nil)
		n.until(t, "i", status("waiting"))
		page, err := n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{InstanceID: "i"})
		if err != nil || len(page.Items) != 1 || page.Items[0].Priority != humantask.DefaultPriority {
			t.Fatalf("%+v, %v", page, err)
		}
		_, err = n.rt.CompleteTask(t.Context(), page.Items[0].ID, "eve", nil, "", nil)
		code(t, err, "task.not-yours")
	})
}
