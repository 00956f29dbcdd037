package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// refusing is a store that refuses changes.
type refusing struct {
	handing
	refuses func(store.Change) error
}

type refusingDelivery struct {
	store.Delivery
	s *refusing
}

func (s *refusing) Commit(ctx context.Context, c store.Change) error {
	if err := s.refuses(c); err != nil {
		return err
	}
	return s.Writer.Commit(ctx, c)
}

// wraps puts it over a store.
func (s *refusing) wraps(whole backend.Parts) backend.Parts {
	return s.over(whole, s, func(d store.Delivery) store.Delivery { return &refusingDelivery{d, s} })
}

func (d *refusingDelivery) Commit(ctx context.Context, c store.Change) error {
	if err := d.s.refuses(c); err != nil {
		return err
	}
	return d.Delivery.Commit(ctx, c)
}

// bugged are definitions that a bug of the node keeps from being found.
type bugged struct {
	runtime.Definitions
	errors atomic.Int64 // that are left
}

func (b *bugged) Pinned(ctx context.Context, ref snapshot.Definition) (engine.Definition, error) {
	if b.errors.Add(-1) >= 0 {
		return nil, problem.New(problem.Internal, "message.panic", "a bug")
	}
	return b.Definitions.Pinned(ctx, ref)
}

// quick tries messages again soon.
func quick(c *runtime.Config) {
	c.RetryMax, c.RetryDelay, c.RetryDelayMax = 2, 5*time.Millisecond, 10*time.Millisecond
}

// toI is a signal to an instance, through the queue.
func toI(id, sid, payload string) string {
	return fmt.Sprintf(`{"signalId":%q,"workflowInstanceId":%q,"runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":%s}`, sid, id, payload)
}

// told waits until an instance has an entry of a signal, and returns its
// disposition.
func (n *testNode) told(t *testing.T, id, sid string) string {
	t.Helper()
	did := ""
	eventually(t, sid+" is recorded", func() bool {
		rows, err := n.store.Streams.Stream(t.Context(), id, -1, 1000)
		for _, row := range rows {
			if row.SignalID == sid {
				did = string(row.Metadata)
				return true
			}
		}
		return err != nil
	})
	return did
}

// fullDoc faults with a state that leaves little of a snapshot.
var fullDoc = doc("full", `
  - grow: {set: '${ {a: ("x" * 900000), b: ("x" * 900000), c: ("x" * 900000), d: ("x" * 900000)} }'}
  - stop: {raise: {error: {type: urn:test, status: 400, title: stopped}}}
`)

// TestWhatAnInstanceCannotKeepHasAnEnd: a signal that only wants to be kept,
// and for which there is no room, is its sender's fault, whatever state the
// instance is in. Those behind it go on.
func TestWhatAnInstanceCannotKeepHasAnEnd(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), quick, fullDoc, listenDoc)
		n.begin(t, "i", "t/full", nil)
		n.until(t, "i", status("faulted"))
		n.begin(t, "j", "t/listen", map[string]any{"order": 1})
		big := `{"type":"early","data":"` + strings.Repeat("x", 25_000) + `"}`
		const most = 50 // more than a snapshot holds
		for _, id := range []string{"i", "j"} {
			for k := range most {
				n.send(t, toI(id, fmt.Sprintf("%s-%d", id, k), big))
			}
			n.send(t, toI(id, "behind-"+id, `{"type":"early"}`))
			if did := n.told(t, id, "behind-"+id); !strings.Contains(did, "buffered") {
				t.Errorf("behind it in %s: %s", id, did)
			}
		}
		for _, l := range n.deadLetters(t, 2) {
			if l.Reason != "limit.buffer" {
				t.Errorf("dead letter %s %s", l.Reason, l.Detail)
			}
		}
		n.until(t, "j", status("waiting"))
		n.send(t, toI("j", "go", `{"type":"paid","data":{"order":1}}`))
		n.output(t, "j")
	})
}

// TestWhatAFullInstanceIsSentHasAnEnd: one that has faulted and has no room for
// another entry makes a dead letter of what comes, one that has ended drops it.
func TestWhatAFullInstanceIsSentHasAnEnd(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		full := atomic.Bool{}
		n := configured(t, fresh(), func(c *runtime.Config) {
			quick(c)
			s := &refusing{refuses: func(ch store.Change) error {
				if full.Load() && ch.Snapshot != nil {
					return problem.New(problem.TooLarge, "limit.stream", "no position is left")
				}
				return nil
			}}
			c.Store = s.wraps(c.Store)
		}, fullDoc, callDoc)
		n.begin(t, "faulted", "t/full", nil)
		n.until(t, "faulted", status("faulted"))
		n.begin(t, "ended", "t/call", nil)
		n.until(t, "ended", status("completed"))
		full.Store(true)
		n.send(t, toI("ended", "late", `{"type":"paid"}`))
		n.send(t, strings.Replace(toI("faulted", "s", `{"output":1}`), `"ExternalSignal"`, `"TaskCompleted","waitingToken":"gone"`, 1))
		if l := n.deadLetters(t, 1)[0]; l.Reason != "instance.full" || l.InstanceID != "faulted" || !strings.Contains(l.Detail, "no position is left") {
			t.Errorf("dead letter %+v", l)
		}
		eventually(t, "no message is left", func() bool { return n.idle(t) })
	})
}

// TestAFullStreamFaultsAndCanBeCancelled: there is room left for both.
func TestAFullStreamFaultsAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), quick, queueDoc)
		n.begin(t, "i", "t/queue", nil)
		s, err := n.store.Writer.Load(t.Context(), "i")
		if err != nil {
			t.Fatal(err)
		}
		s.Version++
		s.Position = snapshot.MaxPosition - 1025 // as after millions of turns
		encoded, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := n.store.Writer.Commit(t.Context(), store.Change{Snapshot: &s, Encoded: encoded, Runtime: store.Runtime{ExecutedAt: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			n.send(t, toI("i", fmt.Sprint("s", k), `{"type":"go","data":{"n":1}}`))
		}
		n.until(t, "i", status("faulted"))
		if s, err := n.store.Writer.Load(t.Context(), "i"); err != nil || !strings.Contains(s.Error.Detail, "limit.stream") {
			t.Errorf("error %+v, %v", s.Error, err)
		}
		if _, err := n.rt.Operate(t.Context(), "i", engine.Cancel, nil, "ann"); err != nil {
			t.Error(err)
		}
		n.until(t, "i", status("cancelled"))
	})
}

// TestAValueThatTheDatabaseDoesNotTakeIsTheAuthors: as what is too large.
func TestAValueThatTheDatabaseDoesNotTakeIsTheAuthors(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), func(c *runtime.Config) {
			quick(c)
			s := &refusing{refuses: func(ch store.Change) error {
				if ch.Snapshot != nil && ch.Snapshot.Status == snapshot.Completed {
					return problem.New(problem.Invalid, "store.value", "the database does not take a value")
				}
				return nil
			}}
			c.Store = s.wraps(c.Store)
		}, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 1})
		n.send(t, toI("i", "s", `{"type":"paid","data":{"order":1}}`))
		n.until(t, "i", status("faulted"))
		if s, err := n.store.Writer.Load(t.Context(), "i"); err != nil || !strings.Contains(s.Error.Detail, "store.value") {
			t.Errorf("error %+v, %v", s.Error, err)
		}
		if deadLetters := n.deadLetters(t, 0); len(deadLetters) != 0 {
			t.Errorf("dead letters %+v", deadLetters)
		}
	})
}

// What no turn can write, the fault of its instance neither, is a dead letter after
// retry.max, and not after a day: no waiting mends a value that has no room. On Oracle
// it is the database that refuses it, with each code that says so.
func TestAValueThatNoTurnCanWriteIsADeadLetter(t *testing.T) {
	t.Parallel()
	never := func(t *testing.T, n *testNode) {
		t.Helper()
		n.send(t, toI("i", "s", `{"type":"paid","data":{"order":1}}`))
		l := n.deadLetters(t, 1)[0]
		if l.Reason != "store.value" || l.Attempts != 3 || !strings.Contains(string(l.Envelope), `"s"`) {
			t.Errorf("dead letter %s of %s after %d attempts: %s", l.Reason, l.Envelope, l.Attempts, l.Detail)
		}
	}
	t.Run("any store", func(t *testing.T) {
		testdb.Each(t, func(t *testing.T, fresh func() string) {
			refused := atomic.Bool{}
			n := configured(t, fresh(), func(c *runtime.Config) {
				quick(c)
				s := &refusing{refuses: func(ch store.Change) error {
					if refused.Load() && ch.Snapshot != nil {
						return problem.New(problem.Invalid, "store.value", "the database does not take a value")
					}
					return nil
				}}
				c.Store = s.wraps(c.Store)
			}, listenDoc)
			n.begin(t, "i", "t/listen", map[string]any{"order": 1})
			refused.Store(true)
			never(t, n)
		})
	})
	for _, code := range []string{"01460", "01461", "12899"} {
		t.Run("ORA-"+code, func(t *testing.T) {
			t.Parallel()
			d := oracletest.StandIn(t, testdb.Install)
			n := configured(t, d.DSN(), quick, listenDoc)
			n.begin(t, "i", "t/listen", map[string]any{"order": 1})
			if _, err := d.Postgres(t.Context(), `create function app.broken() returns trigger language plpgsql as $$ begin raise exception 'ORA-`+code+`: injected'; end $$;
				create trigger broken before update on app.wf_runtime_states for each row execute function app.broken()`); err != nil {
				t.Fatal(err)
			}
			never(t, n)
		})
	}
}

// longTypeDoc hears an event and fails with a type that has no room in a column.
var longTypeDoc = doc("long-type", `
  - hear: {listen: {to: {one: {with: {type: go}}}}}
  - stop: {raise: {error: {type: "${ \"x\" * 600 }", status: 400, title: stopped}}}
`)

// TestATypeTooLongForItsColumnIsAnErrorItself: the instance says so, and is kept.
func TestATypeTooLongForItsColumnIsAnErrorItself(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := configured(t, fresh(), quick, longTypeDoc)
		n.begin(t, "i", "t/long-type", nil)
		n.send(t, toI("i", "s", `{"type":"go"}`))
		n.send(t, toI("i", "behind", `{"type":"early"}`))
		n.until(t, "i", status("faulted"))
		if s, err := n.store.Writer.Load(t.Context(), "i"); err != nil || !strings.HasSuffix(s.Error.Type, "/runtime") || !strings.Contains(s.Error.Detail, "600 bytes") {
			t.Errorf("error %+v, %v", s.Error, err)
		}
		if did := n.told(t, "i", "behind"); !strings.Contains(did, "buffered") {
			t.Errorf("behind it: %s", did)
		}
		if deadLetters := n.deadLetters(t, 0); len(deadLetters) != 0 {
			t.Errorf("dead letters %+v", deadLetters)
		}
	})
}

// TestOurOwnFaultBuriesNoSoundMessage: it is tried again past retry.max, until
// the bug is mended, and those behind it keep their order.
func TestOurOwnFaultBuriesNoSoundMessage(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		defs := &bugged{}
		n := configured(t, fresh(), func(c *runtime.Config) { quick(c); defs.Definitions, c.Definitions = c.Definitions, defs }, queueDoc)
		n.begin(t, "i", "t/queue", nil)
		defs.errors.Store(10)
		for k := range 3 {
			n.send(t, toI("i", fmt.Sprint("s-", k), fmt.Sprintf(`{"type":"go","data":{"n":%d}}`, k)))
		}
		if out := n.output(t, "i"); out != "[0,1,2]" {
			t.Errorf("output %s", out)
		}
		if deadLetters := n.deadLetters(t, 0); len(deadLetters) != 0 {
			t.Errorf("dead letters %+v", deadLetters)
		}
	})
}

var queueDoc = doc("queue", `
  - hear:
      listen: {to: {any: [{with: {type: go}}], until: '${ length >= 3 }'}}
      output: {as: '${ map(.n) }'}
`)

// TestOurPatienceEnds: after retry.patience it is a dead letter all the same,
// and those behind it go on.
func TestOurPatienceEnds(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		defs := &bugged{}
		n := configured(t, fresh(), func(c *runtime.Config) {
			quick(c)
			c.Patience = 50 * time.Millisecond
			defs.Definitions, c.Definitions = c.Definitions, defs
		}, listenDoc)
		n.begin(t, "i", "t/listen", map[string]any{"order": 1})
		defs.errors.Store(1 << 40)
		n.send(t, toI("i", "s", `{"type":"early"}`))
		if l := n.deadLetters(t, 1)[0]; l.Reason != "message.panic" || l.Attempts <= 3 {
			t.Errorf("dead letter %+v", l)
		}
		defs.errors.Store(0)
		n.send(t, toI("i", "s2", `{"type":"paid","data":{"order":1}}`))
		n.output(t, "i")
	})
}
