package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/cluster/history"
	"github.com/aqueduct-engine/aqueduct/internal/nodes"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

// ticks is how many signals an instance takes.
const ticks = 10

// definition collects signals, tells the world once, and sleeps a moment: every
// queue has its part.
const definition = `document: {dsl: '1.0.3', namespace: cluster, name: tally, version: '1.0.0'}
do:
  - each:
      for: {each: n, in: '${ [range(%d)] }'}
      do:
        - next:
            listen: {to: {one: {with: {type: tick}}}}
            output: {as: '${ $input + {seen: (($input.seen // []) + [.[0]])} }'}
  - tell:
      call: http
      with: {method: post, endpoint: '%s/tell', body: {seen: '${ .seen | length }', instance: '${ $workflow.id }'}}
      output: {as: '${ $input }'}
  - rest:
      wait: PT1S
`

// program is engine-node, built once.
var program struct {
	sync.Once
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if program.path != "" {
		os.RemoveAll(filepath.Dir(program.path))
	}
	os.Exit(code)
}

func build(t *testing.T) string {
	t.Helper()
	program.Do(func() {
		dir, err := os.MkdirTemp("", "aqueduct-cluster-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "engine-node")
		if out, err := exec.Command("go", "build", "-o", program.path, "../../cmd/engine-node").CombinedOutput(); err != nil {
			program.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// testCluster is a database with the definition on it, and the world outside.
type testCluster struct {
	t       *testing.T
	server  *ocisim.Server   // nil on a named database
	standIn *ocisim.Database // nil on a named database
	dsn     string
	url     string
	pool    *sql.DB // of the test; checks and waits
	world   *world
	program string
	logs    string // folder

	looked func() (held int, err error) // ends the watch of the invariants

	unwatched bool // nothing notes versions
}

func install(ctx context.Context, dsn string) error {
	_, _, err := oracle.Migrate(ctx, oracle.Installation{DSN: dsn})
	return err
}

// newTestCluster makes one. On the stand-in it has a server of its own, which may be
// stopped.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	b := &testCluster{t: t, world: &world{effects: map[string]map[string]bool{}}, program: build(t), logs: t.TempDir()}
	if oracletest.Real() {
		b.dsn = oracletest.Fresh(t, install)
	} else {
		ocisim.Start(t) // says what is missing
		server, err := ocisim.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		if b.standIn, err = server.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.server, b.dsn = server, b.standIn.DSN()
		if err := install(t.Context(), b.dsn); err != nil {
			t.Fatal(err)
		}
	}
	b.url = oracletest.URL(t, b.dsn)
	var err error
	if b.pool, err = sql.Open("godror", b.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.pool.Close() })
	b.tables()
	web := httptest.NewServer(b.world)
	t.Cleanup(web.Close)
	source := filepath.Join(b.logs, "tally.yaml")
	if err := os.WriteFile(source, fmt.Appendf(nil, definition, ticks, web.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run("publish", source, "--store", b.url)
	b.looked = testdb.Watch(b.dsn, time.Second)
	t.Cleanup(func() { _, _ = b.looked() }) // judge says what it found
	return b
}

// tables makes the test's own tables, and the trigger that notes versions.
func (b *testCluster) tables() {
	b.t.Helper()
	for _, table := range []string{"TEST_ORDERS", "TEST_VERSIONS"} {
		_, err := b.pool.Exec("drop table " + table)
		if err != nil && !strings.Contains(err.Error(), "ORA-00942") {
			b.t.Fatal(err)
		}
	}
	for _, text := range []string{history.MakeOrders, history.MakeVersions} {
		if _, err := b.pool.Exec(text); err != nil {
			b.t.Fatalf("%s: %v", text, err)
		}
	}
	if b.standIn == nil {
		b.trigger()
		return
	}
	// The stand-in speaks no Oracle triggers; its database has its own.
	_, err := b.standIn.Postgres(b.t.Context(), `create function app.note_version() returns trigger language plpgsql as $$
begin insert into app.test_versions (instance_id, former_version, state_version)
	values (new.instance_id, coalesce(old.state_version, 0), new.state_version); return null; end $$;
create trigger note_version after insert or update of state_version on app.wf_runtime_states for each row execute function app.note_version()`)
	if err != nil {
		b.t.Fatal(err)
	}
}

// trigger makes the trigger on a named database. A user who may not make one
// learns that versions are not judged.
func (b *testCluster) trigger() {
	b.t.Helper()
	drop := []string{"drop table TEST_ORDERS", "drop table TEST_VERSIONS"}
	if _, err := b.pool.Exec(history.MakeTrigger); err != nil {
		b.unwatched = true
		b.t.Logf("report: cluster: NOT PROVED: versions are gapless: no trigger could be made: %v", err)
	} else {
		drop = append([]string{"drop trigger TEST_VERSIONS_T"}, drop...)
	}
	b.t.Cleanup(func() {
		for _, text := range drop {
			if _, err := b.pool.Exec(text); err != nil {
				b.t.Error(err)
			}
		}
	})
}

// run executes a verb of the program.
func (b *testCluster) run(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(b.program, args...)
	cmd.Env = nodes.Quiet()
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("engine-node %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// eventually waits for a condition, and fails the test when it does not come. The limit
// counts pauses between looks, not what looks take on a busy machine.
func (b *testCluster) eventually(what string, limit time.Duration, ok func() bool) time.Duration {
	b.t.Helper()
	const pause = 10 * time.Millisecond
	begun := time.Now()
	for waited := time.Duration(0); !ok(); waited += pause {
		if waited > limit {
			b.t.Fatalf("%s: not within %s", what, limit)
		}
		time.Sleep(pause)
	}
	return time.Since(begun)
}

// count asks for a number; -1 while the database does not answer.
func (b *testCluster) count(query string, args ...any) int {
	n := -1
	if b.pool.QueryRow(query, args...).Scan(&n) != nil {
		return -1
	}
	return n
}

// sessionsLeft closes the test's own connections and counts what is left in the
// server, for the moment that a server needs to notice that clients are gone.
func (b *testCluster) sessionsLeft() string {
	b.t.Helper()
	if b.standIn == nil {
		return b.named()
	}
	if err := b.pool.Close(); err != nil {
		b.t.Error(err)
	}
	n := ""
	for w := new(await.Wait); ; {
		var err error
		if n, err = b.standIn.Sessions(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		if n == "0" || !w.Again(50*time.Millisecond, n) {
			return n
		}
	}
}

// named counts the sessions of engine-node on a named database, where the death
// of a client may take a while to be noticed; the user needs to see V$SESSION.
func (b *testCluster) named() string {
	n := 0
	const query = "select count(*) from V$SESSION where USERNAME = user and PROGRAM like 'engine-node%'"
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if err := b.pool.QueryRow(query).Scan(&n); err != nil {
			b.t.Logf("report: cluster: NOT PROVED: no session is left behind: %v", err)
			return "0"
		}
		if n == 0 || time.Now().After(deadline) {
			return fmt.Sprint(n)
		}
	}
}

// settled waits until every instance has completed and nothing is on its way, as
// eventually does.
func (b *testCluster) settled(limit time.Duration) time.Duration {
	b.t.Helper()
	const pause = 50 * time.Millisecond
	begun := time.Now()
	for waited := time.Duration(0); ; waited += pause {
		open := b.count("select count(*) from WF_RUNTIME_STATES where RUNTIME_STATUS <> 'completed'")
		left := 0
		for _, q := range []string{"SIGNAL", "SCHEDULE", "COMMAND"} {
			left += b.count("select count(*) from AQ$WF_" + q + "_QTAB")
		}
		if open == 0 && left == 0 {
			return time.Since(begun)
		}
		if waited > limit {
			b.t.Errorf("after %s %d instances are open and %d messages are left\n%s", limit, open, left, b.rest())
			return limit
		}
		time.Sleep(pause)
	}
}

// rest says what a cluster that does not settle has left.
func (b *testCluster) rest() string {
	var text strings.Builder
	list := func(query string) {
		rows, err := b.pool.Query(query)
		if err != nil {
			fmt.Fprintf(&text, "%s: %v\n", query, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var a, b, c, d, e string
			if err := rows.Scan(&a, &b, &c, &d, &e); err != nil {
				fmt.Fprintf(&text, "%s: %v\n", query, err)
				return
			}
			fmt.Fprintln(&text, a, b, c, d, e)
		}
	}
	list("select 'instance', INSTANCE_ID, RUNTIME_STATUS, STATE_VERSION, UPDATED_ON_UTC from WF_RUNTIME_STATES where RUNTIME_STATUS <> 'completed'")
	for _, q := range []string{"SIGNAL", "SCHEDULE", "COMMAND"} {
		list("select QUEUE, rawtohex(MSG_ID), MSG_STATE, RETRY_COUNT, ENQ_TIME from AQ$WF_" + q + "_QTAB")
	}
	if b.standIn != nil {
		sessions, err := b.standIn.Postgres(b.t.Context(), `select pid, application_name, state, now() - xact_start, now() - state_change, left(query, 200)
			from pg_stat_activity where datname = current_database() and xact_start is not null`)
		fmt.Fprintln(&text, sessions, err)
	}
	return text.String()
}

// judge reads the history, prints what is wrong with it, and returns it.
func (b *testCluster) judge(log []history.Signal) history.State {
	b.t.Helper()
	held, err := b.looked()
	if b.t.Logf("the invariants held %d times", held); err != nil || held == 0 {
		b.t.Errorf("the invariants held %d times, then: %v", held, err)
	}
	if err := errors.Join(testdb.Verify(b.t.Context(), b.dsn), testdb.Remade(b.t.Context(), b.dsn)); err != nil {
		b.t.Error(err)
	}
	s, err := history.Read(b.t.Context(), b.pool, b.world.counts())
	if err != nil {
		b.t.Fatal(err)
	}
	s.Unwatched = b.unwatched
	found := history.Check(log, s)
	for i, a := range found {
		if i == 20 {
			b.t.Errorf("and %d more", len(found)-i)
			break
		}
		b.t.Error(a)
	}
	return s
}
