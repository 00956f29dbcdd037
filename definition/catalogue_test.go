package definition_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// memory is a repository for these tests. Gate, when set, holds loads back.
type memory struct {
	mu      sync.Mutex
	records map[string]definition.Record
	loads   int
	read    int // versions
	fail    error
	gate    chan struct{}
}

func (m *memory) PutDefinitions(_ context.Context, records []definition.Record) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[string]definition.Record{}
	maps.Copy(next, m.records)
	for _, r := range records {
		for _, old := range next {
			if old.Name == r.Name && (old.Version == r.Version || old.Ordinal == r.Ordinal) {
				return false, nil
			}
		}
		next[definition.ID(r.Name, r.Version)] = r
	}
	m.records = next
	return true, nil
}

func (m *memory) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	m.mu.Lock()
	m.loads++
	gate, fail := m.gate, m.fail
	r, ok := m.records[definition.ID(name, version)]
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
	if fail != nil {
		return r, fail
	}
	if !ok {
		return r, problem.New(problem.NotFound, "definition.unknown", "definition %s@%s is not known", name, version)
	}
	return r, nil
}

func (m *memory) Versions(_ context.Context, name string, after int) ([]definition.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var res []definition.Record
	for _, r := range m.records {
		if r.Name == name && r.Ordinal > after {
			m.read++
			res = append(res, definition.Record{Name: r.Name, Version: r.Version, Digest: r.Digest, Ordinal: r.Ordinal})
		}
	}
	return res, nil
}

func (m *memory) Definitions(context.Context, string, int) ([]definition.Record, error) {
	return nil, nil
}

var moment = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func catalogue(m *memory) *definition.Catalogue {
	return definition.New(m, openworkflow.Parsers(), func() time.Time { return moment })
}

func source(version string, x int) []byte {
	return fmt.Appendf(nil, "document: { dsl: '1.0.3', namespace: t, name: n, version: '%s', title: T }\ndo: [ a: { set: { x: %d } } ]\n", version, x)
}

func publish(t *testing.T, c *definition.Catalogue, version string) definition.Record {
	t.Helper()
	r, _, err := c.Publish(t.Context(), "n.yaml", source(version, 1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPublish(t *testing.T) {
	t.Parallel()
	c := catalogue(&memory{})
	r, created, err := c.Publish(t.Context(), "n.yaml", source("1.0.0", 1))
	if err != nil || !created || r.Name != "t/n" || r.Kind != "openworkflow" || r.Title != "T" || !r.PublishedAt.Equal(moment.Truncate(time.Microsecond)) {
		t.Fatalf("%+v, %v, %v", r, created, err)
	}
	if _, created, err = c.Publish(t.Context(), "n.yaml", append(source("1.0.0", 1), "# the same\n"...)); err != nil || created {
		t.Errorf("again: %v, %v", created, err)
	}
	for text, want := range map[string]string{
		string(source("1.0.0", 2)): "definition.conflict",
		"a: 1":                     "definition.unknown-kind",
		"[1]":                      "definition.unknown-kind",
		"a: [":                     "definition.invalid",
		"":                         "definition.invalid",
		"document: {}":             "definition.invalid",
		strings.Repeat("[", 20000): "definition.invalid",
	} {
		if _, _, err := c.Publish(t.Context(), "n.yaml", []byte(text)); problem.CodeOf(err) != want {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	got, err := c.Source(t.Context(), "t/n", "")
	if err != nil || string(got.Source) != string(source("1.0.0", 1)) || !json.Valid(got.Document) {
		t.Errorf("source: %+v, %v", got, err)
	}
}

// A version with a step that cannot be done is not published, each finding at its place;
// one that is published is not looked at again.
func TestStepsAreCheckedWhenPublished(t *testing.T) {
	t.Parallel()
	const text = `document: {dsl: '1.0.3', namespace: t, name: s, version: '1.0.0'}
do: [{a: {call: sql, with: {statement: one, args: {x: 1}}}}]
`
	var wrong, doubtful []problem.Place
	var broken error
	asked := 0
	c := catalogue(&memory{})
	c.CheckSteps(func(_ context.Context, s definition.Step) (_, _ []problem.Place, _ error) {
		if asked++; s.Target != "sql/one" || string(s.Known["x"]) != "1" {
			t.Errorf("asked about %+v", s)
		}
		return wrong, doubtful, broken
	})
	publish := func() (string, error) {
		r, _, err := c.Publish(t.Context(), "s.yaml", []byte(text))
		var at []string
		for _, w := range r.Warnings {
			at = append(at, w.String())
		}
		return strings.Join(at, " "), err
	}
	broken = problem.New(problem.Unavailable, "store.busy", "later")
	if _, err := publish(); problem.CodeOf(err) != "store.busy" {
		t.Errorf("a check that was not made: %v", err)
	}
	broken = nil
	for range 120 {
		wrong = append(wrong, problem.Place{Pointer: "/args/x", Code: "step.arguments", Detail: "no"})
	}
	_, err := publish()
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != "definition.invalid" || len(p.Where) != 100 || p.Hint != "20 more findings are not shown" ||
		p.Where[0].String() != "s.yaml:2:52: /do/0/a/with/args/x: no" || p.Where[0].Code != "step.arguments" {
		t.Errorf("%v", err)
	}
	wrong, doubtful = nil, []problem.Place{{Pointer: "/statement", Code: "warning.unknown-step", Detail: "maybe"}}
	if warned, err := publish(); err != nil || warned != "s.yaml:2:29: /do/0/a/with/statement: maybe" {
		t.Errorf("%q, %v", warned, err)
	}
	wrong, asked = doubtful, 0
	if warned, err := publish(); err != nil || warned != "" || asked > 0 {
		t.Errorf("what is published: %q, %v, asked %d times", warned, err, asked)
	}
}

func TestFindTheHighestVersion(t *testing.T) {
	t.Parallel()
	m := &memory{}
	c, other := catalogue(m), catalogue(m)
	for _, v := range []string{"1.9.0", "1.10.0", "1.2.0", "2.0.0-rc.1"} {
		publish(t, c, v)
	}
	find := func(version, want string) {
		t.Helper()
		def, err := c.Find(t.Context(), "t/n", version)
		if err != nil || def.Ref().Version != want {
			t.Errorf("find %q: %v, %v", version, def, err)
		}
	}
	find("", "2.0.0-rc.1")
	find("1.9.0", "1.9.0")
	publish(t, other, "2.0.0") // another node
	find("", "2.0.0")
	for _, name := range []string{"", "3.0.0"} {
		if _, err := c.Find(t.Context(), "t/none", name); problem.CodeOf(err) != "definition.unknown" {
			t.Errorf("unknown: %v", err)
		}
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	c := catalogue(&memory{})
	r := publish(t, c, "1.0.0")
	ref := snapshot.Definition{Name: r.Name, Version: r.Version, Digest: r.Digest}
	if def, err := c.Pinned(t.Context(), ref); err != nil || def.Ref() != ref {
		t.Errorf("%v, %v", def, err)
	}
	ref.Digest = "other"
	if _, err := c.Pinned(t.Context(), ref); problem.CodeOf(err) != "definition.digest" {
		t.Errorf("other digest: %v", err)
	}
	ref.Version = "9.0.0"
	if _, err := c.Pinned(t.Context(), ref); problem.CodeOf(err) != "definition.unknown" {
		t.Errorf("unknown: %v", err)
	}
}

func TestStoredDefinitionsAreChecked(t *testing.T) {
	t.Parallel()
	m := &memory{}
	r := publish(t, catalogue(m), "1.0.0")
	for what, change := range map[string]func(*definition.Record){
		"definition.digest":       func(r *definition.Record) { r.Source = source("1.0.0", 2) },
		"definition.stored":       func(r *definition.Record) { r.Source = []byte("a: 1") },
		"definition.unknown-kind": func(r *definition.Record) { r.Kind = "petri-net" },
	} {
		bad := r
		change(&bad)
		m.records["t/n@1.0.0"] = bad
		if _, err := catalogue(m).Find(t.Context(), "t/n", "1.0.0"); problem.CodeOf(err) != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		publish(t, catalogue(m), "1.0.0")
		m.gate = make(chan struct{})
		c := catalogue(m)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := c.Find(ctx, "t/n", "1.0.0"); first <- err }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := c.Find(t.Context(), "t/n", "1.0.0"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
		close(m.gate)
		wg.Wait()
		if m.loads != 1 {
			t.Errorf("%d loads", m.loads)
		}
	})
}

func TestFailedLoadsAreNotKept(t *testing.T) {
	t.Parallel()
	m := &memory{fail: errors.New("down")}
	publish(t, catalogue(m), "1.0.0")
	c := catalogue(m)
	if _, err := c.Find(t.Context(), "t/n", "1.0.0"); err == nil || err.Error() != "down" {
		t.Errorf("%v", err)
	}
	m.fail = nil
	for range 3 {
		if _, err := c.Find(t.Context(), "t/n", "1.0.0"); err != nil {
			t.Error(err)
		}
	}
	if m.loads != 2 {
		t.Errorf("%d loads", m.loads)
	}
}

func TestCompiledIsBounded(t *testing.T) {
	t.Parallel()
	m := &memory{}
	c := catalogue(m)
	publish(t, c, "0.0.1")
	record, err := m.Definition(t.Context(), "t/n", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	const kept = 10
	c.Bound(int64(kept*(len(record.Document)+1)*definition.CompiledFactor), nil)
	for i := range kept + 1 {
		publish(t, c, fmt.Sprintf("1.0.%d", i))
	}
	for version, loads := range map[string]int{"1.0.5": 0, "1.0.0": 1} {
		before := m.loads
		if _, err := c.Find(t.Context(), "t/n", version); err != nil || m.loads-before != loads {
			t.Errorf("%s: %d loads, %v", version, m.loads-before, err)
		}
	}
}

// code is a definition that is Go code.
type code struct {
	engine.Definition
	ref snapshot.Definition
}

func (c code) Ref() snapshot.Definition { return c.ref }

func TestRegister(t *testing.T) {
	t.Parallel()
	c := catalogue(&memory{})
	publish(t, c, "1.0.0")
	def := code{ref: snapshot.Definition{Name: "t/n", Version: "1.1.0", Digest: "d"}}
	if err := c.Register(def); err != nil {
		t.Fatal(err)
	}
	if err := c.Register(def); err != nil {
		t.Errorf("again: %v", err)
	}
	if got, err := c.Find(t.Context(), "t/n", ""); err != nil || got.Ref() != def.ref {
		t.Errorf("find: %v, %v", got, err)
	}
	if _, err := c.Pinned(t.Context(), def.ref); err != nil {
		t.Errorf("pinned: %v", err)
	}
	if _, err := c.Source(t.Context(), "t/n", "1.1.0"); problem.CodeOf(err) != "definition.unknown" {
		t.Errorf("source: %v", err)
	}
	if _, _, err := c.Publish(t.Context(), "n.yaml", source("1.1.0", 1)); problem.CodeOf(err) != "definition.conflict" {
		t.Errorf("publish: %v", err)
	}
	def.ref.Digest = "e"
	if err := c.Register(def); problem.CodeOf(err) != "definition.conflict" {
		t.Errorf("other digest: %v", err)
	}
	if err := c.Register(code{}); problem.CodeOf(err) != "definition.invalid" {
		t.Errorf("no name: %v", err)
	}
}

// TestCompilingTakesMemory: neither more than there is nor while what was
// compiled is stored, which may wait for turns that wait for definitions.
func TestCompilingTakesMemory(t *testing.T) {
	t.Parallel()
	c := catalogue(&memory{})
	var taken, most, stored int64
	c.Bound(1<<20, func(_ context.Context, bytes int64) (func(), error) {
		taken += bytes
		most = max(most, taken)
		return func() { taken -= bytes }, nil
	})
	if err := c.Through(t.Context(), func(context.Context, []definition.Version) (bool, error) {
		stored = taken
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	publish(t, c, "1.0.0")
	if most == 0 || most > 1<<20 || stored != 0 || taken != 0 {
		t.Errorf("at most %d, %d while it is stored, %d after", most, stored, taken)
	}
	large := append([]byte("document: {dsl: '1.0.3', namespace: t, name: n, version: '2.0.0'}\ndo: [{a: {set: {x: 1}}}]\n#"), bytes.Repeat([]byte("x"), 6000)...)
	if _, _, err := c.Publish(t.Context(), "n.yaml", large); problem.CodeOf(err) != "definition.memory" || problem.KindOf(err) != problem.TooLarge {
		t.Errorf("a definition that is too large: %v", err)
	}
}

// TestTheHighestVersionIsRemembered: starts without a version read each version of a
// name once, whichever node has published it.
func TestTheHighestVersionIsRemembered(t *testing.T) {
	t.Parallel()
	repo := &memory{}
	here, there := catalogue(repo), catalogue(repo)
	want := func(version string, read int) {
		t.Helper()
		for range 3 {
			d, err := here.Find(t.Context(), "t/n", "")
			if err != nil || d.Ref().Version != version {
				t.Fatalf("%v %v, want %s", d, err, version)
			}
		}
		if repo.read != read {
			t.Errorf("%d versions were read, want %d", repo.read, read)
		}
		repo.read = 0
	}
	another := func(c *definition.Catalogue, version string) {
		t.Helper()
		publish(t, c, version)
		repo.read = 0
	}
	if _, err := here.Find(t.Context(), "t/n", ""); problem.CodeOf(err) != "definition.unknown" {
		t.Error(err)
	}
	another(here, "1.0.0")
	want("1.0.0", 1)
	another(there, "1.10.0")
	want("1.10.0", 1)
	another(there, "1.9.0") // last, and not the highest
	want("1.10.0", 1)
	want("1.10.0", 0)
}
