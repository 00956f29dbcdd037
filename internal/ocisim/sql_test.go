package ocisim_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godror/godror"
)

const createT1 = `CREATE TABLE t1 (id NUMBER(18) NOT NULL PRIMARY KEY, n NUMBER, amt NUMBER(12,2), name VARCHAR2(50 CHAR),
	ts TIMESTAMP(6), tz TIMESTAMP(6) WITH TIME ZONE, d DATE, r RAW(200), c CLOB, b BLOB, bd BINARY_DOUBLE)`

func TestEveryTypeComesBack(t *testing.T) {
	_, db := open(t)
	exec(t, db, createT1)
	big, blob := strings.Repeat("žluťoučký ", 20000), bytes.Repeat([]byte{0, 1, 2, 255}, 50000)
	now := time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)
	const digits = "123456789012345678901234567890.12345"
	equal(t, "rows", exec(t, db, `INSERT INTO t1 (id, n, amt, name, ts, tz, d, r, c, b, bd)
		VALUES (:id, :n, :amt, :name, :ts, :tz, :d, :r, :c, :b, :bd)`,
		sql.Named("id", int64(1)), sql.Named("n", digits), sql.Named("amt", 12.5), sql.Named("name", "Jiří"),
		sql.Named("ts", now), sql.Named("tz", now), sql.Named("d", now), sql.Named("r", []byte{1, 2, 254}),
		sql.Named("c", big), sql.Named("b", blob), sql.Named("bd", 3.25)), 1)
	var id int64
	var n, name, c string
	var amt, bd float64
	var ts, tz, d time.Time
	var r, b []byte
	must(t, db.QueryRow(`SELECT id, n, amt, name, ts, tz, d, r, c, b, bd FROM t1 WHERE id = :1`, 1).
		Scan(&id, &n, &amt, &name, &ts, &tz, &d, &r, &c, &b, &bd))
	equal(t, "n", n, digits)
	equal(t, "name", name, "Jiří")
	equal(t, "ts", ts.Equal(now) && tz.Equal(now) && d.Equal(now.Truncate(time.Second)), true)
	equal(t, "numbers", amt == 12.5 && bd == 3.25 && id == 1, true)
	equal(t, "bytes", bytes.Equal(r, []byte{1, 2, 254}) && bytes.Equal(b, blob) && c == big, true)

	rows, err := db.Query(`SELECT id, c, 1 AS "lower" FROM t1`)
	must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(t, err)
	equal(t, "columns", strings.Join(columns, ","), "ID,C,lower")

	lobs, err := db.Query(`SELECT c FROM t1 WHERE id = :1`, 1, godror.LobAsReader())
	must(t, err)
	defer lobs.Close()
	var lob any
	equal(t, "a row", lobs.Next(), true)
	must(t, lobs.Scan(&lob))
	var text bytes.Buffer
	_, err = text.ReadFrom(lob.(*godror.Lob))
	must(t, err)
	equal(t, "lob", text.String() == big, true)
}

func TestEmptyStringIsNull(t *testing.T) {
	_, db := open(t)
	exec(t, db, createT1)
	exec(t, db, `INSERT INTO t1 (id, name, ts, r) VALUES (:1, :2, :3, :4)`, 2, "", nil, []byte(nil))
	var at sql.NullTime
	must(t, db.QueryRow(`SELECT ts FROM t1 WHERE id = 2 AND name IS NULL`).Scan(&at))
	equal(t, "time", at.Valid, false)
	equal(t, "= ''", one[int](t, db, `SELECT COUNT(*) FROM t1 WHERE name = ''`), 0)
	equal(t, "NULL || 'x'", one[string](t, db, `SELECT name || 'x' FROM t1 WHERE id = 2`), "x")
}

func TestStatementFailsAloneInItsTransaction(t *testing.T) {
	_, db := open(t)
	exec(t, db, createT1)
	exec(t, db, `INSERT INTO t1 (id) VALUES (1)`)
	tx := begin(t, db)
	exec(t, tx, `INSERT INTO t1 (id, name) VALUES (:1, :2)`, 10, "ten")
	for query, code := range map[string]int{
		`INSERT INTO t1 (id) VALUES (1)`:                           1,
		`INSERT INTO t1 (name) VALUES ('x')`:                       1400,
		`UPDATE t1 SET id = NULL WHERE id = 1`:                     1407,
		`SELECT * FROM nosuch`:                                     942,
		`SELECT nosuch FROM t1`:                                    904,
		`INSERT INTO t1 (id, amt) VALUES (3, 12345678901234)`:      1438,
		`SELECT 1 / (id - 1) FROM t1`:                              1476,
		`INSERT INTO t1 (id, name) VALUES (3, LPAD('x', 60, 'x'))`: 12899,
		`ROLLBACK TO SAVEPOINT never`:                              1086,
	} {
		_, err := tx.Exec(query)
		wantCode(t, err, code)
	}
	exec(t, tx, `INSERT INTO t1 (id, name) VALUES (:1, :2)`, 11, "eleven")
	must(t, tx.Commit())
	equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM t1`), 3)
	tx = begin(t, db)
	equal(t, "deleted", exec(t, tx, `DELETE t1`), 3)
	must(t, tx.Rollback())
	equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM t1`), 3)
}

func TestSavepointsRollBackPartOfATransaction(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	tx := begin(t, db)
	exec(t, tx, `INSERT INTO t VALUES (1)`)
	exec(t, tx, `SAVEPOINT s`)
	exec(t, tx, `INSERT INTO t VALUES (2)`)
	exec(t, tx, `ROLLBACK TO SAVEPOINT s`)
	exec(t, tx, `INSERT INTO t VALUES (3)`)
	must(t, tx.Commit())
	equal(t, "sum", one[int](t, db, `SELECT SUM(id) FROM t`), 4)
}

func TestArrays(t *testing.T) {
	_, db := open(t)
	exec(t, db, createT1)
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	ids, names, times := make([]int64, 1000), make([]string, 1000), make([]time.Time, 1000)
	for i := range ids {
		ids[i], names[i], times[i] = int64(1000+i), "n", now.Add(time.Duration(i)*time.Second)
	}
	equal(t, "rows", exec(t, db, `INSERT INTO t1 (id, name, ts) VALUES (:1, :2, :3)`, ids, names, times), 1000)
	equal(t, "time bind + interval", one[int](t, db, `SELECT COUNT(*) FROM t1 WHERE ts > :t + INTERVAL '10' SECOND`, now), 989)
	_, err := db.Exec(`INSERT INTO t1 (id, name) VALUES (:1, :2)`, []int64{1, 1000, 2}, []string{"a", "b", "c"}, godror.PartialBatch())
	var batch *godror.BatchErrors
	if !errors.As(err, &batch) || len(batch.Affected) != 2 || batch.Unaffected[0] != 1 {
		t.Errorf("partial batch: %v", err)
	}
	tx := begin(t, db)
	_, err = tx.Exec(`INSERT INTO t1 (id) VALUES (:1)`, []int{11, 12, 13, 12, 15})
	wantCode(t, err, 1)
	must(t, tx.Commit())
	equal(t, "the rows before the failure stay", one[int](t, db, `SELECT COUNT(*) FROM t1 WHERE id BETWEEN 11 AND 15`), 3)
	rows, err := db.Query(`SELECT id FROM t1 WHERE id >= :lo ORDER BY id FETCH FIRST :lim ROWS ONLY`, sql.Named("lo", 1000), sql.Named("lim", 500))
	must(t, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	equal(t, "fetched", n, 500)
}

func TestExpressions(t *testing.T) {
	_, db := open(t)
	exec(t, db, createT1)
	exec(t, db, `INSERT INTO t1 (id, name) VALUES (10, 'ten')`)
	var id int64
	var name string
	exec(t, db, `UPDATE t1 SET name = name || '!' WHERE id = :id RETURNING id, name INTO :rid, :rn`,
		sql.Named("id", 10), sql.Named("rid", sql.Out{Dest: &id}), sql.Named("rn", sql.Out{Dest: &name}))
	equal(t, "RETURNING INTO", id == 10 && name == "ten!", true)
	exec(t, db, `CREATE SEQUENCE s1 START WITH 5 CACHE 100 NOORDER`)
	equal(t, "sequence", one[int](t, db, `SELECT s1.NEXTVAL FROM dual`), 5)
	at := one[time.Time](t, db, `SELECT SYSTIMESTAMP + NUMTODSINTERVAL(:s, 'SECOND') FROM dual`, 36_000)
	equal(t, "interval", time.Until(at).Round(time.Hour), 10*time.Hour)
	at = one[time.Time](t, db, `SELECT SYSDATE + 10/24 FROM dual`)
	equal(t, "10/24 of a day", time.Until(at).Round(time.Hour), 10*time.Hour)
	equal(t, "bind in a select list", one[int](t, db, `SELECT :x FROM dual`, 42), 42)
	exec(t, db, `MERGE INTO t1 t USING (SELECT :1 AS id FROM dual) s ON (t.id = s.id)
		WHEN MATCHED THEN UPDATE SET amt = 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)`, 77)
	equal(t, "merged", one[int](t, db, `SELECT COUNT(*) FROM t1 WHERE id = 77`), 1)
}

func TestLocks(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY)`)
	exec(t, db, `INSERT INTO t VALUES (:1)`, []int{1, 2, 3})
	const next = `SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED`
	a, b := begin(t, db), begin(t, db)
	var x, y int
	must(t, a.QueryRow(next, godror.PrefetchCount(1), godror.FetchArraySize(1)).Scan(&x))
	must(t, b.QueryRow(next, godror.PrefetchCount(1), godror.FetchArraySize(1)).Scan(&y))
	equal(t, "skip locked", x*10+y, 12)
	wantCode(t, b.QueryRow(`SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT`).Scan(&y), 54)
	from := time.Now()
	wantCode(t, b.QueryRow(`SELECT id FROM t WHERE id = 1 FOR UPDATE WAIT 1`).Scan(&y), 30006)
	equal(t, "waited", time.Since(from) > 900*time.Millisecond, true)
}

// Blocks lock rows in loops that do nothing; an error says in which line.
func TestLocksOfBlocks(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, n NUMBER(10))`)
	exec(t, db, `INSERT INTO t (id) VALUES (:1)`, []int{1, 2, 3})
	a, b := begin(t, db), begin(t, db)
	exec(t, a, `UPDATE t SET n = 1 WHERE id = 2`)
	const block = "BEGIN\nFOR L IN (select 1\nfrom t\nwhere id = :1\nfor update nowait) LOOP NULL; END LOOP;\n" +
		"FOR L IN (select 1\nfrom t where id = :2 for update %s) LOOP NULL; END LOOP;\nupdate t set n = 2 where id in (:1, :2);\n:3 := SQL%%ROWCOUNT;\nEND;"
	n := 0
	try := func(how string, first, second int) error {
		_, err := b.Exec(fmt.Sprintf(block, how), first, second, sql.Out{Dest: &n})
		return err
	}
	for _, k := range []struct {
		how                       string
		first, second, code, line int
	}{{"nowait", 1, 2, 54, 6}, {"nowait", 2, 1, 54, 2}, {"wait 1", 1, 2, 30006, 6}} {
		err := try(k.how, k.first, k.second)
		wantCode(t, err, k.code)
		if want := fmt.Sprintf("ORA-06512: at line %d", k.line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; %s", k.how, err, want)
		}
	}
	must(t, try("nowait", 1, 3))
	equal(t, "rows of the update, each bind given once", n, 2)
	done := make(chan error, 1)
	go func() {
		_, err := b.Exec("BEGIN\nFOR L IN (select 1 from t where id = 1 for update wait 1) LOOP NULL; END LOOP;\nupdate t set n = 3 where id = 2;\nEND;")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("the limit of a lock bounds the update behind it: %v", err)
	case <-time.After(1500 * time.Millisecond):
	}
	must(t, a.Rollback())
	must(t, <-done)
	must(t, begin(t, db).Commit())
}

func TestDeadlockEndsOneStatement(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, n NUMBER(10))`)
	exec(t, db, `INSERT INTO t (id) VALUES (:1)`, []int{1, 2})
	a, b := begin(t, db), begin(t, db)
	exec(t, a, `UPDATE t SET n = 1 WHERE id = 1`)
	exec(t, b, `UPDATE t SET n = 1 WHERE id = 2`)
	done := make(chan error, 2)
	cross := func(tx *sql.Tx, id int) {
		_, err := tx.Exec(`UPDATE t SET n = 2 WHERE id = :1`, id)
		if err != nil {
			tx.Rollback()
		}
		done <- err
	}
	go cross(a, 2)
	go cross(b, 1)
	first, second := <-done, <-done
	wantCode(t, errors.Join(first, second), 60)
	equal(t, "one survives", first == nil || second == nil, true)
}

func TestCancellation(t *testing.T) {
	_, db := open(t)
	for _, cancelAfter := range []func() (context.Context, context.CancelFunc){
		func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 300*time.Millisecond)
		},
		func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(200*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := cancelAfter()
		from := time.Now()
		_, err := db.ExecContext(ctx, `BEGIN DBMS_SESSION.SLEEP(60); END;`)
		cancel()
		equal(t, "cancelled in time", err != nil && time.Since(from) < 40*time.Second, true)
	}
	must(t, db.Ping())
}
