package oracle

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lack is something of Oracle's that we use and IvorySQL has not. What we say is
// put in its words before it runs there; the probe shows that this is needed still.
type lack struct {
	what   string // as docs/oracle.md has it
	ours   *regexp.Regexp
	theirs string // empty = it is left out
	probe  string // a text that Oracle takes
	says   string // what IvorySQL says to it
}

// lacks are all of them: one that no text needs, or IvorySQL has learned, fails a
// test.
var lacks = []lack{
	{"`CREATE USER … NO AUTHENTICATION`, tablespaces, quotas: a user there is a role and a schema",
		regexp.MustCompile(`(CREATE USER (\w+)) NO AUTHENTICATION(?: DEFAULT TABLESPACE \w+ QUOTA UNLIMITED ON \w+)?`),
		"$1 LOGIN; CREATE SCHEMA AUTHORIZATION $2; GRANT USAGE ON SCHEMA $2 TO PUBLIC",
		"CREATE USER AQUEDUCT_PROBE NO AUTHENTICATION", `syntax error at or near "NO"`},
	{"system privileges: `CREATE SESSION`, `CREATE TABLE` and so on",
		regexp.MustCompile(`GRANT CREATE SESSION.* TO (\w+)`), "GRANT CONNECT ON DATABASE AQUEDUCT TO $1",
		"GRANT CREATE SESSION TO AQUEDUCT", `syntax error at or near "SESSION"`},
	{"packages with record types, as `DBMS_AQ` is: its stub is a schema, with types and procedures",
		regexp.MustCompile(`GRANT EXECUTE ON SYS\.(\w+)`), "GRANT USAGE ON SCHEMA $1",
		"CREATE PACKAGE AQUEDUCT_PROBE IS TYPE R IS RECORD (A NUMBER); END;", `type "r" does not exist`},
	{"`GRANT EXECUTE ON` a package without the word `PACKAGE`",
		regexp.MustCompile(`GRANT EXECUTE ON (AQUEDUCT_\w+)`), "GRANT EXECUTE ON PACKAGE $1",
		"GRANT EXECUTE ON AQUEDUCT.AQUEDUCT_API TO AQUEDUCT_RUN", "does not exist"},
	{"`GRANT SELECT ON` a sequence: its `NEXTVAL` wants `USAGE`",
		regexp.MustCompile(`GRANT SELECT ON (WF_\w+_SEQ)`), "GRANT USAGE ON SEQUENCE $1",
		"CREATE SEQUENCE AQUEDUCT.PROBE_SEQ; GRANT SELECT ON AQUEDUCT.PROBE_SEQ TO AQUEDUCT_RUN; SET ROLE AQUEDUCT_RUN; SELECT PROBE_SEQ.NEXTVAL FROM DUAL",
		"permission denied for sequence probe_seq"},
	{"`SELECT … FOR UPDATE` with the right to `SELECT` alone: there it wants `UPDATE`",
		regexp.MustCompile(`GRANT (SELECT, (?:INSERT, )?DELETE) ON`), "GRANT $1, UPDATE ON",
		"CREATE TABLE AQUEDUCT.PROBE (A NUMBER); GRANT SELECT, DELETE ON AQUEDUCT.PROBE TO AQUEDUCT_RUN; SET ROLE AQUEDUCT_RUN; SELECT A FROM AQUEDUCT.PROBE FOR UPDATE NOWAIT",
		"permission denied for table probe"},
	{"`AUTHID DEFINER` of a package: calls have the rights of the caller, so that the owner calls",
		regexp.MustCompile(`AUTHID DEFINER`), "AUTHID DEFINER",
		"CREATE PACKAGE PROBE AUTHID DEFINER IS PROCEDURE P(N NUMBER); END; CREATE PACKAGE BODY PROBE IS PROCEDURE P(N NUMBER) IS BEGIN " +
			"DELETE FROM AQUEDUCT.WF_AUDIT; END; END; GRANT EXECUTE ON PACKAGE PROBE TO AQUEDUCT_RUN; SET ROLE AQUEDUCT_RUN; BEGIN AQUEDUCT.PROBE.P(1); END;",
		"permission denied for table wf_audit"},
	{"`PCTFREE`, `INITRANS`, `LOB … STORE AS`: how rows and large values lie in blocks",
		regexp.MustCompile(`(?m)^(?:(?:PCTFREE \d+ )?INITRANS \d+(?: LOB \([A-Z_, ]+\) STORE AS \(CACHE\))?|LOB \([A-Z_, ]+\) STORE AS \(CACHE\))$`), "",
		"CREATE TABLE AQUEDUCT_PROBE (A NUMBER(1)) INITRANS 8", `syntax error at or near "INITRANS"`},
	{"`ALTER TABLE … ADD` of several columns at once: each has a statement",
		regexp.MustCompile(`ALTER TABLE (\w+) ADD \(\n  ([^\n]+),\n  ([^\n]+),\n  ([^\n]+),\n  ([^\n]+),\n  ([^\n]+),\n  ([^\n]+)\n\)`),
		"ALTER TABLE $1 ADD $2; ALTER TABLE $1 ADD $3; ALTER TABLE $1 ADD $4; ALTER TABLE $1 ADD $5; ALTER TABLE $1 ADD $6; ALTER TABLE $1 ADD $7",
		"CREATE TABLE AQUEDUCT_PROBE (A NUMBER(1)); ALTER TABLE AQUEDUCT_PROBE ADD (B NUMBER(1), C NUMBER(1))", `syntax error at or near ","`},
	{"`ALTER TABLE … MODIFY (… NULL)`: there it is `DROP NOT NULL`",
		regexp.MustCompile(`(ALTER TABLE \w+) MODIFY \((\w+) NULL\)`), "$1 ALTER COLUMN $2 DROP NOT NULL",
		"CREATE TABLE AQUEDUCT_PROBE (A NUMBER(1) NOT NULL); ALTER TABLE AQUEDUCT_PROBE MODIFY (A NULL)", `syntax error at or near "NULL"`},
	{"`FORMAT JSON` on a `BLOB`: a stub decodes it",
		regexp.MustCompile(`(JSON_(?:VALUE|QUERY))\(([\w.]+) FORMAT JSON,`), "$1(SYS.STUB_JSON($2),",
		"SELECT JSON_VALUE(CAST(HEXTORAW('7b7d') AS BLOB) FORMAT JSON, '$.a') FROM DUAL", "cannot cast type blob to jsonb"},
	{"`IS JSON STRICT`: its JSON is always strict",
		regexp.MustCompile(` IS JSON STRICT`), " IS JSON",
		"SELECT CASE WHEN '[]' IS JSON STRICT THEN 1 END FROM DUAL", `syntax error at or near "STRICT"`},
	{"methods of object types: `GET(0).IS_OBJECT` of a `JSON_ARRAY_T` is a function of the stub",
		regexp.MustCompile(`v_list\.GET\(0\)\.IS_OBJECT`), "JSON_ARRAY_T.IS_OBJECT(v_list, 0)",
		"DECLARE L JSON_ARRAY_T := JSON_ARRAY_T.PARSE('[{}]'); BEGIN IF L.GET(0).IS_OBJECT THEN NULL; END IF; END;", ""},
	{"`GET_STRING` of a `JSON_ARRAY_T`, in the same way",
		regexp.MustCompile(`v_allowed\.GET_STRING\(i\)`), "JSON_ARRAY_T.GET_STRING(v_allowed, i)",
		"DECLARE L JSON_ARRAY_T := JSON_ARRAY_T.PARSE('[\"a\"]'); BEGIN IF L.GET_STRING(0) = 'a' THEN NULL; END IF; END;", ""},
	{"`DUP_VAL_ON_INDEX`: there it is `UNIQUE_VIOLATION`",
		regexp.MustCompile(`\bDUP_VAL_ON_INDEX\b`), "UNIQUE_VIOLATION",
		"BEGIN NULL; EXCEPTION WHEN DUP_VAL_ON_INDEX THEN NULL; END;", `unrecognized exception condition "dup_val_on_index"`},
	{"`SELECT … INTO` raises no `NO_DATA_FOUND` unless it says `STRICT`",
		regexp.MustCompile(`\bINTO (v_\w+)`), "INTO STRICT $1",
		"DECLARE V NUMBER; BEGIN SELECT 1 INTO V FROM DUAL WHERE 1 = 0; RAISE EXCEPTION 'it went on'; EXCEPTION WHEN NO_DATA_FOUND THEN NULL; END;",
		"it went on"},
	{"`SQL%ROWCOUNT`: there it is `FOUND`",
		regexp.MustCompile(`SQL%ROWCOUNT = 0`), "NOT FOUND",
		"BEGIN DELETE FROM DUAL WHERE 1 = 0; IF SQL%ROWCOUNT = 0 THEN NULL; END IF; END;", ""},
	{"`SQL%ROWCOUNT` as a number: there it is `GET DIAGNOSTICS`",
		regexp.MustCompile(`(\w+) := SQL%ROWCOUNT`), "GET DIAGNOSTICS $1 = ROW_COUNT",
		"DECLARE V NUMBER; BEGIN DELETE FROM DUAL WHERE 1 = 0; V := SQL%ROWCOUNT; END;", ""},
	{"`FOR UPDATE WAIT 5`: it waits without an end",
		regexp.MustCompile(`(?i)(for update) wait \d+`), "$1",
		"SELECT DUMMY FROM DUAL FOR UPDATE WAIT 5", `syntax error at or near "WAIT"`},
	{"`LOCK TABLE … WAIT 1`: it waits without an end",
		regexp.MustCompile(`(lock table \w+ in exclusive mode) wait \d+`), "$1",
		"LOCK TABLE WF_NODES IN EXCLUSIVE MODE WAIT 1", `syntax error at or near "WAIT"`},
	{"`COMMIT WRITE WAIT`",
		regexp.MustCompile(`COMMIT WRITE WAIT`), "COMMIT",
		"COMMIT WRITE WAIT", `syntax error at or near "WRITE"`},
	{"`$$PLSQL_UNIT_OWNER` and other inquiry directives",
		regexp.MustCompile(`\$\$PLSQL_UNIT_OWNER`), "'AQUEDUCT'",
		"BEGIN IF $$PLSQL_UNIT_OWNER = 'A' THEN NULL; END IF; END;", ""},
}

// ivoryTexts are the texts that run on IvorySQL.
func ivoryTexts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"00_users", "10_tables", "20_queues", "30_views", "40_package", "45_admin", "50_grants", "90_uninstall", "install", "upgrade/2", "upgrade_2"} {
		raw, err := scripts.ReadFile("schema/" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
	for _, p := range statementTexts(t) {
		b.WriteString(p.Text + "\n")
	}
	return strings.ReplaceAll(b.String(), "&", "")
}

// docs/oracle.md lists what IvorySQL lacks; each of it is something that we say.
func TestWhatIvorySQLLacksIsOursAndInTheDocs(t *testing.T) {
	t.Parallel()
	all := ivoryTexts(t)
	var want []string
	for _, l := range lacks {
		want = append(want, l.what)
		if !l.ours.MatchString(all) {
			t.Errorf("no text says %s: the entry is not needed", l.what)
		}
	}
	raw, err := os.ReadFile("../../docs/oracle.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "What IvorySQL lacks, and how it runs all the same:\n\n")
	section, _, ended := strings.Cut(section, "\n\n")
	if !found || !ended {
		t.Fatal("docs/oracle.md has no list of what IvorySQL lacks")
	}
	var got []string
	for _, item := range strings.Split("\n"+section, "\n- ")[1:] {
		got = append(got, strings.Join(strings.Fields(item), " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/oracle.md lists\n%s\nand the tests know\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
