package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// Of all that comes with one key of the application the first is applied, on whatever
// way the others come: as signals of other ids, as a message of the queue, as an event.
func TestOneKeyIsAppliedOnce(t *testing.T) {
	t.Parallel()
	document := doc("twice", `
  - first: {listen: {to: {one: {with: {type: paid}}}}}
  - second: {listen: {to: {one: {with: {type: paid}}}}}
`)
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, document)
		n.begin(t, "i", "t/twice", nil)
		n.begin(t, "other", "t/twice", nil)
		said := func(instance, id, key string) signal.Envelope {
			e := signal.Envelope{
				SignalID: id, InstanceID: instance, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
				Payload: json.RawMessage(fmt.Sprintf(`{"id":%q,"source":"s","type":"paid","data":{"of":%q}}`, id, id)), DedupeKey: key,
			}
			if key != "" {
				e.SignalID = signal.Keyed(key)
			}
			return e
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		applied := 0
		for k := range 8 {
			wg.Go(func() {
				did, err := n.rt.Signal(t.Context(), said("i", fmt.Sprint("m-", k), "order-7"))
				mu.Lock()
				defer mu.Unlock()
				if did == engine.Applied {
					applied++
				} else if did != engine.Duplicate {
					t.Errorf("%s, %v", did, err)
				}
			})
		}
		wg.Wait()
		if applied != 1 {
			t.Errorf("%d of 8 were applied", applied)
		}
		// A message of an application, which has the id of its transport and the key of its business.
		for _, id := range []string{"t-1", "t-2"} {
			n.send(t, `{"signalId":"`+id+`","dedupeKey":"order-7","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"id":"q","source":"s","type":"paid","data":{"of":"queue"}}}`)
		}
		n.event(t, json.RawMessage(`{"specversion":"1.0","id":"e-1","source":"bank","type":"paid","dedupekey":"order-7","data":{"of":"event"}}`), 2) // both listen
		n.drained(t)
		if row := n.until(t, "i", status("waiting")); row.Position != "second" {
			t.Errorf("at %q", row.Position)
		}
		e, err := n.store.Streams.Received(t.Context(), "i", signal.Keyed("order-7"))
		if err != nil || e.Type != "ExternalSignal" || !strings.Contains(string(e.Data), "m-") {
			t.Errorf("%+v, %v", e, err)
		}
		if types := n.types(t, "i"); types["ExternalSignal"] != 1 {
			t.Errorf("%v", types)
		}
		if _, err := n.store.Streams.Received(t.Context(), "other", signal.Keyed("order-7")); err != nil { // the event's, whose key is its own there
			t.Error(err)
		}
		if did, err := n.rt.Signal(t.Context(), said("i", "m-9", "order-8")); did != engine.Applied || err != nil {
			t.Errorf("another key: %s, %v", did, err)
		}
		n.until(t, "i", status("completed"))
		if did, err := n.rt.Signal(t.Context(), said("i", "m-10", "order-7")); did != engine.Duplicate || err != nil {
			t.Errorf("of an instance that has ended: %s, %v", did, err)
		}
		for _, key := range []string{"a b", strings.Repeat("k", 129)} {
			e := said("other", "s", "")
			e.DedupeKey = key
			_, err := n.rt.Signal(t.Context(), e)
			code(t, err, "signal.invalid")
		}
	})
}
