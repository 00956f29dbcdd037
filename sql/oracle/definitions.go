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
	Source      []byte    `db:"SOURCE"`
	Document    []byte    `db:"DOCUMENT"`
}

func (r definitionRow) record() definition.Record {
	return definition.Record{Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title,
		PublishedAt: r.PublishedAt, Source: r.Source, Document: r.Document}
}

func records(rows []definitionRow) []definition.Record {
	out := make([]definition.Record, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out
}

// PutDefinition implements definition.Repository: insert first, and look when
// the key exists.
func (s *Store) PutDefinition(ctx context.Context, r definition.Record) (definition.Record, bool, error) {
	err := s.statement(ctx, &op{name: "definition_insert", args: []any{r.Name, r.Version, r.Digest, r.Kind, r.Title,
		stamp(r.PublishedAt), r.Source, r.Document}})
	created := err == nil
	if err != nil && !errors.Is(err, store.ErrDuplicate) {
		return definition.Record{}, false, wrap("publish "+r.Name+"@"+r.Version, err)
	}
	stored, err := s.Definition(ctx, r.Name, r.Version)
	if err != nil {
		return definition.Record{}, false, err
	}
	if stored.Digest != r.Digest {
		return stored, false, wrap("publish", problem.New(problem.Conflict, "definition.conflict",
			"%s@%s is published with digest %.12s, this document has %.12s", r.Name, r.Version, stored.Digest, r.Digest).
			WithHint("a published definition never changes; give the document a new version"))
	}
	return stored, created, nil
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
