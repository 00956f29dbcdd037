// Package docs holds the documentation to the code: what a page names exists,
// and what the code has, the page that lists it names.
package docs_test

import (
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// same reports what only one of two sets has.
func same(t *testing.T, what, page string, code, doc map[string]bool) {
	t.Helper()
	for _, s := range slices.Sorted(maps.Keys(code)) {
		if !doc[s] {
			t.Errorf("%s: %s %s is missing", page, what, s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(doc)) {
		if !code[s] {
			t.Errorf("%s: %s %s is not in the code", page, what, s)
		}
	}
}

// found returns the first group of every match.
func found(re, text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(re).FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
)

func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	walk(t, func(path string) {
		if path == "README.md" || strings.HasPrefix(path, "docs/") && strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
	})
	return all
}

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, ":") {
				continue
			}
			to := page
			if target != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s does not exist", page, target)
				continue
			}
			if anchor != "" && strings.HasSuffix(to, ".md") && !anchors(read(t, to))[anchor] {
				t.Errorf("%s: %s has no heading #%s", page, to, anchor)
			}
		}
	}
}

// anchors are the names that headings get on the web.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

func TestPagesKeepToTheirWidth(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, "docs/") {
			continue
		}
		for i, line := range strings.Split(read(t, page), "\n") {
			if n := len([]rune(line)); n > 120 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d: %d columns", page, i+1, n)
			}
		}
	}
}

// codeForm is what an error code looks like; notCodes are other words of that
// form.
var (
	codeForm = regexp.MustCompile(`^[a-z][a-z-]*\.[a-z][a-z-]*[a-z]$`)
	notCodes = regexp.MustCompile(`\.(yaml|yml|json|go|db|sql|jq|local|css|svg|lock)$|^(query|vcs|aqueduct|messaging)\.|^(error\.type|server\.(address|port)|service\.(name|version))$`)
)

// TestErrorCodes compares the headings of errors.md with the codes of the
// sources, and the kinds below them.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	const page = "docs/reference/errors.md"
	files := product(t)
	beside := kinds(files)
	codes := map[string]bool{}
	for s := range literals(files) {
		if codeForm.MatchString(s) && (s == "definition.yaml" || !notCodes.MatchString(s)) {
			codes[s] = true
		}
	}
	for s := range beside {
		codes[s] = true
	}
	for _, s := range settings(t) {
		delete(codes, s.Key)
	}
	body := read(t, page)
	same(t, "code", page, codes, found(`(?m)^### (\S+)$`, body))
	for code, want := range beside {
		_, entry, _ := strings.Cut(body, "### "+code+"\n")
		line, _, _ := strings.Cut(strings.TrimSpace(entry), ".")
		if got := found("`([a-z-]+)`", line); !maps.Equal(got, want) {
			t.Errorf("%s: %s has the kinds %v, want %v", page, code, got, want)
		}
	}
	for _, kind := range []string{
		engine.ErrConfiguration, engine.ErrValidation, engine.ErrExpression, engine.ErrAuthentication, engine.ErrAuthorization,
		engine.ErrTimeout, engine.ErrCommunication, engine.ErrRuntime,
	} {
		if !strings.Contains(body, "| `"+kind+"` |") {
			t.Errorf("%s: workflow error %s is missing", page, kind)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	const page = "docs/operating.md"
	form := regexp.MustCompile(`^aqueduct(_[a-z]+)+$`)
	names := map[string]bool{}
	for s := range literals(product(t)) {
		if form.MatchString(s) {
			names[s] = true
		}
	}
	same(t, "metric", page, names, found("`(aqueduct_[a-z_]+)", read(t, page)))
}

func settings(t *testing.T) []config.Value {
	t.Helper()
	l, err := config.Load(config.Source{})
	if err != nil {
		t.Fatal(err)
	}
	return l.Values()
}

// TestSettings compares the table of settings with the configuration, defaults
// included.
func TestSettings(t *testing.T) {
	t.Parallel()
	const page = "docs/operating.md"
	_, section, _ := strings.Cut(read(t, page), "\n## Configuration\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z.-]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = strings.Trim(m[2], "` ")
	}
	for _, s := range settings(t) {
		if got, ok := rows[s.Key]; !ok || got != s.Default {
			t.Errorf("%s: setting %s: the page says %q, the default is %q", page, s.Key, got, s.Default)
		}
	}
	keys := map[string]bool{}
	for _, s := range settings(t) {
		keys[s.Key] = true
	}
	for key := range rows {
		if !keys[key] {
			t.Errorf("%s: %s is no setting", page, key)
		}
	}
}

// TestPromisesNameTests checks that what is said to hold a promise exists:
// `TestX`, a case of the store's suite in quotes, a script, a scenario.
func TestPromisesNameTests(t *testing.T) {
	t.Parallel()
	tests, cases := map[string]bool{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			for name := range f.ast.Scope.Objects {
				tests[name] = true
			}
		}
		if f.dir == "store/storetest" {
			maps.Copy(cases, literals([]file{f}))
		}
	}
	for _, page := range []string{"docs/guarantees.md", "docs/requirements.md"} {
		body := read(t, page)
		named := found("`((?:Test|Fuzz)[A-Za-z]+)", body)
		if len(named) < 10 {
			t.Errorf("%s: only %d tests are named", page, len(named))
		}
		for name := range named {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
		for name := range found("“([^”]+)”", strings.Join(strings.Fields(body), " ")) {
			if !cases[name] {
				t.Errorf("%s: the suite of stores has no case %q", page, name)
			}
		}
		for name := range found("`([a-z/-]+\\.(?:txtar|txt))`", body) {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestEveryRequirementHasItsPlace checks that each requirement has a row with a
// folder that exists and a test, or is said to be open.
func TestEveryRequirementHasItsPlace(t *testing.T) {
	t.Parallel()
	const page = "docs/requirements.md"
	table, open, _ := strings.Cut(read(t, page), "\nOpen:")
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| ([A-E][0-9]+) \\| [^|]+ \\| `([a-z/-]+)` \\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = m[2:]
	}
	for group, last := range map[string]int{"A": 15, "B": 11, "C": 7, "D": 9, "E": 8} {
		for n := 1; n <= last; n++ {
			number := group + strconv.Itoa(n)
			row := rows[number]
			delete(rows, number)
			if row == nil {
				if !regexp.MustCompile(`\b` + number + `\b`).MatchString(open) {
					t.Errorf("%s: %s is neither in the table nor open", page, number)
				}
				continue
			}
			if s, err := os.Stat(filepath.Join(root, row[0])); err != nil || !s.IsDir() {
				t.Errorf("%s: %s: there is no folder %s", page, number, row[0])
			}
			if !strings.Contains(row[1], "`Test") && !strings.Contains(row[1], "“") {
				t.Errorf("%s: %s: nothing holds it", page, number)
			}
		}
	}
	for number := range rows {
		t.Errorf("%s: nobody asked for %s", page, number)
	}
}

const head = "document: {dsl: '1.0.3', namespace: docs, name: example, version: '1.0.0'}\n"

// TestLanguageExamples parses every example: whole documents, and lists of
// tasks. Those marked refused must be refused for what they use.
func TestLanguageExamples(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{"docs/reference/language.md": 12, "docs/reference/lifecycle.md": 2, "docs/sagas.md": 1} {
		examples(t, page, least)
	}
}

var exampleBlocks = regexp.MustCompile("(?ms)^```yaml( refused)?\n(.*?)^```")

// wholeExample is an example as a document: many are lists of tasks.
func wholeExample(doc string) string {
	if strings.HasPrefix(doc, "document:") || strings.HasPrefix(doc, "lifecycle:") || strings.HasPrefix(doc, "policy:") {
		return doc
	}
	return head + "do:\n" + doc
}

func examples(t *testing.T, page string, least int) {
	blocks := exampleBlocks.FindAllStringSubmatch(read(t, page), -1)
	if len(blocks) < least {
		t.Errorf("%s: only %d examples", page, len(blocks))
	}
	for _, m := range blocks {
		doc := wholeExample(m[2])
		_, err := openworkflow.Parse("example.yaml", []byte(doc))
		if m[1] == "" && err != nil {
			t.Errorf("%s: %v\n%s", page, err, doc)
		}
		if m[1] != "" && problem.CodeOf(err) != "definition.invalid" {
			t.Errorf("%s: accepted, or refused otherwise: %v\n%s", page, err, doc)
		}
	}
}

// The page of the invariants lists them, each with its sentence.
func TestInvariants(t *testing.T) {
	page := read(t, "docs/reference/invariants.md")
	code := map[string]bool{}
	for _, i := range survey.Invariants {
		code["`"+i.Name+"` | "+i.Holds] = true
	}
	same(t, "the invariant", "docs/reference/invariants.md", code, found(`(?m)^\| (`+"`"+`.*?) \|$`, page))
}

// TestLimits compares limits.md with the constants, values included.
func TestLimits(t *testing.T) {
	t.Parallel()
	const page = "docs/limits.md"
	want := limits(t, product(t))
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\|[^|]*\\| `([a-z]+\\.(?:Default|Max)[A-Za-z]*)` \\| ([^|]*) \\|").FindAllStringSubmatch(read(t, page), -1) {
		rows[m[1]] = m[2]
	}
	names := map[string]bool{}
	for _, l := range want {
		names[l.name] = true
		if n, ok := number(rows[l.name]); !ok || n != l.value {
			t.Errorf("%s: %s is %d, the page says %q", page, l.name, l.value, rows[l.name])
		}
	}
	for name := range rows {
		if !names[name] {
			t.Errorf("%s: there is no constant %s", page, name)
		}
	}
}

// TestFunctionsAreWhereTheyAreSaidToBe checks every `file.go:function` of the
// pages.
func TestFunctionsAreWhereTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	place := regexp.MustCompile("`([a-z/]+\\.go):([A-Za-z]+)`")
	for _, page := range pages(t) {
		for _, m := range place.FindAllStringSubmatch(read(t, page), -1) {
			source, err := os.ReadFile(filepath.Join(root, m[1]))
			if err != nil || !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+m[2]+`[(\[]`).Match(source) {
				t.Errorf("%s: there is no %s in %s", page, m[2], m[1])
			}
		}
	}
}

// TestQueriesRun runs every query of tables.md against a database of a store.
func TestQueriesRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := embedded.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	queries := regexp.MustCompile("(?ms)^```sql\n(.*?)^```").FindAllStringSubmatch(read(t, "docs/reference/tables.md"), -1)
	if len(queries) < 6 {
		t.Errorf("only %d queries", len(queries))
	}
	for _, q := range queries {
		rows, err := db.QueryContext(t.Context(), q[1])
		if err != nil {
			t.Errorf("%v\n%s", err, q[1])
			continue
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			t.Errorf("%v\n%s", err, q[1])
		}
		rows.Close()
	}
}
