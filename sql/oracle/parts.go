package oracle

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Parts implements backend.Store.
func (s *Store) Parts() backend.Parts {
	return backend.Parts{
		Queue: s, Writer: s, Instances: instances{s}, Streams: streams{s}, Waits: waits{s}, Tasks: tasks{s}, DeadLetters: deadLetters{s}, Notices: notices{s},
		Repeats: streams{s}, Identity: identity{s}, Nodes: s, Clock: s,
		// Joins is not: each delivery has a session of its own, which has one transaction.
		Ledger: s.ledger, Strays: receivers{s}, Locks: jobs{s}, Retention: jobs{s}, Overdue: overdue{s}, Inbox: inbox{s}, Backlog: backlog{s}, Prober: s, Members: backlog{s}, Tokens: people{s}, Audit: people{s}, Functions: backlog{s}, Activities: activities{s}, Moments: activities{s}, Settings: identity{s},
		Bulk: bulk{s}, Plans: bulk{s},
	}
}

// The parts that read, and those that people, operators and jobs ask.
type (
	instances   struct{ *Store }
	streams     struct{ *Store }
	waits       struct{ *Store }
	tasks       struct{ *Store }
	deadLetters struct{ *Store }
	backlog     struct{ *Store }
	inbox       struct{ *Store }
	jobs        struct{ *Store }
	overdue     struct{ *Store }
	identity    struct{ *Store }
	people      struct{ *Store }
	activities  struct{ *Store }
	bulk        struct{ *Store }
)

// orphan is a command whose node is dead.
type orphan struct {
	InstanceID string `db:"INSTANCE_ID"`
	Position   int64  `db:"POSITION"`
	Owner      string `db:"CLAIMED_BY"`
	Run        string `db:"CLAIMED_RUN"`
	Attempts   int    `db:"ATTEMPTS"`
}

// Orphans implements backend.Nodes. A node that was started again under the
// same name is another run: what the run before claimed is an orphan. What this run has
// claimed is none, however late its heartbeat is: it is performed here.
func (s *Store) Orphans(ctx context.Context, limit int) (int, error) {
	found, err := list[orphan](ctx, s, read("stream_orphans", s.run, s.o.DeadAfter.Seconds(), limit))
	if err != nil || len(found) == 0 {
		return 0, wrap("orphans", err)
	}
	if err := s.enter(); err != nil {
		return 0, wrap("orphans", err)
	}
	defer s.leave()
	count := 0
	err = change(ctx, s, nil, func(session *aq.Session) error {
		count = 0
		w := &work{}
		var sends []store.Send
		for i := range found {
			mine, err := found[i].free(ctx, session)
			if err != nil {
				return err
			}
			if !mine {
				continue // another node was faster, or somebody has the row locked
			}
			count++
			body, err := signal.ForCommand(found[i].InstanceID, found[i].Position, found[i].Attempts, s.clock.now(), time.Time{}).Encode()
			if err != nil {
				return err
			}
			sends = append(sends, store.Send{Queue: store.Commands, Body: body})
		}
		if err := (planner{s}).planSends(w, sends); err != nil {
			return err
		}
		return execute(ctx, session, w, false)
	})
	if err != nil {
		return 0, wrap("orphans", err)
	}
	return count, nil
}

// free takes an orphan's claim away, unless somebody has done so.
func (o *orphan) free(ctx context.Context, session *aq.Session) (bool, error) {
	run := o.Run
	if run == "" {
		run = " "
	}
	update := op{name: "stream_orphan", args: []any{o.InstanceID, o.Position, o.Owner, run}, refuse: store.ErrTaken}
	err := block(ctx, session, []op{update})
	if errors.Is(err, store.ErrTaken) || isLocked(err) {
		return false, nil
	}
	return err == nil, err
}

// Lock implements backend.Locks, by the clock of the database.
func (s jobs) Lock(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	err := runStatement(ctx, s.Store, &op{name: "lock_take", args: []any{s.o.Node, ttl.Seconds(), name, s.o.Node}, refuse: store.ErrTaken})
	if errors.Is(err, store.ErrTaken) {
		// Held by another, or not there yet.
		err = runStatement(ctx, s.Store, &op{name: "lock_insert", args: []any{name, s.o.Node, ttl.Seconds()}})
		if errors.Is(err, store.ErrDuplicate) {
			return false, nil
		}
	}
	return err == nil, wrap("lock "+name, err)
}

// Unlock implements backend.Locks. A lock that another holds stays theirs.
func (s jobs) Unlock(ctx context.Context, name string) error {
	return wrap("unlock "+name, runStatement(ctx, s.Store, &op{name: "lock_drop", args: []any{name, s.o.Node}}))
}

const (
	keyName  = "token-key"
	keyBytes = 32
)

// Key implements backend.Identity: insert first, and look when it exists.
func (s identity) Key(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, keyBytes)
	if _, err := rand.Read(fresh); err != nil {
		return nil, wrap("key", err)
	}
	type meta struct {
		Value []byte `db:"VALUE"`
	}
	m, err := single[meta](ctx, s.Store, read("meta_value", keyName))
	if errors.Is(err, store.ErrNotFound) {
		err = runStatement(ctx, s.Store, &op{name: "meta_insert", args: []any{keyName, fresh}})
		if err == nil || errors.Is(err, store.ErrDuplicate) {
			m, err = single[meta](ctx, s.Store, read("meta_value", keyName))
		}
	}
	if err == nil && len(m.Value) != keyBytes {
		err = fmt.Errorf("the key has %d bytes", len(m.Value))
	}
	return m.Value, wrap("key", err)
}

// Each restore has a row of WF_META: the name begins with this, the value is the
// epoch, eight bytes, the highest first. The first epoch has none.
const epochName = "epoch-"

// Epoch implements backend.Identity.
func (s identity) Epoch(ctx context.Context) (int64, error) {
	if err := s.enter(); err != nil {
		return 0, wrap("epoch", err)
	}
	defer s.leave()
	epoch, err := epochIn(ctx, s.db)
	if err != nil {
		return 0, wrap("epoch", explain(err))
	}
	s.epoch.Store(epoch) // whoever asks goes by it: see sameEpoch
	return epoch, nil
}

// epochIn is the epoch of the database.
func epochIn(ctx context.Context, db querier) (int64, error) {
	var value []byte
	switch err := db.QueryRowContext(ctx, text("meta_epoch")).Scan(&rows.Into{To: &value}); {
	case errors.Is(err, sql.ErrNoRows):
		return 1, nil
	case err != nil:
		return 0, err
	}
	return epochOf(value)
}

func epochOf(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("the epoch has %d bytes", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// Raise implements backend.Identity. A node that joins waits for the lock, and reads
// the epoch after it.
func (s identity) Raise(ctx context.Context) (from, to int64, err error) {
	if err := s.enter(); err != nil {
		return 0, 0, wrap("raise", err)
	}
	defer s.leave()
	known := s.epoch.Swap(0) // it is not ended by its own restore: see sameEpoch
	err = change(ctx, s.Store, nil, func(session *aq.Session) error {
		from, to, err = s.raise(ctx, session)
		return err
	})
	if err == nil && known == from {
		known = to
	}
	s.epoch.Store(known)
	return from, to, wrap("raise", err)
}

func (s identity) raise(ctx context.Context, tx querier) (from, to int64, err error) {
	if _, err := tx.ExecContext(ctx, text("node_lock")); err != nil {
		return 0, 0, err
	}
	var others int
	if err := tx.QueryRowContext(ctx, text("node_others"), s.run, s.o.DeadAfter.Seconds()).Scan(&rows.Into{To: &others}); err != nil {
		return 0, 0, err
	}
	if others > 0 {
		return 0, 0, backend.NotAlone(others)
	}
	if from, err = epochIn(ctx, tx); err != nil {
		return 0, 0, err
	}
	to = backend.NextEpoch(from, s.clock.now())
	_, err = tx.ExecContext(ctx, text("meta_insert"), epochName+strconv.FormatInt(to, 10), binary.BigEndian.AppendUint64(nil, uint64(to)))
	return from, to, err
}
