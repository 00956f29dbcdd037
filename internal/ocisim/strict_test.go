package ocisim_test

import "testing"

func TestStrict(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, name VARCHAR2(30 CHAR), at TIMESTAMP(6))`)
	for query, code := range map[string]int{
		`SELECT id FROM t LIMIT 1`:                                    933,
		`SELECT id::text FROM t`:                                      911,
		`SELECT id FROM t;`:                                           911,
		`SELECT id FROM t WHERE name ILIKE 'x'`:                       920,
		`SELECT id FROM t WHERE name ~ 'x'`:                           911,
		`SELECT id FROM t FETCH FIRST 1 ROWS ONLY FOR UPDATE`:         2014,
		`SELECT DISTINCT id FROM t FOR UPDATE`:                        2014,
		`SELECT now() FROM dual`:                                      904,
		`SELECT string_agg(name, ',') FROM t`:                         904,
		`SELECT age(at, at) FROM t`:                                   904,
		`SELECT pg_backend_pid() FROM dual`:                           904,
		`SELECT 1`:                                                    923,
		`SELECT id FROM t WHERE EXISTS (SELECT 1)`:                    923,
		`SELECT id FROM t UNION ALL SELECT 2`:                         923,
		`SELECT id = 1 FROM t`:                                        923,
		`SELECT COUNT(*) FILTER (WHERE id > 1) FROM t`:                923,
		`SELECT TRUE FROM dual`:                                       904,
		`SELECT x.id FROM t AS x`:                                     933,
		`SELECT x.id FROM (SELECT id FROM t) AS x`:                    933,
		`SELECT a.id FROM t a JOIN t AS b ON b.id = a.id`:             933,
		`UPDATE t AS x SET name = 'a'`:                                933,
		`UPDATE t SET name = s.name FROM t s WHERE s.id = t.id`:       933,
		`DELETE FROM t USING t s WHERE s.id = t.id`:                   933,
		`INSERT INTO t (id) VALUES (1), (2)`:                          933,
		`INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING`:        933,
		`INSERT INTO t (id) VALUES (1) RETURNING id`:                  925,
		`SELECT name, COUNT(*) FROM t GROUP BY 1`:                     979,
		`SELECT UPPER(name) AS u, COUNT(*) FROM t GROUP BY u`:         904,
		`SELECT name, COUNT(*) FROM t`:                                979,
		`SELECT id FROM t WHERE at > SYSTIMESTAMP - INTERVAL '1 day'`: 30089,
		`SELECT id FROM t EXCEPT SELECT id FROM t`:                    933,
		`SELECT id FROM t WHERE name IS DISTINCT FROM 'x'`:            908,
		`SELECT id FROM t OFFSET 5`:                                   933,
		`CREATE TABLE bad (level NUMBER)`:                             904,
		`CREATE TABLE bad (a bigint)`:                                 902,
		`CREATE TABLE bad (a BOOLEAN)`:                                902,
		`CREATE TABLE IF NOT EXISTS bad (a NUMBER)`:                   922,
		`CREATE INDEX bad ON t (name) WHERE id > 1`:                   2158,
		`DROP TABLE IF EXISTS t`:                                      933,
		`DROP TABLE t CASCADE`:                                        905,
		`BEGIN SELECT id FROM t; END;`:                                6550,
		`BEGIN nosuch.proc(1); END;`:                                  6550,
		`BEGIN INSERT INTO t (id) VALUES (1); END`:                    6550,
	} {
		_, err := db.Exec(query)
		t.Run(query, func(t *testing.T) { wantCode(t, err, code) })
	}
}

func TestStrictTakesWhatOracleTakes(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, name VARCHAR2(30 CHAR), at TIMESTAMP(6))`)
	exec(t, db, `INSERT INTO t (id, name, at) VALUES (1, 'a', SYSTIMESTAMP)`)
	for _, query := range []string{
		`SELECT name AS n, COUNT(*) AS c FROM t GROUP BY name ORDER BY 1`,
		`SELECT EXTRACT(YEAR FROM at) FROM t`,
		`SELECT CAST(id AS VARCHAR2(20)) AS s FROM t`,
		`SELECT TRIM(LEADING 'a' FROM name) FROM t`,
		`WITH x AS (SELECT id FROM t), y (k) AS (SELECT id FROM x) SELECT k FROM y`,
		`SELECT id FROM t ORDER BY id OFFSET 0 ROWS FETCH NEXT 5 ROWS ONLY`,
		`SELECT id FROM t MINUS SELECT 2 FROM dual`,
		`SELECT ROW_NUMBER() OVER (PARTITION BY name ORDER BY id) FROM t`,
		`SELECT CASE WHEN id IN (1, 2) THEN 'x' ELSE 'y' END FROM t x WHERE x.id = (SELECT MAX(id) FROM t)`,
		`SELECT q'[it's]' FROM dual`,
		`SELECT COALESCE(NVL(name, 'x'), RAWTOHEX(HEXTORAW('AB'))) FROM t -- LIMIT`,
		`SELECT "ID", at + INTERVAL '1' DAY FROM t`,
		`SELECT id FROM t WHERE REGEXP_LIKE(name, '^a')`,
		`SELECT column_name FROM user_tab_columns WHERE table_name = 'T'`,
		`SELECT value FROM v$parameter WHERE name = 'aq_tm_processes'`,
	} {
		var first, second any
		rows, err := db.Query(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if !rows.Next() {
			t.Errorf("%s: no row: %v", query, rows.Err())
		} else if rows.Scan(&first) != nil && rows.Scan(&first, &second) != nil {
			t.Errorf("%s: cannot be read", query)
		}
		rows.Close()
	}
}
