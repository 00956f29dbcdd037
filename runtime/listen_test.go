package runtime_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
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
