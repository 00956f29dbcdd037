package definition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// candidate is a document on its way to be a version.
type candidate struct {
	Published
	at      int            // among the documents
	parsed  Parsed         // its definition is nil when there was no room to keep it
	runs    []engine.Child // definitions that it waits for
	guards  map[string][]string
	release func()          // of the room for its definition
	there   bool            // it is stored already
	newest  bool            // of its name, when those before it are stored
	warned  []problem.Place // of what it has to do with others
}

// candidates parses documents one after the other, so that they take the memory of one
// at a time, and finds what is wrong with each. An error is of none of them alone.
func (c publishing) candidates(ctx context.Context, documents []Document) (all []*candidate, wrong findings, err error) {
	wrong.of = len(documents)
	for i, d := range documents {
		p, err := c.candidate(ctx, d)
		if err != nil {
			if err = wrong.add(i, d.File, err); err != nil {
				return all, wrong, err
			}
			wrong.unread = append(wrong.unread, c.defines(ctx, d.Source)...)
			continue
		}
		p.at, p.release = i, func() {}
		c.keepFor(p, documents[i+1:])
		if twin := slices.IndexFunc(all, func(o *candidate) bool { return o.Name == p.Name && o.Version == p.Version }); twin >= 0 {
			p.release()
			wrong.list = append(wrong.list, finding{i, problem.New(problem.Conflict, "definition.conflict", "%s and %s are both %s",
				all[twin].parsed.file, d.File, ID(p.Name, p.Version)).WithHint("leave one out, or give it another version")})
			continue
		}
		all = append(all, p)
	}
	for _, p := range all {
		if p.Kind != KindPolicy && !p.there {
			if err := wrong.add(p.at, p.parsed.file, c.acyclic(ctx, p, all)); err != nil {
				return all, wrong, err
			}
		}
	}
	return all, wrong, nil
}

// keepFor keeps the compiled form of a candidate until it is stored, when there is room
// for it beside those that come: else it is compiled again when somebody asks.
func (c publishing) keepFor(p *candidate, coming []Document) {
	if p.parsed.Definition == nil {
		return
	}
	if d, ok := p.parsed.Definition.(parent); ok {
		p.runs = d.Children()
	}
	if d, ok := p.parsed.Definition.(guarded); ok {
		p.guards = d.EventRoles()
	}
	largest := 0
	for _, d := range coming {
		largest = max(largest, len(d.Source))
	}
	release, ok := c.shelf.hold(len(p.parsed.Document), largest)
	if p.release = release; !ok {
		p.parsed.Definition = nil
	}
}

// definition is the compiled form of a candidate, for as long as its caller needs it.
func (c publishing) definition(p *candidate) func(context.Context) (engine.Definition, error) {
	return func(ctx context.Context) (engine.Definition, error) {
		if p.parsed.Definition != nil {
			return p.parsed.Definition, nil
		}
		parsed, err := c.read(ctx, p.Name, p.Version, p.Record)
		return parsed.Definition, err
	}
}

// candidate parses one document.
func (c publishing) candidate(ctx context.Context, d Document) (*candidate, error) {
	if err := c.shelf.compilable(len(d.Source)); err != nil {
		return nil, err
	}
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

// findings are what is wrong with the documents of a publication.
type findings struct {
	of     int // documents
	list   []finding
	unread []string // lifecycles of documents that are wrong; "" = nobody knows which
}

type finding struct {
	at  int // among the documents
	err error
}

// add takes what is wrong with a document; what is of none of them alone it returns.
func (f *findings) add(at int, file string, err error) error {
	if err == nil {
		return nil
	}
	switch err = named(err, file, f.of); problem.KindOf(err) {
	case problem.Invalid, problem.Conflict, problem.TooLarge:
		f.list = append(f.list, finding{at, err})
		return nil
	}
	return err
}

// perhaps reports whether nothing can be said of a policy yet, since a document that is
// wrong defines what it lies over.
func (f *findings) perhaps(lifecycle string, err error) bool {
	return err != nil && (slices.Contains(f.unread, lifecycle) || len(f.unread) > 0 && problem.CodeOf(err) == codeNoDefinition)
}

// defines is lifecycleOf within the memory for documents.
func (c publishing) defines(ctx context.Context, source []byte) []string {
	if c.shelf.compilable(len(source)) != nil {
		return []string{""}
	}
	release, err := c.shelf.compiling(ctx, len(source))
	if err != nil {
		return []string{""}
	}
	defer release()
	return lifecycleOf(source)
}

// lifecycleOf is the name of the lifecycle that a text with findings would define: none
// of what is no lifecycle, "" where nobody knows.
func lifecycleOf(source []byte) (names []string) {
	defer func() {
		if recover() != nil { // the YAML package on text that is not YAML
			names = []string{""}
		}
	}()
	var is map[string]any
	if yaml.Unmarshal(source, &is) != nil {
		return []string{""}
	}
	if _, lifecycle := is["lifecycle"]; !lifecycle {
		return nil
	}
	environment, _ := is["environment"].(string)
	name, _ := is["definition"].(string)
	if environment == "" || name == "" {
		return []string{""}
	}
	return []string{environment + "/" + name}
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

// together makes one problem of those of several documents, in their order.
func (f *findings) together() error {
	wrong := f.list
	if len(wrong) == 0 {
		return nil
	}
	slices.SortStableFunc(wrong, func(a, b finding) int { return cmp.Compare(a.at, b.at) })
	if len(wrong) == 1 {
		return wrong[0].err
	}
	var first *problem.Error
	errors.As(wrong[0].err, &first)
	e := *first
	e.Where = slices.Clone(first.Where)
	var others []string
	for _, w := range wrong[1:] {
		var p *problem.Error
		errors.As(w.err, &p)
		if len(p.Where) == 0 {
			others = append(others, p.Detail)
		}
		e.Where = append(e.Where, p.Where...)
	}
	e.Where = e.Where[:min(len(e.Where), maxFindings)]
	e.Detail += "; of the other documents " + cmp.Or(strings.Join(others, "; "), "see the places")
	return &e
}
