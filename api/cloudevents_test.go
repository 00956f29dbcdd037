package api

import (
	"strings"
	"testing"
)

// What is no CloudEvent 1.0 is refused, and says where.
func TestWhatIsNoCloudEventIsRefused(t *testing.T) {
	t.Parallel()
	h := handlerWith(t, &node{snap: waiting}, func(*Config) {})
	for name, c := range map[string]struct {
		event, says string
		headers     []string
	}{
		"event at no time":                        {`{"specversion":"1.0","id":"1","source":"s","type":"t","time":"yesterday"}`, "yesterday", nil},
		"event with an extension of another name": {`{"specversion":"1.0","id":"1","source":"s","type":"t","Ext":1}`, "Ext", nil},
		"event with an object as extension":       {`{"specversion":"1.0","id":"1","source":"s","type":"t","ext":{}}`, "ext", nil},
		"event with a fraction as extension":      {`{"specversion":"1.0","id":"1","source":"s","type":"t","ext":1.5}`, "ext", nil},
		"event with its data twice":               {`{"specversion":"1.0","id":"1","source":"s","type":"t","data":1,"data_base64":"YQ=="}`, "data_base64", nil},
		"event with other data":                   {`{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"%"}`, "data_base64", nil},
		"event with a subject of a number":        {`{"specversion":"1.0","id":"1","source":"s","type":"t","subject":7}`, "subject", nil},
		"event by headers of another name":        {`{}`, "my-ext", []string{"ce-specversion", "1.0", "ce-id", "1", "ce-source", "s", "ce-type", "t", "ce-my-ext", "1"}},
	} {
		if w := call(h, "POST", "/v1/events", c.event, c.headers...); w.Code != 400 || !strings.Contains(w.Body.String(), "event.invalid") || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	whole := `{"specversion":"1.0","id":"1","source":"s","type":"t","time":"2026-01-31T12:00:00.5+01:00","subject":"x","dataschema":null,"ext1":-7,"on":true,"of":"x","data_base64":"YQ=="}`
	if w := call(h, "POST", "/v1/events", whole); w.Code != 202 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
