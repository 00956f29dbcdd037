package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
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

// Headers carry attributes as the HTTP binding of CloudEvents says: percent-encoded, or in
// quotes; what is no text then is refused.
func TestHeadersOfAnEventAreDecoded(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Euro%20%E2%82%AC%20%f0%9F%98%80": `"Euro € 😀"`, `"a \"b\" \\ %41"`: `"a \"b\" \\ A"`, "%25%32%35": `"%25"`, "100%": `"100%"`, "%zz%4": `"%zz%4"`,
		"plain": `"plain"`, `"`: `"\""`, `""`: `""`, "€": `"€"`, "%FF": "", "\xff": "", "%E2%82": "",
	} {
		b := &node{}
		w := call(handler(t, b), "POST", "/v1/events", "", "ce-id", "1", "ce-source", "s", "ce-type", "t", "ce-specversion", "1.0", "ce-subject", header)
		if want == "" {
			if said := w.Body.String(); w.Code != 400 || !strings.Contains(said, `"event.invalid"`) || !strings.Contains(said, "ce-subject") || b.event != nil {
				t.Errorf("%q: %d %s", header, w.Code, w.Body)
			}
			continue
		}
		if w.Code != 202 || string(b.event) != `{"id":"1","source":"s","specversion":"1.0","subject":`+want+`,"type":"t"}` {
			t.Errorf("%q: %d %s %s", header, w.Code, w.Body, b.event)
		}
	}
	b := &node{}
	h := guardedBy(t, b, &access.Gate{Verifiers: []access.Verifier{bearers{}}, Events: access.EventTypes{"order.*": {access.Application}}})
	if w := call(h, "POST", "/v1/events", "", "ce-id", "1", "ce-source", "s", "ce-type", "pay%2Edone", "ce-specversion", "1.0", "Authorization", "Bearer app:application"); w.Code != 403 || b.event != nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// until notes that a body has a time by which it must have arrived.
type until struct {
	*httptest.ResponseRecorder
	set bool
}

func (u *until) SetReadDeadline(time.Time) error {
	u.set = true
	return nil
}

// A body has its time to arrive; where there is none, the end of that time would end the request.
func TestARequestWithoutABodyHasNoTimeForIt(t *testing.T) {
	t.Parallel()
	h := handler(t, &node{})
	for body, want := range map[string]bool{"": false, `{"a":1}`: true} {
		w := &until{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("POST", "http://localhost/v1/events", strings.NewReader(body))
		for name, value := range map[string]string{"Ce-Id": "1", "Ce-Source": "s", "Ce-Type": "t", "Ce-Specversion": "1.0"} {
			r.Header.Set(name, value)
		}
		if h.ServeHTTP(w, r); w.Code != http.StatusAccepted || w.set != want {
			t.Errorf("%q: %d %s, has a time %t", body, w.Code, w.Body, w.set)
		}
	}
}
