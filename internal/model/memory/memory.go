// Package memory is a store in memory: the plainest program that does what
// package store says. Every change is made on a copy of the whole database, which
// takes its place when nothing was refused. It is no fake for tests of nodes: it
// is what the stores with a disk are compared with, and passes storetest as they
// do.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Database is what nodes have together.
type Database struct {
	mu      sync.Mutex
	data    *data
	live    map[string]*Store // by run
	runs    int
	changed chan struct{} // closed with every change
	now     func() time.Time
	key     []byte
	epoch   int64
}

// New makes an empty database; now is its clock, nil for time.Now.
func New(now func() time.Time) *Database {
	if now == nil {
		now = time.Now
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return &Database{
		data: &data{
			snapshots: map[string]stored{}, instances: map[string]numbered[projections.Instance]{}, streams: map[string][]entry{},
			tasks: map[string]numbered[projections.Task]{}, events: map[string][]projections.TaskEvent{}, waits: map[string]projections.Wait{}, attributes: map[string]map[string]projections.Attribute{},
			deadLetters: map[string]numbered[projections.DeadLetter]{}, deadLetterEdits: map[string][]backend.DeadLetterEdit{}, messages: map[int64]message{}, inbox: map[string]backend.Event{}, locks: map[string]lock{},
			tokens: map[string]backend.Token{}, activities: map[[2]string]backend.Activity{}, plans: map[string]plan{},
		},
		live: map[string]*Store{}, changed: make(chan struct{}), now: func() time.Time { return now().UTC().Truncate(time.Microsecond) },
		key: key, epoch: 1,
	}
}

// Store is a node's way to the database.
type Store struct {
	db   *Database
	node string
	run  string

	// Under the lock of the database:
	closed  bool
	held    map[int64]*delivery
	entered map[int64]bool
	strays  map[int64]bool // that nobody knew of at the last look

	begun    time.Time
	performs []string // what it has declared
}

var (
	_ backend.Store         = (*Store)(nil)
	_ definition.Repository = (*Store)(nil)
)

// Open opens the database as a node of that name; "" chooses one.
func (db *Database) Open(node string) (*Store, error) {
	if node == "" {
		node = uuid.NewString()
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, s := range db.live {
		if s.node == node {
			return nil, problem.New(problem.Conflict, "store.node-in-use", "a live node has the name %q", node)
		}
	}
	db.runs++
	s := &Store{db: db, node: node, run: strconv.Itoa(db.runs), held: map[int64]*delivery{}, entered: map[int64]bool{}, begun: db.now()}
	db.live[s.run] = s
	return s, nil
}

// Kill ends a node as the death of its process would.
func (s *Store) Kill() {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.closed {
		return
	}
	for id := range s.entered {
		if m, ok := s.db.data.messages[id]; ok {
			m.Crashes++
			s.db.data.messages[id] = m
		}
	}
	s.leave()
}

// Close implements backend.Store.
func (s *Store) Close() error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if !s.closed {
		s.leave()
	}
	return nil
}

// leave gives back what the node holds. The lock is held.
func (s *Store) leave() {
	s.closed = true
	delete(s.db.live, s.run)
	for id, d := range s.held {
		d.over = true
		if m, ok := s.db.data.messages[id]; ok {
			m.leased = ""
			s.db.data.messages[id] = m
		}
	}
	s.db.notifyAll()
}

// notifyAll wakes everybody who waits. The lock is held.
func (db *Database) notifyAll() {
	close(db.changed)
	db.changed = make(chan struct{})
}

// Damage changes a byte of a stored snapshot. Other rows have no bytes.
func (db *Database) Damage(table, _, id string) error {
	if table != "WF_RUNTIME_STATES" {
		return errors.ErrUnsupported
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	s, ok := db.data.snapshots[id]
	if !ok {
		return store.ErrNotFound
	}
	s.raw = slices.Clone(s.raw)
	s.raw[len(s.raw)/2] ^= 1
	db.data.snapshots[id] = s
	return nil
}

// update makes a change on a copy, which takes the database's place unless it
// is refused.
func (s *Store) update(ctx context.Context, change func(t *data) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	next := s.db.data.clone()
	next.now = s.db.now()
	if err := change(next); err != nil {
		return err
	}
	s.db.data = next
	s.db.notifyAll()
	return nil
}

// view reads.
func view[T any](ctx context.Context, s *Store, read func(t *data) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.closed {
		return none, store.ErrClosed
	}
	return read(s.db.data)
}

// Commit implements store.Writer.
func (s *Store) Commit(ctx context.Context, c store.Change) error {
	return s.update(ctx, func(t *data) error {
		whole, err := made(c)
		if err != nil {
			return err
		}
		return t.apply(s, nil, &whole)
	})
}

// made is a change with what is made of it inside, of no step: the model has none.
func made(c store.Change) (store.Change, error) {
	if c.Inside == nil {
		return c, nil
	}
	return c.Inside(func(target string, _ json.RawMessage) (json.RawMessage, *snapshot.Error, error) {
		return nil, nil, problem.New(problem.NotFound, "step.unknown", "the model has no step %s", target)
	})
}

// Load implements store.Writer.
func (s *Store) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	return view(ctx, s, func(t *data) (snapshot.Snapshot, error) {
		got, ok := t.snapshots[id]
		if !ok {
			return snapshot.Snapshot{}, fmt.Errorf("memory: load %s: %w", id, store.ErrNotFound)
		}
		if crc32.ChecksumIEEE(got.raw) != got.sum {
			return snapshot.Snapshot{}, problem.New(problem.Internal, "snapshot.corrupt", "the snapshot does not have its checksum")
		}
		return snapshot.Decode(got.raw)
	})
}

// Receive implements store.Receiver.
func (s *Store) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, changed, due, err := s.take(q, arrived)
		if err != nil || d != nil {
			return d, err
		}
		timer := time.NewTimer(due)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// take gives the first message that is due, or what to wait for.
func (s *Store) take(q store.Queue, arrived func(store.Message)) (store.Delivery, <-chan struct{}, time.Duration, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.closed {
		return nil, nil, 0, store.ErrClosed
	}
	now, wait := s.db.now(), time.Hour
	var best *message
	for _, m := range s.db.data.messages {
		if m.Queue != q || m.leased != "" {
			continue
		}
		if m.DueAt.After(now) {
			wait = min(wait, m.DueAt.Sub(now))
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(m.Priority, best.Priority), cmp.Compare(m.no, best.no)) < 0 {
			best = &m
		}
	}
	if best == nil {
		return nil, s.db.changed, wait, nil
	}
	best.leased = s.run
	s.db.data.messages[best.no] = *best
	d := &delivery{s: s, m: *best}
	s.held[best.no] = d
	if arrived != nil {
		arrived(best.Message)
	}
	return d, nil, 0, nil
}

// delivery is a message with a worker of the node.
type delivery struct {
	s    *Store
	m    message
	over bool // under the lock of the database
}

func (d *delivery) Message() store.Message { return d.m.Message }

func (d *delivery) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	return d.s.Load(ctx, id)
}

// Commit implements store.Delivery.
func (d *delivery) Commit(ctx context.Context, c store.Change) error {
	return d.s.update(ctx, func(t *data) error {
		if d.over {
			return store.ErrLost
		}
		c, err := made(c)
		if err != nil {
			return err
		}
		also := make([]*delivery, len(c.Also))
		for i, m := range c.Also {
			no, err := strconv.ParseInt(m.ID, 10, 64)
			if also[i] = d.s.held[no]; err != nil || also[i] == nil {
				return store.ErrLost
			}
			delete(t.messages, no)
		}
		if err := t.apply(d.s, d, &c); err != nil {
			return err
		}
		for _, other := range append(also, d) {
			other.end()
		}
		return nil
	})
}

// Release implements store.Delivery.
func (d *delivery) Release(ctx context.Context, cause error) error {
	return d.s.update(context.WithoutCancel(ctx), func(t *data) error {
		if d.over {
			return store.ErrLost
		}
		m := d.m
		if problem.KindOf(cause) != problem.Unavailable {
			m.Attempts++
		}
		m.leased = ""
		t.messages[m.no] = m
		d.end()
		return nil
	})
}

// end is after the last word on a delivery. The lock is held.
func (d *delivery) end() {
	d.over = true
	delete(d.s.held, d.m.no)
	delete(d.s.entered, d.m.no)
}

// Enter implements store.Ledger.
func (s *Store) Enter(d store.Delivery) { s.mark(d, true) }

// Leave implements store.Ledger.
func (s *Store) Leave(d store.Delivery) { s.mark(d, false) }

func (s *Store) mark(d store.Delivery, in bool) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if no := d.(*delivery).m.no; in && s.held[no] != nil {
		s.entered[no] = true
	} else {
		delete(s.entered, no)
	}
}

// Strays implements backend.Strays.
func (s *Store) Strays(ctx context.Context, held func(string) bool) (int, error) {
	count := 0
	err := s.update(ctx, func(t *data) error {
		before := s.strays
		s.strays = map[int64]bool{}
		for no, d := range s.held {
			switch {
			case held(d.m.ID):
			case before[no]:
				d.end()
				m := d.m
				m.leased = ""
				t.messages[no] = m
				count++
			default:
				s.strays[no] = true
			}
		}
		return nil
	})
	return count, err
}

// Parts implements backend.Store.
func (s *Store) Parts() backend.Parts {
	return backend.Parts{
		Queue: s, Writer: s, Instances: s, Streams: s, Waits: s, Tasks: s, DeadLetters: s, Notices: s, Repeats: s, Identity: s, Nodes: s, Clock: s,
		Joins: true, Ledger: s, Strays: s, Locks: s, Retention: s, Overdue: s, Inbox: s, Backlog: s, Prober: s, Members: s, Tokens: people{s}, Audit: people{s}, Functions: people{s}, Activities: people{s}, Moments: people{s}, Bulk: people{s}, Plans: people{s}, Settings: people{s},
	}
}

// Probe implements backend.Prober.
func (s *Store) Probe(ctx context.Context) error {
	return s.update(ctx, func(*data) error { return nil })
}

// Node implements backend.Nodes.
func (s *Store) Node() string { return s.node }

// PeerFailures implements backend.Nodes: its nodes are not told.
func (s *Store) PeerFailures() <-chan struct{} { return nil }

// Now implements backend.Clock.
func (s *Store) Now() time.Time { return s.db.now() }

// Key implements backend.Identity.
func (s *Store) Key(context.Context) ([]byte, error) { return slices.Clone(s.db.key), nil }

// Epoch implements backend.Identity.
func (s *Store) Epoch(context.Context) (int64, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return s.db.epoch, nil
}

// Raise implements backend.Identity.
func (s *Store) Raise(context.Context) (from, to int64, err error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if others := len(s.db.live) - 1; others > 0 {
		return 0, 0, backend.NotAlone(others)
	}
	from = s.db.epoch
	s.db.epoch = backend.NextEpoch(from, s.db.now())
	return from, s.db.epoch, nil
}

// Orphans implements backend.Nodes.
func (s *Store) Orphans(ctx context.Context, limit int) (int, error) {
	count := 0
	err := s.update(ctx, func(t *data) error {
		for _, id := range slices.Sorted(maps.Keys(t.streams)) {
			for i, e := range t.streams[id] {
				if count == limit || !open(e) || e.ClaimedBy == "" || s.db.live[e.run] != nil {
					continue
				}
				e.ClaimedBy, e.run = "", ""
				e.Unknown = e.Unknown || e.Attempts > 0
				t.replace(id, i, e)
				body, err := signal.ForCommand(id, e.Position, e.Attempts, t.now, time.Time{}).Encode()
				if err != nil {
					return err
				}
				t.send(store.Send{Queue: store.Commands, Body: body})
				count++
			}
		}
		return nil
	})
	return count, err
}
