package oracle

import (
	"context"
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
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

func define(r *store.Definition) op {
	return op{name: "definition_insert", args: []any{
		r.Name, r.Version, r.Digest, r.Kind, r.Title, stamp(r.PublishedAt), r.Ordinal, r.Source, r.Document,
	}}
}

// runStatement executes one statement in a transaction of its own.
func runStatement(ctx context.Context, s *Store, o *op) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return change(ctx, s, nil, func(session *aq.Session) error {
		return block(ctx, session, []op{*o})
	})
}

// Definition implements definition.Repository.
func (s *Store) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	r, err := single[definition.Record](ctx, s, read("definition_get", name, version))
	if errors.Is(err, store.ErrNotFound) {
		err = problem.Wrap(err, problem.NotFound, "definition.unknown", "definition %s@%s is not published", name, version)
	}
	return r, wrap("definition", err)
}

// Versions implements definition.Repository: in the order of publication.
func (s *Store) Versions(ctx context.Context, name string, after int) ([]definition.Record, error) {
	list, err := list[definition.Record](ctx, s, read("definition_versions", name, after))
	return list, wrap("versions of "+name, err)
}

// Definitions implements definition.Repository.
func (s *Store) Definitions(ctx context.Context, after string, limit int) ([]definition.Record, error) {
	r := read("definition_list")
	if i := strings.LastIndexByte(after, '@'); i >= 0 {
		name, version := after[:i], after[i+1:]
		r.Where("(D.NAME > ? or D.NAME = ? and D.VERSION > ?)", name, name, version)
	} else if after != "" {
		r.Where("D.NAME > ?", after)
	}
	if strings.HasPrefix(after, definition.PolicyPrefix) {
		r.Where("D.NAME like ?", definition.PolicyPrefix+"%")
	} else {
		r.Where("D.NAME not like ?", definition.PolicyPrefix+"%")
	}
	r.Order("D.NAME, D.VERSION", projections.Bounded(limit))
	list, err := list[definition.Record](ctx, s, r)
	return list, wrap("definitions", err)
}
