package tidy

import (
	"go/ast"
	"slices"
)

// checkAsserts finds assertions to a type that is asked for by interfaces only,
// and cases of type switches that name it. A test may look inside.
func checkAsserts(s source) []finding {
	if s.isTest() {
		return nil
	}
	var found []finding
	dirs := imports(s)
	ast.Inspect(s.ast, func(n ast.Node) bool {
		var types []ast.Expr
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			types = []ast.Expr{n.Type} // nil in a type switch
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				types = append(types, c.(*ast.CaseClause).List...)
			}
		}
		for _, e := range types {
			if name := typeName(s.dir(), dirs, e); slices.Contains(neverAsserted, name) {
				found = append(found, s.find(e.Pos(), "assertion", "%s is asserted: ask for an interface that says what is wanted of it", name))
			}
		}
		return true
	})
	return found
}

// typeName is the type of the house, or the pointer to it, that an expression
// in a package names; "" = none.
func typeName(dir string, dirs map[string]string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(dir, dirs, e.X)
	case *ast.ParenExpr:
		return typeName(dir, dirs, e.X)
	case *ast.Ident:
		return dir + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && dirs[x.Name] != "" {
			return dirs[x.Name] + "." + e.Sel.Name
		}
	}
	return ""
}
