package sqlite

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Tx is the transaction that the writer has open, for extras: they bring their own statements (Options.Statements).
type Tx struct{ t *tx }

// Extra writes what a change has for a feature outside of the kernel.
type Extra interface {
	// Guard refuses what is not as the change expects it, before rows are written.
	Guard(t Tx, c *store.Change) error
	// Write writes rows of a change, which is about the instance with a number and an id; 0 = it names none.
	Write(t Tx, no int64, id string, c *store.Change) error
	// Forget drops what was remembered of a transaction, which is rolled back.
	Forget()
}

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

// Claim claims or settles a command: store.ErrTaken.
func (x Tx) Claim(m *store.Claim) error { return x.t.claimCommand(*m) }

// Send puts a message on its queue.
func (x Tx) Send(m store.Send) { x.t.out.send(m) }

// Returned notes that a message of a queue, which this node had, is there for all.
func (x Tx) Returned(q store.Queue) {
	x.t.out.released(q)
	x.t.out.returned = append(x.t.out.returned, q)
}

// Owner is the number of the instance that a row belongs to: of the change's, unless the row names another.
func (x Tx) Owner(no int64, id, other string) (int64, error) { return x.t.owner(no, id, other) }

// Rest drops what the writer remembers of instances.
func (x Tx) Rest() { x.t.w.numbers = map[string]int64{}; x.t.w.forget() }

// Forget is for an instance that is deleted.
func (x Tx) Forget(instance string) { delete(x.t.w.numbers, instance) }
