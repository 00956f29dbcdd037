package docs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/access"
)

// TestRolesAreListed holds docs/reference/roles.md to what the roles may do.
// AQUEDUCT_UPDATE=1 writes it.
func TestRolesAreListed(t *testing.T) {
	t.Parallel()
	may := map[string][]string{} // operations by the columns of those who may
	for _, operation := range access.Operations() {
		var row strings.Builder
		for _, role := range access.Roles {
			switch {
			case !access.May(operation, []string{role}):
				row.WriteString(" |")
			case !slices.Contains(access.Apart(), operation) || access.CheckRoles([]string{role + "@shop"}) != nil:
				row.WriteString(" all |")
			default:
				row.WriteString(" yes |")
			}
		}
		may[row.String()] = append(may[row.String()], "`"+operation+"`")
	}
	var rows []string
	for columns, operations := range may {
		for _, operation := range operations {
			rows = append(rows, fmt.Sprintf("| %s |%s\n", operation, columns))
		}
	}
	slices.Sort(rows)
	lists(t, "docs/reference/roles.md", "|---|---|---|---|---|---|---|\n", strings.Join(rows, ""))
}
