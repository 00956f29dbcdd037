package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/prometheus/client_golang/prometheus"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden OpenAPI document")

// node answers every service with err, or with what little the edge needs.
// What the API does with real services is tested with the node, in cmd.
type node struct {
	backend.InstanceReader
	backend.StreamReader
	backend.TaskReader
	backend.DeadLetterReader
	backend.BacklogReader
	err     error
	panics  bool
	start   signal.Start
	signal  signal.Envelope
	event   json.RawMessage
	headers map[string]string

	migration   definition.Migration
	snap        snapshot.Snapshot
	takes       []string
	versions    []definition.Record
	ack         map[string]any
	noted, bulk []string
	did         engine.Disposition // of an operation
	acts        int                // operations, starts and rewinds that were done
	unnoted     error              // of the audit
	groups      []string           // of who completes a task
	unread      func() error       // of a snapshot, when one was done; nil = it is read
	attached    backend.Activity
	moments     backend.MomentQuery
	change      backend.ActivityChange
	tasks       map[string]projections.Task // nil = each is one that ann has ended
	asked       backend.TaskQuery
}

func (b *node) StartOrSignal(_ context.Context, id string, s signal.Start, h map[string]string) (string, bool, engine.Disposition, error) {
	if b.panics {
		panic("a bug")
	}
	b.start, b.headers = s, h
	b.acts++
	return id, true, engine.Applied, b.err
}
func (b *node) IDOf(id string, _ signal.Start) string { return id }
func (b *node) Follow(string, func(*snapshot.Snapshot, *projections.Rows)) func() {
	return func() {}
}
func (b *node) Started(_ context.Context, definition, business, key string) (projections.Instance, error) {
	if definition+business+key != "shop/loanL/1"+signal.LifecycleKey {
		return projections.Instance{}, store.ErrNotFound
	}
	return projections.Instance{ID: "i", BusinessKey: business, UpdatedAt: time.Unix(5, 0)}, b.err
}
func (b *node) Signal(_ context.Context, e signal.Envelope) (engine.Disposition, error) {
	b.signal = e
	return engine.Applied, b.err
}
func (b *node) PublishEvent(_ context.Context, e json.RawMessage, h map[string]string) (int, error) {
	b.event, b.headers = e, h
	return 3, b.err
}
func (b *node) ClaimTask(context.Context, string, string, []string) (projections.Task, error) {
	return projections.Task{}, b.err
}
func (b *node) ReleaseTask(context.Context, string, string) (projections.Task, error) {
	return projections.Task{}, b.err
}
func (b *node) DelegateTask(context.Context, string, string, string) (projections.Task, error) {
	return projections.Task{}, b.err
}
func (b *node) ReassignTask(context.Context, string, string, string) (projections.Task, error) {
	return projections.Task{}, b.err
}
func (b *node) ClaimNext(_ context.Context, _ string, _ []string, scope backend.Scope, _ int) ([]projections.Task, error) {
	return nil, b.err
}

func (b *node) CompleteTask(_ context.Context, _, _ string, groups []string, _ string, _ json.RawMessage) (projections.Task, error) {
	b.groups = groups
	return projections.Task{}, b.err
}
func (b *node) Snapshot(context.Context, string) (snapshot.Snapshot, error) {
	if b.unread != nil && b.acts > 0 {
		return snapshot.Snapshot{}, b.unread()
	}
	return b.snap, b.err
}
func (b *node) SearchAttributes(_ context.Context, name, version string) ([]attribute.Declared, error) {
	if version == "2" {
		return []attribute.Declared{{Name: "former", Kind: attribute.Text}}, nil
	}
	return []attribute.Declared{{Name: "amount", Kind: attribute.Decimal}}, b.err
}
func (b *node) Takes(context.Context, snapshot.Snapshot) ([]string, error) {
	return b.takes, b.err
}
func (b *node) OperateAt(context.Context, string, engine.Operation, json.RawMessage, int64, string) (engine.Disposition, error) {
	b.acts++
	return cmp.Or(b.did, engine.Applied), b.err
}
func (b *node) Acknowledge(_ context.Context, id string, position int64, a ack.Ack) (engine.Disposition, error) {
	b.ack = map[string]any{id + "/" + strconv.FormatInt(position, 10): a}
	return engine.Applied, b.err
}
func (b *node) CompareVersions(_ context.Context, name, from, to string) (definition.MigrationReport, error) {
	return b.Migrate(context.Background(), definition.Migration{Name: name, From: from, To: to, DryRun: true})
}
func (b *node) Migrate(_ context.Context, m definition.Migration) (definition.MigrationReport, error) {
	b.migration = m
	return definition.MigrationReport{Live: 2, Left: 1, Moved: 1, Positions: []definition.LivePosition{{Pointer: "/do/0/a", Instances: 2}}}, b.err
}
func (b *node) ReplayAfter(context.Context, string, int64) (int64, error) { return 0, b.err }
func (b *node) DiscardAfter(context.Context, string, int64) error         { return b.err }
func (b *node) Targets() []admission.State {
	return []admission.State{{Destination: admission.Destination{Target: "GET h/{id}", Host: "h"}, Breaker: "open", Failures: 5, Waiting: 2, WaitsFor: "the breaker"}}
}
func (b *node) ResetTarget(name string) error {
	if name != "GET h/{id}" {
		return problem.New(problem.NotFound, "target.unknown", "this node has sent nothing to %q", name)
	}
	b.acts++
	return b.err
}
func (b *node) WaitsFor(string, int64) string { return "" }
func (b *node) Publish(_ context.Context, file string, source []byte) (definition.Record, bool, error) {
	return definition.Record{Name: "a/b", Version: "1", Title: file, Digest: string(source)}, false, b.err
}
func (b *node) Definition(context.Context, string, string) (definition.Record, error) {
	return definition.Record{Source: []byte(" {}")}, b.err
}
func (b *node) Versions(context.Context, string, int) ([]definition.Record, error) {
	return b.versions, b.err
}
func (b *node) Definitions(context.Context, string, int) ([]definition.Record, error) {
	return b.versions[:min(1, len(b.versions))], b.err
}
func (b *node) TaskEvents(context.Context, string) ([]projections.TaskEvent, error) { return nil, nil }
func (b *node) Tasks(_ context.Context, q backend.TaskQuery) (backend.Page[projections.Task], error) {
	b.asked = q
	return backend.Page[projections.Task]{}, nil
}
func (b *node) Queues(context.Context) ([]backend.Queue, error) { return nil, b.err }
func (b *node) Task(_ context.Context, id string) (projections.Task, error) {
	if t, ok := b.tasks[id]; ok || b.tasks != nil {
		if !ok {
			return t, store.ErrNotFound
		}
		return t, nil
	}
	return projections.Task{EndedBy: "ann", EndedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, nil
}

func handler(t *testing.T, b *node) http.Handler {
	t.Helper()
	return within(t, b, nil)
}

// within is handler with a budget of memory.
func within(t *testing.T, b *node, budget *memory.Budget) http.Handler {
	t.Helper()
	return handlerWith(t, b, func(c *Config) { c.Memory = budget })
}

// handlerWith is handler with settings of its own.
func handlerWith(t *testing.T, b *node, set func(*Config)) http.Handler {
	t.Helper()
	c := Config{
		Starter: b, Signaller: b, Tasks: b, Commenter: b, Operator: b, Acknowledger: b, DeadLetters: b, Dispatcher: b, Publisher: b, Migrator: b, Definitions: b, Tokens: b, Auditor: b, Activities: b, Past: b, Bulk: bulkNode{b},
		Reader: Reader{Instances: b, Streams: b, Tasks: b, DeadLetters: b, Backlog: b, Members: b, Audit: b, Activities: b, Moments: b, Plans: bulkNode{b}},
		Ready:  func(context.Context) error { return b.err }, Now: func() time.Time { return time.Unix(0, 0) },
		Registerer: prometheus.NewRegistry(), Version: "test",
	}
	set(&c)
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// call makes a request; headers are pairs.
func call(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func problemOf(t *testing.T, w *httptest.ResponseRecorder) client.Problem {
	t.Helper()
	var p client.Problem
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%d %q: %v", w.Code, w.Body, err)
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q", ct)
	}
	if p.Status != w.Code || p.Code == "" || p.Title == "" || p.Type == "" || p.Detail == "" {
		t.Errorf("status %d, problem %+v", w.Code, p)
	}
	return p
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	cases := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code, says               string
	}{
		{"no such path", "GET", "/v1/nothing", "", nil, 404, "route.unknown", "nothing is at this path"},
		{"no such method", "PUT", "/v1/instances", "", nil, 405, "request.method", ""},
		{"another host", "GET", "/healthz", "", []string{"Host", "evil.example:8080"}, 403, "request.host", ""},
		{"another site", "POST", "/v1/definitions", "a", []string{"Sec-Fetch-Site", "cross-site"}, 403, "request.cross-origin", ""},
		{"no body", "POST", "/v1/instances", "", nil, 400, "request.invalid", ""},
		{"not json", "POST", "/v1/instances", "{", nil, 400, "request.invalid", "it is not JSON"},
		{"two documents", "POST", "/v1/instances", `{"definition":"a"} 1`, nil, 400, "request.invalid", "data after"},
		{"key twice", "POST", "/v1/instances", `{"definition":"a","input":{"x":1,"x":2}}`, nil, 400, "request.invalid", `key \"x\" stands twice`},
		{"not utf-8", "POST", "/v1/instances", "{\"definition\":\"\xff\"}", nil, 400, "request.invalid", "UTF-8"},
		{"too deep", "POST", "/v1/instances", `{"definition":"a","input":` + deep + `}`, nil, 400, "request.invalid", "deeper than 60"},
		{"unknown field", "POST", "/v1/instances", `{"definition":"a","imput":1}`, nil, 422, "request.invalid", "/imput"},
		{"missing field", "POST", "/v1/instances", `{}`, nil, 422, "request.invalid", "definition"},
		{"wrong type", "POST", "/v1/instances", `{"definition":1}`, nil, 422, "request.invalid", "/definition"},
		{"form", "POST", "/v1/instances", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "request.content-type", ""},
		{"large", "POST", "/v1/instances", strings.Repeat(" ", MaxBodyBytes+1), nil, 413, "request.too-large", "262144"},
		{"large source", "POST", "/v1/definitions", strings.Repeat(" ", MaxDefinitionBytes+1), nil, 413, "request.too-large", "1048576"},
		{"source as form", "POST", "/v1/definitions", "a", []string{"Content-Type", "multipart/form-data"}, 415, "request.content-type", ""},
		{"unknown parameter", "GET", "/v1/instances?state=x", "", nil, 422, "request.invalid", "query.state"},
		{"limit", "GET", "/v1/instances?limit=501", "", nil, 422, "request.invalid", "query.limit"},
		{"status", "GET", "/v1/instances?status=gone", "", nil, 422, "request.invalid", "query.status"},
		{"wait", "POST", "/v1/instances?wait=61s", `{"definition":"a"}`, nil, 400, "request.invalid", "query.wait"},
		{"no operation", "POST", "/v1/instances/x/operations", `{"operation":"explode"}`, nil, 422, "request.invalid", "/operation"},
		{"no outcome", "POST", "/v1/instances/x/commands/2/ack", `{}`, nil, 422, "request.invalid", "outcome"},
		{"outcome", "POST", "/v1/instances/x/commands/2/ack", `{"outcome":"done"}`, nil, 422, "request.invalid", "/outcome"},
		{"delay", "POST", "/v1/instances/x/commands/2/ack", `{"outcome":"retry","delay":"soon"}`, nil, 400, "request.invalid", "/delay"},
		{"position", "POST", "/v1/instances/x/commands/0/ack", `{"outcome":"processed"}`, nil, 422, "request.invalid", "path.position"},
		{"position as text", "POST", "/v1/instances/x/commands/two/ack", `{"outcome":"processed"}`, nil, 422, "request.invalid", "path.position"},
		{"output", "POST", "/v1/instances/x/operations", `{"operation":"retry","output":1}`, nil, 400, "request.invalid", "only skip"},
		{"no user", "POST", "/v1/tasks/x/claim", `{"user":""}`, nil, 422, "request.invalid", "/user"},
		{"another user in capitals", "POST", "/v1/tasks/x/claim", `{"user":"eve","USER":"olga"}`, nil, 422, "request.invalid", "/USER"},
		{"user in capitals", "POST", "/v1/tasks/x/claim", `{"USER":"olga"}`, nil, 422, "request.invalid", "user"},
		{"a long s", "POST", "/v1/instances", `{"definition":"a","buſinessKey":"k"}`, nil, 422, "request.invalid", "nessKey"},
		{"a Kelvin sign", "POST", "/v1/instances", `{"definition":"a","businessKey":"k"}`, nil, 422, "request.invalid", "business"},
		{"the same key, escaped", "POST", "/v1/tasks/x/claim", `{"user":"eve","user":"olga"}`, nil, 400, "request.invalid", "stands twice"},
		{"parts in capitals", "POST", "/v1/instances", `{"definition":"a","signal":{"id":"1","type":"t","TYPE":"u"}}`, nil, 422, "request.invalid", "TYPE"},
		{"event in a batch", "POST", "/v1/events", "[]", []string{"Content-Type", "application/cloudevents-batch+json"}, 415, "request.content-type", ""},
		{"event of text", "POST", "/v1/events", "hello", []string{"Content-Type", "text/plain"}, 415, "request.content-type", ""},
		{"event without version", "POST", "/v1/events", `{"id":"1","source":"s","type":"t"}`, nil, 400, "event.invalid", "specversion"},
		{"event without id", "POST", "/v1/events", `{"specversion":"1.0","source":"s","type":"t"}`, nil, 400, "event.invalid", "no id"},
		{"event that is none", "POST", "/v1/events", `[]`, nil, 400, "event.invalid", ""},
		{"binary event of bad data", "POST", "/v1/events", `{`, []string{"Ce-Id", "1"}, 400, "event.invalid", "data cannot be read"},
		{"empty number", "DELETE", "/v1/dead-letters/x?after=", "", nil, 422, "request.invalid", "is empty"},
		{"empty time", "GET", "/v1/audit?from=", "", nil, 422, "request.invalid", "is empty"},
		{"number twice", "POST", "/v1/dead-letters/x/replay?after=1&after=2", "", nil, 422, "request.invalid", "stands more than once"},
		{"body of a discard", "DELETE", "/v1/dead-letters/x", `{"after":1}`, nil, 422, "request.invalid", "takes no body"},
		{"body that says nothing", "GET", "/v1/definitions/a/b", ` {} `, nil, 404, "definition.unknown", "a/b"},
		{"body of a replay", "POST", "/v1/dead-letters/x/replay", `{"after":1}`, nil, 422, "request.invalid", "takes no body"},
		{"no version", "GET", "/v1/definitions/a/b", "", nil, 404, "definition.unknown", "a/b"},
	}
	h := handler(t, &node{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := call(h, c.method, c.path, c.body, c.headers...)
			body := w.Body.String()
			if w.Header().Get("X-Request-Id") == "" {
				t.Error("the answer has no X-Request-Id")
			}
			if p := problemOf(t, w); p.Code != c.code || p.Status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("got  %s\nwant %d %s %s", body, c.status, c.code, c.says)
			}
		})
	}
	if allow := call(h, "PUT", "/v1/instances", "").Header().Get("Allow"); !strings.Contains(allow, "POST") {
		t.Errorf("Allow: %q", allow)
	}
}

func TestOneStatusForEachKind(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err          error
		status       int
		code, detail string
	}{
		{problem.New(problem.Invalid, "x.bad", "it is bad").WithHint("mend it"), 400, "x.bad", "it is bad"},
		{problem.Wrap(errors.New("why"), problem.Invalid, "x.bad", "it is bad"), 400, "x.bad", "it is bad: why"},
		{problem.New(problem.Invalid, "task.invalid-outcome", "no"), 422, "task.invalid-outcome", "no"},
		{problem.New(problem.NotFound, "x.unknown", "gone"), 404, "x.unknown", "gone"},
		{problem.New(problem.Conflict, "x.conflict", "not now"), 409, "x.conflict", "not now"},
		{problem.New(problem.Denied, "x.denied", "not you"), 403, "x.denied", "not you"},
		{problem.New(problem.TooLarge, "x.too-large", "too much"), 413, "x.too-large", "too much"},
		{problem.New(problem.Unavailable, "x.down", "down"), 503, "x.down", "down"},
		{problem.New(problem.Internal, "x.corrupt", "secret detail"), 500, "x.corrupt", "the engine could not do it; its log says why"},
		{errors.New("secret detail"), 500, "internal", "the engine could not do it; its log says why"},
		{store.ErrNotFound, 404, "instance.unknown", "instance x does not exist"},
		{store.ErrClosed, 503, "node.stopping", "the node is shutting down"},
		{fmt.Errorf("turn: %w", context.Canceled), 503, "node.stopping", "the node is shutting down"},
		{store.ErrUnknown, 503, "store.outcome-unknown", "the store did not say whether it was done"},
		{fmt.Errorf("turn: %w", store.Unknown(problem.New(problem.Unavailable, "store.full", "no room").WithHint("nothing was written"))), 503, "store.outcome-unknown", "the store did not say whether it was done"},
		{problem.Wrap(store.ErrUnknown, problem.Unavailable, "store.unreachable", "away"), 503, "store.outcome-unknown", "the store did not say whether it was done"},
	}
	for _, c := range cases {
		w := call(handler(t, &node{err: c.err}), "POST", "/v1/instances/x/signals", `{"type":"t"}`)
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: the answer tells a secret: %s", c.err, w.Body)
		}
		if p := problemOf(t, w); p.Status != c.status || p.Code != c.code || p.Detail != c.detail {
			t.Errorf("%v: got %+v", c.err, p)
		}
	}
}

// Who does not hear whether an instance was started hears which it would be.
func TestAStartOfUnknownOutcomeNamesTheInstance(t *testing.T) {
	t.Parallel()
	p := problemOf(t, call(handler(t, &node{err: store.Unknown(errors.New("cut"))}), "POST", "/v1/instances", `{"definition":"t/a","instanceId":"mine"}`))
	if p.Status != 503 || p.Code != "store.outcome-unknown" || !strings.Contains(p.Detail, "instance mine ") || !strings.Contains(p.Hint, "instanceId") {
		t.Errorf("got %+v", p)
	}
}

func TestPlacesTravel(t *testing.T) {
	t.Parallel()
	p := problem.New(problem.Invalid, "definition.invalid", "two findings").WithHint("mend both")
	p.Where = []problem.Place{{File: "a.yaml", Line: 3, Column: 5, Pointer: "/do/0", Code: "x.y", Detail: "no", Hint: "yes"}, {Line: 9}}
	got := problemOf(t, call(handler(t, &node{err: p}), "POST", "/v1/definitions?file=a.yaml", "a: b"))
	if len(got.Where) != 2 || problem.Place(got.Where[0]) != p.Where[0] || got.Hint != "mend both" {
		t.Errorf("got %+v", got)
	}
}

func TestSecondCompletionSaysWhoAndWhen(t *testing.T) {
	t.Parallel()
	h := handler(t, &node{err: problem.New(problem.Conflict, "task.completed", "done")})
	for _, verb := range []string{"claim", "release", "complete"} {
		p := problemOf(t, call(h, "POST", "/v1/tasks/x/"+verb, `{"user":"bob"}`))
		want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		if p.Status != 409 || p.Code != "task.completed" || p.CompletedBy != "ann" || !p.CompletedAt.Equal(want) {
			t.Errorf("%s: got %+v", verb, p)
		}
	}
}

func TestPanicIsAProblem(t *testing.T) {
	t.Parallel()
	p := problemOf(t, call(handler(t, &node{panics: true}), "POST", "/v1/instances", `{"definition":"a"}`))
	if p.Status != 500 || p.Code != "internal" {
		t.Errorf("got %+v", p)
	}
}

func TestHeadersBecomeThoseOfTheSignal(t *testing.T) {
	t.Parallel()
	b := &node{}
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := call(handler(t, b), "POST", "/v1/instances/i-1/signals", `{"type":"paid","data":{"n":12345678901234567890}}`,
		"traceparent", trace, "X-Correlation-Id", "c-1", "X-Aqueduct-Actor", "ann", "Idempotency-Key", "k-1")
	if w.Code != 202 || w.Body.String() != `{"instanceId":"i-1","signalId":"k-1","disposition":"applied"}`+"\n" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := `{"id":"k-1","type":"paid","source":"api","data":{"n":12345678901234567890},"time":"1970-01-01T00:00:00Z"}`
	if string(b.signal.Payload) != want || b.signal.Type != signal.ExternalSignal || b.signal.InstanceID != "i-1" || b.signal.SignalID != "k-1" {
		t.Errorf("got  %+v\nwant %s", b.signal, want)
	}
	h := b.signal.Headers
	if len(h) != 3 || h[signal.HeaderTraceparent] != trace || h[signal.HeaderCorrelation] != "c-1" || h[signal.HeaderActor] != "ann" {
		t.Errorf("headers %v", h)
	}
	call(handler(t, b), "POST", "/v1/instances/i-1/signals", `{"type":"paid"}`, "traceparent", strings.ToUpper(trace))
	if b.signal.Headers != nil {
		t.Errorf("a malformed traceparent was kept: %v", b.signal.Headers)
	}
}

func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	for body, want := range map[string]ack.Ack{
		`{"outcome":"processed","output":{"n":1}}`: {Outcome: ack.Processed, Output: json.RawMessage(`{"n":1}`), Actor: "shop"},
		`{"outcome":"retry","delay":"PT1M"}`:       {Outcome: ack.Retry, Delay: time.Minute, Actor: "shop"},
		`{"outcome":"failed","error":{"type":"t","status":409,"title":"T","detail":"d"}}`: {
			Outcome: ack.Failed, Error: &snapshot.Error{Type: "t", Status: 409, Title: "T", Detail: "d"}, Actor: "shop",
		},
		`{"outcome":"delivered"}`: {Outcome: ack.Delivered, Actor: "shop"},
	} {
		w := call(h, "POST", "/v1/instances/i%201/commands/7/ack", body, "X-Aqueduct-Actor", "shop")
		if w.Code != 202 || w.Body.String() != `{"instanceId":"i 1","position":7,"disposition":"applied"}`+"\n" {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		if !reflect.DeepEqual(b.ack, map[string]any{"i 1/7": want}) {
			t.Errorf("%s: got %+v", body, b.ack)
		}
	}
	for code, kind := range map[string]problem.Kind{"command.unknown": problem.NotFound, "ack.unexpected": problem.Conflict, "ack.invalid": problem.Invalid} {
		b.err = problem.New(kind, code, "no")
		if p := problemOf(t, call(h, "POST", "/v1/instances/i/commands/7/ack", `{"outcome":"processed"}`)); p.Code != code {
			t.Errorf("%s: %+v", code, p)
		}
	}
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	w := call(h, http.MethodGet, "/v1/definitions/a/b/1.0.0/diff/2.0.0", "")
	want := definition.Migration{Name: "a/b", From: "1.0.0", To: "2.0.0", DryRun: true}
	if w.Code != http.StatusOK || !reflect.DeepEqual(b.migration, want) || !strings.Contains(w.Body.String(), `"changes":[]`) {
		t.Errorf("%d %s %+v", w.Code, w.Body, b.migration)
	}
	w = call(h, http.MethodPost, "/v1/definitions/a/b/migrations", `{"from":"1.0.0","to":"2.0.0","pointers":{"/do/0/x":"/do/1/x"}}`,
		"Content-Type", "application/json", "X-Aqueduct-Actor", "olga")
	want = definition.Migration{Name: "a/b", From: "1.0.0", To: "2.0.0", Pointers: map[string]string{"/do/0/x": "/do/1/x"}, Actor: "olga"}
	if w.Code != http.StatusOK || !reflect.DeepEqual(b.migration, want) || !strings.Contains(w.Body.String(), `"moved":1,"left":1`) {
		t.Errorf("%d %s %+v", w.Code, w.Body, b.migration)
	}
	for _, bad := range []string{`{"from":"1.0.0"}`, `{"from":"1","to":"2","map":{}}`, `{"from":"1","to":"2","pointers":{"/do":7}}`} {
		if w := call(h, http.MethodPost, "/v1/definitions/a/b/migrations", bad, "Content-Type", "application/json"); w.Code/100 != 4 {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
	b.err = problem.New(problem.Conflict, "migration.unmapped", "no way")
	if w := call(h, http.MethodPost, "/v1/definitions/a/b/migrations", `{"from":"1","to":"2"}`, "Content-Type", "application/json"); w.Code != http.StatusConflict {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	binary := []string{"ce-id", "1", "ce-source", "s", "ce-type", "t", "ce-specversion", "1.0", "ce-order", "o-1"}
	attributes := `"id":"1","order":"o-1","source":"s","specversion":"1.0","type":"t"}`
	cases := []struct {
		name, body string
		headers    []string
		want       string
	}{
		{"structured", `{"specversion":"1.0","id":"1","source":"s","type":"t","data":1.50}`, nil, `{"specversion":"1.0","id":"1","source":"s","type":"t","data":1.50}`},
		{"binary json", `{"a":1.50}`, append([]string{"Content-Type", "application/json; charset=utf-8"}, binary...),
			`{"data":{"a":1.50},"datacontenttype":"application/json; charset=utf-8",` + attributes},
		{"binary text", "hello", append([]string{"Content-Type", "text/plain"}, binary...), `{"data":"hello","datacontenttype":"text/plain",` + attributes},
		{"binary bytes", "\xff", append([]string{"Content-Type", "application/octet-stream"}, binary...),
			`{"data_base64":"/w==","datacontenttype":"application/octet-stream",` + attributes},
		{"binary without data", "", binary, "{" + attributes},
	}
	for _, c := range cases {
		b := &node{}
		w := call(handler(t, b), "POST", "/v1/events", c.body, c.headers...)
		if w.Code != 202 || w.Body.String() != "{\"reached\":3}\n" || string(b.event) != c.want {
			t.Errorf("%s: %d %s\ngot  %s\nwant %s", c.name, w.Code, w.Body, b.event, c.want)
		}
	}
}

func TestTokensAreNotShown(t *testing.T) {
	t.Parallel()
	e := toEntry(projections.Entry{Kind: "command", Data: []byte(`{"target":"http","token":"t0ps3cret","input":{"n":1.50}}`), Metadata: []byte(`{"actor":"ann"}`)})
	if string(e.Data) != `{"input":{"n":1.50},"target":"http"}` || e.Actor != "ann" {
		t.Errorf("got %s", e.Data)
	}
	if e := toEntry(projections.Entry{Kind: "command", Data: []byte(`"t0ps3cret"`)}); e.Data != nil {
		t.Errorf("got %s", e.Data)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	if w := call(handler(t, &node{}), "GET", "/readyz", ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	down := handler(t, &node{err: errors.New("the disk is gone")})
	if w := call(down, "GET", "/healthz", "", "Host", "[::1]:80"); w.Code != 200 || w.Body.String() != "{\"status\":\"live\"}\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	busy := handler(t, &node{err: problem.New(problem.Unavailable, "store.busy", "process 7 is stopped")})
	if p := problemOf(t, call(busy, "GET", "/readyz", "")); p.Status != 503 || p.Code != "store.busy" {
		t.Errorf("got %+v", p)
	}
	if p := problemOf(t, call(down, "GET", "/readyz", "")); p.Status != 503 || p.Code != "store.unavailable" {
		t.Errorf("got %+v", p)
	}
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	w := call(handler(t, &node{}), "GET", "/openapi.json", "")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Summary     string
			Responses   map[string]struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
		Components struct{ Schemas map[string]any }
	}
	raw, _ := io.ReadAll(w.Body)
	if err := json.Unmarshal(raw, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%q: %v", doc.OpenAPI, err)
	}
	seen, operations := map[string]bool{}, 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			operations++
			if op.OperationID == "" || seen[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s: id %q, summary %q", method, path, op.OperationID, op.Summary)
			}
			seen[op.OperationID] = true
			problems := 0
			for status, r := range op.Responses {
				if c, ok := r.Content["application/problem+json"]; ok && status >= "400" && c.Schema["$ref"] == "#/components/schemas/Problem" {
					problems++
				} else if status >= "400" || status == "default" {
					t.Errorf("%s %s: response %s is no problem", method, path, status)
				}
			}
			if problems < 3 {
				t.Errorf("%s %s: %d problem responses", method, path, problems)
			}
		}
	}
	if operations != 72 {
		t.Errorf("%d operations", operations)
	}
	for _, part := range strings.Split(string(raw), `"$ref":"#/components/schemas/`)[1:] {
		if name, _, _ := strings.Cut(part, `"`); doc.Components.Schemas[name] == nil {
			t.Errorf("schema %s is missing", name)
		}
	}
	golden(t, "testdata/openapi.json", raw)
}

func golden(t *testing.T, file string, raw []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != string(got) {
		t.Errorf("%s differs from the document that the handlers make (%v); go test ./api -rewrite, and read the diff", file, err)
	}
}
