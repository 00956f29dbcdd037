package docs_test

import (
	"errors"
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// petsDocument is what the examples refer to.
const petsDocument = `{"openapi": "3.0.0", "servers": [{"url": "https://pets.example"}], "paths": {"/pets/{id}": {
"get": {"operationId": "get", "parameters": [{"name": "id", "in": "path", "required": true}]},
"post": {"operationId": "put", "parameters": [{"name": "id", "in": "path"}], "requestBody": {"content": {"image/png": {}}}}}}}`

var petsResource = definition.Resource{URI: "https://a.example/p", Digest: "d", Content: []byte(petsDocument)}

// TestRefusalsAreShown: whatever the parser refuses by name, an example of the
// reference shows it: one that is refused for that.
func TestRefusalsAreShown(t *testing.T) {
	t.Parallel()
	var found []string
	for _, page := range []string{"docs/reference/language.md", "docs/reference/lifecycle.md"} {
		for _, m := range exampleBlocks.FindAllStringSubmatch(read(t, page), -1) {
			if m[1] == "" {
				continue
			}
			_, err := openworkflow.Parse("example.yaml", []byte(wholeExample(m[2])), petsResource)
			var p *problem.Error
			if errors.As(err, &p) {
				for _, w := range p.Where {
					if w.Code == "definition.unsupported" {
						found = append(found, w.Detail)
					}
				}
			}
		}
	}
	shown := strings.Join(found, "\n")
	sites := refusals(t)
	if len(sites) < 30 {
		t.Fatalf("only %d refusals are found in the parser: %q", len(sites), sites)
	}
	for _, format := range sites {
		parts := regexp.MustCompile(`%[a-z]`).Split(format, -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		if !regexp.MustCompile(strings.Join(parts, ".+")).MatchString(shown) {
			t.Errorf("no refused example of the reference is for %q; those that are there:\n%s", format, shown)
		}
	}
}

// refusals are the details with which the parser refuses features, and the names
// of those that it refuses in one way.
func refusals(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, f := range product(t) {
		if f.dir != "definition/openworkflow" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // c.report(at, codeUnsupported, hint, detail, ...)
				if len(n.Args) > 3 && isNamed(n.Args[1], "codeUnsupported") {
					list = append(list, literal(t, n.Args[3]))
				}
			case *ast.AssignStmt: // code, hint = codeUnsupported, ...; detail = v + "..."
				for i, right := range n.Rhs {
					if i < len(n.Lhs) && isNamed(n.Lhs[i], "detail") {
						if b, ok := right.(*ast.BinaryExpr); ok && isNamed(b.X, "v") {
							list = append(list, literal(t, b.Y))
						}
					}
				}
			case *ast.KeyValueExpr:
				if isNamed(n.Key, "unsupported") {
					list = append(list, names(t, n.Value)...)
				}
			case *ast.ValueSpec:
				if len(n.Names) == 1 && n.Names[0].Name == "processes" {
					list = append(list, names(t, n.Values[0])...)
				}
			}
			return true
		})
	}
	return list
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// literal is the value of a literal, or several with plus between them.
func literal(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, ok := text(e); ok {
			return s
		}
	case *ast.BinaryExpr:
		return literal(t, e.X) + literal(t, e.Y)
	}
	t.Fatalf("a refusal whose words are no literal: %T", e)
	return ""
}

// names are what a map of unsupported fields calls them.
func names(t *testing.T, e ast.Expr) []string {
	t.Helper()
	m, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil // a variable, which is looked at itself
	}
	var list []string
	for _, x := range m.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			list = append(list, literal(t, kv.Value))
		}
	}
	return list
}
