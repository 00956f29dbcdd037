package main

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

// TestScriptsOnOracle runs scripts of the embedded store unchanged on the
// Oracle store, over the stand-in for Oracle's client library.
func TestScriptsOnOracle(t *testing.T) {
	t.Parallel()
	server := ocisim.Start(t)
	users, err := os.ReadFile(filepath.Join("..", "..", "sql", "oracle", "schema", "00_users.sql"))
	if err != nil {
		t.Fatal(err)
	}
	services := httptest.NewServer(outside())
	t.Cleanup(services.Close)
	files, err := filepath.Glob(filepath.Join("testdata", "oracle", "*.txtar"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range []string{"run", "tasks", "operate"} {
		files = append(files, filepath.Join("testdata", name+".txtar"))
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			d := server.NewDatabase(t)
			e.Setenv("SERVICES", services.URL)
			e.Setenv("USER", "tester")
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			for name, user := range map[string]string{"DB": "app", "OWNER": "AQUEDUCT", "RUNTIME": "AQUEDUCT_RUN"} {
				e.Setenv(name, "oracle://"+user+":x@"+d.ConnectString()+"?libDir="+url.QueryEscape(server.LibDir))
			}
			e.Values[nodesKey{}] = map[string]*child{}
			e.Values[ownerKey{}] = d
			if err := d.Script(context.Background(), "app", string(users), []string{"AQUEDUCT", "AQUEDUCT_RUN", "USERS"}, nil); err != nil {
				return err
			}
			if err := d.CreateUser(context.Background(), "SHOP"); err != nil {
				return err
			}
			_, _, err := oracle.Migrate(context.Background(), oracle.Installation{DSN: d.DSN()})
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"node": startNode, "drain": drainNode, "crash": crashNode, "rush": rushNode, "exits": exits, "retry": retry, "enqueue": enqueue, "owner": asOwner, "shop": asShop,
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
