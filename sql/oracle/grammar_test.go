package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// Every statement, block and script is parsed with a grammar of Oracle's
// dialect that is not ours: grammar/parse.js. See docs/decisions/0028.

// parsed is a text for the grammar, and where it stands.
type parsed struct {
	Name string `json:"name"`
	Text string `json:"text"`
	line int    // of the file, of the text's first line
}

// syntaxError is a finding of grammar/parse.js.
type syntaxError struct {
	Name    string `json:"name"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// parseAll returns the syntax errors of texts, as "file:line:column: message".
func parseAll(t *testing.T, list []parsed) []string {
	t.Helper()
	modules, err := filepath.Abs("grammar/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "antlr4ts-sql")); err != nil {
		t.Skip("THE STATEMENTS ARE NOT PARSED: run .ci/install-grammar")
	}
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "grammar/parse.js")
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, stderr.String())
	}
	var errors []syntaxError
	if err := json.Unmarshal(out, &errors); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := map[string]int{}
	for _, p := range list {
		first[p.Name] = p.line
	}
	var found []string
	for _, e := range errors {
		file, _, _ := strings.Cut(e.Name, " ")
		found = append(found, fmt.Sprintf("%s:%d:%d: %s (%s)", file, first[e.Name]+e.Line-1, e.Column, e.Message, e.Name))
	}
	return found
}

// ended ends a text as the grammar wants it. A unit of PL/SQL has its
// semicolon.
func ended(text string) string {
	if strings.HasSuffix(text, ";") {
		return text
	}
	return text + ";"
}

// gaps are what Oracle's manuals have and the grammar has not, which was made in
// 2021. Each is parsed as what stands beside it, on the same line.
var gaps = []struct{ ours, theirs string }{
	{"NO AUTHENTICATION", "IDENTIFIED BY p_x"}, // 18c
	{"CREATE ROLE AQUEDUCT_OPERATOR", "CREATE USER AQUEDUCT_OPERATOR IDENTIFIED BY p_x"},
	{"CREATE ROLE AQUEDUCT_APPLICATION", "CREATE USER AQUEDUCT_APPLICATION IDENTIFIED BY p_x"},       // it knows no roles
	{"JSON_ARRAY(p_value RETURNING VARCHAR2(4000))", "JSON_ARRAY(p_value                         )"}, // 12.2
	{" FORMAT JSON,", "            ,"},                                                               // 12.1
	{" RETURNING CLOB)", ")              "},                                                          // 18c
	{" RETURNING CLOB WITH WRAPPER)", ")                            "},                               // 18c
	{"v_text IS JSON STRICT WITH UNIQUE KEYS", "v_text IS NOT NULL                    "},             // 12.1
	{"v_text IS JSON STRICT", "v_text IS NOT NULL   "},                                               // 12.1
	{"$$PLSQL_UNIT_OWNER", "  PLSQL_UNIT_OWNER"},                                                     // an inquiry directive, 12.1
}

// statementTexts lists the statements and the blocks made of them.
func statementTexts(t *testing.T) []parsed {
	t.Helper()
	var list []parsed
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		st := statements[name]
		list = append(list, parsed{Name: "query/" + name + ".sql", Text: ended(st.text), line: 1})
		word, _, _ := strings.Cut(strings.ToLower(st.text), " ")
		if word != "insert" && word != "update" && word != "delete" {
			continue
		}
		o := op{name: name, args: make([]any, len(st.binds)), refuse: fs.ErrInvalid}
		text, _, err := blockOf([]op{o})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, parsed{Name: "query/" + name + ".sql (block)", Text: text})
	}
	for i, r := range readings(t) {
		list = append(list, parsed{Name: fmt.Sprintf("reading %d (%s)", i, r.name), Text: ended(r.text), line: 1})
	}
	all := wholeOf(&work{ // of one statement and one message
		ops:   []op{{name: "wait_delete", args: make([]any, len(statements["wait_delete"].binds))}},
		sends: []batch{{list: []aq.Send{{Body: []byte("a"), Priority: 5}}}},
	})
	list = append(list, parsed{Name: wholeBlock, Text: all.text})
	list = append(list, parsed{Name: blockOfDequeue, Text: (&aq.Beside{Declare: carriedVars, Do: carriedDo}).Block()})
	notice := &work{}
	planner{&Store{o: Options{Notices: time.Hour}}}.deadLetter(notice, nil, projections.DeadLetter{})
	return append(list, parsed{Name: blockOfNotice, Text: wholeOf(notice).text})
}

const (
	wholeBlock     = "block that sends and commits"
	blockOfNotice  = "block with a notice"
	blockOfDequeue = "block that dequeues"
)

// everything lists the statements, the blocks made of them, and the units of
// every script.
func everything(t *testing.T) []parsed {
	t.Helper()
	list := statementTexts(t)
	for i := range list {
		for _, g := range gaps {
			list[i].Text = strings.ReplaceAll(list[i].Text, g.ours, g.theirs)
		}
	}
	variable := regexp.MustCompile(`&(\w+)`)
	names, err := fs.Glob(scripts, "schema/*.sql")
	upgrades, errUpgrades := fs.Glob(scripts, "schema/upgrade/*.sql")
	if err != nil || errUpgrades != nil {
		t.Fatal(err, errUpgrades)
	}
	names = append(names, upgrades...)
	needed := map[string]bool{}
	for _, name := range names {
		raw, err := scripts.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := variable.ReplaceAllString(string(raw), "$1")
		for _, g := range gaps {
			needed[g.ours] = needed[g.ours] || strings.Contains(text, g.ours)
			text = strings.ReplaceAll(text, g.ours, g.theirs)
		}
		for _, u := range split(name, text) {
			list = append(list, parsed{Name: fmt.Sprintf("%s (from line %d)", u.script, u.line), Text: ended(u.text), line: u.line})
		}
	}
	for _, g := range gaps {
		if !needed[g.ours] {
			t.Errorf("no script says %q: the gap is not needed", g.ours)
		}
	}
	return list
}

func TestEveryStatementAndScriptParsesAsOracles(t *testing.T) {
	t.Parallel()
	list := everything(t)
	if len(list) < 250 {
		t.Fatalf("only %d texts", len(list))
	}
	for _, e := range parseAll(t, list) {
		t.Error(e)
	}
}

// The grammar is known to refuse what it should: each of these is a text of
// ours with one error planted.
func TestPlantedErrorsAreFound(t *testing.T) {
	t.Parallel()
	plant := func(name, old, with string) parsed {
		text := statements[name].text
		changed := strings.Replace(text, old, with, 1)
		if changed == text {
			t.Fatalf("%s has no %q", name, old)
		}
		return parsed{Name: name + " " + with, Text: ended(changed), line: 1}
	}
	list := []parsed{
		plant("wait_specs", "fetch first :ROWS_MAX rows only", "limit :ROWS_MAX"),
		plant("wait_specs", " only", ""),
		plant("wait_insert", "values (", "values (("),
		plant("state_load", "STATE_CHECKSUM,", "STATE_CHECKSUM A"),
		plant("state_load", "from WF_RUNTIME_STATES", "from WF_RUNTIME_STATES as S"),
		plant("state_load", "= :INSTANCE_ID", "= :INSTANCE_ID::text"),
		plant("state_load", "where", "where and"),
		plant("stream_claim", ", CLAIMED_RUN", " CLAIMED_RUN"),
		{Name: "returning", Text: statements["wait_insert"].text + " returning *;"},
		{Name: "on conflict", Text: statements["wait_insert"].text + " on conflict do nothing;"},
		{Name: "two rows", Text: "insert into A (B) values (1), (2);"},
		{Name: "no from", Text: "select 1;"},
		{Name: "if not exists", Text: "CREATE TABLE IF NOT EXISTS A (B NUMBER(1));"},
		{Name: "column without comma", Text: "CREATE TABLE A (B NUMBER(1)\n    C NUMBER(2));", line: 41},
		{Name: "block without semicolon", Text: "BEGIN\nupdate A set B = 1\nEND;"},
		{Name: "if without end", Text: "BEGIN\nIF SQL%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-20001, 'x');\nEND;"},
		{Name: "open literal", Text: "select A from B where C = 'x;"},
	}
	found := parseAll(t, list)
	for _, p := range list {
		if !slices.ContainsFunc(found, func(e string) bool { return strings.HasSuffix(e, "("+p.Name+")") }) {
			t.Errorf("nothing is found in %s:\n%s", p.Name, p.Text)
		}
	}
	if at := "column:42:5: mismatched input 'C' (column without comma)"; !slices.Contains(found, at) {
		t.Errorf("%q is not in\n%s", at, strings.Join(found, "\n"))
	}
}
