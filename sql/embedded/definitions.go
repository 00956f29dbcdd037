package embedded

import (
	"context"
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
)

// PutDefinitions implements definition.Repository.
func (s *Store) PutDefinitions(ctx context.Context, records []definition.Record) (created bool, err error) {
	var c store.Change
	for _, r := range records {
		c.With = append(c.With, store.Change{Definition: &store.Definition{
			Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title, Source: r.Source, Document: r.Document,
			PublishedAt: r.PublishedAt, Ordinal: r.Ordinal,
		}})
	}
	err = s.Commit(ctx, c)
	if errors.Is(err, store.ErrDuplicate) {
		return false, nil
	}
	return err == nil, err
}

// Definition implements definition.Repository.
func (s *Store) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	r, err := sqlite.One[definition.Record](ctx, s.Store, read("definition_get", name, version))
	if errors.Is(err, store.ErrNotFound) {
		err = problem.Wrap(err, problem.NotFound, "definition.unknown", "definition %s@%s is not published", name, version)
	}
	return r, wrap("definition", err)
}

// Versions implements definition.Repository: in the order of publication.
func (s *Store) Versions(ctx context.Context, name string, after int) ([]definition.Record, error) {
	list, err := sqlite.List[definition.Record](ctx, s.Store, read("definition_versions", name, after))
	return list, wrap("versions of "+name, err)
}

// Definitions implements definition.Repository.
func (s *Store) Definitions(ctx context.Context, after string, limit int) ([]definition.Record, error) {
	name, version := after, ""
	if i := strings.LastIndexByte(after, '@'); i >= 0 {
		name, version = after[:i], after[i+1:]
	}
	list, err := sqlite.List[definition.Record](ctx, s.Store, read("definition_list", name, version, strings.HasPrefix(after, definition.PolicyPrefix), projections.Bounded(limit)))
	return list, wrap("definitions", err)
}
