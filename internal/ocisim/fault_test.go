package ocisim_test

import (
	"database/sql"
	"os"
	process "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godror/godror"
)

// A network is as slow as it is told to be, for each call. The client reads the variable
// once, so the figure is taken in a process of its own.
func TestLatencyIsPaidForEachCall(t *testing.T) {
	if os.Getenv("OCISIM_LATENCY_US") == "" {
		test := process.Command(os.Args[0], "-test.run=^TestLatencyIsPaidForEachCall$", "-test.v")
		test.Env = append(os.Environ(), "OCISIM_LATENCY_US=20000")
		if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestLatency") {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	_, db := open(t)
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	from := time.Now()
	for range 10 {
		_, err := conn.ExecContext(t.Context(), `BEGIN NULL; END;`)
		must(t, err)
	}
	equal(t, "ten calls of 20 ms", time.Since(from) >= 200*time.Millisecond, true)
}

func TestFaults(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	for _, c := range []struct {
		fault string
		code  int // of the commit, -1 = the connection is lost
		rows  int
	}{
		{"commit:1:cut", -1, 0},
		{"commit:1:cut_after", -1, 1},
		{"commit:1:rollback=2091", 2091, 0},
		{"commit:1:error_after=3156", 3156, 1},
		{"commit:1:delay=50", 0, 1},
	} {
		t.Run(c.fault, func(t *testing.T) {
			exec(t, db, `DELETE FROM t`)
			conn, err := db.Conn(t.Context())
			must(t, err)
			tx := begin(t, conn)
			exec(t, tx, `ALTER SESSION SET ocisim_fault = '`+c.fault+`'`)
			exec(t, tx, `INSERT INTO t VALUES (1)`)
			err = tx.Commit()
			switch {
			case c.code == 0:
				must(t, err)
			case c.code < 0:
				equal(t, "lost", godror.IsBadConn(err), true)
			default:
				wantCode(t, err, c.code)
			}
			conn.Close()
			equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM t`), c.rows)
		})
	}
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	exec(t, conn, `ALTER SESSION SET ocisim_fault = 'execute:2:error=1555'`)
	_, err = conn.ExecContext(t.Context(), `INSERT INTO t VALUES (2)`)
	must(t, err)
	_, err = conn.ExecContext(t.Context(), `INSERT INTO t VALUES (3)`)
	wantCode(t, err, 1555)
}

func TestFaultsOfOtherProcesses(t *testing.T) {
	d, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	must(t, d.Fault(t.Context(), "ocisim.test%", "execute:1:error=1555"))
	var err error
	for deadline := time.Now().Add(5 * time.Minute); err == nil && time.Now().Before(deadline); {
		_, err = db.Exec(`INSERT INTO t VALUES (1)`) // the session is told, and hears it soon
	}
	wantCode(t, err, 1555)
	must(t, d.Fault(t.Context(), "ocisim.test%", ""))
	exec(t, connect(t, d.DSN()), `INSERT INTO t VALUES (1)`)
	must(t, d.Fault(t.Context(), "somebody else", "any:1:cut"))
	exec(t, db, `INSERT INTO t VALUES (1)`)
}

// A session hears of the end of its faults within a transaction, too.
func TestFaultsEndWithinATransaction(t *testing.T) {
	d, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	must(t, d.Fault(t.Context(), "ocisim.test%", "dequeue:0:error=1653"))
	tx, err := connect(t, d.DSN()).BeginTx(t.Context(), nil)
	must(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(`INSERT INTO t VALUES (1)`)
	must(t, err)
	must(t, d.Fault(t.Context(), "ocisim.test%", "execute:0:error=1653"))
	_, err = tx.Exec(`INSERT INTO t VALUES (2)`)
	wantCode(t, err, 1653)
	must(t, d.Fault(t.Context(), "ocisim.test%", ""))
	_, err = tx.Exec(`INSERT INTO t VALUES (2)`)
	must(t, err)
	must(t, tx.Commit())
	equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM t`), 2)
}

// One fault for all sessions: the nth call of any of them, connects included.
func TestFaultsOfAllSessions(t *testing.T) {
	d, db := open(t)
	watcher, err := db.Conn(t.Context())
	must(t, err)
	defer watcher.Close()
	exec(t, watcher, `CREATE TABLE t (id NUMBER(10))`)
	counted := func() int {
		return one[int](t, watcher, `SELECT m.value FROM v$mystat m JOIN v$statname n ON n.statistic# = m.statistic#
			WHERE n.name = 'ocisim calls counted for op all'`)
	}
	arm := func(fault string) {
		exec(t, watcher, `ALTER SESSION SET ocisim_fault = '`+fault+`,exempt:1:all'`)
	}
	arm("all:4:error=1555")
	exec(t, watcher, `INSERT INTO t VALUES (0)`)
	equal(t, "counted", counted(), 0)
	for range 2 { // each connects and executes
		_, err = connect(t, d.DSN()).Exec(`INSERT INTO t VALUES (1)`)
	}
	wantCode(t, err, 1555)
	equal(t, "rows", one[int](t, watcher, `SELECT COUNT(*) FROM t`), 2)
	arm("all:1:cut_after")
	_, err = connect(t, d.DSN()).Exec(`INSERT INTO t VALUES (1)`)
	equal(t, "the connect fails, and the driver connects again", err == nil || godror.IsBadConn(err), true)
	arm("all:0:none")
	exec(t, connect(t, d.DSN()), `INSERT INTO t VALUES (1)`)
	equal(t, "counted", counted() >= 2, true)
}

func TestKilledSessionsReconnect(t *testing.T) {
	d, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	tx := begin(t, db)
	exec(t, tx, `INSERT INTO t VALUES (1)`)
	_, err := d.Kill(t.Context())
	must(t, err)
	_, err = tx.Exec(`INSERT INTO t VALUES (2)`)
	equal(t, "lost", err != nil && godror.IsBadConn(err), true)
	tx.Rollback()
	equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM t`), 0)
}

func TestRestart(t *testing.T) {
	s := ownServer(t)
	d, err := s.Create(t.Context())
	must(t, err)
	db := connect(t, d.DSN())
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	must(t, s.Halt(t.Context()))
	_, err = db.Exec(`INSERT INTO t VALUES (1)`)
	equal(t, "down", err != nil, true)
	must(t, s.Resume(t.Context()))
	deadline := time.Now().Add(5 * time.Minute)
	for err = db.Ping(); err != nil && time.Now().Before(deadline); err = db.Ping() {
		time.Sleep(20 * time.Millisecond)
	}
	must(t, err)
	exec(t, db, `INSERT INTO t VALUES (2)`)
	equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM t`), 1)
}

// roundTrips reads how many round trips the session has cost.
func roundTrips(t testing.TB, conn *sql.Conn) int {
	return one[int](t, conn, `SELECT m.value FROM v$mystat m JOIN v$statname n ON n.statistic# = m.statistic#
		WHERE n.name = 'SQL*Net roundtrips to/from client'`)
}

func TestRoundTripsAreCounted(t *testing.T) {
	_, db := open(t)
	exec(t, db, `CREATE TABLE t (id NUMBER(10))`)
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	a := roundTrips(t, conn)
	b := roundTrips(t, conn)
	tx := begin(t, conn) // SET TRANSACTION
	exec(t, tx, `INSERT INTO t VALUES (1)`)
	exec(t, tx, `INSERT INTO t VALUES (:1)`, []int{2, 3, 4})
	exec(t, tx, `BEGIN INSERT INTO t VALUES (5); INSERT INTO t VALUES (6); END;`)
	must(t, tx.Commit())
	equal(t, "round trips", roundTrips(t, conn)-b-(b-a), 5)
}
