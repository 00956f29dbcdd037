package ocisim_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/godror/godror"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := ocisim.Stop(); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = max(code, 1)
	}
	os.Exit(code)
}

// pooled are the parameters that switch godror to the library's session pool.
const pooled = " standaloneConnection=0 poolMinSessions=1 poolMaxSessions=20 poolIncrement=1"

// connect opens a database, through godror.
func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("godror", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// open gives an empty database, through godror.
func open(t testing.TB) (*ocisim.Database, *sql.DB) {
	t.Helper()
	d := ocisim.Start(t).NewDatabase(t)
	return d, connect(t, d.DSN())
}

// exec runs a statement that must succeed, and says how many rows it touched.
func exec(t testing.TB, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any) int64 {
	t.Helper()
	r, err := on.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	n, _ := r.RowsAffected()
	return n
}

// one reads a value of one row.
func one[T any](t testing.TB, on interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any) T {
	t.Helper()
	var v T
	if err := on.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// ownServer starts a server for one test alone.
func ownServer(t testing.TB) *ocisim.Server {
	t.Helper()
	ocisim.Start(t) // skips, or fails, where there is no PostgreSQL
	s, err := ocisim.Run(t.Context())
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// begin begins a transaction that is rolled back with the test.
func begin(t testing.TB, db interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantCode checks the ORA code of an error.
func wantCode(t testing.TB, err error, code int) {
	t.Helper()
	var ora *godror.OraErr
	if !errors.As(err, &ora) || ora.Code() != code {
		t.Errorf("got %v, want ORA-%05d", err, code)
	}
}

func TestConnectsStandaloneAndPooled(t *testing.T) {
	d := ocisim.Start(t).NewDatabase(t)
	for _, dsn := range []string{d.DSN(), d.DSN() + pooled} {
		db := connect(t, dsn)
		equal(t, "user", one[string](t, db, "SELECT 'a'||USER FROM dual"), "aAPP")
		conn, err := db.Conn(t.Context())
		must(t, err)
		must(t, godror.Raw(t.Context(), conn, func(c godror.Conn) error {
			v, err := c.ServerVersion()
			if !strings.Contains(v.String(), "ocisim") {
				t.Errorf("the server does not say what it is: %v", v)
			}
			return err
		}))
		must(t, conn.Close())
	}
}

func TestRefusesWhoDoesNotExist(t *testing.T) {
	d := ocisim.Start(t).NewDatabase(t)
	wantCode(t, connect(t, d.UserDSN("nobody_here")).Ping(), 1017)
	wantCode(t, connect(t, strings.ReplaceAll(d.DSN(), d.Name+"\"", "nodb\"")).Ping(), 12514)
}

// A schema is made once, and every copy of it is a database of its own.
func TestCopiesOfAKindAreApart(t *testing.T) {
	t.Parallel()
	s := ocisim.Start(t)
	prepared := 0
	kind := func(ctx context.Context, d *ocisim.Database) error {
		prepared++
		db, err := sql.Open("godror", d.DSN())
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(ctx, `CREATE TABLE t (id NUMBER(10))`)
		return err
	}
	first := connect(t, s.NewCopy(t, t.Name(), kind).DSN())
	exec(t, first, `INSERT INTO t VALUES (1)`)
	second := connect(t, s.NewCopy(t, t.Name(), kind).DSN())
	equal(t, "rows of the first", one[int](t, first, `SELECT COUNT(*) FROM t`), 1)
	equal(t, "rows of the second", one[int](t, second, `SELECT COUNT(*) FROM t`), 0)
	equal(t, "prepared", prepared, 1)
	failed := errors.New("no schema")
	_, err := s.Copy(t.Context(), "failed", func(context.Context, *ocisim.Database) error { return failed })
	equal(t, "the error of what prepares", errors.Is(err, failed), true)
	_, err = s.Copy(t.Context(), "failed", func(context.Context, *ocisim.Database) error { return nil })
	must(t, err)
}
