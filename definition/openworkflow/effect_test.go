package openworkflow

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// TestAuthorsOwnKeyIsUsedAsItIs and is no part of the request.
func TestAuthorsOwnKeyIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ call, key, input string }{
		"a function": {
			"{call: charge, with: {n: 1, idempotencyKey: '${ \"order-\" + .id }', newKey: true}}", "order-7", `{"n":1}`,
		},
		"http": {
			"{call: http, with: {method: post, endpoint: 'https://a.example', idempotencyKey: fixed}}", "fixed",
			`{"method":"POST","output":"content","redirect":false,"uri":"https://a.example"}`,
		},
		"forEach": {
			"{call: forEach, with: {in: '${ [.id] }', each: x, call: charge, with: {n: 1, idempotencyKey: '${ $x }'}}}", "7", `{"n":1}`,
		},
		"acknowledged": {
			"{call: acknowledged, with: {call: charge, with: {n: 1, idempotencyKey: '${ .id }'}}}", "7", `{"n":1}`,
		},
	} {
		p, err := Parse("w.yaml", []byte("document: {dsl: '1.0.3', namespace: t, name: own, version: '1.0.0'}\ndo:\n  - pay: "+c.call+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, err := engine.Begin(p.Definition, "i", signal.Start{Input: json.RawMessage(`{"id": "7"}`)}, engine.Input{Now: time.Unix(1, 0), Incarnation: "inc"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := out.Entries[len(out.Entries)-1].Command
		if got == nil || got.Key != c.key || string(got.Input) != c.input {
			t.Errorf("%s: %+v, %s", name, got, out.Entries[len(out.Entries)-1].Data)
		} else if w := out.Snapshot.Waits[0]; w.Effect != c.key {
			t.Errorf("%s: the snapshot has the key %q", name, w.Effect)
		}
	}
}
