package api

import (
	"cmp"
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/principal"
)

// published are definitions and policies in the order in which stores keep them: that of the
// bytes of their names.
type published struct {
	kept
	names []string
}

type kept = interface {
	Definition(context.Context, string, string) (definition.Record, error)
	Versions(context.Context, string, int) ([]definition.Record, error)
}

func (p published) Definitions(_ context.Context, after string, limit int) (list []definition.Record, err error) {
	name, version, _ := strings.Cut(after, "@")
	for _, n := range p.names {
		behind := cmp.Or(strings.Compare(n, name), strings.Compare("1.0.0", version)) > 0
		if behind && strings.HasPrefix(n, definition.PolicyPrefix) == strings.HasPrefix(after, definition.PolicyPrefix) && len(list) < limit {
			list = append(list, definition.Record{Name: n, Version: "1.0.0"})
		}
	}
	return list, nil
}

// TestPagesOfNamespacesTellAllOfThem: of names of which one begins as another, in pages of any
// size each is told once.
func TestPagesOfNamespacesTellAllOfThem(t *testing.T) {
	t.Parallel()
	all := []string{"other/x", "shop-eu/a", "shop-eu/b", "shop.old/a", "shop/a", "shop/b", "shop/c", "shop0/a", "shops/a", "z/a"}
	for _, name := range slices.Clone(all) {
		all = append(all, definition.PolicyPrefix+name)
	}
	slices.Sort(all)
	ctx := principal.With(t.Context(), principal.Principal{Scope: []string{"shop", "shop-eu", "shop.old", "shop0", "shops"}})
	for _, kind := range []string{"", definition.PolicyPrefix} {
		var want []string
		for _, name := range all {
			if rest, ok := strings.CutPrefix(name, kind+"shop"); ok && rest != "" {
				want = append(want, name)
			}
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			s := &scopedDefinitions{published{names: all}}
			for after := kind; ; {
				page, err := s.Definitions(ctx, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page {
					got = append(got, r.Name)
				}
				if len(page) < limit || len(got) > len(want) {
					break
				}
				after = page[len(page)-1].Name + "@" + page[len(page)-1].Version
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q in pages of %d: %q", kind, limit, got)
			}
		}
	}
}

// Who sees a policy in a list sees it; those of other namespaces are not there.
func TestPoliciesOfANamespaceAreRead(t *testing.T) {
	t.Parallel()
	h := handler(t, &node{})
	for path, want := range map[string]int{
		"policy:shop/case/1.0.0": 200, "policy:shop/case/1.0.0/source": 200, "shop/case/1.0.0": 200, "policy:bank/case/1.0.0": 404, "policy:bank/case/1.0.0/source": 404,
		"policy:policy:shop/case/1.0.0": 404,
	} {
		r := httptest.NewRequest("GET", "http://localhost/v1/definitions/"+path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(principal.With(r.Context(), principal.Principal{Name: "ann", Scope: []string{"shop"}})))
		if w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
