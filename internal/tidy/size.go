package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// A ratchet is a limit that some of what is there exceeds: what does is listed
// with its size, and may only shrink. What is over the limit and not listed is a
// finding, and so is what is listed and no longer over it.
type ratchet struct {
	rule, unit string
	limit      int
	over       map[string]int
}

// check holds sizes against a ratchet; at says where each name stands.
func (r ratchet) check(sizes map[string]int, at map[string]finding) []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size, listed := sizes[name], r.over[name]
		f := at[name]
		f.Rule = r.rule
		switch {
		case size > max(r.limit, listed):
			f.Text = fmt.Sprintf("%s has %d %s, the limit is %d", name, size, r.unit, max(r.limit, listed))
		case listed > 0 && size <= r.limit && size > 0:
			f.Text = fmt.Sprintf("%s has %d %s now: take it from the list of what is over %d", name, size, r.unit, r.limit)
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// house is what the rules about the whole look at: every package without its
// tests.
type house struct {
	methods  map[string]int // of a type, by package.Type
	askers   map[string]asker
	files    map[string]int // lines
	kernel   int            // lines
	exported map[string]finding
	group    map[string]*ast.GenDecl // of constants
	used     map[string]bool         // outside its package, or as part of what that exports
	docs     []byte                  // all of them
	at       map[string]finding
}

func newHouse() *house {
	return &house{
		methods: map[string]int{}, askers: map[string]asker{}, files: map[string]int{},
		exported: map[string]finding{}, group: map[string]*ast.GenDecl{}, used: map[string]bool{}, at: map[string]finding{},
	}
}

// text notes a file of any kind.
func (h *house) text(f File) {
	dir := f.Path[:max(strings.LastIndexByte(f.Path, '/'), 0)]
	sql := strings.HasSuffix(f.Path, ".sql")
	if strings.HasPrefix(f.Path, "docs/") && strings.HasSuffix(f.Path, ".md") {
		h.docs = append(append(h.docs, f.Source...), '\n')
	}
	if strings.HasSuffix(f.Path, ".go") && !strings.HasSuffix(f.Path, "_test.go") || sql {
		lines := bytes.Count(f.Source, []byte("\n"))
		if matches(dir, kernel) {
			h.kernel += lines
		}
		if !sql && !strings.Contains("/"+f.Path, "/testdata/") {
			h.files[f.Path], h.at[f.Path] = lines, finding{Path: f.Path}
		}
	}
}

// source notes what a Go file declares and uses.
func (h *house) source(s source) {
	h.uses(s)
	if s.isTest() {
		return
	}
	h.asks(s)
	for _, d := range s.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				h.offers(s, d.Type)
			}
			if d.Recv == nil {
				h.exports(s, d.Name)
				continue
			}
			if matches(s.dir(), supporting) {
				continue
			}
			name := s.dir() + "." + receiver(d.Recv.List[0].Type)
			h.methods[name]++
			if _, ok := h.at[name]; !ok {
				h.at[name] = s.find(d.Pos(), "", "")
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					h.exports(s, spec.Name)
					if spec.Name.IsExported() {
						h.offers(s, spec.Type)
					}
					h.embeds(s, spec.Type)
					name := s.dir() + "." + spec.Name.Name
					h.at[name] = s.find(spec.Pos(), "", "")
				case *ast.ValueSpec:
					if spec.Type != nil && d.Tok == token.CONST {
						h.offers(s, spec.Type)
						continue // one of an enumeration
					}
					for _, name := range spec.Names {
						h.exports(s, name)
						if d.Tok == token.CONST {
							h.group[s.dir()+"."+name.Name] = d
						}
					}
				}
			}
		}
	}
}

func (h *house) exports(s source, name *ast.Ident) {
	if name.IsExported() && !matches(s.dir(), library) {
		h.exported[s.dir()+"."+name.Name] = s.find(name.Pos(), "unused", "")
	}
}

// embeds notes the types that a struct embeds: reflection, which reads requests
// and rows, sees the fields of exported ones only.
func (h *house) embeds(s source, e ast.Expr) {
	if t, ok := e.(*ast.StructType); ok {
		for _, f := range t.Fields.List {
			if len(f.Names) == 0 {
				h.offers(s, f.Type)
			}
		}
	}
}

// offers notes the types of a package that are part of what it exports.
func (h *house) offers(s source, e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			h.used[s.dir()+"."+x.Name] = true
		}
		return true
	})
}

// documented says whether the docs name what a package exports, as they do
// limits.
func (h *house) documented(name string) bool {
	_, short, _ := strings.Cut(name, "/")
	for _, n := range []string{name, short, name[strings.LastIndexByte(name, '/')+1:]} {
		if n != "" && bytes.Contains(h.docs, []byte(n)) {
			return true
		}
	}
	return false
}

// uses notes what a file names of other packages of the house. What only a
// package's own tests name has no user, unless it serves tests.
func (h *house) uses(s source) {
	dirs := imports(s)
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && dirs[x.Name] != "" && (dirs[x.Name] != s.dir() || matches(s.dir(), supporting)) {
				h.used[dirs[x.Name]+"."+sel.Sel.Name] = true
			}
		}
		return true
	})
}

// receiver is the name of the type that a method is of.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// imports are the packages of the house that a file sees, by their names in it.
func imports(s source) map[string]string {
	dirs := map[string]string{}
	for _, spec := range s.ast.Imports {
		own, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
		if !ok {
			continue
		}
		name := own[strings.LastIndexByte(own, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		dirs[name] = own
	}
	return dirs
}

// check applies the ratchets.
func (h *house) check() []finding {
	widths := map[string]int{}
	for name, a := range h.askers {
		if !matches(a.dir, supporting) {
			widths[name] = h.width(a)
		}
	}
	found := slices.Concat(
		fileLines.check(h.files, h.at),
		typeMethods.check(h.methods, h.at),
		interfaceMethods.check(widths, h.at),
	)
	if h.kernel > maxKernel {
		found = append(found, finding{Path: "internal/tidy/law.go", Rule: "kernel-lines", Text: fmt.Sprintf("the kernel has %d lines of Go and SQL, the limit is %d", h.kernel, maxKernel)})
	}
	grouped := map[*ast.GenDecl]bool{} // constants that are declared together are one thing: who uses one has all
	for name, d := range h.group {
		grouped[d] = grouped[d] || h.used[name] || h.documented(name)
	}
	var unused []finding
	for _, name := range slices.Sorted(maps.Keys(h.exported)) {
		if f := h.exported[name]; !h.used[name] && !h.documented(name) && !grouped[h.group[name]] {
			f.Text = name + " is exported, and nobody outside its package uses it"
			unused = append(unused, f)
		}
	}
	if len(unused) > maxUnused {
		found = append(found, unused...)
	}
	return found
}
