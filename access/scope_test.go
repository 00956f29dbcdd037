package access

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// held is who bears what is a list of roles.
type held struct{}

func (held) Verify(_ context.Context, bearer string) (principal.Principal, error) {
	return principal.Principal{Name: "ann", Kind: principal.Token, Roles: strings.Split(bearer, ",")}, nil
}

// TestWhereARoleHolds: the widest of the roles that let somebody do an operation counts for it,
// and who may speak for others in some of the namespaces does not in the rest.
func TestWhereARoleHolds(t *testing.T) {
	t.Parallel()
	g := &Gate{Verifiers: []Verifier{held{}}}
	for _, c := range []struct {
		roles, operation string
		scope            []string
		speaks           bool
		code             string
	}{
		{"viewer", "list-instances", nil, false, ""},
		{"viewer@shop", "list-instances", []string{"shop"}, false, ""},
		{"viewer@shop,operator@bank,viewer@shop", "list-instances", []string{"bank", "shop"}, false, ""},
		{"viewer,operator@bank", "list-instances", nil, false, ""},
		{"viewer,operator@bank", "operate-instance", []string{"bank"}, false, ""},
		{"viewer@shop,operator@bank", "operate-instance", []string{"bank"}, false, ""},
		{"viewer@shop", "operate-instance", nil, false, "access.denied"},
		{"operator@shop", "reset-target", []string{"shop"}, false, "access.denied"},
		{"operator@shop", "publish-event", []string{"shop"}, false, "access.denied"},
		{"operator,viewer@shop", "reset-target", nil, false, ""},
		{"application@shop", "claim-task", []string{"shop"}, true, ""},
		{"application@shop,task-user@bank", "claim-task", []string{"bank", "shop"}, false, ""},
		{"application@shop,task-user", "claim-task", nil, false, ""},
		{"application,task-user@bank", "claim-task", nil, true, ""},
		{"viewer@shop", "get-health", nil, false, ""},
		{"nobody@shop", "list-instances", nil, false, "access.denied"},
		{"admin@shop", "create-token", []string{"shop"}, false, "access.denied"}, // which nobody is given
	} {
		who, err := g.Admit(t.Context(), Shown{Authorization: "Bearer " + c.roles}, c.operation)
		if code := problem.CodeOf(err); err != nil && code != c.code || err == nil && c.code != "" {
			t.Errorf("%s %s: %v", c.roles, c.operation, err)
		}
		if !reflect.DeepEqual(who.Scope, c.scope) || who.Speaks != c.speaks {
			t.Errorf("%s %s: %q, speaks %t", c.roles, c.operation, who.Scope, who.Speaks)
		}
	}
	if Cover([]Role{"viewer@shop"}, nil, Viewer) || !Cover([]Role{"viewer@shop", "operator"}, []string{"shop", "bank"}, Viewer, Operator) {
		t.Error("a role of a namespace holds everywhere, or one of all does not")
	}
}

// What is let is what the gate lets somebody do, in the same namespaces.
func TestWhatRolesLet(t *testing.T) {
	t.Parallel()
	g := &Gate{Verifiers: []Verifier{held{}}}
	for _, roles := range []string{"viewer", "viewer@shop", "viewer@shop,operator@bank", "viewer,operator@bank,task-user@shop", "author,application@shop", "admin,operator@shop,operator"} {
		may, only := Lets(strings.Split(roles, ","))
		for _, operation := range Operations() {
			who, err := g.Admit(t.Context(), Shown{Authorization: "Bearer " + roles}, operation)
			if let := slices.Contains(may, operation); let != (err == nil) || let && !reflect.DeepEqual(only[operation], who.Scope) || !let && only[operation] != nil {
				t.Errorf("%s: %s is let: %t, in %q; the gate: %v, in %q", roles, operation, let, only[operation], err, who.Scope)
			}
		}
	}
}

// TestRolesOfANamespaceAreChecked: those that do not keep to one are given to nobody.
func TestRolesOfANamespaceAreChecked(t *testing.T) {
	t.Parallel()
	for _, roles := range []string{"viewer@shop", "task-user@a.b-c,operator@shop,application@büro", "viewer,viewer@shop"} {
		if err := CheckRoles(strings.Split(roles, ",")); err != nil {
			t.Error(roles, err)
		}
	}
	for _, roles := range []string{
		"admin@shop", "author@shop", "viewer@", "viewer@shop/order", "viewer@a b", "viewer@a@b", "@shop", "eve@shop", "viewer@*/", "viewer@\x00",
		"viewer@" + strings.Repeat("x", 129), strings.TrimSuffix(strings.Repeat("viewer@"+strings.Repeat("x", 100)+",", 10), ","),
	} {
		if err := CheckRoles(strings.Split(roles, ",")); problem.CodeOf(err) != "access.role" {
			t.Error(roles, err)
		}
	}
	if err := CheckHolders(map[string][]Role{"CN=shop": {"application@shop"}}); err != nil {
		t.Error(err)
	}
	if err := CheckHolders(map[string][]Role{"CN=shop": {"admin@shop"}}); err == nil {
		t.Error("a holder of a certificate is an administrator of a namespace")
	}
}
