package runtime_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

const searchedDocument = `
lifecycle: '1.0'
environment: t
definition: %s
version: '1.0.0'
%s
events: {set: {}, end: {}}
states:
  Open: {category: initial}
  Closed: {category: final}
transitions:
  - {from: Open, event: set, to: Open, set: $event.data}
  - {from: Open, event: end, to: Closed}
`

// BenchmarkAttributes is a turn of a lifecycle on a file: of a definition without attributes, of one whose
// attributes it does not change, and of one of whose two it changes one.
func BenchmarkAttributes(b *testing.B) {
	const b1 = "b: {path: .b, type: text}"
	for name, metadata := range map[string]string{
		"none": "", "unchanged": "metadata: {searchAttributes: {a: {path: .a, type: decimal}, " + b1 + "}}",
		"changed": "metadata: {searchAttributes: {n: {path: .n, type: decimal}, " + b1 + "}}",
	} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			n, err := open(ctx, filepath.Join(b.TempDir(), "a.db"), nil, nil, fmt.Sprintf(searchedDocument, name, metadata))
			if err != nil {
				b.Fatal(err)
			}
			defer n.stop()
			id, _, _, err := n.rt.StartOrSignal(ctx, "i", signal.Start{Definition: "t/" + name, Input: json.RawMessage(`{"a":1,"b":"x"}`)}, nil)
			if err != nil {
				b.Fatal(err)
			}
			turns := 0
			for b.Loop() {
				turns++
				env := signal.Envelope{SignalID: fmt.Sprint(turns), InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: n.store.Clock.Now()}
				env.Payload = fmt.Appendf(nil, `{"type":"set","data":{"n":%d,"a":1,"b":"x"}}`, turns)
				if _, err := n.rt.Signal(ctx, env); err != nil {
					b.Fatal(err)
				}
			}
			where, err := attribute.Where(fmt.Sprintf("n = %d", turns))
			if err != nil {
				b.Fatal(err)
			}
			p, err := n.store.Instances.Instances(ctx, backend.InstanceQuery{Where: where})
			if err != nil || len(p.Items) != map[string]int{"changed": 1}[name] {
				b.Fatal(len(p.Items), err)
			}
		})
	}
}
