package main

import (
	"context"
	"net/http/httptest"
	"net/url"
	"path/filepath"
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
	services := httptest.NewServer(outside())
	t.Cleanup(services.Close)
	files := []string{filepath.Join("testdata", "oracle", "oracle.txtar")}
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
			e.Setenv("DB", "oracle://app:x@"+d.ConnectString()+"?libDir="+url.QueryEscape(server.LibDir))
			e.Values[nodesKey{}] = map[string]*child{}
			_, _, err := oracle.Migrate(context.Background(), oracle.Installation{DSN: d.DSN()})
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"node": startNode, "drain": drainNode, "crash": crashNode, "rush": rushNode, "exits": exits, "retry": retry, "enqueue": enqueue,
		},
	})
}
