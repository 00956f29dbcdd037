package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// everyInput has a parameter of every kind, and a body.
type everyInput struct {
	ByID
	Paging
	Number int64     `path:"number" minimum:"2"`
	Kinds  []string  `query:"kind,explode" maxItems:"2" enum:"a,b"`
	From   time.Time `query:"from"`
	Flat   string    `query:"flat" required:"true" enum:"x,y"`
	Trace  string    `header:"X-Trace" maxLength:"3"`
	Body   struct {
		Name  string          `json:"name" minLength:"2"`
		Count int             `json:"count,omitempty" maximum:"5"`
		Any   json.RawMessage `json:"any,omitempty"`
	}
}

type bodilessInput struct {
	Paging
	Kinds []string `query:"kind,explode" enum:"a,b"`
}

const valid = "/every/a/3?flat=x"

var requests = []struct{ method, target, body string }{
	{"POST", valid, `{"name":"ab"}`},
	{"POST", valid + "&kind=a&kind=b&from=2026-01-02T03:04:05.5Z&limit=7&after=z", `{"name":"ab","count":3,"any":{"x":[1.50]}}`},
	{"POST", valid + "&kind=a,b", `{"name":"ab"}`},
	{"POST", valid + "&kind=c&kind=a&kind=b&from=yesterday&limit=many&after=" + strings.Repeat("z", 600), `{"name":"ab"}`},
	{"POST", valid + "&limit=0", `{"name":"a","count":9,"more":1}`},
	{"POST", valid, `{"count":"x"}`},
	{"POST", "/every/a/1", `{"name":"ab"}`},
	{"POST", "/every/a/x?flat=z", `[]`},
	{"POST", "/every/a/99999999999999999999?flat=x", `{"name":"ab"}`},
	{"POST", "/every/" + strings.Repeat("i", 300) + "/3?flat=x", `{"name":"ab"}`},
	{"POST", valid, `{`},
	{"POST", valid + "&limit=0", `{"name":"ab","name":"cd"}`},
	{"POST", valid, ``},
	{"POST", valid + "&limit=0", ``},
	{"POST", valid, `null`},
	{"POST", valid, `"` + strings.Repeat("x", MaxBodyBytes) + `"`},
	{"POST", valid + "&limit=0", `"` + strings.Repeat("x", MaxBodyBytes) + `"`},
	{"GET", "/bodiless", ``},
	{"GET", "/bodiless?limit=3&kind=a", ``},
	{"GET", "/bodiless?limit=3&kind=x", ``},
	{"GET", "/bodiless?kinds=a", ``},
	{"DELETE", "/gone/a", ``},
	{"DELETE", "/gone/a?now=1", ``},
	{"DELETE", "/gone/" + strings.Repeat("i", 300), ``},
	{"PUT", "/gone/a", ``},
}

// TestOperationsAreReadAsTheFrameworkReads: register is huma.Register, but for the
// code that the compiler makes of it, and for what the framework passes over and we
// refuse: see TestRefusals. What both say of a request is the same, and so
// is what they document.
func TestOperationsAreReadAsTheFrameworkReads(t *testing.T) {
	t.Parallel()
	ours, theirs := http.NewServeMux(), http.NewServeMux()
	s := &service{Config: Config{Log: slog.New(slog.DiscardHandler)}, operations: map[string]string{}}
	config := s.humaConfig()
	a := humago.New(ours, config)
	config = s.humaConfig()
	config.RejectUnknownQueryParameters = true
	b := humago.New(theirs, config)
	every := func(_ context.Context, in *everyInput) (*answer[everyInput], error) { return created(*in, true), nil }
	bodiless := func(_ context.Context, in *bodilessInput) (*answer[bodilessInput], error) { return ok(*in), nil }
	gone := func(context.Context, *ByID) (*struct{}, error) { return nil, nil }
	post, get := func() *huma.Operation {
		op := operation("every", "POST", "/every/{id}/{number}", healthTag, "Every", 404)
		op.DefaultStatus = 201
		return op
	}, operation("bodiless", "GET", "/bodiless", healthTag, "Bodiless")
	remove := operation("gone", "DELETE", "/gone/{id}", healthTag, "Gone")
	register(s, a, post(), every)
	register(s, a, get, bodiless)
	register(s, a, remove, gone)
	b.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[client.Problem](), true, "Problem")
	theirPost := post()
	huma.Register(b, *theirPost, every)
	theirPost.Responses["200"] = &huma.Response{Description: "It was there before", Content: theirPost.Responses["201"].Content}
	huma.Register(b, *operation("bodiless", "GET", "/bodiless", healthTag, "Bodiless"), bodiless)
	huma.Register(b, *operation("gone", "DELETE", "/gone/{id}", healthTag, "Gone"), gone)
	tidySchemas(a.OpenAPI())
	tidySchemas(b.OpenAPI())
	if one, other := openAPI(t, a), openAPI(t, b); !reflect.DeepEqual(one, other) {
		t.Errorf("documented as\n%s\nnot as\n%s", one, other)
	}
	for _, c := range requests {
		for _, headers := range [][2]string{{}, {"X-Trace", "long"}, {"Content-Type", "text/plain"}, {"Content-Type", "application/json; charset=utf-8"}, {"Accept", "text/html"}} {
			ask := func(h http.Handler) string {
				r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
				if headers[0] != "" {
					r.Header.Set(headers[0], headers[1])
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Result().Status + " " + w.Header().Get("Content-Type") + " " + w.Body.String()
			}
			if one, other := ask(ours), ask(theirs); one != other {
				t.Errorf("%s %.80s %.80s %v:\n%.600s\nthe framework says\n%.600s", c.method, c.target, c.body, headers, one, other)
			}
		}
	}
}

func openAPI(t *testing.T, h huma.API) (doc any) {
	t.Helper()
	b, err := json.Marshal(h.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// What the API does not do without is named when it is made.
func TestAMissingReaderIsNamed(t *testing.T) {
	t.Parallel()
	b := &node{}
	_, err := New(Config{
		Starter: b, Signaller: b, Tasks: b, Commenter: b, Operator: b, Acknowledger: b, DeadLetters: b, Dispatcher: b, Publisher: b, Migrator: b, Definitions: b, Tokens: b, Auditor: b, Activities: b, Past: b, Bulk: bulkNode{b},
		Reader: Reader{Instances: b, Streams: b, DeadLetters: b, Backlog: b, Members: b, Audit: b, Activities: b, Moments: b, Plans: bulkNode{b}},
		Ready:  func(context.Context) error { return nil }, Now: time.Now,
	})
	if err == nil || err.Error() != "api: Reader.Tasks is required" {
		t.Error(err)
	}
}

// Names of the language's longest users and outcomes are taken, longer ones not.
func TestNamesAtTheirLimit(t *testing.T) {
	t.Parallel()
	h := handler(t, &node{err: problem.New(problem.NotFound, "task.unknown", "it was asked for")})
	for n, want := range map[int]int{humantask.MaxName: 404, humantask.MaxName + 1: 422} {
		name := strings.Repeat("ü", n)
		for verb, body := range map[string]string{
			"tasks/x/claim": `{"user":%q}`, "tasks/x/release": `{"user":%q}`, "tasks/x/delegate": `{"user":"a","to":%q}`,
			"tasks/x/reassign": `{"user":"a","to":%q}`, "tasks/x/complete": `{"user":"a","outcome":%q}`, "tasks/claim-next": `{"user":%q}`,
		} {
			if p := problemOf(t, call(h, "POST", "/v1/"+verb, fmt.Sprintf(body, name))); p.Status != want {
				t.Errorf("%s with %d characters: %+v", verb, n, p)
			}
		}
	}
}
