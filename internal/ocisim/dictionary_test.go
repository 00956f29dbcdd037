package ocisim_test

import "testing"

// A user sees of the dictionary what they have a right on, and no V$ view.
func TestDictionaryShowsWhatOneMaySee(t *testing.T) {
	d, db := open(t)
	for _, s := range []string{
		`CREATE USER boss NO AUTHENTICATION`, `CREATE USER clerk NO AUTHENTICATION`, `CREATE ROLE clerks`, `GRANT EXECUTE ON SYS.DBMS_AQADM TO boss`,
		`GRANT CREATE SESSION TO clerk`, `GRANT clerks TO boss WITH ADMIN OPTION`,
	} {
		exec(t, db, s)
	}
	boss, clerk := connect(t, d.UserDSN("boss")), connect(t, d.UserDSN("clerk"))
	for _, s := range []string{
		`CREATE TABLE a (id NUMBER(5), CONSTRAINT a_pk PRIMARY KEY (id))`, `CREATE TABLE b (id NUMBER(5))`, `CREATE SEQUENCE s`,
		`BEGIN DBMS_AQADM.CREATE_QUEUE_TABLE('QT', 'RAW'); DBMS_AQADM.CREATE_QUEUE('Q', 'QT', retention_time => 9); DBMS_AQADM.CREATE_QUEUE('P', 'QT'); END;`,
		`GRANT SELECT, UPDATE ON a TO clerks`, `GRANT SELECT ON s TO clerks`, `GRANT clerks TO clerk`,
		`BEGIN DBMS_AQADM.GRANT_QUEUE_PRIVILEGE('ENQUEUE', 'Q', 'CLERK'); END;`,
	} {
		exec(t, boss, s)
	}
	count := func(query string) int { return one[int](t, clerk, query) }
	equal(t, "objects", count(`SELECT COUNT(*) FROM all_objects WHERE owner = 'BOSS'`), 3)
	equal(t, "indexes", count(`SELECT COUNT(*) FROM all_indexes WHERE table_owner = 'BOSS' AND status = 'VALID'`), 1)
	equal(t, "queues", count(`SELECT COUNT(*) FROM all_queues WHERE owner = 'BOSS' AND retention = '9'`), 1)
	equal(t, "grants", count(`SELECT COUNT(*) FROM all_tab_privs WHERE table_schema = 'BOSS' AND grantee IN ('CLERK', 'CLERKS')`), 4)
	equal(t, "roles", count(`SELECT COUNT(*) FROM session_roles WHERE role = 'CLERKS'`), 1)
	equal(t, "privileges", one[string](t, clerk, `SELECT privilege FROM session_privs`), "CREATE SESSION")
	equal(t, "administration", count(`SELECT COUNT(*) FROM all_tab_privs WHERE table_name = 'DBMS_AQADM'`), 0)
	equal(t, "a sequence", count(`SELECT boss.s.NEXTVAL FROM dual`), 1)
	_, err := clerk.Exec(`DELETE FROM boss.a`)
	wantCode(t, err, 1031)
	var value string
	wantCode(t, clerk.QueryRow(`SELECT value FROM v$parameter WHERE name = 'processes'`).Scan(&value), 1031)
	exec(t, db, `GRANT SELECT ON SYS.V_$PARAMETER TO clerk`)
	equal(t, "parameter", one[string](t, clerk, `SELECT value FROM v$parameter WHERE name = 'processes'`), "300")
	exec(t, boss, `REVOKE UPDATE ON a FROM clerks`)
	_, err = clerk.Exec(`UPDATE boss.a SET id = 1`)
	wantCode(t, err, 1031)
}
