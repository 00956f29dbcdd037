// Package history reads instances whole, each as it is at one moment, from a database
// that nodes may be at work on. It writes nothing. Who makes instances again from their
// streams asks it; a node does for who asks what one was.
package history

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
)

// Reader reads a database. Its methods may be called from many goroutines; each
// history has a transaction of its own.
type Reader struct {
	DB      *sql.DB
	Done    func() error      // gives the database back
	Explain func(error) error // what an error of the database means
	Key     string            // the name of the secret from which tokens are derived
	State   string            // the statement that has a snapshot
	// Read is a statement of the store. Behind selects of stream_select the entries of an
	// instance behind a position.
	Read   func(name string, args ...any) *rows.Select
	Behind func(r *rows.Select, id string, after int64)
}

// Close gives the database back.
func (h *Reader) Close() error { return h.Done() }

// querier is the database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func each[T any](ctx context.Context, h *Reader, q querier, r *rows.Select, take func(item *T, damage error) (bool, error)) error {
	found, err := q.QueryContext(ctx, r.Text(), r.Args...)
	if err == nil {
		err = rows.Each(found, take)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return h.Explain(err)
}

func one[T any](ctx context.Context, h *Reader, q querier, r *rows.Select) (found *T, err error) {
	err = each(ctx, h, q, r, func(item *T, damage error) (bool, error) {
		found = item
		return false, damage
	})
	return found, err
}

// Secret is that from which the tokens of the database are derived. Where no node has
// been, there is none, and no instance.
func (h *Reader) Secret(ctx context.Context) ([]byte, error) {
	row, err := one[struct {
		Value []byte `db:"VALUE"`
	}](ctx, h, h.DB, h.Read("meta_value", h.Key))
	if err != nil || row == nil {
		return nil, err
	}
	return row.Value, nil
}

// IDs lists instances in the order of their ids, behind one.
func (h *Reader) IDs(ctx context.Context, after string, limit int) (list []string, err error) {
	r := h.Read("history_ids")
	if after != "" {
		r.Where("R.INSTANCE_ID > ?", after)
	}
	r.Order("R.INSTANCE_ID", limit)
	err = each(ctx, h, h.DB, r, func(row *struct {
		ID string `db:"INSTANCE_ID"`
	}, _ error) (bool, error) {
		list = append(list, row.ID)
		return true, nil
	})
	return list, err
}

// state is a snapshot as it is stored.
type state struct {
	Sum int64  `db:"STATE_CHECKSUM"`
	Raw []byte `db:"STATE_JSON"`
}

// History gives read the snapshot of an instance, and its stream, as they were at one
// moment. An entry that is not as it was written comes with the problem stream.corrupt.
// Problems: instance.unknown, snapshot.corrupt.
func (h *Reader) History(ctx context.Context, id string, read func(stored []byte, stream iter.Seq2[projections.Entry, error]) error) error {
	tx, err := h.DB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return h.Explain(err)
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing
	s, err := one[state](ctx, h, tx, h.Read(h.State, id))
	switch {
	case err != nil:
		return err
	case s == nil:
		return problem.New(problem.NotFound, "instance.unknown", "instance %s does not exist", id)
	case s.Sum != projections.Sum(s.Raw):
		return problem.New(problem.Internal, "snapshot.corrupt", "instance %s: the snapshot does not have its checksum", id)
	}
	return read(s.Raw, func(yield func(projections.Entry, error) bool) {
		for after := int64(0); ; {
			page, last, err := h.page(ctx, tx, id, after)
			if err != nil {
				yield(projections.Entry{}, err)
				return
			}
			for i := range page {
				if !yield(page[i].entry, page[i].damage) {
					return
				}
			}
			if after = last; len(page) == 0 {
				return
			}
		}
	})
}

// found is an entry, and what ails its row.
type found struct {
	entry  projections.Entry
	damage error
}

// page reads entries behind a position, and says which was the last. None is the end.
func (h *Reader) page(ctx context.Context, tx *sql.Tx, id string, after int64) (list []found, last int64, err error) {
	r, bytes := h.Read("stream_select"), 0
	h.Behind(r, id, after)
	last = after
	err = each(ctx, h, tx, r, func(row *projections.EntryRow, damage error) (bool, error) {
		list, last = append(list, found{row.Entry, damage}), row.Position
		bytes += row.Weight()
		return bytes < projections.MaxPageBytes, nil
	})
	return list, last, err
}

// Definition is a version that was published here. Problem: definition.unknown.
func (h *Reader) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	r, err := one[definition.Record](ctx, h, h.DB, h.Read("definition_get", name, version))
	if err != nil {
		return definition.Record{}, fmt.Errorf("definition %s: %w", definition.ID(name, version), err)
	}
	if r == nil {
		return definition.Record{}, problem.New(problem.NotFound, "definition.unknown", "definition %s is not published", definition.ID(name, version))
	}
	return *r, nil
}
