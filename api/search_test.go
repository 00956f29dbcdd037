package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// asked notes what is asked of a store.
type asked struct {
	counted
	q *backend.InstanceQuery
}

func (a asked) Instances(_ context.Context, q backend.InstanceQuery) (backend.Page[projections.Instance], error) {
	*a.q = q
	return backend.Page[projections.Instance]{}, nil
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query  string
		status int
		says   []string
	}{
		"fits":                  {`where=amount > 1 and state = "Review"&definition=a/b&orderBy=-amount`, 200, nil},
		"of an older version":   {`where=former = "x"&definition=a/b`, 200, nil},
		"of no definition":      {`where=amount = 1 and former = "x"`, 200, nil},
		"a page of this order":  {`orderBy=amount&after=` + orderMark("amount") + `ff.i`, 200, nil},
		"a page of another":     {`orderBy=-amount&after=` + orderMark("amount") + `ff.i`, 400, []string{"page.invalid", "in the order -amount"}},
		"no expression":         {`where=amount > > 1`, 400, []string{"filter.invalid", `"column":10`, "> stands where a value is expected"}},
		"of another type":       {`where=amount = "1"&definition=a/b`, 400, []string{"filter.attribute", `"column":1`, "amount is a decimal, and is compared with a text"}},
		"an unknown name":       {`where=state = "x" and amuont = 1&definition=a/b`, 400, []string{"filter.attribute", `"column":17`, "amuont"}},
		"an unknown order":      {`orderBy=amuont&definition=a/b`, 400, []string{"filter.attribute", "query.orderBy"}},
		"an order that is none": {`orderBy=state`, 400, []string{"request.invalid", "query.orderBy"}},
		"too long":              {`where=` + strings.Repeat("a", 4097), 422, []string{"request.invalid", "query.where"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q backend.InstanceQuery
			b := &node{versions: []definition.Record{{Name: "a/b", Version: "2"}, {Name: "a/b", Version: "3"}}}
			b.InstanceReader = asked{q: &q}
			values := url.Values{}
			for pair := range strings.SplitSeq(c.query, "&") {
				k, v, _ := strings.Cut(pair, "=")
				values.Set(k, v)
			}
			w := call(handler(t, b), "GET", "/v1/instances?"+values.Encode(), "")
			if w.Code != c.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, s := range c.says {
				if !strings.Contains(w.Body.String(), s) {
					t.Errorf("%s does not say %s", w.Body, s)
				}
			}
			if asked := len(q.Where)+len(q.OrderBy) > 0; asked != (c.status == http.StatusOK) {
				t.Errorf("the store is asked %+v", q)
			}
			if name == "fits" && (len(q.Where) != 2 || q.OrderBy != "amount" || !q.Descending) {
				t.Errorf("%+v", q)
			}
		})
	}
}

// A filter for no definition that finds nothing is held against all of them.
func TestAFilterOfNoDefinitionNamesWhatSomebodyDeclares(t *testing.T) {
	t.Parallel()
	for query, code := range map[string]int{
		"where=amuont+%3D+1": 400, "orderBy=amuont": 400, "where=amount+%3D+%22x%22": 400, "where=former+%3D+%22x%22": 200, "where=state+%3D+%22x%22": 200,
	} {
		b := &node{versions: []definition.Record{{Name: "a/b", Version: "2"}, {Name: "a/b", Version: "3"}}}
		b.InstanceReader = asked{q: new(backend.InstanceQuery)}
		if w := call(handler(t, b), "GET", "/v1/instances?"+query, ""); w.Code != code || code == 400 && !strings.Contains(w.Body.String(), "filter.attribute") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestAttributesAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	got := toAttributes([]projections.Attribute{{Name: "a", Kind: "decimal", Value: "12345678901234567890.5"}, {Name: "b", Kind: "text", Value: `"x"`}, {Name: "c", Kind: "boolean", Value: "true"}})
	if string(got) != `{"a":12345678901234567890.5,"b":"\"x\"","c":true}` {
		t.Errorf("%s", got)
	}
}
