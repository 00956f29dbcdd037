package tidy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHouse checks the whole repository.
func TestHouse(t *testing.T) {
	t.Parallel()
	files := repository(t, filepath.Join("..", ".."))
	if len(files) < 20 {
		t.Fatalf("only %d files found: this is not the repository", len(files))
	}
	for _, f := range check(files) {
		t.Error(f)
	}
}

// repository reads every file that could be committed.
func repository(t *testing.T, root string) []File {
	t.Helper()
	var files []File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch name = filepath.ToSlash(name); {
		case name == ".git", name == "bin", name == "dist", name == "aqueduct-data", name == "go.sum", strings.HasSuffix(name, "/node_modules"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular(), strings.Contains(filepath.Base(name), ".db"):
			return nil
		}
		source, err := os.ReadFile(path)
		files = append(files, File{Path: name, Source: source})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestEveryRuleFails feeds the checker one small crime after the other.
func TestEveryRuleFails(t *testing.T) {
	t.Parallel()
	own := func(p string) string { return `import _ "` + module + "/" + p + `"` }
	cases := []struct{ path, body, rule string }{
		{"engine/a.go", own("store"), "arrows"},
		{"engine/a.go", own("engine"), "arrows"},
		{"engine/a.go", own("program"), "arrows"},
		{"engine/a.go", own("jq"), "arrows"},
		{"engine/a_test.go", own("definition/openworkflow"), "arrows"},
		{"projections/a.go", own("program"), "arrows"},
		{"store/a.go", own("program"), "arrows"},
		{"sql/sqlite/a.go", own("program"), "arrows"},
		{"runtime/turn/a.go", own("program"), "arrows"},
		{"runtime/dispatch/a.go", own("program"), "arrows"},
		{"runtime/pump/a.go", own("program"), "arrows"},
		{"snapshot/a.go", own("signal"), "arrows"},
		{"problem/a.go", own("signal"), "arrows"},
		{"activity/a.go", own("runtime"), "arrows"},
		{"activity/a.go", own("store"), "arrows"},
		{"api/a.go", own("runtime"), "arrows"},
		{"runtime/a.go", own("api"), "arrows"},
		{"runtime/pump/a.go", own("runtime"), "arrows"},
		{"runtime/pump/a.go", own("runtime/dispatch"), "arrows"},
		{"runtime/service/a.go", own("runtime"), "arrows"},
		{"runtime/service/a.go", own("runtime/pump"), "arrows"},
		{"runtime/service/a.go", own("runtime/dispatch"), "arrows"},
		{"runtime/service/a.go", own("runtime/events"), "arrows"},
		{"runtime/events/a.go", own("runtime/dispatch"), "arrows"},
		{"runtime/dispatch/a.go", own("runtime/pump"), "arrows"},
		{"runtime/turn/a.go", own("runtime/pump"), "arrows"},
		{"runtime/a.go", own("sql/sqlite"), "arrows"},
		{"runtime/a_test.go", own("api"), "arrows"},
		{"sql/sqlite/a.go", own("aq"), "arrows"},
		{"sql/sqlite/a.go", own("sql/oracle"), "arrows"},
		{"sql/sqlite/a.go", own("store/storetest"), "arrows"},
		{"store/a.go", own("store/storetest"), "arrows"},
		{"definition/a.go", own("definition/openworkflow"), "arrows"},
		{"definition/code/a.go", own("definition/openworkflow"), "arrows"},
		{"examples/a/a.go", own("cmd/engine-node"), "arrows"},
		{"attic/a.go", "", "arrows"},
		{"engine/a.go", `import _ "database/sql"`, "purity"},
		{"signal/a.go", `import _ "net/http"`, "purity"},
		{"snapshot/a.go", `import _ "os"`, "purity"},
		{"projections/a.go", `import _ "log/slog"`, "purity"},
		{"jq/a.go", `import _ "os/exec"`, "purity"},
		{"engine/a.go", `import _ "math/rand/v2"`, "purity"},
		{"definition/lifecycle/a.go", `import _ "github.com/prometheus/client_golang/prometheus"`, "purity"},
		{"engine/a.go", "import \"time\"\n\nvar _ = time.Now()", "purity"},
		{"engine/a.go", "import t \"time\"\n\nvar f = t.Since", "purity"},
		{"engine/a.go", "import . \"time\"\n\nvar _ = Now()", "purity"},
		{"definition/a.go", "import \"time\"\n\nfunc f() { time.Sleep(1) }", "purity"},
		{"api/a.go", "import \"encoding/json\"\n\nvar _ = json.Unmarshal(nil, nil)", "keys"},
		{"signal/a.go", "import j \"encoding/json\"\n\nvar f = j.NewDecoder", "keys"},
		{"cmd/engine-node/a.go", "import . \"encoding/json\"\n\nvar f = Valid", "keys"},
		{"store/a.go", `import _ "github.com/mattn/go-sqlite3"`, "only"},
		{"runtime/a.go", `import _ "github.com/godror/godror"`, "only"},
		{"runtime/a.go", `import _ "database/sql"`, "only"},
		{"api/a.go", `import _ "github.com/jmoiron/sqlx"`, "only"},
		{"cmd/engine-node/a.go", `import _ "github.com/spf13/viper"`, "only"},
		{"store/a.go", `import _ "github.com/prometheus/client_golang/prometheus"`, "only"},
		{"console/a.go", `import _ "maragu.dev/gomponents"`, "only"},
		{"console/a.go", `import _ "html/template"`, "only"},
		{"cmd/engine-node/a.go", `import _ "text/template"`, "only"},
		{"engine/a.go", `import _ "github.com/itchyny/gojq"`, "only"},
		{"runtime/a_test.go", "import \"time\"\n\nfunc f() {" + strings.Repeat("\n\ttime.Sleep(1)", maxSleeps+1) + "\n}", "sleep"},
		{"program/a.go", "var p, ok = any(nil).(*Program)", "assertion"},
		{"program/a.go", "func f(x any) {\n\tswitch x.(type) {\n\tcase int, *Program:\n\t}\n}", "assertion"},
		{"runtime/service/a.go", "import \"" + module + "/program\"\n\nvar p, ok = any(nil).(*program.Program)", "assertion"},
		{"runtime/a.go", "import e \"" + module + "/program\"\n\nvar p, ok = any(nil).(*e.Program)", "assertion"},
		{"engine/a.go", "var  x int", "gofmt"},
		{"engine/a.go", strings.Repeat("\nvar _ int", fileLines.limit), "file-lines"},
		{"engine/a_test.go", strings.Repeat("\nvar _ int", maxFileLines), "file-lines"},
		{"engine/a.go", "type t int\n" + repeated("\nfunc (t) f%d() {}\n", typeMethods.limit+1), "type-methods"},
		{"engine/a.go", "type t[K any] int\n" + repeated("\nfunc (*t[K]) f%d() {}\n", typeMethods.limit+1), "type-methods"},
		{"engine/a.go", "type t interface {" + repeated("\n\tf%d()", interfaceMethods.limit+1) + "\n}", "interface-methods"},
		{"engine/a.go", "type s interface {" + repeated("\n\tf%d()", 4) + "\n}\n\ntype t interface {\n\ts" + repeated("\n\tg%d()", 3) + "\n}", "interface-methods"},
		{"engine/a.go", "type s struct {\n\tf interface {" + repeated("\n\t\tf%d()", interfaceMethods.limit+1) + "\n\t}\n}", "interface-methods"},
		{"engine/a.go", "func f(interface {" + repeated("\n\tf%d()", interfaceMethods.limit+1) + "\n}) {\n}", "interface-methods"},
		{"engine/a.go", "type a interface {" + repeated("\n\tf%d()", 4) + "\n}\n\ntype b interface {" + repeated("\n\tg%d()", 3) + "\n}\n\ntype u struct {\n\ta\n\tb\n}", "interface-methods"},
		{"engine/a.go", "type a interface {" + repeated("\n\tf%d()", 4) + "\n}\n\ntype b interface {" + repeated("\n\tg%d()", 3) + "\n}\n\ntype c = b\n\ntype s struct{ c }\n\ntype u struct {\n\ta\n\t*s\n}", "interface-methods"},
		{"problem/a.go", repeated("\nvar V%d int", maxUnused+1), "unused"},
		{"engine/a.go", "func f() {" + strings.Repeat("\n\t_ = 0", maxFuncLines-1) + "\n}", "func-lines"},
		{"engine/a_test.go", "func f() {" + strings.Repeat("\n\t_ = 0", maxTestFuncLines-1) + "\n}", "func-lines"},
		{"engine/a.go", "// TO" + "DO: later", "unfinished"},
		{"docs/a.md", "see /wor" + "k/notes", "machine-path"},
		{"engine/testdata/a.txt", "/tm" + "p/x", "machine-path"},
		{"Makefile", "GOPROXY=https://proxy.golang" + ".org", "registry"},
		{"engine/a.go", "var doubted int", "vocabulary"},
		{"engine/a.go", "type WakeBell struct{}", "vocabulary"},
		{"engine/a_test.go", "func f(oldKase int) {}", "vocabulary"},
		{"engine/a.go", "var letterOfANode int", "vocabulary"},
		{"engine/a.go", "var oldUndo int", "vocabulary"},
		{"engine/turnstile.go", "", "vocabulary"},
		{"sql/sqlite/query/message_bury.sql", "select 1", "vocabulary"},
		{"internal/places/a.go", "package places", "vocabulary"},
		{"engine/a.go", "func", "go"},
	}
	for _, c := range cases {
		source := c.body
		if strings.HasSuffix(c.path, ".go") && !strings.HasPrefix(source, "package ") {
			source = "// Package a is here.\npackage a\n\n" + strings.TrimPrefix(c.body, "\n") + "\n"
		}
		found := check([]File{{Path: c.path, Source: []byte(source)}})
		ok := false
		for _, f := range found {
			ok = ok || f.Rule == c.rule && f.Path == c.path
		}
		if !ok {
			t.Errorf("%s: %.60q breaks %s and is accepted: %v", c.path, c.body, c.rule, found)
		}
	}
}

// repeated is a text for each number below n.
func repeated(text string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, text, i)
	}
	return b.String()
}

// What is listed as over a limit may not grow, and is listed as long as it is over.
func TestARatchetOnlyTightens(t *testing.T) {
	t.Parallel()
	r := ratchet{rule: "file-lines", unit: "lines", limit: 500, over: map[string]int{"a": 569}}
	for size, ok := range map[int]bool{400: false, 500: false, 501: true, 569: true, 570: false} {
		if found := r.check(map[string]int{"a": size}, nil); (len(found) == 0) != ok {
			t.Errorf("%d lines: %v", size, found)
		}
	}
	if found := r.check(map[string]int{"b": 501}, nil); len(found) != 1 {
		t.Errorf("what is not listed: %v", found)
	}
}

// A struct that embeds interfaces of other packages asks for all of their methods;
// one that has them as fields with names asks for none.
func TestUnionsAreCounted(t *testing.T) {
	t.Parallel()
	below := File{"signal/a.go", []byte("// Package signal is.\npackage signal\n\n// A is.\ntype A interface {" + repeated("\n\tF%d()", interfaceMethods.limit) + "\n}\n")}
	wide := func(fields string) bool {
		above := File{"engine/a.go", []byte("// Package engine is.\npackage engine\n\nimport s \"" + module + "/signal\"\n\ntype b interface{ g() }\n\ntype u struct {\n" + fields + "}\n")}
		return slices.ContainsFunc(check([]File{below, above}), func(f finding) bool { return f.Rule == "interface-methods" && f.Path == above.Path })
	}
	if !wide("\ts.A\n\tb\n") {
		t.Error("a union is accepted")
	}
	if wide("\tA s.A\n\tb b\n") {
		t.Error("parts with names are counted")
	}
}

// The kernel's lines are those of its Go and its SQL.
func TestTheKernelIsMeasured(t *testing.T) {
	t.Parallel()
	limit := maxKernel
	over := func(files ...File) bool {
		return slices.ContainsFunc(check(files), func(f finding) bool { return f.Rule == "kernel-lines" })
	}
	lines := func(path string, n int) File { return File{Path: path, Source: []byte(strings.Repeat("\n", n))} }
	if !over(lines("store/a.sql", limit), lines("sql/sqlite/query/b.sql", 1)) {
		t.Error("too large a kernel is accepted")
	}
	if over(lines("store/a.sql", limit), lines("sql/oracle/b.sql", 1), lines("store/a_test.go", 5)) {
		t.Error("what is not in the kernel is counted")
	}
}

func TestPackagesHaveNamesAndDocs(t *testing.T) {
	t.Parallel()
	undocumented := []File{{Path: "engine/a.go", Source: []byte("package engine\n")}, {Path: "engine/a_test.go", Source: []byte("// Doc.\npackage engine\n")}}
	if found := check(undocumented); len(found) != 1 || found[0].Rule != "package-doc" {
		t.Errorf("no doc: %v", found)
	}
	for _, name := range bannedNames {
		found := check([]File{{Path: "internal/x/a.go", Source: []byte("// Package x is.\npackage " + name + "\n")}})
		if len(found) != 1 || found[0].Rule != "package-name" || !strings.HasPrefix(found[0].String(), "internal/x/a.go:2: ") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestTheAllowedIsAccepted(t *testing.T) {
	t.Parallel()
	body := func(imports ...string) []byte {
		return []byte("// Package a is here.\npackage a\n\nimport (\n\t_ \"" + strings.Join(imports, "\"\n\t_ \"") + "\"\n)\n")
	}
	files := []File{
		{"sql/oracle/a.go", body(module+"/aq", module+"/store", "github.com/jmoiron/sqlx")},
		{"sql/sqlite/a_test.go", body(module+"/sql/sqlite", module+"/store/storetest")},
		{"definition/openworkflow/a.go", body(module+"/definition", module+"/jq", "time")},
		{"engine/a_test.go", body("log", "os")},
		{"cmd/engine-node/a.go", body(module+"/runtime", "github.com/spf13/cobra")},
		{"engine/a.go", []byte("// Package a is.\npackage a\n\nimport \"time\"\n\nvar d = 2 * time.Second\n")},
		{"engine/b.go", []byte("package a\n\nvar _, ok = any(nil).(Scheduled)\n")},
		{"engine/c.go", []byte("package a\n\nvar deadLetterString, deadLettersOf, places, undoubted int\n")},
		{"engine/b_test.go", []byte("package a\n\nvar _, asserted = any(nil).(*Program)\n")},
		{"engine/testdata/bad.go", []byte("package  x")},
		{"deploy/logo.png", []byte("\x00 TO" + "DO")},
	}
	for _, f := range check(files) {
		t.Error(f)
	}
}

func TestTheKernelSeesNoExtra(t *testing.T) {
	t.Parallel()
	for _, f := range extrasSeen(law, kernelSees) {
		t.Error(f)
	}
	for name, planted := range map[string]rule{
		"a language": {1, "engine", []string{"problem", "program"}, nil}, "everything": {1, "store", []string{everything}, nil},
		"what is apart":           {3, "sql/rows", []string{"problem", "store"}, nil},
		"what is not listed":      {5, "sql/sqlite", []string{"definition", "store/survey"}, nil},
		"what is listed and gone": {5, "sql/sqlite", []string{}, nil},
	} {
		if found := extrasSeen([]rule{planted}, map[string][]string{"sql/sqlite": {"definition"}}); len(found) != 1 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestTheLawGoesDownOnly(t *testing.T) {
	t.Parallel()
	for _, r := range law {
		for _, seen := range r.sees {
			below, ok := ruleOf(seen)
			sideways := r.floor == below.floor && (seen == "problem" || r.pkg == "store/storetest" && seen == "store")
			if seen != everything && (!ok || below.floor >= r.floor && !sideways) {
				t.Errorf("%s (floor %d) sees %s (floor %d)", r.pkg, r.floor, seen, below.floor)
			}
		}
	}
}
