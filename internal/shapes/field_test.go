package shapes

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxByHand is how many files a new field is written into by hand, docs and changelog
// among them. It only goes down.
const maxByHand = 6

// edit is what somebody writes by hand: a text behind another, which stands in the file
// once.
type edit struct{ file, behind, text string }

// aTaskField is a text that a document says of a task, and that is stored, listed and shown.
var aTaskField = []edit{
	{"engine/engine.go", "type Task struct {\n", "\tCategory string `json:\"category,omitempty\" max:\"100\"`\n"},
	{"projections/rows.go", "type Task struct {\n", "\tCategory string `db:\"CATEGORY\" width:\"100\" doc:\"what kind of work it is\"`\n"},
	{"projections/rows.go", "\t\tEscalateTo: List(t.EscalateTo),\n", "\t\tCategory: t.Category,\n"},
	{"store/backend/sums.go", "\td.Number(int64(t.Priority))\n", "\tif t.Category != \"\" { // tasks of before have none\n\t\td.Texts(t.Category)\n\t}\n"},
	{"api/client/wire.go", "type Task struct {\n", "\tCategory string `json:\"category,omitempty\" doc:\"What kind of work it is.\"`\n"},
	{"docs/reference/language.md", "shown to the person |\n| `payload` | anything | shown to the person |\n", "| `category` | text, at most 100 characters | what kind of work it is |\n"},
	{"CHANGELOG.md", "## [Unreleased]\n\n### Added\n\n", "- A task may have a `category`.\n"},
}

// anInstanceField is a text that a start says of an instance, and that the instance
// remembers, and that is listed and shown.
var anInstanceField = []edit{
	{"api/client/wire.go", "type StartRequest struct {\n", "\tLabel string `json:\"label,omitempty\" doc:\"What people call the instance.\"`\n"},
	{"api/client/wire.go", "type Instance struct {\n", "\tLabel string `json:\"label,omitempty\" doc:\"What people call it.\"`\n"},
	{"signal/start.go", "type Start struct {\n", "\tLabel string `json:\"label,omitempty\"`\n"},
	{"signal/start.go", "\"businessKey\": s.BusinessKey, ", "\"label\": s.Label, "},
	{"signal/start.go", "return business{s.BusinessKey, s.KeyParts", ", s.Label"},
	{"signal/start.go", "\tParts map[string]string\n", "\tLabel string\n"},
	{"snapshot/snapshot.go", "\tParts map[string]string `json:\"parts,omitempty\"`\n", "\tLabel string `json:\"label,omitempty\"`\n"},
	{"projections/rows.go", "type Instance struct {\n", "\tLabel string `db:\"LABEL\" width:\"256\" doc:\"what people call the instance\"`\n"},
	{"projections/rows.go", "\t\tStartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt,\n", "\t\tLabel: s.Business.Label,\n"},
	{"docs/reference/cli.md", "| `start DEFINITION` | start; `--input`, ", "`--label`, "},
	{"CHANGELOG.md", "## [Unreleased]\n\n### Added\n\n", "- A start may give an instance a `label`.\n"},
}

// asking is a definition whose task has the field.
const asking = `document: {dsl: '1.0.3', namespace: test, name: ask, version: 1.0.0}
do:
  - ask: {call: humanTask, with: {title: Approve, category: loans, candidateUsers: [ann]}}
`

// TestAFieldIsAddedInSixFiles adds a field to a human task and one to an instance, in a
// copy of the module, and sees both come out at the other end: what a document and a start
// say is stored, listed and shown by the program that is built of the copy, and the tests
// that compare what is declared twice find nothing.
func TestAFieldIsAddedInSixFiles(t *testing.T) {
	t.Parallel()
	for what, edits := range map[string][]edit{"task": aTaskField, "instance": anInstanceField} {
		files := map[string]bool{}
		for _, e := range edits {
			files[e.file] = true
		}
		if len(files) > maxByHand {
			t.Errorf("a field of a %s is written by hand into %d files, and at most %d are to be touched", what, len(files), maxByHand)
		}
	}
	c := copied(t)
	for _, e := range slices.Concat(aTaskField, anInstanceField) {
		c.write(t, e)
	}
	c.run(t, "AQUEDUCT_UPDATE=1", "go", "test", "./internal/shapes", "-run", "TestTextsSayWhatFieldsSay")
	c.run(t, "", "go", "test", "./api", "-run", "TestOpenAPI", "-rewrite")
	c.run(t, "", "go", "build", "-o", "bin/engine-node", "./cmd/engine-node")
	c.run(t, "", "go", "test", "./snapshot", "./projections", "./signal", "./internal/testdb", "./internal/shapes", "-skip", "TestAFieldIsAddedInSixFiles")
	c.run(t, "", "go", "test", "./sql/embedded", "-run", "TestStore/(every_field|damaged)|Statement")
	c.run(t, "", "go", "test", "./sql/oracle", "-run", "Test(SchemaNames|ViewsHave|Statements|LargeValues|RowsHave)")
	c.comesOut(t)
}

// copy is the module in another place.
type moduleCopy struct{ root string }

func copied(t *testing.T) moduleCopy {
	t.Helper()
	c := moduleCopy{t.TempDir()}
	aside := []string{".git", "bin", "dist", "node_modules", "aqueduct-data"}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel("../..", path)
		to := filepath.Join(c.root, name)
		switch {
		case err != nil:
			return err
		case slices.Contains(aside, d.Name()) && d.IsDir():
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, raw, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write does an edit.
func (c moduleCopy) write(t *testing.T, e edit) {
	t.Helper()
	path := filepath.Join(c.root, e.file)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), e.behind); n != 1 {
		t.Fatalf("%s has %q %d times", e.file, e.behind, n)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), e.behind, e.behind+e.text, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the copy, and returns what it says.
func (c moduleCopy) run(t *testing.T, env, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = c.root, slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AQUEDUCT_") })
	if env != "" {
		cmd.Env = append(cmd.Env, env)
	}
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, said.String(), wrong.String())
	}
	return said.String()
}

// comesOut has the program of the copy start an instance with the fields, and show them.
func (c moduleCopy) comesOut(t *testing.T) {
	t.Helper()
	node := filepath.Join(c.root, "bin", "engine-node")
	file := filepath.Join(c.root, "ask.yaml")
	if err := os.WriteFile(file, []byte(asking), 0o644); err != nil {
		t.Fatal(err)
	}
	on := []string{"--store", "sqlite://" + filepath.Join(c.root, "a.db")}
	c.run(t, "", node, append(on, "migrate")...)
	c.run(t, "", node, append(on, "publish", file)...)
	c.run(t, "", node, append(on, "start", "test/ask", "--id", "i-1", "--label", "Mr Smith's loan")...)
	for verb, field := range map[string][2]string{"tasks list": {"category", "loans"}, "list": {"label", "Mr Smith's loan"}} {
		var page struct {
			Items []map[string]any `json:"items"`
		}
		said := c.run(t, "", node, append(append(on, "--json"), strings.Fields(verb)...)...)
		if err := json.Unmarshal([]byte(said), &page); err != nil || len(page.Items) != 1 || page.Items[0][field[0]] != field[1] {
			t.Errorf("%s says %s (%v)", verb, said, err)
			continue
		}
		id, _ := page.Items[0]["id"].(string)
		shown := c.run(t, "", node, append(append(on, strings.Fields(strings.TrimSuffix(verb, "list"))...), "show", id)...)
		if !strings.Contains(shown, field[1]) || !strings.Contains(shown, field[0]) {
			t.Errorf("%s is shown as\n%s", id, shown)
		}
	}
}
