package oracletest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
)

// Watcher looks at a database of the stand-in, on a connection that meets no
// fault, and sets faults for all others of this process.
type Watcher struct {
	t    testing.TB
	conn *sql.Conn
}

// Watch connects a watcher; it is closed with the test.
func Watch(t testing.TB, d *ocisim.Database) *Watcher {
	t.Helper()
	db, err := sql.Open("godror", d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); db.Close() })
	return &Watcher{t: t, conn: conn}
}

// Arm sets a fault, as the stand-in's README has it; with op all it begins to
// count.
func (w *Watcher) Arm(fault string) {
	_, err := w.conn.ExecContext(context.Background(), "alter session set ocisim_fault = '"+fault+",exempt:1:all'")
	if err != nil {
		w.t.Error(err)
	}
}

// Counted is how many calls of others there were since a fault of op all.
func (w *Watcher) Counted() (n int) {
	w.Row("select S.VALUE from V$MYSTAT S join V$STATNAME N on N.STATISTIC# = S.STATISTIC# "+
		"where N.NAME = 'ocisim calls counted for op all'", nil, &n)
	return n
}

// Row reads one row into to; false = there is none.
func (w *Watcher) Row(query string, args []any, to ...any) bool {
	err := w.conn.QueryRowContext(context.Background(), query, args...).Scan(to...)
	if err != nil && err != sql.ErrNoRows {
		w.t.Errorf("%s: %v", query, err)
	}
	return err == nil
}
