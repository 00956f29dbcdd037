package main

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

// TestScriptsOfAnInstallationOnOracle runs scripts in which the owner of the
// schema, the user of the nodes and an application are three users: they make
// them, so they run on the stand-in only.
func TestScriptsOfAnInstallationOnOracle(t *testing.T) {
	t.Parallel()
	server := ocisim.Start(t)
	users, err := os.ReadFile(filepath.Join("..", "..", "sql", "oracle", "schema", "00_users.sql"))
	if err != nil {
		t.Fatal(err)
	}
	install := func(ctx context.Context, d *ocisim.Database) error {
		if err := d.Script(ctx, "app", string(users), []string{"AQUEDUCT", "AQUEDUCT_RUN", "USERS"}, nil); err != nil {
			return err
		}
		if err := d.CreateUser(ctx, "SHOP"); err != nil {
			return err
		}
		_, _, err := oracle.Migrate(ctx, oracle.Installation{DSN: d.DSN()})
		return err
	}
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "oracle", "application.txtar"), filepath.Join("testdata", "oracle", "doctor.txtar")},
		Setup: func(e *testscript.Env) error {
			d := server.NewCopy(e.T().(testing.TB), "of three users", install) // of the test that Run has begun for the script
			for name, user := range map[string]string{"DB": "app", "OWNER": "AQUEDUCT", "RUNTIME": "AQUEDUCT_RUN"} {
				e.Setenv(name, "oracle://"+user+":x@"+d.ConnectString()+"?libDir="+url.QueryEscape(server.LibDir))
			}
			e.Values[ownerKey{}] = d
			return programs(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"node": startNode, "drain": drainNode, "crash": crashNode, "exits": exits, "retry": retry, "owner": asOwner, "shop": asShop,
		},
	})
}

// ownerKey finds the database of a script.
type ownerKey struct{}

// asOwner executes a statement as the owner of the schema: owner STATEMENT.
func asOwner(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: owner STATEMENT")
	}
	d := ts.Value(ownerKey{}).(*ocisim.Database)
	ts.Check(d.Script(context.Background(), "AQUEDUCT", args[0]+"\n/\n", nil, nil))
}

// asShop executes statements as an application, in one transaction, and
// commits: shop STATEMENT...; with ! it rolls back, or they fail. @task is what
// the file task holds.
func asShop(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(ownerKey{}).(*ocisim.Database)
	db, err := sql.Open("godror", d.UserDSN("SHOP"))
	ts.Check(err)
	defer db.Close()
	tx, err := db.BeginTx(context.Background(), nil)
	ts.Check(err)
	for _, statement := range args {
		if strings.Contains(statement, "@task") {
			statement = strings.ReplaceAll(statement, "@task", strings.TrimSpace(ts.ReadFile("task")))
		}
		if _, err = tx.Exec(statement); err != nil {
			break
		}
	}
	if err != nil && !neg {
		tx.Rollback()
		ts.Fatalf("%v", err)
	}
	if neg {
		ts.Check(tx.Rollback())
		return
	}
	ts.Check(tx.Commit())
}
