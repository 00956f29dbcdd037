package ctk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cucumber/godog"
	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// scenarios is how many the kit has.
const scenarios = 21

// kit returns the folder of the official features, which are not part of this
// repository.
func kit(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(corpus(t), "ctk")
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the conformance kit is missing: %v", err)
	}
	return dir
}

// corpus returns the folder of the specification's files.
func corpus(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("AQUEDUCT_CNCF")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cncf")
	}
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the conformance kit is missing: %v", err)
		}
		t.Skipf("SKIPPED: the conformance kit is missing (set AQUEDUCT_CNCF): %v", err)
	}
	return dir
}

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := kit(t)
	files := func(t *testing.T) func() (string, error) {
		folder := t.TempDir()
		n := 0
		return func() (string, error) { n++; return filepath.Join(folder, fmt.Sprintf("%d.db", n)), nil }
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		t.Run("undisturbed", func(t *testing.T) { conform(t, dir, files(t), false) })
		t.Run("crashes", func(t *testing.T) { conform(t, dir, files(t), true) })
	})
	t.Run("oracle", func(t *testing.T) {
		t.Parallel()
		server := ocisim.Start(t)
		install := func(ctx context.Context, d *ocisim.Database) error { return testdb.Install(ctx, d.DSN()) }
		databases := func(t *testing.T) func() (string, error) {
			return func() (string, error) { return server.NewCopy(t, "installed", install).DSN(), nil }
		}
		t.Run("undisturbed", func(t *testing.T) { conform(t, dir, databases(t), false) })
		t.Run("crashes", func(t *testing.T) { conform(t, dir, databases(t), true) })
	})
}

// results counts the scenarios of one mode.
type results struct {
	mu     sync.Mutex
	passed int
	failed map[string]error
}

// conform runs the kit in one mode and reports what it says.
func conform(t *testing.T, dir string, place func() (string, error), crashes bool) {
	t.Helper()
	var mu sync.Mutex
	locked := func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return place()
	}
	stub := stub(t).URL
	all := results{failed: map[string]error{}}
	suite := godog.TestSuite{
		Name: t.Name(),
		ScenarioInitializer: func(c *godog.ScenarioContext) {
			s := &scenario{place: locked, crashes: crashes, job: job{Stub: stub}}
			s.steps(c)
			c.After(func(ctx context.Context, sc *godog.Scenario, err error) (context.Context, error) {
				all.mu.Lock()
				defer all.mu.Unlock()
				if err == nil {
					all.passed++
				} else {
					all.failed[sc.Name] = err
				}
				return ctx, nil
			})
		},
		Options: &godog.Options{Format: "progress", Output: io.Discard, Paths: []string{dir}, Strict: true, Concurrency: 4, DefaultContext: t.Context()},
	}
	suite.Run() // its verdict is counted above
	fmt.Printf("ctk %s: %d passed, %d failed\n", strings.TrimPrefix(t.Name(), "TestConformance/"), all.passed, len(all.failed))
	if n := all.passed + len(all.failed); n != scenarios {
		t.Errorf("%d scenarios were run, not %d", n, scenarios)
	}
	for _, name := range slices.Sorted(maps.Keys(all.failed)) {
		t.Errorf("%s: %v", name, all.failed[name])
	}
}

// scenario is one run of a scenario of the kit.
type scenario struct {
	place   func() (string, error)
	crashes bool
	job     job
	end     snapshot.Snapshot
	ran     []string // names of the tasks, in order
}

func (s *scenario) steps(c *godog.ScenarioContext) {
	c.Step(`^a workflow with definition:$`, func(doc *godog.DocString) { s.job.Definition = doc.Content })
	c.Step(`^given the workflow input is:$`, func(doc *godog.DocString) error {
		v, err := value(doc.Content)
		if err == nil {
			s.job.Input, err = json.Marshal(v)
		}
		return err
	})
	c.Step(`^the workflow is executed$`, s.execute)
	c.Step(`^the workflow should complete$`, func() error { return s.status(snapshot.Completed) })
	c.Step(`^the workflow should complete with output:$`, s.output)
	c.Step(`^the workflow should fault$`, func() error { return s.status(snapshot.Faulted) })
	c.Step(`^the workflow should fault with error:$`, s.fault)
	c.Step(`^the workflow output should have properties (.+)$`, s.properties)
	c.Step(`^the workflow output should have a '([^']*)' property with value:$`, s.property)
	c.Step(`^the workflow output should have a '([^']*)' property containing (\d+) items$`, s.items)
	c.Step(`^(\S+) should run first$`, func(name string) error { return s.at(name, 0) })
	c.Step(`^(\S+) should run last$`, func(name string) error { return s.at(name, len(s.ran)-1) })
	c.Step(`^(\S+) should run after (\S+)$`, s.order)
}

// execute runs the workflow: in one process, or in processes that are killed
// after their first commit, their second, and so on, each followed by one that
// finishes what is left. Every instance must end alike.
func (s *scenario) execute(ctx context.Context) error {
	place, err := s.place()
	if err != nil {
		return err
	}
	s.job.Place = place
	s.job.Instance = "undisturbed"
	if err := s.job.process(ctx); err != nil {
		return err
	}
	if err := s.read(ctx); err != nil || !s.crashes {
		return err
	}
	want, ran := s.end, s.ran
	for k := int64(1); ; k++ {
		j := s.job
		j.Instance, j.KillAfter = fmt.Sprintf("killed-%d", k), k
		switch err := j.process(ctx); {
		case err == nil && k == 1:
			return fmt.Errorf("the process was not killed after its first commit")
		case err == nil:
			return nil // it had fewer commits
		case err != errKilled:
			return err
		}
		j.KillAfter = 0
		if err := j.process(ctx); err != nil {
			return fmt.Errorf("after a crash at commit %d: %w", k, err)
		}
		s.job.Instance = j.Instance
		if err := s.read(ctx); err != nil {
			return err
		}
		if s.end.Status != want.Status || !reflect.DeepEqual(s.ran, ran) || stable(s.end) != stable(want) {
			return fmt.Errorf("after a crash at commit %d: %s %s of %v, undisturbed %s %s of %v",
				k, s.end.Status, stable(s.end), s.ran, want.Status, stable(want), ran)
		}
	}
}

var volatile = regexp.MustCompile(`"(Date|Idempotency-Key|id|time|X-Correlation-Id|Traceparent)":"[^"]*"`)

// stable is how an instance ended, without what differs from one run to the
// next: moments and identities.
func stable(s snapshot.Snapshot) string {
	fault := ""
	if s.Error != nil {
		fault = fmt.Sprint(*s.Error)
	}
	return volatile.ReplaceAllString(string(s.State.Output), `"$1":""`) + fault
}

// read takes from the store how the instance ended and which tasks it ran.
func (s *scenario) read(ctx context.Context) error {
	db, err := openDatabase(ctx, s.job.Place)
	if err != nil {
		return err
	}
	defer db.Close()
	if s.end, err = db.Parts().Writer.Load(ctx, s.job.Instance); err != nil {
		return err
	}
	entries, err := db.Parts().Streams.Stream(ctx, s.job.Instance, 0, projections.MaxLimit)
	if err != nil {
		return err
	}
	if err := testdb.Remade(ctx, s.job.Place); err != nil {
		return err
	}
	s.ran = nil
	for _, e := range entries {
		var meta struct {
			Steps []string `json:"steps"`
		}
		if len(e.Metadata) > 0 {
			if err := json.Unmarshal(e.Metadata, &meta); err != nil {
				return err
			}
		}
		for _, p := range meta.Steps {
			s.ran = append(s.ran, p[strings.LastIndexByte(p, '/')+1:])
		}
	}
	return nil
}

func (s *scenario) status(want snapshot.Status) error {
	if s.end.Status != want {
		return fmt.Errorf("workflow is %s: %+v", s.end.Status, s.end.Error)
	}
	return nil
}

func (s *scenario) output(doc *godog.DocString) error {
	if err := s.status(snapshot.Completed); err != nil {
		return err
	}
	return equal(s.end.State.Output, doc.Content)
}

// fault compares the fields that the kit names.
func (s *scenario) fault(doc *godog.DocString) error {
	if err := s.status(snapshot.Faulted); err != nil {
		return err
	}
	v, err := value(doc.Content)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(s.end.Error)
	if err != nil {
		return err
	}
	for name, want := range v.(map[string]any) {
		got, _ := find(raw, name)
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s of the error is %v, not %v", name, got, want)
		}
	}
	return nil
}

var quoted = regexp.MustCompile(`'([^']*)'`)

func (s *scenario) properties(list string) error {
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		if _, ok := find(s.end.State.Output, m[1]); !ok {
			return fmt.Errorf("output has no %s: %s", m[1], s.end.State.Output)
		}
	}
	return nil
}

func (s *scenario) property(path string, doc *godog.DocString) error {
	v, ok := find(s.end.State.Output, path)
	if !ok {
		return fmt.Errorf("output has no %s: %s", path, s.end.State.Output)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return equal(raw, doc.Content)
}

func (s *scenario) items(path string, n int) error {
	v, _ := find(s.end.State.Output, path)
	if list, ok := v.([]any); !ok || len(list) != n {
		return fmt.Errorf("%s is %v, not %d items", path, v, n)
	}
	return nil
}

func (s *scenario) at(name string, i int) error {
	if i < 0 || s.ran[i] != name {
		return fmt.Errorf("tasks ran in the order %v", s.ran)
	}
	return nil
}

func (s *scenario) order(later, earlier string) error {
	i, j := slices.Index(s.ran, earlier), slices.Index(s.ran, later)
	if i < 0 || j < i {
		return fmt.Errorf("tasks ran in the order %v", s.ran)
	}
	return nil
}

// find follows a dotted path.
func find(raw json.RawMessage, path string) (v any, ok bool) {
	if json.Unmarshal(raw, &v) != nil {
		return nil, false
	}
	for _, name := range strings.Split(path, ".") {
		m, isObject := v.(map[string]any)
		if !isObject {
			return nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// value reads YAML as what it means in JSON.
func value(text string) (v any, err error) {
	if err = yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	v = nil
	err = json.Unmarshal(raw, &v)
	return v, err
}

func equal(got json.RawMessage, want string) error {
	w, err := value(want)
	if err != nil {
		return err
	}
	var g any
	if err := json.Unmarshal(got, &g); err != nil {
		return err
	}
	if !reflect.DeepEqual(g, w) {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}
