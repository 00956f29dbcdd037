package oracle

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// definitionRow is a row of WF_DEFINITIONS.
type definitionRow struct {
	Name        string    `db:"NAME"`
	Version     string    `db:"VERSION"`
	Digest      string    `db:"DIGEST"`
	Kind        string    `db:"KIND"`
	Title       string    `db:"TITLE"`
	PublishedAt time.Time `db:"PUBLISHED_ON_UTC"`
	Ordinal     int       `db:"ORDINAL"`
	Source      []byte    `db:"SOURCE"`
	Document    []byte    `db:"DOCUMENT"`
}

func (r definitionRow) record() definition.Record {
	return definition.Record{Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title,
		PublishedAt: r.PublishedAt, Ordinal: r.Ordinal, Source: r.Source, Document: r.Document}
}

func records(rows []definitionRow) []definition.Record {
	out := make([]definition.Record, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out
}

// PutDefinition implements definition.Repository.
func (s *Store) PutDefinition(ctx context.Context, r definition.Record) (created bool, err error) {
	o := define(&store.Definition{
		Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title, Source: r.Source, Document: r.Document,
		PublishedAt: r.PublishedAt, Ordinal: r.Ordinal,
	})
	err = s.statement(ctx, &o)
	if errors.Is(err, store.ErrDuplicate) {
		return false, nil
	}
	return err == nil, wrap("publish "+r.Name+"@"+r.Version, err)
}

func define(r *store.Definition) op {
	return op{name: "definition_insert", args: []any{
		r.Name, r.Version, r.Digest, r.Kind, r.Title, stamp(r.PublishedAt), r.Ordinal, r.Source, r.Document,
	}}
}

// statement executes one statement in a transaction of its own.
func (s *Store) statement(ctx context.Context, o *op) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return s.change(ctx, func(session *aq.Session) error {
		if err := o.run(ctx, session); err != nil {
			return refused(o, err)
		}
		return nil
	})
}

// Definition implements definition.Repository.
func (s *Store) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	r, err := single[definitionRow](ctx, s, read("definition_get", name, version))
	if errors.Is(err, store.ErrNotFound) {
		err = problem.Wrap(err, problem.NotFound, "definition.unknown", "definition %s@%s is not published", name, version)
	}
	return r.record(), wrap("definition", err)
}

// Versions implements definition.Repository: in the order of publication.
func (s *Store) Versions(ctx context.Context, name string) ([]definition.Record, error) {
	rows, err := list[definitionRow](ctx, s, read("definition_versions", name))
	return records(rows), wrap("versions of "+name, err)
}

// Definitions implements definition.Repository.
func (s *Store) Definitions(ctx context.Context, after string, limit int) ([]definition.Record, error) {
	r := read("definition_list")
	if i := strings.LastIndexByte(after, '@'); i >= 0 {
		name, version := after[:i], after[i+1:]
		r.where("(D.NAME > ? or D.NAME = ? and D.VERSION > ?)", name, name, version)
	} else if after != "" {
		r.where("D.NAME > ?", after)
	}
	r.order("D.NAME, D.VERSION", bounded(limit))
	rows, err := list[definitionRow](ctx, s, r)
	return records(rows), wrap("definitions", err)
}
