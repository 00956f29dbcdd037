// Package testdb lets a test run on every store: a place is the path of an
// SQLite file, or godror's data source name of an Oracle schema.
package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/history"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// Store is what a node needs of its store.
type Store interface {
	backend.Store
	definition.Repository
}

// Database is an open store, with its parts at hand.
type Database struct {
	backend.Parts
	Store
}

// Each runs a test on every store, in subtests named for them. fresh makes an
// empty place, another with every call.
func Each(t *testing.T, test func(t *testing.T, fresh func() string)) {
	t.Helper()
	for name, fresh := range map[string]func(testing.TB) func() string{"sqlite": OnFile, "oracle": OnOracle} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

// OnFile makes files.
func OnFile(t testing.TB) func() string {
	return func() string { return filepath.Join(t.TempDir(), "a.db") }
}

// OnOracle makes schemas; without PostgreSQL the test is skipped where that is
// allowed.
func OnOracle(t testing.TB) func() string {
	return func() string { return oracletest.Fresh(t, Install) }
}

// Install makes the tables, queues and package of a schema.
func Install(ctx context.Context, dsn string) error {
	_, _, err := oracle.Migrate(ctx, oracle.Installation{DSN: dsn})
	return err
}

// fewConsumers is how many deliveries of a queue a node of a test holds at once.
const fewConsumers = 4

// Open opens a place. On Oracle a node has few sessions and is dead soon.
func Open(ctx context.Context, place string) (*Database, error) {
	return open(ctx, place, &steps.Set{}, fewConsumers, deadSoon)
}

// OpenLasting opens a place for a node that nobody kills, beside others: on a busy
// machine its heart may be late, and they do not take it for dead.
func OpenLasting(ctx context.Context, place string) (*Database, error) {
	return open(ctx, place, &steps.Set{}, fewConsumers, time.Minute)
}

// OpenWith opens a place whose turns may have steps of the application.
func OpenWith(ctx context.Context, place string, set *steps.Set) (*Database, error) {
	return open(ctx, place, set, fewConsumers, deadSoon)
}

// OpenWide opens a place for a node that holds so many deliveries of a queue at once.
func OpenWide(ctx context.Context, place string, consumers int) (*Database, error) {
	return open(ctx, place, &steps.Set{}, consumers, deadSoon)
}

// deadSoon is how long a node of a test may be silent on Oracle until others take it for dead.
const deadSoon = 10 * time.Second

func open(ctx context.Context, place string, set *steps.Set, consumers int, deadAfter time.Duration) (*Database, error) {
	if strings.HasPrefix(place, "user=") {
		return At(oracle.Open(ctx, oracle.Options{
			DSN: place, Steps: set, Consumers: consumers, Wait: time.Second, Heartbeat: 200 * time.Millisecond, DeadAfter: deadAfter,
		}))
	}
	return At(embedded.Open(ctx, sqlite.Options{Path: place, Perform: embedded.Steps(set)}))
}

// SQL opens a place as the application does that has tables there.
func SQL(place string) (*sql.DB, error) {
	if strings.HasPrefix(place, "user=") {
		return sql.Open("godror", place)
	}
	return conn.Pool(place, "")
}

// At is a store that has been opened.
func At(s Store, err error) (*Database, error) {
	if err != nil {
		return nil, err
	}
	return &Database{s.Parts(), s}, nil
}

// errBroken is what Verify says of an invariant that does not hold; any other
// error says that it could not look.
var errBroken = errors.New("invariant")

// Verify says what breaks the invariants in a place, beside nodes or without.
func Verify(ctx context.Context, place string) error {
	verify := func() ([]survey.Violation, error) { return embedded.Verify(ctx, place, 10) }
	if strings.HasPrefix(place, "user=") {
		verify = func() ([]survey.Violation, error) { return oracle.Verify(ctx, oracle.CheckOptions{DSN: place}, 10) }
	}
	list, err := verify()
	for _, v := range list {
		err = errors.Join(err, fmt.Errorf("%w %s: %s: %s", errBroken, v.Invariant, v.About, v.Found))
	}
	return err
}

// Replay makes every instance in a place again from its stream, and says which come to
// something else than is stored. Definitions are those that are published there; code is
// that of defs, which is nil where there is none. What cannot be made again is listed.
func Replay(ctx context.Context, place string, defs replay.Definitions) (unverifiable []replay.Finding, err error) {
	from, err := histories(place)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	known := either{definition.Reading(from, openworkflow.Parsers()), defs}
	var wrong error
	err = replay.All(ctx, from, known, func(f replay.Finding) error {
		switch f.Verdict {
		case replay.Different:
			wrong = errors.Join(wrong, fmt.Errorf("%w: made again, %s", errBroken, f))
		case replay.Unverifiable:
			unverifiable = append(unverifiable, f)
		}
		return nil
	})
	return unverifiable, errors.Join(err, wrong)
}

// Remade is Replay of a place whose instances run documents only: each can be made again.
func Remade(ctx context.Context, place string) error {
	unverifiable, err := Replay(ctx, place, nil)
	for _, f := range unverifiable {
		err = errors.Join(err, fmt.Errorf("%w: made again, %s", errBroken, f))
	}
	return err
}

// either finds what is published in a place, and what code a test has.
type either struct{ published, code replay.Definitions }

// Under implements replay.Definitions.
func (e either) Under(ctx context.Context, ref snapshot.Definition, policy string) (engine.Definition, error) {
	def, err := e.published.Under(ctx, ref, policy)
	if err != nil && e.code != nil {
		def, err = e.code.Under(ctx, ref, policy)
	}
	return def, err
}

func histories(place string) (*history.Reader, error) {
	if strings.HasPrefix(place, "user=") {
		return oracle.Histories(oracle.CheckOptions{DSN: place})
	}
	return embedded.Histories(place)
}

// Check says which rows of a place a check finds to be damaged, or to
// say otherwise than what they repeat.
func Check(ctx context.Context, place string) error {
	parsed := func(definition.Record) error { return nil }
	check := func() []survey.Finding {
		return embedded.Check(ctx, embedded.CheckOptions{Path: place, Verify: parsed})
	}
	if strings.HasPrefix(place, "user=") {
		check = func() []survey.Finding { return oracle.Check(ctx, oracle.CheckOptions{DSN: place, Verify: parsed}) }
	}
	rows := map[string]bool{"checksums": true, "instances": true, "waits": true, "streams": true, "tasks": true, "task-events": true, "task-actors": true, "messages": true}
	var err error
	looked := 0
	for _, f := range check() {
		if rows[f.Check] {
			looked++
			if f.Severity != survey.Good {
				err = errors.Join(err, fmt.Errorf("%s: %s", f.Check, f.Found))
			}
		}
	}
	if looked < len(rows)-1 { // a file has no index of who may see a task
		err = errors.Join(err, fmt.Errorf("a check has looked at %d tables only", looked))
	}
	return err
}

// Watch verifies the invariants of a place again and again, beside nodes in
// whatever trouble, until the result is called: it says how often they held, and
// what was found first. Between two looks is the pause, or twice what the last
// one took: readers keep the write-ahead log of a file from beginning anew.
func Watch(place string, pause time.Duration) (stop func() (held int, err error)) {
	ctx, cancel := context.WithCancel(context.Background())
	var held int
	var broken error
	var done sync.WaitGroup
	done.Go(func() {
		for broken == nil {
			begun := time.Now()
			switch err := Verify(ctx, place); {
			case err == nil:
				held++
			case errors.Is(err, errBroken):
				broken = err
			}
			select {
			case <-time.After(max(pause, 2*time.Since(begun))):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() (int, error) { cancel(); done.Wait(); return held, broken }
}
