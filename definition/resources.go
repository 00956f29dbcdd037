package definition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of what a definition refers to.
const (
	MaxResourceBytes = 4 << 20 // of one document, as it is fetched
	MaxResources     = 64      // documents of one definition
)

// ResourcesField is the field of a stored document under which the parts of
// other documents that it uses are pinned.
const ResourcesField = "$resources"

// Resource is a document outside a definition that it refers to. Content is
// the document as it was fetched; of a stored definition, the part of it that
// the definition uses, as JSON.
type Resource struct {
	URI     string
	Digest  string // hex SHA-256 of the document as it was fetched
	Content []byte
}

// Need is a document that a definition refers to and that its parser was not
// given.
type Need struct {
	URI   string
	Place problem.Place // where the definition refers to it
}

// Resolver fetches the documents that definitions refer to, when they are
// published and never later. Fetch returns an error for a document of more
// than max bytes, and a problem of the kind Denied for one that it may not fetch.
type Resolver interface {
	Fetch(ctx context.Context, uri string, max int64) ([]byte, error)
}

// ResolveWith has the catalogue fetch with r what published documents refer
// to; without it such a document is refused. It is called once, before use.
func (c *Catalogue) ResolveWith(r Resolver) { c.resolver = r }

// resolved parses source with all that it refers to. What is published already
// is not fetched again: stored is the record then.
func (c *Catalogue) resolved(ctx context.Context, parse Parser, file string, source []byte) (p Parsed, stored *Record, err error) {
	var given []Resource
	for {
		if p, err = parse(file, source, given...); err != nil || len(p.Needs) == 0 {
			return p, nil, err
		}
		if len(given) == 0 {
			r, err := c.repo.Definition(ctx, p.Ref.Name, p.Ref.Version)
			if err == nil {
				return c.again(parse, file, source, r)
			}
			if problem.KindOf(err) != problem.NotFound {
				return p, nil, err
			}
		}
		if len(given)+len(p.Needs) > MaxResources {
			e := problem.New(problem.TooLarge, "limit.resources", "definition refers to more than %d documents", MaxResources)
			e.Where = []problem.Place{p.Needs[0].Place}
			return p, nil, e
		}
		for _, n := range p.Needs {
			r, err := c.fetch(ctx, n)
			if err != nil {
				return p, nil, err
			}
			given = append(given, r)
		}
	}
}

// again compares a document with the record of its version, by what was pinned
// then: what it refers to may have changed since, or be gone.
func (c *Catalogue) again(parse Parser, file string, source []byte, r Record) (Parsed, *Record, error) {
	given, err := pinned(r.Document)
	if err != nil {
		return Parsed{}, nil, problem.Wrap(err, problem.Internal, "definition.stored", "definition %s is stored and cannot be read", ID(r.Name, r.Version))
	}
	p, err := parse(file, source, given...)
	if err == nil && len(p.Needs) == 0 && p.Ref.Digest == r.Digest {
		return p, &r, nil
	}
	return p, nil, problem.New(problem.Conflict, "definition.conflict", "definition %s is published with other content", ID(r.Name, r.Version)).
		WithHint("give changed content a new version")
}

// fetch gets one document.
func (c *Catalogue) fetch(ctx context.Context, n Need) (Resource, error) {
	if c.resolver == nil {
		e := problem.New(problem.Invalid, "definition.resource-unavailable", "this program fetches no documents").
			WithHint("publish the definition to a node")
		e.Where = []problem.Place{n.Place}
		return Resource{}, e
	}
	ctx, cancel := context.WithTimeout(ctx, LoadTimeout)
	defer cancel()
	content, err := c.resolver.Fetch(ctx, n.URI, MaxResourceBytes)
	var refused *problem.Error
	if errors.As(err, &refused) && refused.Kind == problem.Denied {
		e := *refused
		e.Where = []problem.Place{n.Place}
		return Resource{}, &e
	}
	if err != nil {
		e := problem.Wrap(err, problem.Unavailable, "definition.resource-unavailable", "a document that the definition refers to cannot be fetched")
		e.Where = []problem.Place{n.Place}
		return Resource{}, e
	}
	sum := sha256.Sum256(content)
	return Resource{URI: n.URI, Digest: hex.EncodeToString(sum[:]), Content: content}, nil
}

// pinned takes the resources out of a stored document.
func pinned(document []byte) ([]Resource, error) {
	if !bytes.Contains(document, []byte(`"`+ResourcesField+`"`)) {
		return nil, nil
	}
	var d struct {
		Resources map[string]struct {
			Digest  string          `json:"digest"`
			Content json.RawMessage `json:"content"`
		} `json:"$resources"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	var out []Resource
	for uri, r := range d.Resources {
		out = append(out, Resource{URI: uri, Digest: r.Digest, Content: r.Content})
	}
	return out, nil
}
