package engine

import (
	"encoding/json"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What a payload says is what a strict decoder reads in it, whatever its form.
func TestResultOfAPayload(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"output":1}`, `{"output":"}"}`, `{"output":null}`, `{"output": {"a": [1, {}]} }`, "{\"output\":\n[]\t}", `{"output":{}}`,
		`{"output":1,"error":{"type":"t","status":400}}`, `{"output":1,"output":2}`, `{"error":{"type":"t","status":400}}`, `{}`,
		` {"output":1}`, `{"output":1} `, `{"output" :1}`, `null`,
		`{"output":}`, `{"output":1}}`, `{"output":{}`, `{"output":1 2}`, `{"output":`, `}`, `[]`, "{\"output\":\u00a01}",
	} {
		var want struct {
			Output json.RawMessage `json:"output"`
			Error  *snapshot.Error `json:"error"`
		}
		wantErr := jsonv2.Unmarshal([]byte(payload), &want)
		got, err := result(signal.Envelope{Type: signal.TaskCompleted, Payload: json.RawMessage(payload)})
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, not %v", payload, err, wantErr)
			continue
		}
		if err == nil && (string(got.Output) != string(want.Output) || (got.Error == nil) != (want.Error == nil)) {
			t.Errorf("%s: %s and %v, not %s and %v", payload, got.Output, got.Error, want.Output, want.Error)
		}
	}
}
