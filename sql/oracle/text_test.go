package oracle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// The statements and scripts are checked as text, for what the stand-in lets
// pass and Oracle would not.

// reserved are Oracle's reserved words: none may name a table, column or alias.
var reserved = strings.Fields(`ACCESS ADD ALL ALTER AND ANY AS ASC AUDIT BETWEEN BY CHAR CHECK CLUSTER COLUMN COLUMN_VALUE COMMENT COMPRESS
CONNECT CREATE CURRENT DATE DECIMAL DEFAULT DELETE DESC DISTINCT DROP ELSE EXCLUSIVE EXISTS FILE FLOAT FOR FROM GRANT GROUP HAVING IDENTIFIED
IMMEDIATE IN INCREMENT INDEX INITIAL INSERT INTEGER INTERSECT INTO IS LEVEL LIKE LOCK LONG MAXEXTENTS MINUS MLSLABEL MODE MODIFY
NESTED_TABLE_ID NOAUDIT NOCOMPRESS NOT NOWAIT NULL NUMBER OF OFFLINE ON ONLINE OPTION OR ORDER PCTFREE PRIOR PUBLIC RAW RENAME RESOURCE REVOKE
ROW ROWID ROWNUM ROWS SELECT SESSION SET SHARE SIZE SMALLINT START SUCCESSFUL SYNONYM SYSDATE TABLE THEN TO TRIGGER UID UNION UNIQUE UPDATE
USER VALIDATE VALUES VARCHAR VARCHAR2 VIEW WHENEVER WHERE WITH`)

// table is a table of the scripts: its columns and their types.
type table map[string]string

var (
	createTable  = regexp.MustCompile(`(?s)^CREATE TABLE (\w+) \((.*?)\n\)(.*)$`)
	columnLine   = regexp.MustCompile(`^\s+(\w+) ([A-Z]\w*(?:\([^)]*\))?)`)
	commentLine  = regexp.MustCompile(`^COMMENT ON (?:TABLE (\w+)|COLUMN (\w+)\.(\w+)) IS '`)
	createView   = regexp.MustCompile(`(?s)^CREATE OR REPLACE VIEW (\w+) AS\n(.*)$`)
	createObject = regexp.MustCompile(`^CREATE (?:UNIQUE )?(?:INDEX|SEQUENCE) (\w+)`)
)

func allUnits(t *testing.T) []unit {
	t.Helper()
	units, err := Installation{RuntimeUser: "someone"}.units()
	if err != nil {
		t.Fatal(err)
	}
	return units
}

func tables(t *testing.T) map[string]table {
	t.Helper()
	all := map[string]table{}
	for _, u := range allUnits(t) {
		m := createTable.FindStringSubmatch(u.text)
		if m == nil {
			continue
		}
		columns := table{}
		for _, line := range strings.Split(m[2], "\n") {
			if c := columnLine.FindStringSubmatch(line); c != nil && c[1] != "CONSTRAINT" {
				columns[c[1]] = c[2]
			}
		}
		all[m[1]] = columns
	}
	return all
}

func TestSchemaNamesTypesAndComments(t *testing.T) {
	t.Parallel()
	all := tables(t)
	if len(all) < 14 {
		t.Fatalf("only %d tables", len(all))
	}
	missing := map[string]bool{}
	for name, columns := range all {
		missing[name] = true
		for column, kind := range columns {
			missing[name+"."+column] = true
			if strings.HasPrefix(kind, "DATE") || kind == "NUMBER" || strings.HasSuffix(column, "_UTC") != (kind == "TIMESTAMP(6)") {
				t.Errorf("%s.%s is a %s", name, column, kind)
			}
			if column != strings.ToUpper(column) || len(column) > 128 || slices.Contains(reserved, column) {
				t.Errorf("%s.%s is no name of a column", name, column)
			}
		}
	}
	for _, u := range allUnits(t) {
		if m := commentLine.FindStringSubmatch(u.text); m != nil {
			delete(missing, strings.Trim(m[1]+m[2]+"."+m[3], "."))
		}
		if m := createObject.FindStringSubmatch(u.text); m != nil && len(m[1]) > 128 {
			t.Errorf("%s is too long", m[1])
		}
	}
	for name := range missing {
		t.Errorf("%s has no comment", name)
	}
}

func TestViewsHaveCommentsOnEveryColumn(t *testing.T) {
	t.Parallel()
	comments, views := map[string]int{}, map[string]int{}
	for _, u := range allUnits(t) {
		if m := commentLine.FindStringSubmatch(u.text); m != nil && strings.HasPrefix(m[2], "WF_V_") {
			comments[m[2]]++
		}
		if m := createView.FindStringSubmatch(u.text); m != nil {
			head, _, _ := strings.Cut(strings.TrimPrefix(m[2], "SELECT "), "\nFROM ")
			views[m[1]] = len(splitTop(head))
		}
	}
	if len(views) != 18 || !reflect.DeepEqual(comments, views) {
		t.Errorf("columns with comment %v, columns %v", comments, views)
	}
}

// splitTop splits at commas outside of parentheses.
func splitTop(s string) []string {
	var list []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, s[start:i])
				start = i + 1
			}
		}
	}
	return append(list, s[start:])
}

// TestNoObjectIsNamedAsItsOwner: who writes owner.package.function in a session of
// the owner gets the object of that name, not the schema (PLS-00302).
func TestNoObjectIsNamedAsItsOwner(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/oracle.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`@00_users\.sql (\w+) (\w+) `).FindSubmatch(page)
	if m == nil {
		t.Fatal("the page names no owner")
	}
	object := regexp.MustCompile(`^CREATE (?:OR REPLACE )?(?:UNIQUE )?(TABLE|INDEX|SEQUENCE|VIEW|PACKAGE(?: BODY)?) (\w+)`)
	seen := map[string]int{}
	for _, u := range allUnits(t) {
		if o := object.FindStringSubmatch(u.text); o != nil {
			seen[o[1]]++
			if o[2] == string(m[1]) || o[2] == string(m[2]) {
				t.Errorf("the %s %s has the name of a user", strings.ToLower(o[1]), o[2])
			}
		}
	}
	for _, kind := range []string{"TABLE", "INDEX", "SEQUENCE", "VIEW", "PACKAGE", "PACKAGE BODY"} {
		if seen[kind] == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
}

var (
	usesTable  = regexp.MustCompile(`(?i)\b(?:from|join|into|update|lock\s+table)\s+(WF_\w+)`)
	usesColumn = regexp.MustCompile(`\b([A-Z])\.([A-Z_]+)\b`)
	aliasOf    = regexp.MustCompile(`(?i)\b(?:from|join)\s+(WF_\w+)\s+([A-Z])\b`)
	upperWord  = regexp.MustCompile(`\b[A-Z][A-Z0-9_]{2,}\b`)
	viewColumn = regexp.MustCompile(`^COMMENT ON COLUMN (WF_V_\w+)\.(\w+) IS`)
	literal    = regexp.MustCompile(`'[^']*'`)
)

// words are what statements may say in upper case beside names of the schema.
var words = strings.Fields(`CAST TIMESTAMP SYSTIMESTAMP TIME ZONE NUMBER INTERVAL DAY NUMTODSINTERVAL NEXTVAL DUAL SYS_CONTEXT CASE WHEN THEN END PROCESSED NULL
WF_TASK_SEQ WF_TASK_EVENT_SEQ WF_LETTER_SEQ WF_DEFINITION_SEQ AQUEDUCT_TURN AQUEDUCT_INSIDE AQUEDUCT_STEP AT AS DB_NOW_UTC SCHEMA_NAME CRASHES
CORR_ID ALL_INDEXES ALL_OBJECTS ALL_QUEUES ALL_TAB_COLUMNS COLUMN_NAME ALL_TAB_PRIVS AQUEDUCT_API CURRENT_UTILIZATION DEQ DEQUEUE_ENABLED ENQ ENQUEUE_ENABLED GRANTEE INDEX INDEX_NAME
ISDEFAULT LETTERS LIMIT_VALUE MAX_RETRIES NAME NEW_ID NLS_DATABASE_PARAMETERS OBJECT_NAME OBJECT_TYPE OWNED OWNER PARAMETER PRIVILEGE PRODUCT
PRODUCT_COMPONENT_VERSION QUEUE_TYPE RESOURCE_LIMIT RESOURCE_NAME RETENTION RETRY_DELAY ROLE SESSION_PRIVS SESSION_ROLES SESSION_USER STATUS
TABLE_NAME TABLE_OWNER TABLE_SCHEMA TRIM VALUE VERSION WF_DLQ_QTAB READY DELAYED EXPIRED OLDEST_ON_UTC MSG_STATE ENQ_TIME QUEUE HELD HELD_SIGNAL HELD_SCHEDULE HELD_COMMAND INSTANCES SIGNALS WHAT ROW_COUNT MSG_ID USER_DATA ABOUT FOUND OTHERS AQ WF_SIGNAL_QTAB WF_SCHEDULE_QTAB WF_COMMAND_QTAB WF_DLQ_QTAB_S
NLS_SESSION_PARAMETERS USER_ERRORS TYPE LINE POSITION TEXT ATTRIBUTE SEQUENCE JSON_VALUE JSON_QUERY FORMAT JSON INSTR SENT TOKEN TOKENS SYS_EXTRACT_UTC FROM_TZ DELAY SESSIONTIMEZONE DUE_ON_UTC RETURNING CLOB TARGET ASKED PARENT CHILD SNAPSHOT_ID SNAPSHOT_VERSION
ALL_SYNONYMS SYNONYM_NAME DB_LINK ALL_PROCEDURES ALL_ARGUMENTS PROCEDURE_NAME SUBPROGRAM_ID OBJECT_ID ARGUMENT_NAME IN_OUT DATA_TYPE DEFAULTED DATA_LEVEL STANDARD_HASH MIN TARGET_ID TARGET_VERSION TARGET_KIND ITEM_NO FIRST_NO`)

func TestStatementsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	all := tables(t)
	for _, u := range allUnits(t) { // every column of a view has a comment
		if m := viewColumn.FindStringSubmatch(u.text); m != nil {
			if all[m[1]] == nil {
				all[m[1]] = table{}
			}
			all[m[1]][m[2]] = "of a view"
		}
	}
	for name, st := range statements {
		bare := literal.ReplaceAllString(st.text, "''")
		known := map[string]bool{}
		for _, m := range usesTable.FindAllStringSubmatch(bare, -1) {
			columns, ok := all[m[1]]
			if !ok {
				t.Errorf("%s: there is no table %s", name, m[1])
			}
			known[m[1]] = true
			for c := range columns {
				known[c] = true
			}
		}
		alias := map[string]table{}
		for _, m := range aliasOf.FindAllStringSubmatch(bare, -1) {
			alias[m[2]] = all[m[1]]
		}
		for _, m := range usesColumn.FindAllStringSubmatch(bare, -1) {
			if columns := alias[m[1]]; columns != nil && columns[m[2]] == "" {
				t.Errorf("%s: there is no column %s", name, m[0])
			}
		}
		withoutBinds := eachBind(bare, func(string) string { return "" })
		for _, word := range upperWord.FindAllString(withoutBinds, -1) {
			if !known[word] && !slices.Contains(words, word) {
				t.Errorf("%s: what is %s?", name, word)
			}
		}
	}
}

func TestStatementsAreOraclesAndBindOnce(t *testing.T) {
	t.Parallel()
	for name, st := range statements {
		lower := strings.ToLower(literal.ReplaceAllString(st.text, "''"))
		lower = strings.ReplaceAll(lower, " returning clob)", ")") // of JSON_QUERY
		seen := map[string]bool{}
		for _, b := range st.binds {
			if b != strings.ToUpper(b) || len(b) > 128 || slices.Contains(reserved, b) || seen[b] {
				t.Errorf("%s: bind %s is not in upper case, reserved, or stands twice", name, b)
			}
			seen[b] = true
		}
		if shape := notForUpdate(lower); shape != "" {
			t.Errorf("%s: ORA-02014, %s and for update", name, shape)
		}
		if m := regexp.MustCompile(`\b[a-z]\.\w+\s+[a-z]\.\w+`).FindString(lower); m != "" {
			t.Errorf("%s: a comma is missing in %q", name, m)
		}
		for _, word := range []string{"merge ", "select *", " limit ", "\nlimit ", "on conflict", "::", "now()", ";", "returning", " as of", "sysdate", " systimestamp,"} {
			if strings.Contains(lower, word) {
				t.Errorf("%s: %q", name, word)
			}
		}
		if regexp.MustCompile(`(?i)\b(from|join)\s+\w+\s+as\s`).MatchString(lower) {
			t.Errorf("%s: a table's alias stands without as", name)
		}
		if strings.HasPrefix(lower, "select") && !strings.Contains(lower, " from ") && !strings.Contains(lower, "\nfrom ") {
			t.Errorf("%s: select without from", name)
		}
	}
}

// What the JSON functions read here is bytes, of which Oracle wants to be told that
// they are JSON: ORA-40499.
func TestJSONInBytesSaysSo(t *testing.T) {
	t.Parallel()
	reads := regexp.MustCompile(`JSON_(?:VALUE|QUERY|EXISTS|TABLE)\(([^,]*),`)
	found := 0
	whole := regexp.MustCompile(`JSON_QUERY\([^,]*, '[^']*'(.{0,15})`)
	check := func(name, text string) {
		for _, m := range whole.FindAllStringSubmatch(text, -1) { // else null, beyond 4,000 bytes
			if !strings.HasPrefix(m[1], " RETURNING CLOB") {
				t.Errorf("%s: %s", name, m[0])
			}
		}
		for _, m := range reads.FindAllStringSubmatch(text, -1) {
			found++
			if !strings.HasSuffix(m[1], " FORMAT JSON") {
				t.Errorf("%s: %s", name, m[0])
			}
		}
	}
	for name, st := range statements {
		check(name, st.text)
	}
	for _, u := range allUnits(t) {
		check(u.script, u.text)
	}
	if found < 30 {
		t.Errorf("only %d", found)
	}
}

// locking is a select for update, as far as its own end; forUpdateRefused are
// the shapes for which Oracle cannot tell the rows to lock.
var (
	locking          = regexp.MustCompile(`(?s)\bselect\b[^;]*?\bfor update\b`)
	forUpdateRefused = regexp.MustCompile(`\b(?:distinct|unique|group by|having|fetch (?:first|next)|offset|union|intersect|minus|connect by|rownum|` +
		`(?:count|sum|min|max|avg|listagg) ?\(|over ?\(|cursor ?\()|\b(?:from|join|,) ?\(|\bwf_v_\w+`)
)

// notForUpdate returns what in a text makes Oracle refuse its FOR UPDATE with
// ORA-02014, or "".
func notForUpdate(text string) string {
	for _, s := range locking.FindAllString(strings.ToLower(text), -1) {
		if shape := forUpdateRefused.FindString(s); shape != "" {
			return shape
		}
	}
	return ""
}

func TestForUpdateNamesItsRows(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		"select A from B where C = 1 for update wait 5":                                false,
		"select distinct A from B":                                                     false,
		"select distinct A from B for update":                                          true,
		"select A from B fetch first 1 rows only for update":                           true,
		"select A from B where rownum = 1\nfor update":                                 true,
		"select max(A) from B for update":                                              true,
		"select A from (select A from B) for update":                                   true,
		"select A from WF_V_TASKS for update":                                          true,
		"select A from B union all select A from C for update":                         true,
		"begin select count(*) into x from B; select A into y from C for update; end;": false,
	} {
		if got := notForUpdate(text); (got != "") != refused {
			t.Errorf("%s: %q", text, got)
		}
	}
	for _, u := range allUnits(t) {
		if shape := notForUpdate(literal.ReplaceAllString(u.text, "''")); shape != "" {
			t.Errorf("%s, line %d: ORA-02014, %s and for update", u.script, u.line, shape)
		}
	}
}

// A large value is bound last, or behind it are keys only.
func TestLargeValuesAreBoundLast(t *testing.T) {
	t.Parallel()
	large := map[string]bool{}
	for _, columns := range tables(t) {
		for c, kind := range columns {
			if kind == "BLOB" {
				large[c] = true
			}
		}
	}
	keys := []string{"INSTANCE_ID", "EXPECTED_VERSION", "TASK_ID", "TASK_VERSION", "ACTIVITY_ID", "RUN_ID", "KNOWN_EPOCH"}
	for name, st := range statements {
		behind := false
		for _, b := range st.binds {
			if behind && !large[b] && !slices.Contains(keys, b) {
				t.Errorf("%s: %s is bound behind a large value", name, b)
			}
			behind = behind || large[b]
		}
	}
}

func TestRowsHaveTheTagsOfTheirColumns(t *testing.T) {
	t.Parallel()
	all := tables(t)
	for name, row := range map[string]any{
		"WF_INSTANCES": projections.Instance{}, "WF_STREAM": projections.Entry{}, "WF_TASKS": projections.Task{},
		"WF_TASK_EVENTS": projections.TaskEvent{}, "WF_WAITS": projections.Wait{}, "WF_ATTRIBUTES": projections.Attribute{}, "WF_DEAD_LETTERS": projections.DeadLetter{},
		"WF_DEFINITIONS": definition.Record{}, "WF_ACTIVITIES": backend.Activity{}, "WF_LETTER_EDITS": backend.DeadLetterEdit{},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(row)) {
			if tag := f.Tag.Get("db"); tag != "-" && tag != "" && all[name][tag] == "" {
				t.Errorf("%s has no column %s", name, tag)
			}
		}
	}
}

// Wherever Go names a statement, it gives as many values as there are binds.
func TestStatementsAndTheirCallersAgree(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../history/history.go") // which both stores give their statements to
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					used[s] = true
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, values := called(call)
			if st, ok := statements[name]; ok && values >= 0 && len(st.binds) != values {
				t.Errorf("%s: %s has binds %v and gets %d values", fset.Position(call.Pos()), name, st.binds, values)
			}
			return true
		})
	}
	for _, part := range []string{"stream", "task_events", "actors", "tasks", "waits", "attributes", "activities", "dead_letter_edits", "requests", "instance"} {
		used["purge_"+part] = true
	}
	for q := range queueNames {
		used["expired_"+string(q)] = true
	}
	for _, i := range survey.Invariants {
		used[invariantQuery(i.Name)] = true
	}
	for name := range statements {
		if !used[name] {
			t.Errorf("nobody uses %s", name)
		}
	}
}

// called reads a call that names a statement: add(refuse, name, values...),
// exec(ctx, name, values...), read(name, values...). A spread is not counted.
func called(call *ast.CallExpr) (name string, values int) {
	function := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		function = f.Name
	case *ast.SelectorExpr:
		function = f.Sel.Name
	}
	at, ok := map[string]int{"add": 1, "exec": 1, "read": 0}[function]
	if !ok || len(call.Args) <= at || call.Ellipsis.IsValid() {
		return "", -1
	}
	lit, ok := call.Args[at].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", -1
	}
	name, err := strconv.Unquote(lit.Value)
	if err != nil {
		return "", -1
	}
	return name, len(call.Args) - at - 1
}

func TestScriptsAreSplitAsSQLPlusDoes(t *testing.T) {
	t.Parallel()
	got := split("x.sql", "-- a\nPROMPT hello; world\n\nCREATE TABLE A (\n  B NUMBER(1) -- c\n)\n/\nBEGIN\n\n  X := 1 / 2;\nEND;\n/\n/\nWHENEVER SQLERROR EXIT\n")
	if len(got) != 2 || got[0].line != 4 || got[1].line != 8 || !strings.HasPrefix(got[1].text, "BEGIN\n\n") || !strings.HasSuffix(got[1].text, "END;") {
		t.Fatalf("%+v", got)
	}
	names, err := fs.Glob(scripts, "schema/*.sql")
	upgrades, errUpgrades := fs.Glob(scripts, "schema/upgrade/*.sql")
	if err != nil || errUpgrades != nil || len(names) != 9+len(upgrades) || len(upgrades) != schemaVersion-1 {
		t.Fatal(names, upgrades, err, errUpgrades)
	}
	names = append(names, upgrades...)
	for _, name := range names {
		raw, err := scripts.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(strings.TrimSpace(string(raw)), "/") && !strings.Contains(string(raw), "\nPROMPT Now") {
			t.Errorf("%s: its last statement is not ended", name)
		}
		for _, u := range split(name, string(raw)) {
			block := strings.HasPrefix(u.text, "BEGIN") || strings.Contains(u.text, "PACKAGE")
			if block != strings.HasSuffix(u.text, ";") && !strings.HasPrefix(u.text, "DROP") {
				t.Errorf("%s, line %d: SQL*Plus wants a semicolon after PL/SQL and none before a slash", name, u.line)
			}
			if !block && strings.Contains(u.text, "\n\n") {
				t.Errorf("%s, line %d: SQL*Plus ends a statement at an empty line", name, u.line)
			}
		}
	}
}

// Law: a moment as text is of our calendar, whatever that of the session is.
func TestMomentsAreWrittenByOneCalendar(t *testing.T) {
	t.Parallel()
	const calendar = "'NLS_CALENDAR=GREGORIAN'"
	texts := map[string]string{"the block of a dequeue": (&aq.Beside{}).Block()}
	for _, u := range allUnits(t) {
		texts[u.script] += u.text
	}
	for name, st := range statements {
		texts[name] = st.text
	}
	found := 0
	for name, text := range texts {
		for _, m := range regexp.MustCompile(`'YYYY[^']*'(.{0,40})`).FindAllStringSubmatch(text, -1) {
			if found++; !strings.HasPrefix(m[1], ", "+calendar+")") {
				t.Errorf("%s writes %s without %s", name, m[0], calendar)
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d", found)
	}
}

// Every object has its grant and its end.
func TestGrantsAndUninstallNameEveryObject(t *testing.T) {
	t.Parallel()
	grants, err := scripts.ReadFile("schema/50_grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	uninstall, err := scripts.ReadFile("schema/90_uninstall.sql")
	if err != nil {
		t.Fatal(err)
	}
	object := regexp.MustCompile(`^CREATE (?:OR REPLACE )?(TABLE|VIEW|SEQUENCE) (\w+)`)
	count := 0
	for _, u := range allUnits(t) {
		m := object.FindStringSubmatch(u.text)
		if m == nil {
			continue
		}
		count++
		if !strings.Contains(string(grants), " ON "+m[2]+" TO ") {
			t.Errorf("%s is not granted", m[2])
		}
		if !strings.Contains(string(uninstall), "DROP "+m[1]+" "+m[2]+"\n") {
			t.Errorf("%s is not removed", m[2])
		}
	}
	if count < 20 || strings.Contains(string(grants), "EXECUTE ON SYS.DBMS_AQADM") {
		t.Errorf("%d objects", count)
	}
}

// Law: a session of an application may compare texts without case (NLS_COMP = LINGUISTIC,
// by a logon trigger), and the rights of the package's owner do not change that. Who may do
// what, and which instance is meant, is compared byte by byte.
func TestThePackageComparesByteByByte(t *testing.T) {
	t.Parallel()
	raw, err := scripts.ReadFile("schema/40_package.sql")
	if err != nil {
		t.Fatal(err)
	}
	loose := regexp.MustCompile(`(?i)(?:p_user|p_consumer|p_signal_id|p_reference)\s*(?:=[^>]|<>|(?:NOT )?(?:IN \(|LIKE\b))|(?:=|<>)\s*(?:p_user|p_consumer|p_outcome)\b|p_outcome\s+(?:NOT )?IN \(`)
	for i, line := range strings.Split(string(raw), "\n") {
		if found := loose.FindString(line); found != "" {
			t.Errorf("line %d compares as the session does: %s", i+1, found)
		}
	}
	_, trigger, _ := strings.Cut(string(raw), "PACKAGE BODY")
	_, trigger, _ = strings.Cut(trigger, "FUNCTION trigger_event(")
	trigger, _, _ = strings.Cut(trigger, "RETURN start_instance(")
	for _, want := range []string{"same(I.BUSINESS_KEY, p_reference)", "same(I.DEFINITION, v_name)"} {
		if !strings.Contains(trigger, want) {
			t.Errorf("TRIGGER_EVENT takes an instance without %s", want)
		}
	}
}
