package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
)

const manyDoc = `
document: {dsl: '1.0.3', namespace: t, name: many, version: '1.0.0'}
do:
  - both:
      listen:
        to:
          all:
            - with: {type: ordered}
              correlate: {order: {from: .data.order}}
            - with: {type: paid}
              correlate: {order: {from: .data.order}}
            - with: {type: paid, source: bank}
              correlate: {order: {from: .data.order}, shop: {from: .data.shop, expect: '${ .shop }'}}
      output: {as: '${ map(.n) }'}
`

const forkDoc = `
document: {dsl: '1.0.3', namespace: t, name: twice, version: '1.0.0'}
do:
  - both:
      fork:
        branches:
          - one: {listen: {to: {one: {with: {type: twice}}}}}
          - two: {listen: {to: {one: {with: {type: twice}}}}}
`

// An event says to how many instances it was given, in however many branches they wait.
func TestReachedAreInstances(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, forkDoc)
		for i := range 3 {
			n.begin(t, fmt.Sprint(i), "t/twice", nil)
		}
		if got, err := n.rt.PublishEvent(t.Context(), json.RawMessage(`{"specversion":"1.0","id":"1","source":"s","type":"twice"}`), nil); got != 3 || err != nil {
			t.Errorf("it reaches %d instances: %v", got, err)
		}
		for i := range 3 {
			n.until(t, fmt.Sprint(i), status("completed"))
		}
	})
}

const anyDoc = `
document: {dsl: '1.0.3', namespace: t, name: anything, version: '1.0.0'}
do:
  - all:
      listen:
        to: {any: [], until: {one: {with: {type: '${ .type | startswith("end") }'}}}}
      output: {as: '${ map(.n) }'}
`

// TestEventFindsTheFilterItFits publishes events to listens of several
// filters: each is found by its own wait, and, once the first event has bound
// a correlation, by the value bound.
func TestEventFindsTheFilterItFits(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) { eventFindsItsFilter(t, fresh()) })
}

func eventFindsItsFilter(t *testing.T, place string) {
	n := start(t, place, nil, manyDoc, anyDoc)
	n.begin(t, "a", "t/many", map[string]any{"shop": "s"})
	n.begin(t, "b", "t/many", map[string]any{"shop": "s"})
	n.begin(t, "c", "t/anything", nil)
	publish := func(id, typ, source string, data map[string]any) {
		t.Helper()
		event, err := json.Marshal(map[string]any{"specversion": "1.0", "id": id, "type": typ, "source": source, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.rt.PublishEvent(t.Context(), event, nil); err != nil {
			t.Fatal(err)
		}
	}
	// at waits until an instance has taken its events, and has so many waits.
	at := func(id string, version int64, waits int) {
		t.Helper()
		var w await.Wait
		for {
			s, err := n.store.Writer.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if s.Version == version && len(s.Waits) == waits && len(s.Buffer) == 0 {
				return
			}
			if !w.Again(time.Millisecond, s.Version) {
				t.Fatalf("%s is at version %d with %d waits and %d kept, not at %d with %d", id, s.Version, len(s.Waits), len(s.Buffer), version, waits)
			}
		}
	}
	publish("1", "ordered", "x", map[string]any{"order": 1, "n": 1}) // nothing is bound: both take it
	at("a", 2, 2)
	at("b", 2, 2)
	at("c", 2, 2)
	publish("2", "paid", "x", map[string]any{"order": 2, "n": 2}) // bound to order 1 by now
	at("c", 3, 2)
	publish("3", "paid", "bank", map[string]any{"order": 1, "shop": "t", "n": 3})
	at("a", 3, 1)
	at("b", 3, 1)
	at("c", 4, 2)
	publish("3", "paid", "bank", map[string]any{"order": 1, "shop": "s", "n": 4}) // the same id: not a new event
	publish("4", "paid", "bank", map[string]any{"order": 1, "shop": "s", "n": 5})
	for _, id := range []string{"a", "b"} {
		if out := n.output(t, id); out != `[1,3,5]` {
			t.Errorf("%s: %s", id, out)
		}
	}
	at("c", 5, 2)
	publish("5", "ended", "x", nil)
	if out := n.output(t, "c"); out != `[1,2,3,5]` {
		t.Errorf("any: %s", out)
	}
	for _, typ := range []string{"ordered", "paid", "*"} {
		if specs, err := n.store.Waits.WaitSpecs(t.Context(), typ); err != nil || len(specs) > 0 {
			t.Errorf("waits for %s are left behind: %v, %v", typ, specs, err)
		}
	}
}

// unread is a catalogue that cannot read one definition for a while.
type unread struct {
	*definition.Catalogue
	name atomic.Value
}

func (u *unread) Find(ctx context.Context, name, version string) (engine.Definition, error) {
	if name == u.name.Load() {
		return nil, problem.New(problem.Internal, "definition.stored", "definition %s cannot be read", name)
	}
	return u.Catalogue.Find(ctx, name, version)
}

// TestWhoCanBeReadGetsTheEvent: of two who wait the definition of one cannot be read. The
// other has the event, the publication fails, and when it is made again both have it once.
func TestWhoCanBeReadGetsTheEvent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		defs := &unread{}
		n, err := openSet(t.Context(), fresh(), func(c *runtime.Config) {
			defs.Catalogue = c.Definitions.(*definition.Catalogue)
			c.Definitions = defs
		}, nil, listenDoc, takePaidDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer n.close()
		for id, def := range map[string]string{"a": "t/listen", "b": "t/takePaid"} {
			n.begin(t, id, def, map[string]int{"order": 1})
			n.until(t, id, func(i projections.Instance) bool { return i.Status == "waiting" })
		}
		event := json.RawMessage(`{"specversion":"1.0","id":"1","source":"x","type":"paid","data":{"order":1}}`)
		defs.name.Store("t/listen")
		if got, err := n.rt.PublishEvent(t.Context(), event, nil); got != 1 || problem.CodeOf(err) != "definition.stored" {
			t.Errorf("the event reached %d: %v", got, err)
		}
		n.output(t, "b")
		defs.name.Store("")
		if got, err := n.rt.PublishEvent(t.Context(), event, nil); got != 1 || err != nil {
			t.Errorf("the event reached %d: %v", got, err)
		}
		n.output(t, "a")
	})
}
