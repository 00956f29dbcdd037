// Package embedded is the embedded store as a node opens it: the file of
// sql/sqlite, with what people, the API and operators ask of it. Each part brings
// its own statements; the store below works without.
package embedded

import (
	"context"
	"embed"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

//go:embed query/*.sql
var queries embed.FS

// Store is a store.Store with every part, and a definition.Repository.
type Store struct{ *sqlite.Store }

var (
	_ store.Store           = (*Store)(nil)
	_ definition.Repository = (*Store)(nil)
)

// Open is sqlite.Open.
func Open(ctx context.Context, o sqlite.Options) (*Store, error) {
	o.Statements = append(o.Statements, queries)
	s, err := sqlite.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Parts implements store.Store.
func (s *Store) Parts() store.Parts {
	p := s.Store.Parts()
	p.Instances, p.Waits, p.Tasks, p.DeadLetters = instances{s.Store}, instances{s.Store}, tasks{s.Store}, deadLetters{s.Store}
	p.Locks, p.Retention, p.Inbox, p.Backlog = jobs{s.Store}, jobs{s.Store}, inbox{s.Store}, backlog{s.Store}
	return p
}

// read begins a reading with a file of query/.
func read(name string, args ...any) *rows.Select {
	return sqlite.Dialect.Select(conn.Statement(name, queries), args...)
}

// wrap says what was attempted.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %s: %w", what, err)
}
