package tidy

import (
	"fmt"
	"go/ast"
	"path"
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

// extrasSeen lists the arrows of rules that lead out of the kernel, and what is
// listed as one and is none.
func extrasSeen(rules []rule, kernelSees map[string][]string) []string {
	var found []string
	for _, r := range rules {
		listed := kernelSees[r.pkg]
		for _, seen := range r.sees {
			if matches(r.pkg, kernel) && !matches(seen, kernel) && !matches(seen, apart) && !slices.Contains(listed, seen) {
				found = append(found, r.pkg+" sees "+seen+", which is an extra")
			}
			if matches(r.pkg, apart) && seen != "problem" && !matches(seen, apart) {
				found = append(found, r.pkg+" sees "+seen+", and is apart")
			}
		}
		for _, seen := range listed {
			if !slices.Contains(r.sees, seen) {
				found = append(found, r.pkg+" does not see "+seen+" any more: take it from kernelSees")
			}
		}
	}
	return found
}

// checkImports applies the import law.
func checkImports(s source) []finding {
	r, ok := ruleOf(s.dir())
	if !ok {
		return []finding{s.find(s.ast.Name.Pos(), "arrows", "package %s has no place in the house", s.dir())}
	}
	var found []finding
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
func checkPurity(s source) []finding {
	if !isPure(s) {
		return nil
	}
	return checkUse(s, "purity", "time", clock, s.dir()+" is pure")
}

// checkSleeps finds what is more than the tests may sleep.
func checkSleeps(sleeps []finding) []finding {
	if len(sleeps) <= maxSleeps {
		return nil
	}
	for i := range sleeps {
		sleeps[i].Text += fmt.Sprintf(": tests have %d of them, the limit is %d", len(sleeps), maxSleeps)
	}
	return sleeps
}

// sleepsOf lists the sleeps of a test.
func sleepsOf(s source) []finding {
	if !s.isTest() {
		return nil
	}
	return checkUse(s, "sleep", "time", []string{"Sleep"}, "a test waits with internal/await")
}

// checkKeys finds decoders that take other keys for ours.
func checkKeys(s source) []finding {
	dir, _, _ := strings.Cut(s.dir(), "/")
	if _, reason := exactKeys[s.Path]; reason || s.isTest() || slices.Contains([]string{"internal", "examples", "bench"}, dir) {
		return nil
	}
	return checkUse(s, "keys", "encoding/json", []string{"Unmarshal", "NewDecoder"}, "keys from outside are exact: "+s.Path)
}

// checkUse finds uses of functions of a package, whatever name the package has
// in the file.
func checkUse(s source, rule, pkg string, functions []string, why string) []finding {
	name := ""
	for _, spec := range s.ast.Imports {
		if spec.Path.Value == strconv.Quote(pkg) {
			name = path.Base(pkg)
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "." {
		return []finding{s.find(s.ast.Name.Pos(), rule, "%s and must not dot-import %s", why, pkg)}
	}
	var found []finding
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(functions, sel.Sel.Name) {
			found = append(found, s.find(n.Pos(), rule, "%s and must not use %s.%s", why, pkg, sel.Sel.Name))
		}
		return true
	})
	return found
}
