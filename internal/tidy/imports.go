package tidy

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// matches reports whether a package or import path is among patterns. "x/..."
// stands for x and everything below it.
func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		root, below := strings.CutSuffix(p, "/...")
		return p == everything || path == p || below && (path == root || strings.HasPrefix(path, root+"/"))
	})
}

// ruleOf returns the first rule of the law for a package.
func ruleOf(dir string) (rule, bool) {
	for _, r := range law {
		if matches(dir, []string{r.pkg}) {
			return r, true
		}
	}
	return rule{}, false
}

// checkImports applies the import law.
func checkImports(s source) []Finding {
	r, ok := ruleOf(s.dir())
	if !ok {
		return []Finding{s.find(s.ast.Name.Pos(), "arrows", "package %s has no place in the house", s.dir())}
	}
	var found []Finding
	for _, spec := range s.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser accepts only quoted paths
		}
		if own, ok := strings.CutPrefix(imported, module+"/"); ok {
			allowed := matches(own, r.sees) || s.isTest() && (matches(own, r.tests) || own == s.dir())
			if !allowed || strings.HasPrefix(own, "cmd/") {
				found = append(found, s.find(spec.Pos(), "arrows", "%s must not import %s", s.dir(), own))
			}
		}
		for _, o := range only {
			if matches(imported, o.imports) && !matches(s.dir(), o.by) {
				found = append(found, s.find(spec.Pos(), "only", "%s must not import %s: %s", s.dir(), imported, o.why))
			}
		}
		if isPure(s) && matches(imported, impure) {
			found = append(found, s.find(spec.Pos(), "purity", "%s is pure and must not import %s", s.dir(), imported))
		}
	}
	return found
}

// isPure reports whether the file may neither do I/O nor read the clock. Tests
// of pure packages may.
func isPure(s source) bool { return !s.isTest() && matches(s.dir(), pure) }

// checkPurity finds reads of the clock in pure packages, whatever name the
// package time has in the file.
func checkPurity(s source) []Finding {
	if !isPure(s) {
		return nil
	}
	name := ""
	for _, spec := range s.ast.Imports {
		if spec.Path.Value == `"time"` {
			name = "time"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "." {
		return []Finding{s.find(s.ast.Name.Pos(), "purity", "%s must not dot-import time", s.dir())}
	}
	var found []Finding
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(clock, sel.Sel.Name) {
			found = append(found, s.find(n.Pos(), "purity", "%s is pure and must not use time.%s", s.dir(), sel.Sel.Name))
		}
		return true
	})
	return found
}
