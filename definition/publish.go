package definition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of what is published in one commit.
const (
	MaxDocuments      = 100     // definitions and policies
	MaxDocumentsBytes = 4 << 20 // of their sources, together
)

// Document is what an author wrote; File names it in findings.
type Document struct {
	File   string
	Source []byte
}

// Published is a version, and whether the publication has made it: false = the same was
// published before.
type Published struct {
	Record
	Created bool
}

// Version is what a publication stores of one version.
type Version struct {
	Definition engine.Definition // nil of a policy
	Record     *Record           // nil = it is stored already
	Newest     bool              // no version of the name is higher, in the publication neither
}

// Publication stores versions, and what their publication changes besides, in one
// commit; created is false when one of them is there, or another of its name has its
// ordinal.
type Publication func(ctx context.Context, versions []Version) (created bool, err error)

// publishing is what the catalogue does with documents that become versions.
type publishing struct{ *Catalogue }

// candidate is a document on its way to be a version.
type candidate struct {
	Published
	parsed Parsed
	there  bool            // it is stored already
	newest bool            // of its name, when those before it are stored
	warned []problem.Place // of what it has to do with others
}

// Publish parses a document and stores it. Publishing the same document again
// changes nothing; created is false then.
//
// The documents that it refers to are fetched once, now, and what is needed of
// them is stored with it.
//
// Problems: definition.invalid with all findings, also about steps, definition.unknown-kind,
// definition.cyclic, definition.conflict when the version is there with other
// content, definition.resource-unavailable when something it refers to is out of
// reach, and definition.memory when this node has too little to compile it.
func (c *Catalogue) Publish(ctx context.Context, file string, source []byte) (stored Record, created bool, err error) {
	all, err := c.PublishAll(ctx, []Document{{file, source}})
	if err != nil {
		return Record{}, false, err
	}
	return all[0].Record, all[0].Created, nil
}

// PublishAll publishes documents, definitions and policies, in one commit: all or none.
// Each may name what another of them defines, and their order means nothing: of several
// versions of a name the lowest is published first. It returns them in the order given.
//
// Problems: those of Publish, which name the document; definition.conflict when two
// documents are the same version; definition.too-many beyond MaxDocuments and
// MaxDocumentsBytes.
func (c *Catalogue) PublishAll(ctx context.Context, documents []Document) ([]Published, error) {
	p := publishing{c}
	if err := p.bearable(documents); err != nil {
		return nil, err
	}
	all, err := p.candidates(ctx, documents)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Kind == KindPolicy {
			defer c.forget(p.Name)
		}
	}
	if err := p.put(ctx, all); err != nil {
		return nil, err
	}
	out := make([]Published, len(all))
	for i, p := range all {
		if p.parsed.Definition != nil {
			c.shelf.keep(ID(p.Name, p.Version), p.parsed.Definition, len(p.parsed.Document))
		}
		out[i] = p.Published
		out[i].Warnings = append(slices.Clip(p.parsed.Warnings), p.warned...)
	}
	return out, nil
}

// bearable refuses what is too much for one commit, or for this node to compile.
func (c publishing) bearable(documents []Document) error {
	bytes := 0
	for i := range documents {
		bytes += len(documents[i].Source)
	}
	if n := len(documents); n != 1 && (n == 0 || n > MaxDocuments || bytes > MaxDocumentsBytes) {
		return problem.New(problem.TooLarge, "definition.too-many", "%d documents of %d bytes, of 1 to %d of up to %d bytes together", n, bytes, MaxDocuments, MaxDocumentsBytes).
			WithHint("publish first what the others name")
	}
	return c.shelf.compilable(bytes)
}

// candidates parses documents, and says all that is wrong with any of them.
func (c publishing) candidates(ctx context.Context, documents []Document) ([]*candidate, error) {
	var all []*candidate
	var wrong []error
	size := 0
	for _, d := range documents {
		p, err := c.candidate(ctx, d)
		if err = named(err, d.File, len(documents)); problem.KindOf(err) == problem.Invalid {
			wrong = append(wrong, err)
			continue
		}
		if err != nil { // it is not of the document alone
			return nil, err
		}
		size += len(p.parsed.Document)
		for _, other := range all {
			if other.Name == p.Name && other.Version == p.Version {
				return nil, problem.New(problem.Conflict, "definition.conflict", "%s and %s are both %s", other.parsed.file, d.File, ID(p.Name, p.Version)).
					WithHint("leave one out, or give it another version")
			}
		}
		all = append(all, p)
	}
	if len(wrong) > 0 {
		return nil, together(wrong)
	}
	for _, p := range all {
		if p.parsed.Definition == nil || p.there {
			continue
		}
		if err := c.acyclic(ctx, p.parsed.Definition, all); err != nil {
			return nil, named(err, p.parsed.file, len(documents))
		}
	}
	return all, c.shelf.compilable(size)
}

// candidate parses one document.
func (c publishing) candidate(ctx context.Context, d Document) (*candidate, error) {
	release, err := c.shelf.compiling(ctx, len(d.Source))
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(d.Source)
	if release(); err != nil {
		return nil, err
	}
	parse := c.parsers[kind]
	if parse == nil {
		return nil, problem.New(problem.Invalid, "definition.unknown-kind", "this node reads no documents of kind %s", kind)
	}
	parsed, before, err := c.resolved(ctx, c.shelf.bounded(ctx, parse), d.File, d.Source)
	if err == nil {
		err = c.shelf.compilable(len(parsed.Document))
	}
	if err != nil {
		return nil, err
	}
	parsed.file = d.File
	if before != nil {
		return &candidate{Published: Published{Record: *before}, parsed: parsed, there: true}, nil
	}
	if id := ID(parsed.Ref.Name, parsed.Ref.Version); c.registered(id) != nil {
		return nil, problem.New(problem.Conflict, "definition.conflict", "definition %s is Go code of this node", id).
			WithHint("choose another name or version")
	}
	return &candidate{parsed: parsed, Published: Published{Record: Record{
		Name: parsed.Ref.Name, Version: parsed.Ref.Version, Digest: parsed.Ref.Digest, Kind: kind, Title: parsed.Title,
		Source: bytes.Clone(d.Source), Document: parsed.Document, PublishedAt: c.now().UTC().Truncate(time.Microsecond),
	}}}, nil
}

// named has a problem say which of several documents it is about.
func named(err error, file string, of int) error {
	var p *problem.Error
	if of == 1 || !errors.As(err, &p) || len(p.Where) > 0 && p.Where[0].File == file {
		return err
	}
	e := *p
	e.Detail = file + ": " + e.Detail
	return &e
}

// together makes one problem of those of several documents.
func together(wrong []error) error {
	if len(wrong) == 1 {
		return wrong[0]
	}
	var first *problem.Error
	errors.As(wrong[0], &first)
	e := *first
	e.Where = slices.Clone(first.Where)
	var others []string
	for _, err := range wrong[1:] {
		var p *problem.Error
		errors.As(err, &p)
		if len(p.Where) == 0 {
			others = append(others, p.Detail)
		}
		e.Where = append(e.Where, p.Where...)
	}
	e.Where = e.Where[:min(len(e.Where), maxFindings)]
	e.Detail += "; of the other documents " + cmp.Or(strings.Join(others, "; "), "see the places")
	return &e
}

// putMax bounds how often a publication is tried again because another of its
// names was faster. Each time one has been stored.
const putMax = 100

// put stores versions behind all others of their names, so that each publication
// knows those before it.
func (c publishing) put(ctx context.Context, all []*candidate) error {
	for range putMax {
		fresh, err := c.arrange(ctx, all)
		if err != nil || len(fresh) == 0 {
			return err
		}
		versions := make([]Version, len(fresh))
		for i, p := range fresh {
			if err := c.tried(ctx, p, fresh, len(all)); err != nil { // only now: what is there may have lost its steps
				return err
			}
			last := i == len(fresh)-1 || fresh[i+1].Name != p.Name
			versions[i] = Version{Definition: p.parsed.Definition, Record: &p.Record, Newest: p.newest && last && p.parsed.Definition != nil}
		}
		created, err := c.store(ctx, versions)
		if err != nil {
			return err
		}
		if created {
			for _, p := range fresh {
				p.Created = true
			}
			return nil
		}
	}
	return problem.New(problem.Unavailable, "definition.contended", "%d versions of %s were published at the same time", putMax, all[0].Name).
		WithHint("publish it again")
}

// arrange gives each its place among the versions of its name, in the order in which they
// come there, and returns those that are not stored yet.
func (c publishing) arrange(ctx context.Context, all []*candidate) (fresh []*candidate, err error) {
	inOrder := slices.SortedFunc(slices.Values(all), func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), compareVersions(a.Version, b.Version))
	})
	known := map[string][]Record{}
	for _, p := range inOrder {
		others, asked := known[p.Name]
		if !asked {
			if others, err = c.repo.Versions(ctx, p.Name, 0); err != nil && problem.KindOf(err) != problem.NotFound {
				return nil, err
			}
		}
		p.Ordinal, p.newest = 1, true
		for _, other := range others {
			if p.there = p.there || other.Version == p.Version; p.there {
				break
			}
			p.Ordinal = max(p.Ordinal, other.Ordinal+1)
			p.newest = p.newest && compareVersions(p.Version, other.Version) > 0
		}
		if !p.there {
			known[p.Name], fresh = append(others, p.Record), append(fresh, p)
			continue
		}
		known[p.Name] = others
		if p.Record, err = c.stored(ctx, p.Record); err != nil {
			return nil, named(err, p.parsed.file, len(all))
		}
	}
	return fresh, nil
}

// tried looks at what a version has to do with others.
func (c publishing) tried(ctx context.Context, p *candidate, fresh []*candidate, of int) error {
	warnings, err := c.checked(ctx, p.parsed)
	if err == nil && p.Kind == KindPolicy {
		var some []problem.Place
		some, err = laying(c).laid(ctx, p, fresh)
		warnings = append(warnings, some...)
	} else if err == nil {
		var some []problem.Place
		some, err = c.unguarded(ctx, p)
		warnings = append(warnings, some...)
	}
	p.warned = warnings
	return named(err, p.parsed.file, of)
}

// stored returns the version that is stored already, if it has the same content.
func (c publishing) stored(ctx context.Context, r Record) (Record, error) {
	stored, err := c.repo.Definition(ctx, r.Name, r.Version)
	if err != nil {
		return Record{}, err
	}
	if stored.Digest != r.Digest {
		return Record{}, problem.New(problem.Conflict, "definition.conflict", "%s is published with digest %.12s, this document has %.12s",
			ID(r.Name, r.Version), stored.Digest, r.Digest).
			WithHint("a published definition never changes; give the document a new version")
	}
	return stored, nil
}

// store writes versions, by way of who else has to do with them.
func (c publishing) store(ctx context.Context, versions []Version) (bool, error) {
	c.mu.Lock()
	through := c.through
	c.mu.Unlock()
	if through != nil {
		return through(ctx, versions)
	}
	records := make([]Record, len(versions))
	for i := range versions {
		records[i] = *versions[i].Record
	}
	created, err := c.repo.PutDefinitions(ctx, records)
	if created {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, v := range versions {
			if v.Definition != nil {
				c.early = append(c.early, v.Definition)
			}
		}
	}
	return created, err
}
