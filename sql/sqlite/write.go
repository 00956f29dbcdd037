package sqlite

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Tx is the transaction that the writer has open, for extras: they bring their
// own statements (Options.Statements).
type Tx struct{ t *tx }

// Write has the writer run something in a transaction, maybe twice.
func (s *Store) Write(ctx context.Context, run func(Tx) error) error {
	return s.do(ctx, func(t *tx) error { return run(Tx{t}) })
}

// Conn is for reading.
func (x Tx) Conn() *conn.Conn { return x.t.w.c }

// Now is the moment of the transaction, in microseconds.
func (x Tx) Now() int64 { return x.t.now }

// Exec runs a statement that writes.
func (x Tx) Exec(name string, args ...any) (id, changed int64, err error) {
	return x.t.exec(name, args...)
}

// Guard runs a statement that must change a row, or the change is refused.
func (x Tx) Guard(refusal error, name string, args ...any) error {
	return x.t.guard(refusal, name, args...)
}

// Send puts a message on its queue.
func (x Tx) Send(m store.Send) { x.t.out.send(m) }

// Edit changes an open task.
func (x Tx) Edit(e *store.TaskEdit) error { return x.t.edit(e) }

// Define stores a version of a definition; false: it is there, or another has its ordinal.
func (x Tx) Define(r *store.Definition) (bool, error) { return x.t.define(r) }

// Forget is for an instance that is deleted.
func (x Tx) Forget(instance string) { delete(x.t.w.numbers, instance) }
