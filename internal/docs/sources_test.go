package docs_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// file is a parsed Go file.
type file struct {
	dir  string // from the root, with slashes
	test bool
	ast  *ast.File
}

// goFiles parses every Go file outside of testdata.
func goFiles(t *testing.T) []file {
	t.Helper()
	var all []file
	set := token.NewFileSet()
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.Contains("/"+path, "/testdata/") {
			return
		}
		parsed, err := parser.ParseFile(set, filepath.Join(root, path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir, _, _ := cutLast(path, "/")
		all = append(all, file{dir: dir, test: strings.HasSuffix(path, "_test.go"), ast: parsed})
	})
	return all
}

// product is the Go files of what runs: no tests, examples or house rules.
func product(t *testing.T) []file {
	t.Helper()
	var kept []file
	for _, f := range goFiles(t) {
		other := f.test || strings.HasPrefix(f.dir, "internal/") || strings.HasPrefix(f.dir, "examples/") || strings.HasPrefix(f.dir, "bench")
		if !other {
			kept = append(kept, f)
		}
	}
	return kept
}

// walk calls each for every file of the repository, by its path from the root.
func walk(t *testing.T, each func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch name = filepath.ToSlash(name); {
		case d.IsDir() && (name == ".git" || name == "bin" || name == "dist" || name == "aqueduct-data" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular():
			each(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// literals returns every string that is written in the files.
func literals(files []file) map[string]bool {
	all := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := text(n); ok {
				all[s] = true
			}
			return true
		})
	}
	return all
}

func text(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// kinds returns, for every code that stands beside its kind, the kinds.
func kinds(files []file) map[string]map[string]bool {
	names := map[string]string{
		"Invalid": "invalid", "NotFound": "not-found", "Conflict": "conflict", "Denied": "denied",
		"TooLarge": "too-large", "Unavailable": "unavailable", "Internal": "internal",
	}
	all := map[string]map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for i, arg := range call.Args[:max(len(call.Args)-1, 0)] {
				kind, ok := arg.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				code, isText := text(call.Args[i+1])
				if name := names[kind.Sel.Name]; isText && name != "" {
					if all[code] == nil {
						all[code] = map[string]bool{}
					}
					all[code][name] = true
				}
			}
			return true
		})
	}
	return all
}

// limit is a constant such as signal.MaxBytes.
type limit struct {
	name  string
	value int64
}

// limits returns the exported constants of the files that begin with Default
// or Max.
func limits(t *testing.T, files []file) []limit {
	t.Helper()
	var all []limit
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if limitName.MatchString(name.Name) && i < len(v.Values) {
						all = append(all, limit{f.ast.Name.Name + "." + name.Name, value(t, v.Values[i])})
					}
				}
			}
		}
	}
	return all
}

var limitName = regexp.MustCompile(`^(Default|Max)[A-Z]?`)

var units = strings.NewReplacer(
	"time.Millisecond", "1000000", "time.Second", "1000000000", "time.Minute", "60000000000", "time.Hour", "3600000000000",
)

func value(t *testing.T, e ast.Expr) int64 {
	t.Helper()
	src := units.Replace(types.ExprString(e))
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	n, ok := constant.Int64Val(constant.ToInt(v.Value))
	if !ok {
		t.Fatalf("%s is not a whole number", src)
	}
	return n
}

// number reads what a person writes: "32,000", "4 MiB", "30 s".
func number(s string) (int64, bool) {
	count, unit, _ := strings.Cut(strings.TrimSpace(s), " ")
	n, err := strconv.ParseInt(strings.ReplaceAll(count, ",", ""), 10, 64)
	factor, ok := map[string]int64{
		"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9,
	}[unit]
	return n * factor, err == nil && ok
}
