package runtime_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// The states of three versions of one workflow.
type (
	first  struct{ Cents int }
	second struct{ Amount struct{ Cents int } }
)

// paidFor waits for an event, and calls a function then. Its state has the form of its
// version.
func paidFor[S any](t *testing.T, version string, set func(*S, int), get func(S) int, upcasts ...func(*workflow.Workflow[S])) *workflow.Definition {
	t.Helper()
	paid := workflow.Event[string]("paid", "paid", "data")
	book := workflow.Call[int, did]("book", "effect")
	w := workflow.New[S]("t/paying", version)
	workflow.Start(w, func(s S, in workflow.Input[int]) (S, workflow.Do) {
		set(&s, in.Value)
		return s, workflow.Do{paid.Listen("now")}
	}, workflow.To(paid))
	workflow.On(w, paid, func(s S, _ workflow.Input[string]) (S, workflow.Do) {
		return s, workflow.Do{book.With(get(s))}
	}, workflow.To(book))
	workflow.On(w, book, func(s S, _ workflow.Input[did]) (S, workflow.Do) {
		return s, workflow.Do{workflow.Complete(map[string]any{"version": version, "cents": get(s)})}
	}, workflow.To())
	for _, u := range upcasts {
		u(w)
	}
	d, err := w.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func payingFirst(t *testing.T) *workflow.Definition {
	return paidFor(t, "1.0.0", func(s *first, n int) { s.Cents = n }, func(s first) int { return s.Cents })
}

func payingSecond(t *testing.T, upcasts ...func(*workflow.Workflow[second])) *workflow.Definition {
	return paidFor(t, "2.0.0", func(s *second, n int) { s.Amount.Cents = n }, func(s second) int { return s.Amount.Cents }, upcasts...)
}

// coded starts a node that has the code of definitions.
func coded(t *testing.T, place string, code ...*workflow.Definition) *testNode {
	t.Helper()
	n, err := openSet(t.Context(), place, func(c *runtime.Config) {
		cat := c.Definitions.(*definition.Catalogue)
		cat.LiveBy(backend.LiveVersions(c.Store.Instances))
		for _, def := range code {
			if _, err := cat.PublishCode(t.Context(), def); err != nil {
				t.Error(err)
			}
		}
		c.RetryDelay, c.RetryMax = 5*time.Millisecond, 1
	}, func(context.Context, json.RawMessage) (any, error) { return did{1}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWhatIsForCodeElsewhereIsHandedOn: a node without the code of a workflow takes
// signals, events and starts for it, loses none, spends no attempt on them and makes no
// dead letter; a node with a newer version goes on with the instances.
func TestWhatIsForCodeElsewhereIsHandedOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		one := coded(t, place, payingFirst(t))
		for _, id := range []string{"a", "b"} {
			if _, _, err := one.rt.Start(t.Context(), id, signal.Start{Definition: "t/paying", Input: json.RawMessage(`5`)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.close(); err != nil {
			t.Fatal(err)
		}

		bare := coded(t, place)
		for _, id := range []string{"a", "b"} {
			env := signal.Envelope{SignalID: "paid-" + id, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"paid","data":"now"}`)}
			if err := enqueue(t.Context(), bare, env); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "messages that come again and again", func() bool {
			return bare.retriedBy(t, "upgrade") > 3
		})
		records := must(bare.store.Versions(t.Context(), "t/paying", 0))
		stored := must(bare.store.Definition(t.Context(), "t/paying", records[0].Version))
		if err := bare.cat.Verify(t.Context(), stored); err != nil {
			t.Errorf("its record is not sound: %v", err)
		}
		stored.Document = append(stored.Document, ' ')
		if err := bare.cat.Verify(t.Context(), stored); problem.CodeOf(err) != "definition.digest" {
			t.Errorf("its record is damaged, and that is not found: %v", err)
		}
		dead := must(bare.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{}))
		if len(dead.Items) > 0 {
			t.Errorf("dead letters %+v", dead.Items)
		}
		if err := bare.close(); err != nil {
			t.Fatal(err)
		}

		two := coded(t, place, payingSecond(t, func(w *workflow.Workflow[second]) {
			workflow.Upcast(w, "1.0.0", "2.0.0", func(old first) (s second, err error) {
				s.Amount.Cents = old.Cents
				return s, nil
			})
		}))
		for _, id := range []string{"a", "b"} {
			eventually(t, id+" at its end", func() bool {
				s, err := two.store.Writer.Load(t.Context(), id)
				if err == nil && s.Status == snapshot.Faulted {
					t.Fatalf("%+v", s.Error)
				}
				return err == nil && s.Status == snapshot.Completed && string(s.State.Output) == `{"cents":5,"version":"2.0.0"}`
			})
			row := must(two.store.Instances.Instance(t.Context(), id))
			if row.DefVersion != "2.0.0" {
				t.Errorf("%s runs %s", id, row.DefVersion)
			}
		}
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWhatWasUpcastIsMadeAgain: an instance that has gone on in a newer version in the
// middle, or begun in it, by an operator too, is made again where the code of its
// versions is, and is unverifiable where that of the older is not.
func TestWhatWasUpcastIsMadeAgain(t *testing.T) {
	t.Parallel()
	up := func(w *workflow.Workflow[second]) {
		workflow.Upcast(w, "1.0.0", "2.0.0", func(old first) (s second, err error) {
			s.Amount.Cents = old.Cents
			return s, nil
		})
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		one := coded(t, place, payingFirst(t))
		one.begin(t, "a", "t/paying", 5)
		one.begin(t, "s", "t/paying", 5)
		if _, err := one.rt.Operate(t.Context(), "s", engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		if err := one.close(); err != nil {
			t.Fatal(err)
		}
		two := coded(t, place, payingSecond(t, up))
		if _, _, err := two.rt.Start(t.Context(), "b", signal.Start{Definition: "t/paying", Version: "1.0.0", Input: json.RawMessage(`5`)}, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := two.rt.PublishEvent(t.Context(), json.RawMessage(`{"specversion":"1.0","id":"1","source":"x","type":"paid","data":"now"}`), nil); n != 3 || err != nil {
			t.Errorf("the event reached %d: %v", n, err)
		}
		two.output(t, "a")
		two.output(t, "b")
		eventually(t, "the event kept", func() bool { return len(must(two.store.Writer.Load(t.Context(), "s")).Buffer) == 1 })
		if _, err := two.rt.Operate(t.Context(), "s", engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		two.output(t, "s")
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
		for want, code := range [][]*workflow.Definition{{payingFirst(t), payingSecond(t, up)}, {payingSecond(t, up)}} {
			known := definition.Reading(nothing{}, nil)
			for _, def := range code {
				if err := known.Register(def); err != nil {
					t.Fatal(err)
				}
			}
			unverifiable, err := testdb.Replay(t.Context(), place, known)
			if err != nil || (len(unverifiable) > 0) != (want > 0) {
				t.Errorf("with the code of %d versions: %v, %v", len(code), unverifiable, err)
			}
		}
	})
}

// TestRetentionLeavesCodeToThoseWhoHaveIt: a node without the code of a faulted instance
// passes it over, counts that and complains of nothing, and one with the code gives it up.
func TestRetentionLeavesCodeToThoseWhoHaveIt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		lost := func() *workflow.Definition {
			w := workflow.New[int]("t/lost", "1.0.0")
			workflow.Start(w, func(n int, _ workflow.Input[any]) (int, workflow.Do) { panic("lost") })
			d, err := w.Definition()
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		one := coded(t, place, lost())
		one.begin(t, "a", "t/lost", 5)
		one.until(t, "a", status("faulted"))
		if err := one.close(); err != nil {
			t.Fatal(err)
		}
		var log told
		set := func(c *runtime.Config) {
			c.RetentionEvery, c.Windows.Faulted = 20*time.Millisecond, time.Millisecond
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}
		bare, err := openSet(t.Context(), place, set, nil, doc("bad", "  - lost: {raise: {error: {type: 'urn:lost', status: 500}}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is left", func() bool { return bare.counted(t, "aqueduct_retention_left_total")[""] >= 3 })
		bare.begin(t, "b", "t/bad", nil)
		bare.until(t, "b", status("cancelled"))
		if row := must(bare.store.Instances.Instance(t.Context(), "a")); row.Status != "faulted" {
			t.Errorf("%+v", row)
		}
		if err := bare.close(); err != nil {
			t.Fatal(err)
		}
		if said := log.text(); said != "" {
			t.Errorf("retention complains: %s", said)
		}
		two, err := openSet(t.Context(), place, func(c *runtime.Config) {
			set(c)
			if _, err := c.Definitions.(*definition.Catalogue).PublishCode(t.Context(), lost()); err != nil {
				t.Error(err)
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		two.until(t, "a", status("cancelled"))
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOperationsForCodeElsewhereAreHandedOn: a node without the code takes what an operator
// asks, refuses what the state of the instance refuses, and takes the same once; a node
// with the code does it.
func TestOperationsForCodeElsewhereAreHandedOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place, broken := fresh(), true
		flow := func() *workflow.Definition {
			w := workflow.New[int]("t/breaks", "1.0.0")
			workflow.Start(w, func(n int, in workflow.Input[bool]) (int, workflow.Do) {
				if broken && in.Value {
					panic("broken")
				}
				return n, workflow.Do{workflow.Complete("mended")}
			})
			d, err := w.Definition()
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		one := coded(t, place, payingFirst(t), flow())
		one.begin(t, "waits", "t/paying", 5)
		one.begin(t, "undone", "t/paying", 5)
		one.begin(t, "faulted", "t/breaks", true)
		one.begin(t, "closed", "t/breaks", false)
		one.until(t, "faulted", status("faulted"))
		one.output(t, "closed")
		if err := one.close(); err != nil {
			t.Fatal(err)
		}
		bare := coded(t, place)
		for _, c := range []struct {
			id   string
			op   engine.Operation
			code string
		}{
			{"faulted", engine.Retry, ""}, {"faulted", engine.Retry, ""}, {"waits", engine.Cancel, ""}, {"undone", engine.Compensate, ""},
			{"waits", engine.Retry, "instance.not-faulted"}, {"waits", engine.Resume, "instance.not-suspended"}, {"closed", engine.Cancel, "instance.closed"},
			{"waits", "dance", "operation.unknown"}, {"nobody", engine.Cancel, "instance.unknown"},
		} {
			did, err := bare.rt.Operate(t.Context(), c.id, c.op, nil, "olga")
			if err != nil && problem.CodeOf(err) != c.code || err == nil && (did != engine.Queued || c.code != "") {
				t.Errorf("%s of %s: %s, %v", c.op, c.id, did, err)
			}
		}
		if p := must(bare.store.Audit.Audit(t.Context(), backend.AuditQuery{Target: "waits"})); len(p.Items) != 1 || p.Items[0].Action != "cancel" || p.Items[0].Claimed != "olga" {
			t.Errorf("the audit says %+v", p.Items)
		}
		eventually(t, "requests that come again and again", func() bool { return bare.retriedBy(t, "upgrade") > 3 })
		if err := bare.close(); err != nil {
			t.Fatal(err)
		}
		broken = false
		two := coded(t, place, payingFirst(t), flow())
		if out := two.output(t, "faulted"); out != `"mended"` {
			t.Errorf("output %s", out)
		}
		two.until(t, "waits", status("cancelled"))
		two.until(t, "undone", status("cancelled"))
		two.quiet(t)
		if dead := must(two.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})); len(dead.Items) > 0 {
			t.Errorf("dead letters %+v", dead.Items)
		}
		by := ""
		for _, e := range must(two.store.Streams.Stream(t.Context(), "waits", 0, 100)) {
			if e.Type == engine.EntryCancelled {
				by = string(e.Metadata)
			}
		}
		if !strings.Contains(by, `"actor":"olga"`) {
			t.Errorf("cancelled by %s", by)
		}
		if err := two.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// told is a log that is read while it is written.
type told struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *told) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *told) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// nothing has no versions.
type nothing struct{}

func (nothing) Definition(context.Context, string, string) (definition.Record, error) {
	return definition.Record{}, problem.New(problem.NotFound, "definition.unknown", "there is none")
}

var (
	sayPaidDoc = doc("sayPaid", `
  - pay:
      emit: {event: {with: {type: paid, data: '${ .said }'}}}
`)
	takePaidDoc = doc("takePaid", `
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
`)
)

// TestAnEventIsForAllWhoWait: a document and an instance of Go code wait for one type of
// events, and the node that has the event does not have the code. The document's gets it
// at once, the other by the queue, once, when a node has its code; nothing is given up.
func TestAnEventIsForAllWhoWait(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		one := coded(t, place, payingFirst(t))
		for _, id := range []string{"a", "b"} {
			one.begin(t, id, "t/paying", 5)
			one.until(t, id, func(i projections.Instance) bool { return i.Status == string(snapshot.Waiting) })
		}
		if err := one.close(); err != nil {
			t.Fatal(err)
		}
		bare, err := openOf(t, place, sayPaidDoc, takePaidDoc)
		if err != nil {
			t.Fatal(err)
		}
		bare.begin(t, "doc-1", "t/takePaid", nil)
		bare.until(t, "doc-1", func(i projections.Instance) bool { return i.Status == string(snapshot.Waiting) })
		bare.begin(t, "say-1", "t/sayPaid", map[string]string{"said": "later"}) // not what the Go instances wait for
		bare.output(t, "doc-1")
		bare.settled(t)
		bare.begin(t, "doc-2", "t/takePaid", nil)
		bare.until(t, "doc-2", func(i projections.Instance) bool { return i.Status == string(snapshot.Waiting) })
		event := json.RawMessage(`{"specversion":"1.0","id":"1","source":"x","type":"paid","data":"now"}`)
		for want := 3; want >= 2; want-- { // the document's is gone when it is published again
			if n, err := bare.rt.PublishEvent(t.Context(), event, nil); n != want || err != nil {
				t.Errorf("an event for %d reached %d: %v", want, n, err)
			}
			bare.output(t, "doc-2")
		}
		bare.begin(t, "say-2", "t/sayPaid", map[string]string{"said": "now"})
		bare.settled(t)
		eventually(t, "messages that come again and again", func() bool { return bare.retriedBy(t, "upgrade") > 3 })
		if dead := must(bare.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})); len(dead.Items) > 0 {
			t.Errorf("dead letters %+v", dead.Items)
		}
		for _, e := range must(bare.store.Streams.Stream(t.Context(), "say-2", 0, 100)) {
			if e.Attempts > 1 {
				t.Errorf("the event took %d attempts: %s", e.Attempts, e.LastError)
			}
		}
		if err := bare.close(); err != nil {
			t.Fatal(err)
		}

		again := coded(t, place, payingFirst(t))
		for _, id := range []string{"a", "b"} {
			if out := again.output(t, id); out != `{"cents":5,"version":"1.0.0"}` {
				t.Errorf("%s: %s", id, out)
			}
			eventually(t, "both events at "+id, func() bool {
				came := map[string]int{}
				for _, e := range must(again.store.Streams.Stream(t.Context(), id, 0, 100)) {
					if e.Type == string(signal.ExternalSignal) {
						came[e.SignalID]++
					}
				}
				for s, n := range came {
					if n != 1 {
						t.Fatalf("%s has %s %d times", id, s, n)
					}
				}
				return len(came) == 2
			})
		}
		if err := again.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// openOf starts a node with documents and no code.
func openOf(t *testing.T, place string, documents ...string) (*testNode, error) {
	return openSet(t.Context(), place, func(c *runtime.Config) { c.RetryDelay, c.RetryMax = 5*time.Millisecond, 1 }, nil, documents...)
}

// TestWhatIsDeclaredFindsWhatTheCodeFinds: events are correlated alike by a node with the
// code and by one without.
func TestWhatIsDeclaredFindsWhatTheCodeFinds(t *testing.T) {
	t.Parallel()
	w := workflow.New[int]("t/keys", "1.0.0")
	workflow.Start(w, func(n int, _ workflow.Input[any]) (int, workflow.Do) { return n, nil })
	take := func(n int, _ workflow.Input[any]) (int, workflow.Do) { return n, nil }
	for name, paths := range map[string][]string{"none": nil, "a/b~c": {"data.order", "source"}, "deep": {"data.a.b"}, "type": {"type", "data"}} {
		workflow.On(w, workflow.Event[any](name, "paid", paths...), take)
	}
	workflow.On(w, workflow.Timer("timer"), func(n int, _ workflow.Input[workflow.Fired]) (int, workflow.Do) { return n, nil })
	def, err := w.Definition()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, event := range []string{
		`{"type":"paid","source":"x","data":{"order":7,"a":{"b":[1, 2.0]}}}`, `{"type":"paid","source":"x","data":{"order":7.0,"a":{"b":{"y":1,"x":null}}}}`,
		`{"type":"paid","data":{"order":"7"}}`, `{"type":"paid","source":"é<>&","data":{"order":1e3}}`, `{"type":"paid","data":[1]}`, `{"type":"paid","data":"now"}`,
		`{"type":"other","source":"x","data":{"order":7}}`, `{"type":7}`, `{}`, `[]`, `null`, `"paid"`, `{"type":"paid","type":"paid"}`, `{"type":"paid","data":{"order":1,"order":2}}`, `{"type"`, ``,
	} {
		for _, pointer := range []string{"/none", "/a~1b~0c", "/deep", "/type"} {
			key, ok, err := def.Correlate(pointer, 0, 0, json.RawMessage(event))
			if err != nil {
				t.Fatal(err)
			}
			gotKey, gotOK, declared := correlation.Declared(def.Declared(), pointer, json.RawMessage(event))
			if gotKey != key || gotOK != ok || !declared {
				t.Errorf("%s at %s: %q %t %t by what is declared, %q %t by the code", event, pointer, gotKey, gotOK, declared, key, ok)
			}
			if ok {
				found++
			}
		}
	}
	if found < 10 {
		t.Errorf("%d keys", found)
	}
	for _, pointer := range []string{"/timer", "/nowhere", ""} {
		if _, _, declared := correlation.Declared(def.Declared(), pointer, json.RawMessage(`{"type":"paid"}`)); declared {
			t.Errorf("something listens at %q", pointer)
		}
	}
	if _, _, declared := correlation.Declared([]byte(`{"steps":7}`), "/none", json.RawMessage(`{"type":"paid"}`)); declared {
		t.Error("what declares no steps has one")
	}
}

// retriedBy is how often messages were tried again by somebody's fault.
func (n *testNode) retriedBy(t *testing.T, by string) (count int) {
	t.Helper()
	families, err := n.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if family.GetName() == "aqueduct_message_retries_total" && l.GetName() == "by" && l.GetValue() == by {
					count += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return count
}

// TestAVersionWithoutAWayIsRefused: instances run a version that the new one cannot go
// on with. It is named, and nothing is published.
func TestAVersionWithoutAWayIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := coded(t, place, payingFirst(t))
		defer n.close()
		if _, _, err := n.rt.Start(t.Context(), "a", signal.Start{Definition: "t/paying", Input: json.RawMessage(`5`)}, nil); err != nil {
			t.Fatal(err)
		}
		other := definition.New(n.store, nil, time.Now)
		other.LiveBy(backend.LiveVersions(n.store.Instances))
		other.CanBy(func(string) bool { return true })
		_, err := other.PublishCode(t.Context(), payingSecond(t))
		if problem.CodeOf(err) != "workflow.upcast-missing" || !strings.Contains(err.Error(), "/upcast/1.0.0") {
			t.Errorf("a version without a way from the one that lives: %v", err)
		}
		if list := must(n.store.Versions(t.Context(), "t/paying", 0)); len(list) != 1 {
			t.Errorf("versions %+v", list)
		}
		if _, err := other.PublishCode(t.Context(), payingFirst(t)); err != nil {
			t.Errorf("the same again: %v", err)
		}
		bare := coded(t, place)
		defer bare.close()
		if _, err := bare.cat.PublishCode(t.Context(), payingSecond(t)); problem.CodeOf(err) != "workflow.upcast-missing" {
			t.Errorf("to the catalogue of a node: %v", err)
		}
		other.CanBy(func(string) bool { return false })
		if _, err := other.PublishCode(t.Context(), payingFirst(t)); problem.CodeOf(err) != "workflow.function-unknown" || !strings.Contains(err.Error(), "/book") {
			t.Errorf("a function that nobody has registered: %v", err)
		}
	})
}
