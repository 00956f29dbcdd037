package ocisim_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"
)

func TestBlockOfStatements(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, name VARCHAR2(30 CHAR), at TIMESTAMP(6), body BLOB)`)
	var n, m int64
	const block = `BEGIN
	  INSERT INTO t (id, name, at, body) VALUES (:id, :name, :at, :body);
	  INSERT INTO t (id, name) SELECT :id + 1, :name FROM dual;
	  UPDATE t SET name = name || '!' WHERE id >= :id;
	  :n := SQL%ROWCOUNT;
	  DELETE FROM t WHERE id = -1;
	  :m := SQL%ROWCOUNT;
	END;`
	body := strings.Repeat("long ", 20000)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	run := func(on interface {
		Exec(string, ...any) (sql.Result, error)
	}, id int) error {
		_, err := on.Exec(block, sql.Named("id", id), sql.Named("name", "x"), sql.Named("at", at), sql.Named("body", []byte(body)),
			sql.Named("n", sql.Out{Dest: &n}), sql.Named("m", sql.Out{Dest: &m}))
		return err
	}
	must(t, run(db, 1))
	equal(t, "row counts", n*10+m, 20)
	equal(t, "body", string(one[[]byte](t, db, `SELECT body FROM t WHERE id = 1`)), body)
	equal(t, "time", one[time.Time](t, db, `SELECT at FROM t WHERE id = 1`).Equal(at), true)

	tx := begin(t, db)
	exec(t, tx, `INSERT INTO t (id) VALUES (10)`)
	wantCode(t, run(tx, 2), 1) // the second insert would pass, the first fails
	must(t, tx.Commit())
	equal(t, "a failed block leaves nothing", one[int](t, db, `SELECT COUNT(*) FROM t`), 3)
}

func TestBlockBindsByPosition(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10), name VARCHAR2(30 CHAR))`)
	var n int
	_, err := db.Exec(`BEGIN INSERT INTO t (id, name) VALUES (:1, :2); UPDATE t SET name = :2 || 'y' WHERE id = :1; :3 := SQL%ROWCOUNT; END;`,
		7, "x", sql.Out{Dest: &n})
	must(t, err)
	equal(t, "name", one[string](t, db, `SELECT name FROM t`), "xy")
	equal(t, "n", n, 1)
	_, err = db.Exec(`BEGIN INSERT INTO t (id, name) VALUES (:1, :2); END;`, 8, nil)
	must(t, err)
	_, err = db.Exec(`BEGIN UPDATE t SET name = 'z' WHERE id = :1;
		IF SQL%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-20001, 'no row ' || :1); END IF; END;`, 99)
	wantCode(t, err, 20001)
	equal(t, "text", strings.Contains(err.Error(), "no row 99"), true)
}

func TestBlockControl(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, name VARCHAR2(30 CHAR))`)
	var out string
	_, err := db.Exec(`DECLARE
	  v_n NUMBER(10) := 0;
	  v_name t.name%TYPE;
	BEGIN
	  FOR i IN 1..3 LOOP
	    INSERT INTO t (id, name) VALUES (i, 'n' || i);
	    v_n := v_n + SQL%ROWCOUNT;
	  END LOOP;
	  FOR r IN (SELECT id FROM t ORDER BY id) LOOP
	    v_n := v_n + r.id;
	  END LOOP;
	  SELECT name INTO v_name FROM t WHERE id = 2;
	  IF v_n = 9 AND v_name = 'n2' THEN
	    :out := 'right';
	  ELSIF v_n > 9 THEN
	    :out := 'many';
	  ELSE
	    :out := CASE WHEN v_name IS NULL THEN 'none' ELSE 'wrong' END;
	  END IF;
	  BEGIN
	    SELECT name INTO v_name FROM t WHERE id = 99;
	  EXCEPTION
	    WHEN NO_DATA_FOUND THEN
	      :out := :out || ', not found';
	  END;
	END;`, sql.Named("out", sql.Out{Dest: &out}))
	must(t, err)
	equal(t, "out", out, "right, not found")
	_, err = db.Exec(`DECLARE v NUMBER; BEGIN SELECT id INTO v FROM t; END;`)
	wantCode(t, err, 1422)
	_, err = db.Exec(`BEGIN INSERT INTO t VALUES (20, 'a'); INSERT INTO t VALUES (1, 'b'); EXCEPTION WHEN DUP_VAL_ON_INDEX THEN NULL; END;`)
	wantCode(t, err, 20998) // would be undone as a whole here
	exec(t, db, `BEGIN EXECUTE IMMEDIATE 'CREATE TABLE t (id NUMBER)'; EXCEPTION WHEN OTHERS THEN IF SQLCODE <> -955 THEN RAISE; END IF; END;`)
}

func TestBlockEnqueues(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 100)
	const block = `DECLARE
	  v_options DBMS_AQ.ENQUEUE_OPTIONS_T;
	  v_message DBMS_AQ.MESSAGE_PROPERTIES_T;
	BEGIN
	  v_options.visibility := DBMS_AQ.ON_COMMIT;
	  v_message.priority := 3;
	  v_message.expiration := DBMS_AQ.NEVER;
	  DBMS_AQ.ENQUEUE(queue_name => 'Q', enqueue_options => v_options, message_properties => v_message, payload => :body, msgid => :id);
	END;`
	var id []byte
	for _, commit := range []bool{false, true} {
		tx := begin(t, db)
		_, err := tx.Exec(block, sql.Named("body", []byte("from a block")), sql.Named("id", sql.Out{Dest: &id}))
		must(t, err)
		if commit {
			must(t, tx.Commit())
		} else {
			must(t, tx.Rollback())
		}
	}
	m, ok := take(t, db, "Q", waiting(0), true)
	equal(t, "there", ok && string(m.Raw) == "from a block" && m.Priority == 3, true)
	equal(t, "id", string(id), string(m.MsgID[:]))
	_, ok = take(t, db, "Q", waiting(0), true)
	equal(t, "the one rolled back", ok, false)
}
