package definition

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"golang.org/x/sync/singleflight"
)

// MaxCompiled bounds how many compiled definitions a catalogue keeps; the one
// used longest ago is compiled again when it is asked for.
const MaxCompiled = 1_000

// Catalogue publishes definitions and finds them compiled. Its methods may be
// called from many goroutines.
type Catalogue struct {
	repo    Repository
	parsers map[string]Parser
	now     func() time.Time

	loads singleflight.Group // one load of a definition at a time

	mu       sync.Mutex
	compiled map[string]*list.Element // by name@version
	order    *list.List               // of entry, front = used last
	code     map[string]engine.Definition
}

type entry struct {
	ref string
	def engine.Definition
}

// New makes a catalogue over a repository. Parsers are by kind.
func New(repo Repository, parsers map[string]Parser, now func() time.Time) *Catalogue {
	return &Catalogue{
		repo: repo, parsers: parsers, now: now,
		compiled: map[string]*list.Element{}, order: list.New(), code: map[string]engine.Definition{},
	}
}

// Publish parses a document and stores it for good under its name@version. The
// same document again changes nothing (created is false). Problems:
// definition.invalid with every finding, definition.unknown-kind,
// definition.conflict when the version exists with another content.
func (c *Catalogue) Publish(ctx context.Context, file string, source []byte) (r Record, created bool, err error) {
	kind := kindOf(source)
	parse, ok := c.parsers[kind]
	if !ok {
		return Record{}, false, problem.New(problem.Invalid, "definition.unknown-kind", "%s is no definition: it has no top-level key document", name(file)).
			WithHint("a definition begins with document: {dsl: '1.0.3', namespace: …, name: …, version: …}")
	}
	p, err := parse(file, source)
	if err != nil {
		return Record{}, false, err
	}
	if c.registered(p.Ref.Name) != nil {
		return Record{}, false, problem.New(problem.Conflict, "definition.conflict", "%s is a definition in Go code", p.Ref.Name)
	}
	return c.repo.PutDefinition(ctx, Record{
		Name: p.Ref.Name, Version: p.Ref.Version, Digest: p.Ref.Digest, Kind: kind, Title: p.Title,
		Source: source, Document: p.Document, PublishedAt: c.now().UTC().Truncate(time.Microsecond),
	})
}

func name(file string) string {
	if file == "" {
		return "the document"
	}
	return file
}

// kindOf tells the kind of a document by a look at its top level. It is only a
// hint: the parser says what is wrong with what it is given. Anything that is
// not plainly another kind is given to the language, whose parser explains best.
func kindOf(source []byte) string {
	for line := range bytes.Lines(source) {
		if bytes.HasPrefix(line, []byte("document")) {
			return "openworkflow"
		}
	}
	if bytes.Contains(source, []byte(`"document"`)) {
		return "openworkflow"
	}
	return ""
}

// Register adds a definition written in Go. It is found by its name, whatever
// version is asked for, on every node that registers it.
func (c *Catalogue) Register(def engine.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code[def.Ref().Name] = def
}

func (c *Catalogue) registered(name string) engine.Definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code[name]
}

// Find returns name@version compiled; an empty version is the highest
// published one, by semantic version. Problem: definition.unknown.
func (c *Catalogue) Find(ctx context.Context, name, version string) (engine.Definition, error) {
	if def := c.registered(name); def != nil {
		return def, nil
	}
	if version == "" {
		versions, err := c.repo.Versions(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(versions) == 0 {
			return nil, problem.New(problem.NotFound, "definition.unknown", "definition %s is not published", name)
		}
		version = slices.MaxFunc(versions, func(a, b Record) int { return CompareVersions(a.Version, b.Version) }).Version
	}
	return c.load(ctx, name, version)
}

// Pinned returns the definition that an instance runs, and only that: another
// content under the same name@version is the problem definition.digest.
func (c *Catalogue) Pinned(ctx context.Context, ref snapshot.Definition) (engine.Definition, error) {
	def, err := c.Find(ctx, ref.Name, ref.Version)
	if err != nil {
		return nil, err
	}
	if got := def.Ref(); got.Digest != ref.Digest || got.Version != ref.Version {
		return nil, problem.New(problem.Internal, "definition.digest", "definition %s@%s has digest %.12s, the instance runs %.12s",
			ref.Name, ref.Version, got.Digest, ref.Digest)
	}
	return def, nil
}

// Source returns a published record with what the author wrote.
func (c *Catalogue) Source(ctx context.Context, name, version string) (Record, error) {
	return c.repo.Definition(ctx, name, version)
}

// load returns a compiled definition from memory, or compiles it once for all
// who wait. A caller that gives up does not spoil the load for the others.
func (c *Catalogue) load(ctx context.Context, name, version string) (engine.Definition, error) {
	ref := name + "@" + version
	if def := c.cached(ref); def != nil {
		return def, nil
	}
	done := c.loads.DoChan(ref, func() (any, error) {
		return c.compile(context.WithoutCancel(ctx), name, version)
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(engine.Definition), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Catalogue) cached(ref string) engine.Definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.compiled[ref]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(entry).def
}

func (c *Catalogue) compile(ctx context.Context, name, version string) (engine.Definition, error) {
	r, err := c.repo.Definition(ctx, name, version)
	if err != nil {
		return nil, err
	}
	parse, ok := c.parsers[r.Kind]
	if !ok {
		return nil, problem.New(problem.Unavailable, "definition.unknown-kind", "definition %s@%s is of kind %q, which this node cannot read", name, version, r.Kind).
			WithHint("upgrade this node")
	}
	if sum := sha256.Sum256(r.Document); hex.EncodeToString(sum[:]) != r.Digest {
		return nil, problem.New(problem.Internal, "definition.digest", "definition %s@%s does not have the digest it was published with", name, version)
	}
	p, err := parse("", r.Document)
	if err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, "definition.unreadable", "definition %s@%s was published by another release", name, version)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ref := name + "@" + version
	c.compiled[ref] = c.order.PushFront(entry{ref, p.Definition})
	if c.order.Len() > MaxCompiled {
		last := c.order.Back()
		delete(c.compiled, c.order.Remove(last).(entry).ref)
	}
	return p.Definition, nil
}

// CompareVersions orders semantic versions: numbers by value, a pre-release
// before its release. What is not a semantic version is ordered as text.
func CompareVersions(a, b string) int {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	coreA, preA, hasA := strings.Cut(a, "-")
	coreB, preB, hasB := strings.Cut(b, "-")
	if c := compareDotted(coreA, coreB); c != 0 {
		return c
	}
	switch {
	case hasA && !hasB:
		return -1
	case !hasA && hasB:
		return 1
	}
	return compareDotted(preA, preB)
}

func compareDotted(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		c := strings.Compare(as[i], bs[i])
		switch {
		case errX == nil && errY == nil:
			c = x - y
		case errX == nil:
			c = -1 // numbers come before words
		case errY == nil:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return len(as) - len(bs)
}
