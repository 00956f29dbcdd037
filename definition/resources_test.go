package definition_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// shelf is a resolver with one document.
type shelf struct {
	content string
	fetched atomic.Int64
}

func (s *shelf) Fetch(_ context.Context, uri string, max int64) ([]byte, error) {
	s.fetched.Add(1)
	if uri != "https://pets.example/api" {
		return nil, fmt.Errorf("%s answered 404 Not Found", uri)
	}
	if int64(len(s.content)) > max {
		return nil, errors.New("too long")
	}
	return []byte(s.content), nil
}

const petAPI = `{"swagger": "2.0", "host": "pets.example", "paths": {"/%s": {"get": {"operationId": "list"}}}, "x-padding": "%s"}`

func referring(uri string) []byte {
	return fmt.Appendf(nil, `document: { dsl: '1.0.3', namespace: t, name: api, version: '1.0.0' }
do: [ a: { call: openapi, with: { document: { endpoint: '%s' }, operationId: list } } ]
`, uri)
}

// TestResourcesArePinned: what a definition refers to is fetched once, when it
// is published; the stored definition needs nobody, whatever becomes of it.
func TestResourcesArePinned(t *testing.T) {
	t.Parallel()
	m := &memory{}
	books := &shelf{content: fmt.Sprintf(petAPI, "pets", strings.Repeat("x", 1000))}
	c := catalogue(m)
	c.ResolveWith(books)
	first, created, err := c.Publish(t.Context(), "a.yaml", referring("https://pets.example/api"))
	if err != nil || !created || books.fetched.Load() != 1 {
		t.Fatalf("%+v, %v, %d fetched", first, err, books.fetched.Load())
	}
	if strings.Contains(string(first.Document), "x-padding") || !strings.Contains(string(first.Document), `"digest":"`) {
		t.Errorf("stored: %s", first.Document)
	}
	alone := catalogue(m) // no resolver, nothing in memory
	def, err := alone.Find(t.Context(), "t/api", "1.0.0")
	if err != nil || def.Ref().Digest != first.Digest {
		t.Fatalf("%v, %v", def, err)
	}
	books.content = fmt.Sprintf(petAPI, "animals", "")
	for _, again := range []*definition.Catalogue{c, alone} {
		r, created, err := again.Publish(t.Context(), "b.yaml", append(referring("https://pets.example/api"), "# the same\n"...))
		if err != nil || created || r.Digest != first.Digest {
			t.Errorf("again: %+v, %v", r, err)
		}
	}
	if _, _, err := c.Publish(t.Context(), "b.yaml", append(referring("https://pets.example/api"), "timeout: {after: PT1H}\n"...)); problem.CodeOf(err) != "definition.conflict" {
		t.Errorf("changed: %v", err)
	}
	if books.fetched.Load() != 1 {
		t.Errorf("fetched %d times", books.fetched.Load())
	}
}

func TestResourcesOutOfReach(t *testing.T) {
	t.Parallel()
	c := catalogue(&memory{})
	refused := func(c *definition.Catalogue, uri, want string) {
		_, _, err := c.Publish(t.Context(), "a.yaml", referring(uri))
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != "definition.resource-unavailable" || len(p.Where) != 1 || p.Where[0].Line != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	refused(c, "https://pets.example/api", "fetches no documents")
	c = catalogue(&memory{})
	c.ResolveWith(&shelf{content: strings.Repeat("x", definition.MaxResourceBytes+1)})
	refused(c, "https://pets.example/gone", "404 Not Found")
	refused(c, "https://pets.example/api", "too long")
}
