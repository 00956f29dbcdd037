package main

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// TestScriptsOnOracle runs scripts of the embedded store unchanged on the
// Oracle store.
func TestScriptsOnOracle(t *testing.T) {
	t.Parallel()
	services := httptest.NewServer(outside())
	t.Cleanup(services.Close)
	files := []string{filepath.Join("testdata", "oracle", "oracle.txtar"), filepath.Join("testdata", "oracle", "bench.txtar")}
	for _, name := range []string{"run", "tasks", "operate", "dlq", "edits", "watch", "trigger", "knows", "search", "sagas", "runnow", "rewind", "unserved"} {
		files = append(files, filepath.Join("testdata", name+".txtar"))
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			script := e.T().(testing.TB) // the test that Run has begun for the script
			e.Setenv("SERVICES", services.URL)
			e.Setenv("DB", oracletest.URL(script, testdb.OnOracle(script)()))
			return programs(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"node": startNode, "drain": drainNode, "crash": crashNode, "rush": rushNode, "exits": exits, "retry": retry, "enqueue": enqueue,
		},
	})
}
