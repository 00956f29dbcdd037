package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
)

// apart is an installation as the scripts make it: an owner, a runtime user
// and an application, each a user of its own.
type apart struct {
	d           *ocisim.Database
	owner       string
	runtime     string
	application string
}

// installApart runs the scripts as their heads say: 00 as SYS, 10 to 50 as the
// owner; the application gets the role.
func installApart(t *testing.T) apart {
	t.Helper()
	a := apart{d: empty(t), owner: "AQUEDUCT", runtime: "AQUEDUCT_RUN", application: "SHOP"}
	a.script(t, "app", "00_users", a.owner, a.runtime, "USERS")
	for _, name := range []string{"10_tables", "20_queues", "30_views", "40_package", "45_admin"} {
		a.script(t, a.owner, name)
	}
	a.script(t, a.owner, "50_grants", a.runtime)
	a.run(t, a.owner, "INSERT INTO WF_META (NAME, VALUE) VALUES ('schema-version', HEXTORAW('02'))")
	if err := a.d.CreateUser(t.Context(), a.application); err != nil {
		t.Fatal(err)
	}
	a.run(t, "app", "GRANT CREATE SESSION TO "+a.application)
	a.run(t, a.owner, "GRANT AQUEDUCT_APPLICATION TO "+a.application)
	return a
}

// script runs one of the scripts as SQL*Plus would.
func (a apart) script(t *testing.T, user, name string, arguments ...string) {
	t.Helper()
	raw, err := scripts.ReadFile("schema/" + name + ".sql")
	if err == nil {
		err = a.d.Script(t.Context(), user, string(raw), arguments, nil)
	}
	if err != nil {
		t.Fatal(name, err)
	}
}

func (a apart) open(t *testing.T, user string) *sql.DB {
	t.Helper()
	db, err := sql.Open("godror", a.d.UserDSN(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (a apart) run(t *testing.T, user, statement string) {
	t.Helper()
	if _, err := a.open(t, user).ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatal(user, statement, err)
	}
}

// refuses fails unless the statement of a user is refused with one of the
// codes.
func (a apart) refuses(t *testing.T, user, statement string, codes ...int) {
	t.Helper()
	_, err := a.open(t, user).ExecContext(t.Context(), statement)
	if !slices.ContainsFunc(aq.Codes(err), func(c int) bool { return slices.Contains(codes, c) }) {
		t.Errorf("%s: %s: got %v, want one of %v", user, statement, err, codes)
	}
}

// empty gives a database of the stand-in without a schema.
func empty(t testing.TB) *ocisim.Database {
	t.Helper()
	return ocisim.Start(t).NewDatabase(t)
}

// Nobody can do more than they need to.
func TestUsersCannotDoMoreThanTheyNeed(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	const noRight, noTable, unknown, undeclared = 1031, 942, 904, 6550
	for _, statement := range []string{
		"DROP TABLE %s.WF_STREAM", "DROP VIEW %s.WF_V_TASKS", "ALTER TABLE %s.WF_STREAM ADD (X NUMBER(1))", "CREATE INDEX X ON %s.WF_STREAM (KIND)",
		"UPDATE %s.WF_META SET VALUE = NULL", "DELETE FROM %s.WF_META", "DELETE FROM %s.WF_DEFINITIONS", "UPDATE %s.WF_TASK_EVENTS SET ACTOR = 'x'",
	} {
		a.refuses(t, a.runtime, fmt.Sprintf(statement, a.owner), noRight, noTable)
	}
	for _, call := range []string{"START_QUEUE('%s.WF_SIGNAL_Q')", "STOP_QUEUE('%s.WF_SIGNAL_Q')", "DROP_QUEUE_TABLE('%s.WF_SIGNAL_QTAB', TRUE)",
		"GRANT_QUEUE_PRIVILEGE('ENQUEUE', '%s.WF_SIGNAL_Q', 'SHOP')"} {
		for _, user := range []string{a.runtime, a.application} {
			a.refuses(t, user, "BEGIN DBMS_AQADM."+fmt.Sprintf(call, a.owner)+"; END;", undeclared)
		}
	}
	for _, statement := range []string{"SELECT COUNT(*) FROM %s.WF_TASKS", "INSERT INTO %s.WF_NODES (RUN_ID) VALUES ('x')", "DELETE FROM %s.WF_STREAM"} {
		a.refuses(t, a.application, fmt.Sprintf(statement, a.owner), noRight, noTable)
	}
	db, err := aq.Open(aq.Options{DSN: a.d.UserDSN(a.application)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	session, err := db.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := aq.Queue{Name: a.owner + ".WF_SIGNAL_Q", Table: a.owner + ".WF_SIGNAL_QTAB"}
	if err := session.Enqueue(t.Context(), q, []aq.Send{{Body: []byte("x"), Priority: 5}}); !slices.Contains(aq.Codes(err), noRight) {
		t.Errorf("an application may enqueue without the package: %v", err)
	}
	a.refuses(t, a.application, "BEGIN "+a.owner+".AQUEDUCT_API.FAIL(-20801, 'x'); END;", undeclared, unknown, noRight)
	a.script(t, a.owner, "90_uninstall")
}
