// Package embedded is the embedded store as a node opens it: the file of
// sql/sqlite, with what people, the API and operators ask of it. Each part brings
// its own statements; the store below works without.
package embedded

import (
	"context"
	"embed"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

//go:embed query/*.sql
var queries embed.FS

// Store is a backend.Store with every part, and a definition.Repository.
type Store struct {
	*sqlite.Store
	strays *strays
}

var (
	_ backend.Store         = (*Store)(nil)
	_ definition.Repository = (*Store)(nil)
)

// Open is sqlite.Open with all tables.
func Open(ctx context.Context, o sqlite.Options) (*Store, error) {
	o.Schema = schema.Tables{}
	if o.Perform == nil {
		o.Perform = Steps(&steps.Set{})
	}
	o.Statements, o.Extras = append(o.Statements, queries), append(o.Extras, taskRows{}, waitRows{map[[2]string]int64{}}, attributeRows{}, definitionRows{}, auditRows{})
	s, err := sqlite.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Store{s, &strays{Store: s}}, nil
}

// Parts implements backend.Store.
func (s *Store) Parts() backend.Parts {
	return backend.Parts{
		Queue: s, Writer: s, Instances: instances{s.Store}, Streams: streams{s.Store}, Waits: instances{s.Store}, Tasks: tasks{s.Store},
		DeadLetters: deadLetters{s.Store}, Notices: notices{s.Store}, Repeats: streams{s.Store}, Identity: identity{s.Store}, Nodes: s, Clock: s, Joins: true, // deliveries are rows: a commit deletes any number
		Ledger: s, Strays: s.strays, Locks: jobs{s.Store}, Retention: jobs{s.Store}, Overdue: overdue{s.Store}, Inbox: inbox{s.Store}, Backlog: backlog{s.Store}, Prober: s, Members: s,
		Tokens: people{s.Store}, Audit: people{s.Store}, Functions: backlog{s.Store}, Activities: activities{s.Store}, Moments: activities{s.Store}, Settings: identity{s.Store},
		Bulk: bulk{s.Store}, Plans: bulk{s.Store}, Caches: s,
	}
}

// Shrink implements backend.Caches: what the writer remembers, and its pages, the most of all.
func (s *Store) Shrink(ctx context.Context) error {
	defer conn.Trim()
	return wrap("shrink", s.Write(ctx, func(t sqlite.Tx) error {
		t.Rest()
		_, _, err := t.Exec("shrink")
		return err
	}))
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
