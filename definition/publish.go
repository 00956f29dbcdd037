package definition

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
	Definition func(context.Context) (engine.Definition, error) // nil of a policy; one that was not kept is compiled again
	Record     *Record
	Stored     bool // already: it is told, and not stored again
	Newest     bool // no version of the name is higher, in the publication neither
}

// Publication stores versions, and what their publication changes besides, in one
// commit; created is false when one of them is there, or another of its name has its
// ordinal.
type Publication func(ctx context.Context, versions []Version) (created bool, err error)

// publishing is what the catalogue does with documents that become versions.
type publishing struct{ *Catalogue }

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
	if err := bearable(documents); err != nil {
		return nil, err
	}
	documents = called(documents)
	all, found, err := p.candidates(ctx, documents)
	defer func() {
		for _, p := range all {
			p.release()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Kind == KindPolicy {
			defer c.forget(p.Name)
		}
	}
	if err := p.put(ctx, all, found); err != nil {
		return nil, err
	}
	out := make([]Published, len(all))
	for i, p := range all {
		if p.release(); p.parsed.Definition != nil {
			c.shelf.keep(ID(p.Name, p.Version), p.parsed.Definition, len(p.parsed.Document))
		}
		out[i] = p.Published
		out[i].Warnings = append(slices.Clip(p.parsed.Warnings), p.warned...)
	}
	return out, nil
}

// bearable refuses what is too much for one commit.
func bearable(documents []Document) error {
	bytes := 0
	for i := range documents {
		bytes += len(documents[i].Source)
	}
	if n := len(documents); n != 1 && (n == 0 || n > MaxDocuments || bytes > MaxDocumentsBytes) {
		return problem.New(problem.TooLarge, "definition.too-many", "%d documents of %d bytes, of 1 to %d of up to %d bytes together", n, bytes, MaxDocuments, MaxDocumentsBytes).
			WithHint("publish first what the others name")
	}
	return nil
}

// called has each of several documents called something: its file, or its place.
func called(documents []Document) []Document {
	if len(documents) == 1 {
		return documents
	}
	documents = slices.Clone(documents)
	for i := range documents {
		documents[i].File = cmp.Or(documents[i].File, fmt.Sprintf("documents[%d]", i))
	}
	return documents
}

// putMax bounds how often a publication is tried again because another of its
// names was faster. Each time one has been stored.
const putMax = 100

// put stores versions behind all others of their names, so that each publication
// knows those before it. Nothing is stored when something is wrong with any document.
func (c publishing) put(ctx context.Context, all []*candidate, found findings) error {
	for range putMax {
		wrong := findings{list: slices.Clone(found.list), unread: found.unread, of: found.of}
		fresh, err := c.arrange(ctx, all, &wrong)
		if err != nil {
			return err
		}
		versions := make([]Version, len(fresh))
		for i, p := range fresh {
			if err := c.tried(ctx, p, fresh, &wrong); err != nil { // only now: what is there may have lost its steps
				return err
			}
			last := i == len(fresh)-1 || fresh[i+1].Name != p.Name
			versions[i] = Version{Record: &p.Record}
			if p.Kind != KindPolicy {
				versions[i].Definition, versions[i].Newest = c.definition(p), p.newest && last
			}
		}
		if err := wrong.together(); err != nil || len(fresh) == 0 {
			return err
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
func (c publishing) arrange(ctx context.Context, all []*candidate, wrong *findings) (fresh []*candidate, err error) {
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
		stored, err := c.stored(ctx, p.Record)
		if err = wrong.add(p.at, p.parsed.file, err); err != nil {
			return nil, err
		}
		p.Record = stored
	}
	return fresh, nil
}

// tried looks at what a version has to do with others.
func (c publishing) tried(ctx context.Context, p *candidate, fresh []*candidate, wrong *findings) error {
	warnings, err := c.checked(ctx, p.parsed)
	if err = wrong.add(p.at, p.parsed.file, err); err != nil {
		return err
	}
	var some []problem.Place
	if p.Kind == KindPolicy {
		some, err = laying(c).laid(ctx, p, fresh)
		if wrong.perhaps(strings.TrimPrefix(p.Name, PolicyPrefix), err) {
			err = nil
		}
	} else {
		some, err = c.unguarded(ctx, p)
	}
	if err == nil {
		var nobodys []problem.Place
		nobodys, err = c.unserved(ctx, p.parsed)
		some = append(some, nobodys...)
	}
	p.warned = append(warnings, some...)
	return wrong.add(p.at, p.parsed.file, err)
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
				c.early = append(c.early, v)
			}
		}
	}
	return created, err
}
