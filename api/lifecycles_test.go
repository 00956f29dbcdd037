package api

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

var waiting = snapshot.Snapshot{
	InstanceID: "i", Definition: snapshot.Definition{Name: "shop/loan", Version: "1.0.0"}, Status: snapshot.Waiting, UpdatedAt: time.Unix(2, 0),
	Branches: []*snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: "/states"}, {Pointer: "/states/In~1Review", StartedAt: time.Unix(1, 0)}}}},
	Waits: []snapshot.Wait{
		{Kind: snapshot.WaitTimer, Token: "u", Pointer: "/states/In~1Review"}, {Kind: snapshot.WaitState, Token: "t", Pointer: "/states/In~1Review"},
	},
}

// A trigger is a start with a signal (D2): the reference is the business key.
func TestTriggerIsAStartWithASignal(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	h := handler(t, b)
	w := call(h, "POST", "/v1/lifecycles/shop/loan/L%2F1/events", `{"event":"submit","requestId":"r-1","actor":"ann","payload":{"n":1},"input":{"a":1},"version":"1.0.0"}`,
		"X-Aqueduct-Actor", "app")
	want := signal.Start{
		Definition: "shop/loan", Version: "1.0.0", BusinessKey: "L/1", StartKey: "lifecycle", Input: []byte(`{"a":1}`),
		Signal: &signal.FirstSignal{ID: "r-1", Type: "submit", Data: []byte(`{"n":1}`), Actor: "ann"},
	}
	if w.Code != http.StatusCreated || w.Body.String() != `{"instanceId":"","created":true,"disposition":"applied","state":"In/Review","status":"waiting"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !reflect.DeepEqual(b.start, want) || b.headers[signal.HeaderActor] != "app" {
		t.Errorf("got %+v %+v, %v", b.start, b.start.Signal, b.headers)
	}
	call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":1000}`, "Idempotency-Key", "k")
	if s := b.start.Signal; s.Type != "1000" || s.ID != "k" || s.Data != nil {
		t.Errorf("by code: %+v", s)
	}
	call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":"x"}`)
	if len(b.start.Signal.ID) != 36 {
		t.Errorf("without an id: %+v", b.start.Signal)
	}
	for _, bad := range []string{`{}`, `{"event":""}`, `{"event":1.5}`, `{"event":null}`, `{"event":{}}`, `{"event":1e300}`, `{"event":"a","state":"b"}`} {
		if w := call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", bad); w.Code != 400 && w.Code != 422 || problemOf(t, w).Code != "request.invalid" {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
	b.snap.Status, b.snap.Error = snapshot.Faulted, &snapshot.Error{Type: "t", Status: 400, Title: "Expression failed", Detail: "no", Instance: "/states/Open/policies/0/billing"}
	w = call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":"x"}`)
	faulted := `"status":"faulted","error":{"type":"t","status":400,"title":"Expression failed","detail":"no","pointer":"/states/Open/policies/0/billing"}}`
	if w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), faulted) {
		t.Errorf("faulted: %d %s", w.Code, w.Body)
	}
	b.err = problem.New(problem.Conflict, "lifecycle.refused", "not now")
	if p := problemOf(t, call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":"x"}`)); p.Status != 409 || p.Code != "lifecycle.refused" {
		t.Errorf("%+v", p)
	}
}

func TestLifecycleSaysItsState(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting, takes: []string{"approve", "cancel"}}
	h := handler(t, b)
	w := call(h, "GET", "/v1/lifecycles/shop/loan/L%2F1", "")
	want := `{"instanceId":"i","definition":"shop/loan","version":"1.0.0","reference":"L/1","state":"In/Review","events":["approve","cancel"],"status":"waiting",` +
		`"since":"1970-01-01T00:00:01Z","updatedAt":"1970-01-01T00:00:02Z"}` + "\n"
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	b.snap.Status, b.snap.Waits, b.takes = snapshot.Completed, nil, nil
	if w := call(h, "GET", "/v1/lifecycles/shop/loan/L%2F1", ""); !strings.Contains(w.Body.String(), `"state":"completed","events":[],"status":"completed","since":"1970-01-01T00:00:05Z"`) {
		t.Errorf("ended: %s", w.Body)
	}
	if p := problemOf(t, call(h, "GET", "/v1/lifecycles/shop/loan/none", "")); p.Status != 404 || p.Code != "definition.unknown" {
		t.Errorf("%+v", p)
	}
	b.versions = []definition.Record{{}}
	if p := problemOf(t, call(h, "GET", "/v1/lifecycles/shop/loan/none", "")); p.Status != 404 || p.Code != "instance.unknown" {
		t.Errorf("%+v", p)
	}
}

func TestStartTakesASignal(t *testing.T) {
	t.Parallel()
	b := &node{err: problem.New(problem.Conflict, "lifecycle.refused", "not now")}
	p := problemOf(t, call(handler(t, b), "POST", "/v1/instances", `{"definition":"a/b","signal":{"type":"paid","data":1}}`, "Idempotency-Key", "k"))
	want := &signal.FirstSignal{ID: "k", Type: "paid", Data: []byte("1")}
	if p.Status != 409 || b.start.StartKey != "k" || !reflect.DeepEqual(b.start.Signal, want) {
		t.Errorf("%+v %+v", p, b.start.Signal)
	}
}

// A key of a start may have 256 characters, which are more than the id of its signal may have:
// that is made of it then, and is none that a dedupe key has.
func TestALongKeyOfAStartNamesItsSignal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 256)
	b := &node{err: problem.New(problem.Conflict, "lifecycle.refused", "not now")}
	h := handler(t, b)
	call(h, "POST", "/v1/instances", `{"definition":"a/b","signal":{"type":"paid"}}`, "Idempotency-Key", long)
	if s := b.start.Signal; s == nil || s.ID != signal.Bounded(long) || b.start.StartKey != long || b.start.Validate() != nil {
		t.Errorf("%+v %+v", b.start, s)
	}
	b.start = signal.Start{}
	call(h, "POST", "/v1/instances", `{"definition":"a/b","signal":{"type":"paid"}}`, "Idempotency-Key", "key:"+long[:200])
	if b.start.Signal != nil {
		t.Errorf("as a dedupe key: %+v", b.start.Signal)
	}
	call(h, "POST", "/v1/instances", `{"definition":"a/b","signal":{"type":"paid","signalId":"`+long[:129]+`"}}`)
	if s := b.start.Signal; s == nil || s.ID != long[:129] {
		t.Errorf("%+v %+v", b.start, s)
	}
}
