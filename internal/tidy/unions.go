package tidy

import (
	"fmt"
	"go/ast"
)

// asker is a type that is written down: how many methods it asks of others is
// counted where it is an interface, or embeds some.
type asker struct {
	dir     string
	imports map[string]string // the packages that its file sees, by their names in it
	expr    ast.Expr
}

// asks notes every interface and struct of a file, and what else has a name:
// those without one go by the line where they begin.
func (h *house) asks(s source) {
	dirs := imports(s)
	named := map[ast.Expr]string{}
	for _, d := range s.ast.Decls {
		if d, ok := d.(*ast.GenDecl); ok {
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					named[spec.Type] = s.dir() + "." + spec.Name.Name
				}
			}
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		name := named[e]
		if name == "" {
			switch e.(type) {
			case *ast.InterfaceType, *ast.StructType:
			default:
				return true
			}
			at := s.find(e.Pos(), "", "")
			name = fmt.Sprintf("the type at %s:%d", at.Path, at.Line)
			h.at[name] = at
		}
		h.askers[name] = asker{s.dir(), dirs, e}
		return true
	})
}

// width is how many methods a type asks of others: those of an interface with
// what it embeds, and those that a struct is promoted by interfaces in it.
func (h *house) width(a asker) int {
	n := 0
	switch e := a.expr.(type) {
	case *ast.InterfaceType:
		for _, m := range e.Methods.List {
			n += len(m.Names)
			if len(m.Names) == 0 {
				n += max(h.width(asker{a.dir, a.imports, m.Type}), 1) // what is not of the house has one at least
			}
		}
	case *ast.StructType:
		for _, f := range e.Fields.List {
			if len(f.Names) == 0 {
				n += h.width(asker{a.dir, a.imports, f.Type})
			}
		}
	case *ast.StarExpr:
		return h.width(asker{a.dir, a.imports, e.X})
	case *ast.Ident:
		if of, ok := h.askers[a.dir+"."+e.Name]; ok {
			return h.width(of)
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return h.width(h.askers[a.imports[x.Name]+"."+e.Sel.Name])
		}
	}
	return n
}
