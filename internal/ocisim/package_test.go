package ocisim_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/godror/godror"
)

const specification = `CREATE OR REPLACE PACKAGE tally AUTHID DEFINER AS
  -- Codes.
  bad CONSTANT PLS_INTEGER := -20801;
  FUNCTION add(p_id IN OUT VARCHAR2, p_n IN NUMBER DEFAULT 1, p_body IN VARCHAR2 DEFAULT '{}') RETURN RAW;
  FUNCTION total RETURN NUMBER;
  PROCEDURE clear(p_count OUT NUMBER);
END tally;`

const body = `CREATE OR REPLACE PACKAGE BODY tally AS
  c_max CONSTANT PLS_INTEGER := 100;

  PROCEDURE fail(p_text IN VARCHAR2) IS
  BEGIN
    RAISE_APPLICATION_ERROR(bad, 'TALLY: ' || p_text);
  END fail;

  FUNCTION add(p_id IN OUT VARCHAR2, p_n IN NUMBER DEFAULT 1, p_body IN VARCHAR2 DEFAULT '{}') RETURN RAW IS
    v_list JSON_ARRAY_T;
    v_text CLOB := '[' || p_body || ']';
    v_left INTERVAL DAY(9) TO SECOND(6) := SYSTIMESTAMP - SYSTIMESTAMP;
  BEGIN
    IF p_n > c_max THEN
      fail('more than ' || c_max);
    END IF;
    IF v_text IS JSON STRICT THEN
      v_list := JSON_ARRAY_T.PARSE(v_text);
    ELSE
      fail('no JSON');
    END IF;
    IF v_list.GET_SIZE <> 1 OR NOT v_list.GET(0).IS_OBJECT THEN
      fail('no object');
    END IF;
    p_id := NVL(p_id, 'new');
    INSERT INTO counted (id, n) VALUES (p_id, p_n);
    RETURN UTL_RAW.CAST_TO_RAW(p_id || p_n);
  EXCEPTION
    WHEN VALUE_ERROR THEN
      fail('too long');
  END add;

  FUNCTION total RETURN NUMBER IS
    v NUMBER;
  BEGIN
    SELECT NVL(SUM(n), 0) INTO v FROM counted;
    RETURN v;
  END;

  PROCEDURE clear(p_count OUT NUMBER) IS
  BEGIN
    DELETE FROM counted;
    p_count := SQL%ROWCOUNT;
  END clear;
END tally;`

func TestPackageRunsWithTheOwnersRights(t *testing.T) {
	d, db := open(t)
	exec(t, db, `CREATE TABLE counted (id VARCHAR2(30 CHAR), n NUMBER(10))`)
	_, err := db.Exec(body)
	wantCode(t, err, 4043) // no specification
	for range 2 {
		exec(t, db, specification)
		exec(t, db, body)
		exec(t, db, body)
	}
	must(t, d.CreateUser(t.Context(), "client"))
	client := connect(t, d.UserDSN("client"))
	const call = `BEGIN :r := APP.TALLY.ADD(p_id => :id, p_n => :n); END;`
	var id string
	var r []byte
	args := func(n int) []any {
		return []any{sql.Named("r", sql.Out{Dest: &r}), sql.Named("id", sql.Out{Dest: &id, In: true}), sql.Named("n", n)}
	}
	_, err = client.Exec(call, args(1)...)
	equal(t, "not granted", err != nil, true)
	exec(t, db, `GRANT EXECUTE ON tally TO client`)
	_, err = client.Exec(`INSERT INTO app.counted VALUES ('x', 1)`)
	wantCode(t, err, 1031)

	tx := begin(t, client)
	_, err = tx.Exec(call, args(7)...)
	must(t, err)
	equal(t, "result", string(r)+","+id, "new7,new")
	must(t, tx.Rollback())
	equal(t, "rolled back", one[int](t, db, `SELECT tally.total() FROM dual`), 0)
	_, err = client.Exec(call, args(5)...)
	must(t, err)
	var n int
	_, err = client.Exec(`BEGIN :n := APP.TALLY.TOTAL(); END;`, sql.Out{Dest: &n})
	must(t, err)
	equal(t, "total", n, 5)
	_, err = client.Exec(call, args(1000)...)
	wantCode(t, err, 20801)
	equal(t, "text", strings.Contains(err.Error(), "TALLY: more than 100"), true)
	_, err = client.Exec(`BEGIN :r := APP.TALLY.ADD(p_id => :id, p_body => '[]'); END;`, args(0)[:2]...)
	wantCode(t, err, 20801)
	exec(t, db, `BEGIN tally.clear(:1); END;`, sql.Out{Dest: &n})
	equal(t, "cleared", n, 1)
}

func TestPackageBodyMustFitItsSpecification(t *testing.T) {
	_, db := open(t)
	exec(t, db, specification)
	other := strings.ReplaceAll(body, "p_n IN NUMBER DEFAULT 1", "p_n IN NUMBER DEFAULT 2")
	_, err := db.Exec(other, godror.WarningAsError())
	wantCode(t, err, 24344)
	exec(t, db, other) // unless it is asked for, the driver does not tell
	equal(t, "what", one[string](t, db, `SELECT type || ' ' || name || ': ' || SUBSTR(text, 1, 9) FROM user_errors`), "PACKAGE BODY TALLY: PLS-00323")
	equal(t, "status", one[string](t, db, `SELECT status FROM user_objects WHERE object_name = 'TALLY' AND object_type = 'PACKAGE BODY'`), "INVALID")
	_, err = db.Exec(`BEGIN tally.clear(:1); END;`, sql.Out{Dest: new(int)})
	wantCode(t, err, 6550)
	exec(t, db, `CREATE TABLE counted (id VARCHAR2(30 CHAR), n NUMBER(10))`)
	exec(t, db, body)
	equal(t, "mended", one[int](t, db, `SELECT COUNT(*) FROM user_errors`), 0)
}

func TestScriptsOfADBA(t *testing.T) {
	d, db := open(t)
	for _, s := range []string{
		`CREATE USER own NO AUTHENTICATION DEFAULT TABLESPACE users QUOTA UNLIMITED ON users`,
		`GRANT CREATE SESSION, CREATE TABLE TO own`,
		`GRANT EXECUTE ON SYS.DBMS_AQADM TO own`,
		`CREATE USER run NO AUTHENTICATION`,
		`CREATE ROLE application`,
		`GRANT application TO run WITH ADMIN OPTION`,
		`GRANT SELECT ON SYS.V_$MYSTAT TO run`,
	} {
		exec(t, db, s)
	}
	_, err := db.Exec(`CREATE USER own IDENTIFIED BY "x"`)
	wantCode(t, err, 1920)
	_, err = db.Exec(`CREATE ROLE application`)
	wantCode(t, err, 1921)
	owner := connect(t, d.UserDSN("own"))
	for _, s := range []string{
		`CREATE TABLE t (id NUMBER(19) GENERATED ALWAYS AS IDENTITY, name VARCHAR2(20 CHAR) DEFAULT 'x' NOT NULL ENABLE,
			CONSTRAINT t_pk PRIMARY KEY (id) USING INDEX TABLESPACE users INITRANS 8) TABLESPACE users PCTFREE 20
			LOB (x) STORE AS SECUREFILE`,
		`CREATE INDEX t_name ON t (name) TABLESPACE users INITRANS 4 ONLINE`,
		`ALTER TABLE t ADD (a NUMBER(5), b RAW(16))`,
		`ALTER TABLE t MODIFY (name NULL)`,
		`INSERT INTO t (name) VALUES (NULL)`,
		`DELETE FROM t`,
		`COMMENT ON TABLE t IS 'a table'`,
		`COMMENT ON COLUMN t.a IS 'a column'`,
		`CREATE OR REPLACE VIEW v AS SELECT id, name FROM t WITH READ ONLY`,
		`COMMENT ON TABLE v IS 'a view'`,
		`GRANT SELECT, INSERT ON t TO application`,
		`GRANT SELECT ON v TO run`,
		`BEGIN DBMS_AQADM.CREATE_QUEUE_TABLE('QT', 'RAW'); DBMS_AQADM.CREATE_QUEUE('Q', 'QT'); DBMS_AQADM.START_QUEUE('Q'); END;`,
	} {
		exec(t, owner, s)
	}
	runner := connect(t, d.UserDSN("run"))
	exec(t, runner, `INSERT INTO own.t (name) VALUES ('y')`)
	equal(t, "view", one[string](t, runner, `SELECT name FROM own.v`), "y")
	_, err = runner.Exec(`DELETE FROM own.t`)
	wantCode(t, err, 1031)
	equal(t, "comment", one[string](t, owner, `SELECT comments FROM user_tab_comments WHERE table_name = 'V'`), "a view")
	equal(t, "queues", one[int](t, owner, `SELECT COUNT(*) FROM user_queues WHERE name = 'Q' AND enqueue_enabled = '  YES  '`), 1)
	exec(t, owner, `DROP TABLE t CASCADE CONSTRAINTS PURGE`)
	exec(t, db, `DROP USER run CASCADE`)
}
