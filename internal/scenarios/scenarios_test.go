package scenarios_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

// TestScenariosOnSQLite runs every feature, each scenario on a file of its own.
func TestScenariosOnSQLite(t *testing.T) {
	t.Parallel()
	run(t, func() (place, error) { return place{dir: t.TempDir()}, nil })
}

// TestScenariosOnOracle runs every feature on the Oracle store, each scenario
// in a schema of its own, over the stand-in for Oracle's client library.
func TestScenariosOnOracle(t *testing.T) {
	t.Parallel()
	server := ocisim.Start(t)
	run(t, func() (place, error) {
		dsn := server.NewDatabase(t).DSN()
		_, _, err := oracle.Migrate(t.Context(), oracle.Installation{DSN: dsn})
		return place{dsn: dsn}, err
	})
}

// last is the number of the last scenario.
const last = 49

// TestEveryNumberHasItsScenario keeps the features complete.
func TestEveryNumberHasItsScenario(t *testing.T) {
	files, err := filepath.Glob("features/*.feature")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	text := ""
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text += string(raw)
	}
	for n := 1; n <= last; n++ {
		if !strings.Contains(text, fmt.Sprintf("@S%02d", n)) {
			t.Errorf("no scenario has the number %d", n)
		}
	}
}

// concurrency is how many scenarios run at once: most of them wait.
const concurrency = 4

func run(t *testing.T, where func() (place, error)) {
	suite := godog.TestSuite{
		Name: t.Name(),
		Options: &godog.Options{
			Format: "progress", Output: io.Discard, Paths: []string{"features"}, Strict: true,
			Concurrency: concurrency, TestingT: t,
		},
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			w := newWorld(place{})
			w.elsewhere = where
			sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
				p, err := where()
				w.place = p
				return ctx, err
			})
			sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
				if closed := w.close(); err == nil {
					err = closed
				}
				return ctx, err
			})
			w.given(sc)
			w.when(sc)
			w.then(sc)
			w.family(sc)
			w.lifecycles(sc)
			w.answersByQueue(sc)
			w.withdrawals(sc)
			w.acknowledgements(sc)
		},
	}
	if code := suite.Run(); code != 0 {
		t.Errorf("%d of the scenarios' runs failed", code)
	}
}
