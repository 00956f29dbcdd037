package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// bulkNode is a node with one plan, p.
type bulkNode struct{ *node }

func (b bulkNode) Plan(_ context.Context, asked *backend.BulkAsked, actor string) (string, error) {
	b.bulk = append(b.bulk, fmt.Sprintf("plan %+v by %s", *asked, actor))
	return "p", nil
}
func (b bulkNode) Run(_ context.Context, id string, begin bool, actor string) error {
	b.bulk = append(b.bulk, fmt.Sprintf("run %s %v by %s", id, begin, actor))
	return nil
}
func (b bulkNode) Stop(_ context.Context, id, actor string) error {
	b.bulk = append(b.bulk, fmt.Sprintf("stop %s by %s", id, actor))
	return problem.New(problem.Conflict, "bulk.not-running", "plan %s is planned", id)
}
func (b bulkNode) Bulk(_ context.Context, id string) (backend.Bulk, error) {
	if id != "p" {
		return backend.Bulk{}, store.ErrNotFound
	}
	return backend.Bulk{ID: "p", Operation: "retry", Status: backend.BulkRunning, More: 1, Reason: "why", CreatedBy: "ann", Asked: []byte(`{"operation":"retry","definition":"d/d","before":"1970-01-01T00:00:00Z"}`)}, nil
}
func (b bulkNode) Bulks(context.Context, string, int) (backend.Page[backend.Bulk], error) {
	p, err := b.Bulk(context.Background(), "p")
	return backend.Page[backend.Bulk]{Items: []backend.Bulk{p}, Next: "n"}, err
}
func (b bulkNode) BulkItems(_ context.Context, q backend.BulkItemQuery) (backend.Page[backend.BulkItem], error) {
	if q.ID != "p" {
		return backend.Page[backend.BulkItem]{}, nil
	}
	return backend.Page[backend.BulkItem]{Items: []backend.BulkItem{{No: 1, Target: "i", Version: 7, Kind: "timeout"}}, Next: fmt.Sprintf("%s %s %d", q.Outcome, q.After, q.Limit)}, nil
}
func (b bulkNode) BulkCounts(context.Context, string) ([]backend.BulkCount, error) {
	return []backend.BulkCount{{Outcome: "done", Rows: 3}, {Outcome: "done", Code: "bulk.queued", Rows: 1}, {Outcome: "failed", Code: "x", Rows: 2}, {Outcome: "open", Rows: 5}, {Outcome: "skipped", Code: "bulk.changed", Rows: 7}}, nil
}
func (b bulkNode) BulkKinds(context.Context, string) ([]backend.BulkKind, error) {
	return []backend.BulkKind{{Kind: "timeout", Rows: 18}}, nil
}

// TestAPlanIsAskedFor: what is asked for comes to the service, what makes no sense is
// refused before, and counts add up in the answer.
func TestAPlanIsAskedFor(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	w := call(h, "POST", "/v1/bulk", `{"operation":"retry","definition":"d/d","errorCode":"timeout","olderThan":"1h","limit":3}`, "X-Aqueduct-Actor", "ann")
	if w.Code != http.StatusCreated || len(b.bulk) != 1 || !strings.Contains(b.bulk[0], "ErrorCode:timeout") || !strings.Contains(b.bulk[0], time.Unix(0, 0).Add(-time.Hour).String()) || !strings.HasSuffix(b.bulk[0], "by ann") {
		t.Fatalf("%d %s\n%v", w.Code, w.Body, b.bulk)
	}
	for _, want := range []string{`"planned":18`, `"done":4`, `"skipped":7`, `"failed":2`, `"open":5`, `"more":true`, `{"outcome":"done","code":"bulk.queued","items":1}`, `{"kind":"timeout","items":18}`, `"before":"1970-01-01T00:00:00Z"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in %s", want, w.Body)
		}
	}
	for body, code := range map[string]string{
		`{"operation":"retry"}`: "bulk.filter", `{"operation":"skip","definition":"d/d"}`: "request.invalid", `{"operation":"retry","queue":"signal"}`: "bulk.filter",
		`{"operation":"replay","status":"faulted"}`: "bulk.filter", `{"operation":"retry","status":"suspended"}`: "bulk.filter", `{"operation":"retry","definition":"d/d","to":"2"}`: "bulk.filter",
		`{"operation":"migrate","definition":"d/d","to":"2"}`: "bulk.migration", `{"operation":"migrate","definition":"d/d","version":"2","to":"2"}`: "bulk.migration",
		`{"operation":"retry","definition":"d/d","limit":100001}`: "request.invalid", `{"operation":"retry","definition":"d/d","olderThan":"-1h"}`: "request.invalid",
		`{"operation":"retry","where":"amount >"}`: "filter.invalid", `{"operation":"cancel","status":"completed"}`: "request.invalid",
	} {
		w := call(h, "POST", "/v1/bulk", body)
		if w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), `"code":"`+code+`"`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if len(b.bulk) != 1 {
		t.Errorf("planned although refused: %v", b.bulk)
	}
}

func TestAPlanIsRunStoppedAndShown(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/v1/bulk/p/run", `{"begin":true}`, 200, `"status":"running"`},
		{"POST", "/v1/bulk/p/run", `{}`, 200, `"open":5`},
		{"POST", "/v1/bulk/q/run", `{}`, 404, "bulk.unknown"},
		{"POST", "/v1/bulk/p/stop", ``, 409, "bulk.not-running"},
		{"GET", "/v1/bulk/p", ``, 200, `"definition":"d/d"`},
		{"GET", "/v1/bulk/q", ``, 404, "bulk.unknown"},
		{"GET", "/v1/bulk", ``, 200, `"next":"n"`},
		{"GET", "/v1/bulk/p/items?outcome=open&after=5&limit=7", ``, 200, `"next":"open 5 7"`},
		{"GET", "/v1/bulk/p/items", ``, 200, `"items":[{"no":1,"id":"i","version":7,"kind":"timeout","outcome":"open"}]`},
		{"GET", "/v1/bulk/q/items", ``, 404, "bulk.unknown"},
		{"GET", "/v1/bulk/p/items?outcome=lost", ``, 422, "request.invalid"},
	} {
		if w := call(h, c.method, c.path, c.body); w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	if got := strings.Join(b.bulk, ", "); got != "run p true by , run p false by , stop p by " {
		t.Error(got)
	}
}

// TestWhoMayNotDoItToOneMayNotToMany: whatever roles plans themselves take.
func TestWhoMayNotDoItToOneMayNotToMany(t *testing.T) {
	t.Parallel()
	as := func(roles ...string) context.Context {
		return principal.With(t.Context(), principal.Principal{Name: "eve", Roles: roles})
	}
	for _, op := range []string{"retry", "compensate", backend.BulkMigrate, backend.BulkReplay, backend.BulkDiscard} {
		asked := &backend.BulkAsked{Operation: op}
		if err := mayEach(as(access.Viewer, access.Author, access.Admin), asked); problem.CodeOf(err) != "access.denied" {
			t.Errorf("%s: %v", op, err)
		}
		if err := errors.Join(mayEach(as(access.Operator), asked), mayEach(t.Context(), asked)); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// manyPlans are a page of plans.
type manyPlans struct {
	bulkNode
	plans []backend.Bulk
	asked map[string]int // how often the items of a plan were counted
}

func (m manyPlans) Bulks(context.Context, string, int) (backend.Page[backend.Bulk], error) {
	return backend.Page[backend.Bulk]{Items: m.plans}, nil
}

func (m manyPlans) BulkCounts(_ context.Context, id string) ([]backend.BulkCount, error) {
	m.asked[id]++
	return []backend.BulkCount{{Outcome: "done", Rows: m.asked[id]}}, nil
}

// A list that is looked at again counts the items of those plans only that may have got on.
func TestAListOfPlansCountsWhatMayHaveChanged(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	m := manyPlans{bulkNode{&node{}}, nil, map[string]int{}}
	for _, p := range []backend.Bulk{
		{ID: "done", Status: backend.BulkDone}, {ID: "planned", Status: backend.BulkPlanned}, {ID: "running", Status: backend.BulkRunning, UpdatedAt: now.Add(-24 * time.Hour)},
		{ID: "stopped", Status: backend.BulkStopped, UpdatedAt: now.Add(-time.Minute)}, {ID: "stood", Status: backend.BulkStopped, UpdatedAt: now.Add(-2 * time.Hour)},
		{ID: "planning", Status: backend.BulkPlanning, UpdatedAt: now},
	} {
		p.Version, p.Asked = 2, []byte(`{}`)
		m.plans = append(m.plans, p)
	}
	h := handlerWith(t, m.node, func(c *Config) { c.Reader.Plans = m })
	var w *httptest.ResponseRecorder
	for range 3 {
		if w = call(h, "GET", "/v1/bulk", ""); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
	}
	want := map[string]int{"done": 1, "planned": 1, "stood": 1, "running": 3, "stopped": 3, "planning": 3}
	if !reflect.DeepEqual(m.asked, want) || strings.Count(w.Body.String(), `"planned":1,`) != 3 {
		t.Errorf("counted %v, not %v: %s", m.asked, want, w.Body)
	}
	m.plans[1].Version, m.plans[1].Status = 3, backend.BulkRunning
	if w = call(h, "GET", "/v1/bulk", ""); m.asked["planned"] != 2 || m.asked["done"] != 1 {
		t.Errorf("a plan that was begun: %v %s", m.asked, w.Body)
	}
}
