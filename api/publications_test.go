package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// PublishAll implements Publisher.
func (b *node) PublishAll(context.Context, []definition.Document) ([]definition.Published, error) {
	return nil, b.err
}

// publisher notes what it is given.
type publisher struct {
	*node
	given []definition.Document
}

func (p *publisher) PublishAll(_ context.Context, documents []definition.Document) (all []definition.Published, _ error) {
	p.given = documents
	for i, d := range documents {
		all = append(all, definition.Published{Record: definition.Record{Name: d.File, Version: "1"}, Created: i > 0 && p.err == nil})
	}
	return all, p.err
}

func TestPublishTogether(t *testing.T) {
	t.Parallel()
	p := &publisher{node: &node{}}
	h := handlerWith(t, p.node, func(c *Config) { c.Publisher = p })
	w := call(h, "POST", "/v1/publications", `{"documents":[{"file":"a.yaml","source":"a: \"ü\"\n"},{"source":"{}"}]}`)
	if want := []definition.Document{{File: "a.yaml", Source: []byte("a: \"ü\"\n")}, {Source: []byte("{}")}}; !reflect.DeepEqual(p.given, want) {
		t.Errorf("given %+v", p.given)
	}
	want := `{"items":[{"name":"a.yaml","version":"1","digest":"","kind":"","created":false},{"name":"","version":"1","digest":"","kind":"","created":true}]}` + "\n"
	if w.Code != http.StatusCreated || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := call(h, "POST", "/v1/publications", `{"documents":[{"source":"{}"}]}`); w.Code != http.StatusOK {
		t.Errorf("what was there: %d %s", w.Code, w.Body)
	}
	long := `{"documents":[{"source":"` + strings.Repeat(" ", MaxDefinitionBytes) + `"}]}`
	if w := call(h, "POST", "/v1/publications", long); w.Code != http.StatusOK {
		t.Errorf("of %d bytes: %d", len(long), w.Code)
	}
	p.given = nil
	for body, status := range map[string]int{
		`{}`: 422, `{"documents":[]}`: 422, `{"documents":[{}]}`: 422, `{"documents":[{"source":"a","name":"b"}]}`: 422, `[]`: 422,
		`{"documents":[{"source":1}]}`: 422, `{"documents":[{"source":"` + strings.Repeat(" ", MaxPublicationBytes) + `"}]}`: 413,
	} {
		if w := call(h, "POST", "/v1/publications", body); w.Code != status || p.given != nil {
			t.Errorf("%.40s: %d %s, given %v", body, w.Code, w.Body, p.given)
		}
	}
	p.err = problem.New(problem.Invalid, "policy.invalid", "no")
	if got := problemOf(t, call(h, "POST", "/v1/publications", `{"documents":[{"source":"{}"}]}`)); got.Code != "policy.invalid" {
		t.Errorf("%+v", got)
	}
}
