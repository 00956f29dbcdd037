// Package oracletest gives tests a schema on Oracle: on the stand-in of
// internal/ocisim, or on the database that AQUEDUCT_ORACLE_DSN names.
//
// On the stand-in every test has a database of its own. On a named database
// there is one schema, that of the user: tests have it one after the other, in
// all processes, and each finds it emptied. EVERYTHING in it is deleted, again
// and again. The user must own the schema and be allowed what docs/oracle.md
// says of the owner, and to purge its queue tables (EXECUTE on DBMS_AQADM).
package oracletest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
)

// env names a database for the tests: godror's data source name.
const env = "AQUEDUCT_ORACLE_DSN"

// Real says whether tests run on a database that the environment names.
func Real() bool { return os.Getenv(env) != "" }

// Install makes the tables, queues and package of a schema; it may run again.
// It is a parameter so that the store's own tests can use this package, and a
// function with a name: on the stand-in it runs once, and its work is copied.
type Install func(ctx context.Context, dsn string) error

// Fresh gives the data source name of an empty, installed schema. A test may
// ask again: it gets another on the stand-in, the same one emptied otherwise.
func Fresh(t testing.TB, install Install) string {
	t.Helper()
	if !Real() {
		return StandIn(t, install).DSN()
	}
	dsn := os.Getenv(env)
	own(t, dsn)
	if err := install(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if err := wipe(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// StandIn gives an installed schema on the stand-in, for tests that break what
// no test may break on a database of somebody: with a named database they are
// skipped, and say so.
func StandIn(t testing.TB, install Install) *ocisim.Database {
	t.Helper()
	if Real() {
		t.Skip("only the stand-in can be broken so")
	}
	name := runtime.FuncForPC(reflect.ValueOf(install).Pointer()).Name()
	if strings.Contains(name, ".func") {
		t.Fatalf("%s has no name of its own: what it installs cannot be told from what another of its kind does", name)
	}
	return ocisim.Start(t).NewCopy(t, name, func(ctx context.Context, d *ocisim.Database) error {
		return install(ctx, d.DSN())
	})
}

// owners are the tests that have the named database.
var owners struct {
	sync.Mutex
	turn sync.Mutex // held by the test that has it
	now  testing.TB
}

// own waits until no other test, of this process or another, has the database.
func own(t testing.TB, dsn string) {
	t.Helper()
	owners.Lock()
	mine := owners.now == t
	owners.Unlock()
	if mine {
		return
	}
	owners.turn.Lock()
	free, err := lockFile(dsn)
	if err != nil {
		owners.turn.Unlock()
		t.Fatal(err)
	}
	owners.Lock()
	owners.now = t
	owners.Unlock()
	t.Cleanup(func() {
		owners.Lock()
		owners.now = nil
		owners.Unlock()
		if err := free(); err != nil {
			t.Error(err)
		}
		owners.turn.Unlock()
	})
}

// lockFile keeps other processes of this machine away; the lock ends with the
// process, however it ends.
func lockFile(dsn string) (func() error, error) {
	name := fmt.Sprintf("aqueduct-oracle-%x.lock", sha256.Sum256([]byte(dsn)))
	f, err := os.OpenFile(filepath.Join(os.TempDir(), name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// tables are emptied by Wipe; what is in WF_META stays.
var tables = []string{
	"WF_NODES", "WF_RUNTIME_STATES", "WF_INSTANCES", "WF_STREAM", "WF_TASKS", "WF_TASK_ACTORS", "WF_TASK_EVENTS",
	"WF_WAITS", "WF_ATTRIBUTES", "WF_ACTIVITIES", "WF_BULK_PLANS", "WF_BULK_ITEMS", "WF_DEFINITIONS", "WF_DEAD_LETTERS", "WF_LETTER_EDITS", "WF_HOST_LOCKS", "WF_INFLIGHT", "WF_PAYLOADS",
}

// missing says that what is to be emptied does not exist.
func missing(err error) bool {
	var e *godror.OraErr
	return errors.As(err, &e) && (e.Code() == 942 || e.Code() == 24002)
}

// wipe empties a schema: messages, then rows.
func wipe(ctx context.Context, dsn string) error {
	db, err := sql.Open("godror", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, q := range []string{"SIGNAL", "SCHEDULE", "COMMAND", "DLQ"} {
		const purge = "DECLARE O DBMS_AQADM.AQ$_PURGE_OPTIONS_T; BEGIN O.BLOCK := TRUE; " +
			"DBMS_AQADM.PURGE_QUEUE_TABLE('WF_%s_QTAB', NULL, O); END;"
		if _, err := db.ExecContext(ctx, fmt.Sprintf(purge, q)); err != nil && !missing(err) {
			return fmt.Errorf("empty WF_%s_QTAB: %w", q, err)
		}
	}
	for _, name := range tables {
		if _, err := db.ExecContext(ctx, "delete from "+name); err != nil && !missing(err) {
			return fmt.Errorf("empty %s: %w", name, err)
		}
	}
	return nil
}

// URL is a data source name as the setting store.url has it.
func URL(t testing.TB, dsn string) string {
	t.Helper()
	p, err := godror.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u := "oracle://" + url.UserPassword(p.Username, p.Password.Secret()).String() + "@" + p.ConnectString
	if p.LibDir != "" {
		u += "?libDir=" + url.QueryEscape(p.LibDir)
	}
	return u
}
