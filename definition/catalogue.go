package definition

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/singleflight"
)

const (
	// MaxCompiledBytes bounds the compiled definitions that a catalogue keeps,
	// unless Bound says otherwise; the one that was not used for longest is
	// dropped.
	MaxCompiledBytes = 128 << 20
	// CompiledFactor is how many bytes a compiled definition takes for each of
	// its document, roughly, and CompilingFactor how many while it is made.
	CompiledFactor  = 120
	CompilingFactor = 200
	// LoadTimeout bounds one load, which goes on when its caller has left.
	LoadTimeout = 30 * time.Second
)

// Catalogue finds what instances run: documents in a repository, and Go code.
// It is safe for use by many goroutines.
//
// A version never changes once it is published, so its compiled form is kept.
// Which version is the highest is remembered; the repository is asked each time
// for those that were published since, by any node: whoever has heard that a
// version is published starts no lower one.
type Catalogue struct {
	repo    Repository
	parsers map[string]Parser // by kind
	now     func() time.Time
	loads   singleflight.Group

	resolver Resolver // nil = documents that refer to others are refused
	steps    StepCheck
	shelf    shelf
	newest   newest
	served   func(ctx context.Context, functions []string) (unserved []string, err error)
	can      func(function string) bool // nil = whoever publishes code is not asked
	policies

	mu      sync.Mutex
	code    map[string]engine.Definition // registered, by name@version
	through Publication
	early   []Version // published while through was nil
}

// Taker takes so many bytes of memory, when they are free, until release.
type Taker func(ctx context.Context, bytes int64) (release func(), err error)

// Bound bounds the bytes of compiled definitions that are kept and of those that
// are being compiled, together, and has the latter take memory first. It is
// called once, before use.
func (c *Catalogue) Bound(most int64, take Taker) { c.shelf.most, c.shelf.take = most, take }

// New makes a catalogue of a repository.
func New(repo Repository, parsers map[string]Parser, now func() time.Time) *Catalogue {
	return &Catalogue{
		repo: repo, parsers: parsers, now: now, code: map[string]engine.Definition{}, newest: newest{repo: repo, of: map[string]highest{}},
		policies: policies{repo: repo, of: map[string]engine.Policy{}},
		shelf:    shelf{most: MaxCompiledBytes, compiled: map[string]*list.Element{}},
	}
}

// Through has versions published by f from now on, and tells it those that
// this catalogue has published already.
func (c *Catalogue) Through(ctx context.Context, f Publication) error {
	c.mu.Lock()
	early := c.early
	c.through, c.early = f, nil
	c.mu.Unlock()
	for _, v := range early {
		highest, err := c.latest(ctx, v.Record.Name)
		if err != nil {
			return err
		}
		v.Stored, v.Newest = true, highest == v.Record.Version
		if _, err := f(ctx, []Version{v}); err != nil {
			return err
		}
	}
	return nil
}

// ID is how a version is written in one word.
func ID(name, version string) string { return name + "@" + version }

// Register adds a definition that is Go code. Every node of a cluster must
// register the same ones before it runs. It may be called again with a
// definition of the same digest; with another it is definition.conflict.
func (c *Catalogue) Register(def engine.Definition) error {
	ref := def.Ref()
	if ref.Name == "" || ref.Version == "" || ref.Digest == "" {
		return problem.New(problem.Invalid, "definition.invalid", "definition %q lacks a name, a version or a digest", ID(ref.Name, ref.Version))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := ID(ref.Name, ref.Version)
	if old := c.code[id]; old != nil && old.Ref().Digest != ref.Digest {
		return problem.New(problem.Conflict, "definition.conflict", "definition %s is registered with another digest", id).
			WithHint("give changed code a new version")
	}
	c.code[id] = def
	return nil
}

// kindOf recognises the kind of a document by its first-level fields. A text
// that cannot be read at all goes to the parser, which says where.
func kindOf(source []byte) (kind string, err error) {
	const openworkflow, lifecycle = "openworkflow", "lifecycle"
	defer func() {
		if recover() != nil { // the YAML package on text that is not YAML
			kind, err = openworkflow, nil
		}
	}()
	var doc yaml.Node
	if yaml.Unmarshal(source, &doc) != nil || doc.Kind != yaml.DocumentNode {
		return openworkflow, nil
	}
	if top := doc.Content[0]; top.Kind == yaml.MappingNode {
		for i := 0; i < len(top.Content); i += 2 {
			switch top.Content[i].Value {
			case "document":
				return openworkflow, nil
			case lifecycle, KindPolicy:
				return top.Content[i].Value, nil
			}
		}
	}
	return "", problem.New(problem.Invalid, "definition.unknown-kind", "the kind of the document is not known").
		WithHint("an Open Workflow definition has a field document, a state machine a field lifecycle")
}

// Find returns a definition; version "" is the highest by semantic versioning.
// Problem: definition.unknown.
func (c *Catalogue) Find(ctx context.Context, name, version string) (engine.Definition, error) {
	if version == "" {
		var err error
		if version, err = c.latest(ctx, name); err != nil {
			return nil, err
		}
	}
	def, err := c.load(ctx, name, version)
	return laying{c}.under(ctx, def, "", err)
}

// Pinned returns exactly the definition that an instance runs. Problems:
// definition.unknown, and definition.digest when what is there now under its
// name and version is something else.
func (c *Catalogue) Pinned(ctx context.Context, ref snapshot.Definition) (engine.Definition, error) {
	def, err := laying{c}.exactly(ctx, ref)
	return laying{c}.under(ctx, def, ref.Policy, err)
}

// exactly is what a reference says, with no policy.
func (c laying) exactly(ctx context.Context, ref snapshot.Definition) (engine.Definition, error) {
	def, err := c.load(ctx, ref.Name, ref.Version)
	if err != nil {
		return nil, err
	}
	if got := def.Ref().Digest; got != ref.Digest {
		return nil, problem.New(problem.Internal, "definition.digest", "definition %s has the digest %.12s, not %.12s", ID(ref.Name, ref.Version), got, ref.Digest).
			WithHint("a version must not change; publish or register the content that the instance was started on")
	}
	return def, nil
}

// Source returns the record of a published document; version "" is the
// highest. Problem: definition.unknown.
func (c *Catalogue) Source(ctx context.Context, name, version string) (Record, error) {
	if version == "" {
		var err error
		if version, err = c.latest(ctx, name); err != nil {
			return Record{}, err
		}
	}
	if c.registered(ID(name, version)) != nil {
		return Record{}, problem.New(problem.NotFound, "definition.unknown", "definition %s is Go code and has no document", ID(name, version))
	}
	return c.repo.Definition(ctx, name, version)
}

// latest returns the highest version of a name.
func (c *Catalogue) latest(ctx context.Context, name string) (string, error) {
	best, err := c.newest.version(ctx, name)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	for _, def := range c.code {
		if ref := def.Ref(); ref.Name == name {
			best = higher(best, ref.Version)
		}
	}
	c.mu.Unlock()
	if best == "" {
		return "", problem.New(problem.NotFound, "definition.unknown", "definition %s is not known", name)
	}
	return best, nil
}

// newest remembers the highest published version of each name, with the ordinal up to
// which it has compared.
type newest struct {
	repo Repository
	mu   sync.Mutex
	of   map[string]highest
}

type highest struct {
	ordinal int
	version string
}

// highestMax bounds the names of which it is remembered.
const highestMax = 10_000

// version returns the highest version of a name that is published, "" for none. It is
// compared with those that are new.
func (n *newest) version(ctx context.Context, name string) (string, error) {
	n.mu.Lock()
	h := n.of[name]
	n.mu.Unlock()
	records, err := n.repo.Versions(ctx, name, h.ordinal)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return "", err
	}
	if len(records) == 0 {
		return h.version, nil
	}
	for _, r := range records {
		h = highest{max(h.ordinal, r.Ordinal), higher(h.version, r.Version)}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.of) >= highestMax {
		clear(n.of)
	}
	n.of[name] = h
	return h.version, nil
}

func higher(a, b string) string {
	if a == "" || compareVersions(b, a) > 0 {
		return b
	}
	return a
}

func (c *Catalogue) registered(id string) engine.Definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code[id]
}

// load returns a version, compiled at most once by all who ask at the same
// time. Who asked first may leave: the load goes on for the others.
func (c *Catalogue) load(ctx context.Context, name, version string) (engine.Definition, error) {
	return c.loaded(ctx, name, version, func(ctx context.Context) (engine.Definition, int, error) {
		r, err := c.repo.Definition(ctx, name, version)
		if err != nil {
			return nil, 0, err
		}
		p, err := c.read(ctx, name, version, r)
		if err == nil && p.Definition == nil {
			err = problem.New(problem.NotFound, "definition.unknown", "%s is a policy, and nothing runs it", ID(name, version))
		}
		return p.Definition, len(r.Document), err
	})
}

func (c *Catalogue) loaded(
	ctx context.Context, name, version string, compile func(context.Context) (def engine.Definition, document int, err error),
) (engine.Definition, error) {
	if def := c.kept(name, version); def != nil {
		return def, nil
	}
	id := ID(name, version)
	detached := context.WithoutCancel(ctx)
	result := c.loads.DoChan(id, func() (any, error) {
		if def := c.kept(name, version); def != nil {
			return def, nil
		}
		ctx, cancel := context.WithTimeout(detached, LoadTimeout)
		defer cancel()
		def, document, err := compile(ctx)
		if err != nil {
			return nil, err
		}
		c.shelf.keep(id, def, document)
		return def, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("definition: load %s: %w", id, context.Cause(ctx))
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(engine.Definition), nil
	}
}

// Verify says what is wrong with a stored record, as whoever needs it would hear.
func (c *Catalogue) Verify(ctx context.Context, r Record) error {
	if r.Kind == kindGo {
		return verifyCode(r)
	}
	_, err := c.read(ctx, r.Name, r.Version, r)
	return err
}

// read compiles the record of name@version, with what it is given besides.
func (c *Catalogue) read(ctx context.Context, name, version string, r Record, besides ...Resource) (Parsed, error) {
	parse := c.parsers[r.Kind]
	if r.Kind == kindGo {
		return Parsed{}, elsewhere(name, version)
	}
	if parse == nil {
		return Parsed{}, problem.New(problem.Unavailable, "definition.unknown-kind", "this node reads no documents of kind %s", r.Kind).
			WithHint("upgrade this node; another one has published the definition")
	}
	release, err := c.shelf.compiling(ctx, len(r.Document))
	if err != nil {
		return Parsed{}, err
	}
	defer release()
	given, err := pinned(r.Document)
	var p Parsed
	if err == nil {
		p, err = parse(ID(name, version), r.Source, append(given, besides...)...)
	}
	if err == nil && len(p.Needs) > 0 {
		err = fmt.Errorf("the document at %s is not stored with it", p.Needs[0].URI)
	}
	if err != nil {
		return Parsed{}, problem.Wrap(err, problem.Internal, "definition.stored", "definition %s is stored and cannot be compiled", ID(name, version))
	}
	if p.Ref.Digest != r.Digest || p.Ref.Name != name || p.Ref.Version != version {
		return Parsed{}, problem.New(problem.Internal, "definition.digest", "definition %s is stored with the digest %.12s, and its source has %.12s", ID(name, version), r.Digest, p.Ref.Digest)
	}
	return p, nil
}
