package audit_test

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/principal"
)

func TestWhoIsKnownSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		who  principal.Principal
		want bool
	}{
		"known, and silent":  {principal.Principal{Name: "ann", Kind: principal.Token, Roles: []string{"operator"}}, true},
		"known, with reason": {principal.Principal{Name: "ann", Kind: principal.Token, Roles: []string{"operator"}, Reason: "CHG-17"}, false},
		"nobody has asked":   {principal.Principal{Kind: principal.Nobody}, false},
		"the node itself":    {principal.Principal{Kind: principal.Node}, false},
	} {
		if got := audit.Silent(principal.With(t.Context(), c.who)); got != c.want {
			t.Errorf("%s: silent is %t", name, got)
		}
	}
}
