package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// A key of the application, and an id, are held to one rule on each way in; and no id is
// taken for the key of another.
func TestKeysAndIDsAreHeldToOneRule(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	x := repeating{b}
	h := handlerWith(t, b, func(c *Config) { c.Starter, c.Signaller, c.Reader.Streams = x, x, x })
	ways := map[string]string{
		"/v1/instances/i/signals":           `{"type":"paid","%s":%q}`,
		"/v1/lifecycles/shop/loan/L/events": `{"event":"pay","%s":%q}`,
		"/v1/instances":                     `{"definition":"shop/loan","signal":{"type":"paid","%s":%q}}`,
	}
	for path, body := range ways {
		id := "signalId"
		if strings.HasSuffix(path, "events") {
			id = "requestId"
		}
		for field, values := range map[string][]string{
			"dedupeKey": {strings.Repeat("ä", 65), ".", "..", "a b"}, id: {"key:K", "key:"},
		} {
			for _, v := range values {
				w := call(h, "POST", path, fmt.Sprintf(body, field, v), "Content-Type", "application/json")
				if w.Code != 400 || !strings.Contains(w.Body.String(), "signal.invalid") {
					t.Errorf("%s %s %.8q: %d %s", path, field, v, w.Code, w.Body)
				}
			}
		}
		for field, v := range map[string]string{"dedupeKey": "key:K", id: "K"} {
			if w := call(h, "POST", path, fmt.Sprintf(body, field, v), "Content-Type", "application/json"); strings.Contains(w.Body.String(), "signal.invalid") {
				t.Errorf("%s %s %q: %d %s", path, field, v, w.Code, w.Body)
			}
		}
		w := call(h, "POST", path, strings.Replace(fmt.Sprintf(body, "type", "paid"), `"type":"paid","type"`, `"type"`, 1), "Content-Type", "application/json", "Idempotency-Key", "key:K")
		if strings.HasSuffix(path, "events") {
			w = call(h, "POST", path, `{"event":"pay"}`, "Content-Type", "application/json", "Idempotency-Key", "key:K")
		}
		if w.Code != 400 || !strings.Contains(w.Body.String(), "signal.invalid") {
			t.Errorf("%s by header: %d %s", path, w.Code, w.Body)
		}
	}
}

// What is no text is no address of anything.
func TestAnAddressIsText(t *testing.T) {
	t.Parallel()
	h := handlerWith(t, &node{snap: waiting}, func(*Config) {})
	for _, path := range []string{"/v1/instances?businessKey=%ff", "/v1/instances/%ff", "/v1/instances?businessKey=a%zz"} {
		if w := call(h, "GET", path, ""); w.Code != 400 || !strings.Contains(w.Body.String(), "request.invalid") || !strings.Contains(w.Body.String(), "UTF-8") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// counting has a sender's second signal, whose number another has taken.
type counting struct{ repeating }

func (counting) entry(position int64, m engine.Meta) projections.Entry {
	b, _ := json.Marshal(m)
	return projections.Entry{InstanceID: "i", Position: position, Kind: "event", Type: "ExternalSignal", Metadata: b}
}

func (c counting) Received(context.Context, string, string) (projections.Entry, error) {
	return c.entry(9, engine.Meta{Sender: "s", Sequence: 2, Disposition: engine.Duplicate}), nil
}

func (c counting) Stream(_ context.Context, _ string, after int64, _ int) ([]projections.Entry, error) {
	all := []projections.Entry{
		c.entry(4, engine.Meta{Sender: "s", Sequence: 1}), c.entry(5, engine.Meta{Sender: "other", Sequence: 2}),
		c.entry(6, engine.Meta{Sender: "s", Sequence: 2, Disposition: engine.Buffered}), c.entry(7, engine.Meta{Sender: "s", Sequence: 2}),
		c.entry(8, engine.Meta{Sender: "s", Sequence: 2, Disposition: engine.Duplicate}), c.entry(9, engine.Meta{Sender: "s", Sequence: 2, Disposition: engine.Duplicate}),
	}
	return all[min(max(0, after-3), 6):], nil
}

// The first of a duplicate by its number is who took that, not the duplicate itself.
func TestTheFirstOfANumberIsWhoTookIt(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	x := counting{repeating{b}}
	h := handlerWith(t, b, func(c *Config) { c.Starter, c.Signaller, c.Reader.Streams = x, x, x })
	for path, body := range map[string]string{
		"/v1/instances/i/signals":           `{"type":"paid","signalId":"m-2","sender":"s","sequence":2}`,
		"/v1/lifecycles/shop/loan/L/events": `{"event":"pay","requestId":"r-2","sender":"s","sequence":2}`,
	} {
		if w := call(h, "POST", path, body, "Content-Type", "application/json"); w.Code > 202 || !strings.Contains(w.Body.String(), `"first":{"position":6,"disposition":"buffered"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestAnOperationForOtherNodesIsAccepted: what only a node with the code can do is
// accepted and queued, and what is done here is done.
func TestAnOperationForOtherNodesIsAccepted(t *testing.T) {
	t.Parallel()
	for did, want := range map[engine.Disposition]int{engine.Applied: http.StatusOK, engine.Queued: http.StatusAccepted} {
		b := &node{snap: waiting, did: did}
		b.InstanceReader, b.StreamReader = counted{}, counted{}
		w := call(handler(t, b), "POST", "/v1/instances/i/operations", `{"operation":"retry"}`)
		if says := strings.Contains(w.Body.String(), `"disposition":"queued"`); w.Code != want || says != (did == engine.Queued) {
			t.Errorf("%s: %d %s", did, w.Code, w.Body)
		}
	}
}

// codeAway is a node without the code of its instances.
type codeAway struct{ *node }

func (codeAway) Takes(context.Context, snapshot.Snapshot) ([]string, error) {
	return nil, problem.New(problem.Unavailable, engine.CodeElsewhere, "it is not here")
}

// TestWhySaysThatTheCodeIsElsewhere: what has come for the instance waits for other nodes.
func TestWhySaysThatTheCodeIsElsewhere(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	b.InstanceReader, b.StreamReader, b.DeadLetterReader = counted{}, counted{}, noneDead{}
	for _, away := range []bool{false, true} {
		w := call(handlerWith(t, b, func(c *Config) {
			if away {
				c.Operator = codeAway{b}
			}
		}), "GET", "/v1/instances/i/why", "")
		if says := strings.Contains(w.Body.String(), `"code":"elsewhere"`); w.Code != http.StatusOK || says != away {
			t.Errorf("away %t: %d %s", away, w.Code, w.Body)
		}
	}
}

// noneDead has none.
type noneDead struct{ backend.DeadLetterReader }

func (noneDead) DeadLetters(context.Context, backend.DeadLetterQuery) (backend.Page[projections.DeadLetter], error) {
	return backend.Page[projections.DeadLetter]{}, nil
}

// A breaker is reset when the audit has it, and nothing is noted of what is not there.
func TestAResetIsNotedBeforeItIsDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target              string
		unnoted             error
		status, acts, noted int
	}{
		{"GET h/{id}", nil, 204, 1, 1},
		{"GET h/x", nil, 404, 0, 0},
		{"GET h/{id}", problem.New(problem.Unavailable, "store.busy", "full"), 503, 0, 1},
	} {
		b := &node{unnoted: c.unnoted}
		w := call(handler(t, b), "POST", "/v1/targets/reset", `{"target":"`+c.target+`"}`)
		if w.Code != c.status || b.acts != c.acts || len(b.noted) != c.noted {
			t.Errorf("%s, %v: %d %s, done %d times, noted %q", c.target, c.unnoted, w.Code, w.Body, b.acts, b.noted)
		}
	}
}

// The groups of who completes a task are those that they are in, where that is known.
func TestWhoCompletesATaskIsInTheirGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who  principal.Principal
		said string
		want []string
	}{
		{principal.Principal{Name: "ann", Groups: []string{"a", "b"}}, "", []string{"a", "b"}},
		{principal.Principal{Name: "ann"}, "", []string{}},
		{principal.Principal{Name: "ann", Groups: []string{"a", "b"}}, `,"groups":["b"]`, []string{"b"}},
		{principal.Principal{Name: "app", Speaks: true}, "", nil},
		{principal.Principal{}, "", nil},
	} {
		b := &node{}
		r := httptest.NewRequest("POST", "http://localhost/v1/tasks/t/complete", strings.NewReader(`{"user":"ann"`+c.said+`}`))
		w := httptest.NewRecorder()
		handler(t, b).ServeHTTP(w, r.WithContext(principal.With(r.Context(), c.who)))
		if w.Code != http.StatusOK || !reflect.DeepEqual(b.groups, c.want) {
			t.Errorf("%+v%s: %d, groups %#v, not %#v", c.who, c.said, w.Code, b.groups, c.want)
		}
	}
}

// oneByOne are pages of one entry, as large ones are.
type oneByOne struct {
	backend.StreamReader
	rows []projections.Entry
}

func (s oneByOne) Stream(_ context.Context, _ string, after int64, _ int) ([]projections.Entry, error) {
	return s.rows[after:min(after+1, int64(len(s.rows)))], nil
}

func (s oneByOne) Received(context.Context, string, string) (projections.Entry, error) {
	return s.rows[len(s.rows)-1], nil
}

// Who suspended an instance, and what the first of two messages did, is found behind the end of
// a page whose entries are large.
func TestWhatIsLookedForIsFoundBehindAPage(t *testing.T) {
	t.Parallel()
	rows := oneByOne{rows: []projections.Entry{
		{Position: 1, Type: "ExternalSignal"},
		{Position: 2, Type: engine.EntrySuspended, Metadata: []byte(`{"actor":"olga"}`)},
		{Position: 3, Type: "ExternalSignal", Metadata: []byte(`{"sender":"s","sequence":2,"disposition":"buffered"}`)},
		{Position: 4, Type: "ExternalSignal", Metadata: []byte(`{"sender":"s","sequence":2,"disposition":"duplicate"}`)},
	}}
	s := instanceAPI{&service{Config: Config{Operator: &node{snap: snapshot.Snapshot{Position: 4}}, Reader: Reader{Streams: rows}}}}
	if r, err := (whyAPI{s}).suspended(t.Context(), "i"); err != nil || !strings.HasSuffix(r.Text, " by olga") {
		t.Errorf("%+v, %v", r, err)
	}
	if f, err := s.first(t.Context(), "i", "x", engine.Duplicate); err != nil || f == nil || f.Position != 3 || f.Disposition != "buffered" {
		t.Errorf("%+v, %v", f, err)
	}
}
