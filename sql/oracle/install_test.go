package oracle

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// schemaFolder has the scripts as SQL*Plus finds them.
func schemaFolder(t *testing.T) fs.FS {
	t.Helper()
	folder, err := fs.Sub(scripts, "schema")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// A DBA with nothing but SQL*Plus installs the schema by one script, and a node
// runs on it.
func TestInstallSQLMakesASchema(t *testing.T) {
	t.Parallel()
	if oracletest.Real() {
		return // its users are not ours to make
	}
	folder := schemaFolder(t)
	d := ocisim.Start(t).NewCopy(t, "two users", func(ctx context.Context, d *ocisim.Database) error {
		users, err := scripts.ReadFile("schema/00_users.sql")
		if err != nil {
			return err
		}
		return d.Script(ctx, "app", string(users), []string{"AQUEDUCT", "AQUEDUCT_RUN", "USERS"}, nil)
	})
	install := func() error {
		return d.ScriptFile(t.Context(), "AQUEDUCT", folder, "install.sql", []string{"AQUEDUCT_RUN"})
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{DSN: d.UserDSN("AQUEDUCT_RUN"), Schema: "AQUEDUCT", Node: "n"})
	if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	for _, f := range Check(t.Context(), CheckOptions{DSN: d.UserDSN("AQUEDUCT_RUN"), Schema: "AQUEDUCT"}) {
		if f.Severity == survey.Wrong {
			t.Errorf("doctor: %+v", f)
		}
	}
	if err := install(); err == nil || !strings.Contains(err.Error(), "10_tables.sql: line") || !strings.Contains(err.Error(), "ORA-00955") {
		t.Errorf("a second time: %v", err)
	}
	if from, to, err := Migrate(t.Context(), Installation{DSN: d.UserDSN("AQUEDUCT"), RuntimeUser: "AQUEDUCT_RUN"}); from != schemaVersion || to != from || err != nil {
		t.Errorf("migrate after it: %d, %d, %v", from, to, err)
	}
}
