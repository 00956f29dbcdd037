package api

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/signal"
)

// What is said in a header is text in UTF-8, or refused before anything is done with it.
func TestHeadersAreText(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ body, names string }{
		"/v1/instances":                       {`{"definition":"t/x","signal":{"type":"a"}}`, "Idempotency-Key X-Correlation-Id X-Aqueduct-Actor"},
		"/v1/instances/i/signals":             {`{"type":"a"}`, "Idempotency-Key X-Correlation-Id X-Aqueduct-Actor"},
		"/v1/lifecycles/shop/loan/L-1/events": {`{"event":"a"}`, "Idempotency-Key X-Correlation-Id X-Aqueduct-Actor"},
		"/v1/instances/i/activities":          {`{"id":"a","name":"a"}`, "X-Correlation-Id X-Aqueduct-Actor"},
		"/v1/events":                          {`{"specversion":"1.0","id":"1","source":"s","type":"t"}`, "X-Correlation-Id X-Aqueduct-Actor"},
	} {
		for name := range strings.FieldsSeq(c.names) {
			b := &node{snap: waiting}
			w := call(handler(t, b), "POST", path, c.body, name, "k\xe9")
			if said := w.Body.String(); w.Code != 400 || !strings.Contains(said, `"request.invalid"`) || !strings.Contains(said, "header."+name) ||
				b.headers != nil || b.event != nil || b.start.Definition != "" || b.signal.SignalID != "" {
				t.Errorf("%s of %s: %d %s", name, path, w.Code, said)
			}
		}
	}
	b := &node{snap: waiting}
	w := call(handler(t, b), "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":"a"}`, "Idempotency-Key", "ké", "X-Aqueduct-Actor", "Änne", "traceparent", "\xff")
	if w.Code != 201 || b.start.Signal.ID != "ké" || b.headers[signal.HeaderActor] != "Änne" {
		t.Errorf("%d %s %+v", w.Code, w.Body, b.start)
	}
}
