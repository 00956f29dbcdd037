package ocisim_test

import (
	"database/sql"
	"strings"
	"testing"
)

// TestLongValuesAreTakenWhereOracleTakesThem: each side of each length.
func TestLongValuesAreTakenWhereOracleTakesThem(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10), name VARCHAR2(4000), c CLOB, b BLOB)`)
	exec(t, db, `INSERT INTO t (id, name) VALUES (1, 'a')`)
	text := func(n int) string { return strings.Repeat("x", n) }
	raw := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct {
		query string
		arg   any
		code  int
	}{
		{`INSERT INTO t (id, b) VALUES (2, :1)`, raw(40_000), 0},
		{`INSERT INTO t (id, c) VALUES (2, :1)`, text(40_000), 0},
		{`UPDATE t SET b = :1 WHERE id = 1`, raw(40_000), 0},
		{`UPDATE t SET c = :1, name = 'b' WHERE id = 1`, text(40_000), 0},
		{`INSERT INTO t (id, b) SELECT 3, :1 FROM dual`, raw(2_000), 0},
		{`INSERT INTO t (id, b) SELECT 3, :1 FROM dual`, raw(2_001), 1461},
		{`INSERT INTO t (id, b) SELECT 3, :1 FROM dual`, raw(40_000), 1461},
		{`INSERT INTO t (id, c) SELECT 3, :1 FROM dual`, text(4_000), 0},
		{`INSERT INTO t (id, c) SELECT 3, :1 FROM dual`, text(4_001), 1461},
		{`SELECT id FROM t WHERE name = :1`, text(4_001), 1461},
		{`UPDATE t SET id = 4 WHERE name = :1`, text(4_001), 1461},
		{`INSERT INTO t (id, name) VALUES (5, CAST(:1 AS VARCHAR2(4000)))`, text(4_001), 1461},
		{`BEGIN INSERT INTO t (id, b) VALUES (6, :1); END;`, raw(32_767), 0},
		{`BEGIN INSERT INTO t (id, b) VALUES (6, :1); END;`, raw(40_000), 0}, // the driver makes it a temporary LOB
		{`BEGIN INSERT INTO t (id, b) SELECT 6, :1 FROM dual; END;`, raw(2_000), 0},
		{`BEGIN INSERT INTO t (id, b) SELECT 6, :1 FROM dual; END;`, raw(2_001), 1460},
		{`BEGIN IF 1 = 1 THEN UPDATE t SET id = 7 WHERE name = :1; END IF; END;`, text(4_001), 1460},
		{`BEGIN UPDATE t SET id = CASE WHEN id = 1 THEN 1 ELSE id END WHERE name = :1; END;`, text(4_001), 1460},
	} {
		_, err := db.Exec(c.query, c.arg)
		if c.code == 0 {
			must(t, err)
			continue
		}
		t.Run(c.query, func(t *testing.T) { wantCode(t, err, c.code) })
	}
	if _, err := db.Exec(`BEGIN :1 := 'x'; END;`, sql.Out{Dest: new(string)}); err != nil {
		t.Error(err)
	}
}

// TestALongValueComesLast: after a LOB no text may come that could be long.
func TestALongValueComesLast(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10), name VARCHAR2(4000), b BLOB)`)
	lob, short, expanded := make([]byte, 5_000), strings.Repeat("x", 1_000), strings.Repeat("x", 1_001) // the driver asks for four bytes each
	for _, c := range []struct {
		query string
		args  []any
		code  int
	}{
		{`INSERT INTO t (id, name, b) VALUES (1, :1, :2)`, []any{expanded, lob}, 0},
		{`INSERT INTO t (id, b, name) VALUES (1, :1, :2)`, []any{lob, short}, 0},
		{`INSERT INTO t (id, b, name) VALUES (1, :1, :2)`, []any{lob, expanded}, 24816},
		{`INSERT INTO t (id, b, name) VALUES (1, :1, :2)`, []any{make([]byte, 4_000), expanded}, 0},
		{`UPDATE t SET b = :1 WHERE name = :2`, []any{lob, expanded}, 24816},
		{`UPDATE t SET b = :1 WHERE name = :2`, []any{lob, short}, 0},
	} {
		_, err := db.Exec(c.query, c.args...)
		if c.code == 0 {
			must(t, err)
			continue
		}
		t.Run(c.query, func(t *testing.T) { wantCode(t, err, c.code) })
	}
}
