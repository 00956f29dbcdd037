// Package oracle is the store on an Oracle database, 19c or later, Standard
// Edition included.
//
// Everything that a turn changes is one transaction of the session that has
// dequeued its message: the message, the snapshot, the projections, the next
// messages. A worker therefore owns a session while it holds a delivery, and
// nothing polls: a receiver waits inside the database, in dequeues of a few
// seconds.
//
// Nodes know each other by heartbeats on the clock of the database. What a dead
// node had dequeued the database gives back at once; what it had claimed
// becomes an orphan when its heartbeat is old.
//
// A commit that fails has an unknown outcome: the session is closed, and the
// message comes again if it was not committed. The tests of a store are in
// store/storetest.
package oracle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Defaults.
const (
	DefaultConsumers = 16 // deliveries of a queue at the same time, receivers included
	DefaultWriters   = 6  // changes without delivery at the same time
	DefaultReaders   = 4  // connections for reading
	Waiters          = 2  // receivers of a queue that wait in the database at the same time; of signals one
	DefaultHeartbeat = 3 * time.Second
	DefaultIdle      = time.Minute
	DefaultDeadAfter = 15 * time.Second
	DefaultNotices   = 7 * 24 * time.Hour
)

// Options says how to open a store. DSN is required.
type Options struct {
	DSN       string        // godror's data source name: user, password, connectString ...
	Schema    string        // owner of the tables and queues; empty = the user's own
	Node      string        // name under which work is claimed; default: a new UUID
	Version   string        // of the program: no other one migrates the schema while the node lives
	Pooled    bool          // OCI's session pool instead of connections of their own
	Wait      time.Duration // of a dequeue, in whole seconds; 0 = aq.DefaultWait
	Consumers int           // 0 = DefaultConsumers
	Writers   int           // 0 = DefaultWriters
	Readers   int           // 0 = DefaultReaders
	Apart     bool          // a change is begun, written, sent and committed by calls of their own, not by one block
	Traced    bool          // the ACTION of a turn is the traceparent of its instance, not its trace alone
	Heartbeat time.Duration // 0 = DefaultHeartbeat
	Idle      time.Duration // after which sessions that nobody uses are closed; 0 = DefaultIdle
	DeadAfter time.Duration // without heartbeat a node is dead; 0 = DefaultDeadAfter
	Notices   time.Duration // how long the notice of a dead letter waits in WF_DLQ_Q, rounded up to seconds; 0 = DefaultNotices, negative = none is sent
	Steps     *steps.Set    // what turns may have done in their transactions; nil = nothing
	Log       *slog.Logger
	Now       func() time.Time // this host's clock; nil = time.Now
	// Password is asked for each connection; nil = it is as in DSN.
	Password func() (string, error)
}

// Store is a backend.Store and a definition.Repository on one schema.
type Store struct {
	o      Options
	schema string
	log    *slog.Logger
	aq     *aq.DB
	db     *sql.DB // statements that stand alone
	clock  clock
	pool   *pool

	guarded bool // procedures cannot commit
	ledger  *ledger
	failed  chan struct{}
	run     string // identity of this run of the node

	declared atomic.Pointer[[]byte] // what it performs; nil = it has not said

	life      context.Context // ends with Close
	end       context.CancelFunc
	mu        sync.Mutex
	closed    bool
	calls     sync.WaitGroup
	beats     sync.WaitGroup
	held      map[*delivery]struct{}
	slots     map[store.Queue]chan struct{}
	lines     map[store.Queue]chan struct{} // of the receivers that wait
	gates     map[store.Queue]*gate
	writers   chan struct{}
	attaching chan struct{} // places of those who attach activities
	group     group         // of changes that wait for one
	opened    time.Time     // by this host's clock
	unblocked atomic.Bool   // the database takes no block that dequeues
	died      atomic.Bool   // tests: end like a killed process

	epoch  atomic.Int64                  // that was asked for; 0 = none was
	ousted atomic.Pointer[problem.Error] // why the store is over though nobody has closed it

	beatCalls, readCalls, noteCalls atomic.Int64
}

// Parts of a store, which have it whole.
type (
	receivers struct{ *Store } // take messages, one session for each
	planner   struct{ *Store } // says by which statements a change is written
	member    struct{ *Store } // of the nodes of a database: its heartbeat
	janitor   struct{ *Store } // moves what the database gave up, and sweeps what is left over
)

var (
	_ backend.Store         = (*Store)(nil)
	_ definition.Repository = (*Store)(nil)
)

// Open opens the store and makes the node known. The schema must be there:
// Migrate makes it. Its problems: store.unreachable, store.schema, store.newer,
// store.node-in-use.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	db, err := aq.Open(aq.Options{DSN: o.DSN, Password: o.Password, Schema: o.Schema, Pooled: o.Pooled, Wait: o.Wait, Idle: o.Idle, Client: o.Node})
	if err != nil {
		return nil, err
	}
	s := &Store{
		o: o, log: o.Log, clock: clock{host: o.Now}, aq: db, db: db.Shared(o.Readers), pool: &pool{aq: db, log: o.Log}, failed: make(chan struct{}, 1), run: uuid.NewString(),
		held: map[*delivery]struct{}{}, slots: map[store.Queue]chan struct{}{}, lines: map[store.Queue]chan struct{}{}, gates: map[store.Queue]*gate{},
		writers: make(chan struct{}, o.Writers), attaching: make(chan struct{}, attachers), opened: o.Now(),
	}
	for q := range queueNames {
		s.slots[q], s.lines[q], s.gates[q] = make(chan struct{}, o.Consumers), make(chan struct{}, Waiters), newGate(q, o.Log)
	}
	s.lines[store.Signals] = make(chan struct{}, 1)
	s.life, s.end = context.WithCancel(context.Background())
	s.ledger = newLedger(s)
	if err := start(ctx, s); err != nil {
		s.end()
		s.ledger.stop()
		db.Close()
		return nil, wrap("open", explain(err))
	}
	if len(o.Steps.Procedures()) == 0 {
		return s, nil
	}
	if s.guarded, err = confirmed(ctx, s); err != nil {
		s.Close()
		return nil, wrap("open", err)
	}
	if !s.guarded {
		o.Log.Error("oracle: call: plsql is refused: the database does not show that it keeps a procedure from committing", "procedures", o.Steps.Procedures())
	}
	return s, nil
}

func (o Options) complete() (Options, error) {
	if o.Steps == nil {
		o.Steps = &steps.Set{}
	}
	if o.DSN == "" {
		return o, problem.New(problem.Invalid, "store.options", "the data source name of the database is missing")
	}
	if o.Node == "" {
		o.Node = uuid.NewString()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, f := range []struct {
		value *int
		std   int
	}{{&o.Consumers, DefaultConsumers}, {&o.Writers, DefaultWriters}, {&o.Readers, DefaultReaders}} {
		if *f.value <= 0 {
			*f.value = f.std
		}
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.DeadAfter <= 0 {
		o.DeadAfter = DefaultDeadAfter
	}
	if o.Notices == 0 {
		o.Notices = DefaultNotices
	}
	if o.DeadAfter < 3*o.Heartbeat {
		return o, problem.New(problem.Invalid, "store.options", "a node may not be dead after %s when its heart beats every %s", o.DeadAfter, o.Heartbeat)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// start checks the schema and joins the nodes.
func start(ctx context.Context, s *Store) error {
	if err := s.db.QueryRowContext(ctx, text("schema_name")).Scan(&s.schema); err != nil {
		return err
	}
	if err := checkSchema(ctx, s); err != nil {
		return err
	}
	if err := s.clock.measure(ctx, s.db); err != nil {
		return err
	}
	if err := (member{s}).join(ctx); err != nil {
		return err
	}
	if err := checkSchema(ctx, s); err != nil { // again: a migration that began before saw no node
		return errors.Join(err, member{s}.depart(ctx))
	}
	if err := s.ledger.refresh(ctx); err != nil {
		return err
	}
	s.beats.Go(member{s}.beat)
	return nil
}

// enter counts a running call, for which Close waits.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ousted.Load() != nil {
		return s.over()
	}
	s.calls.Add(1)
	return nil
}

// over is the error of a store that is closed, or at its end.
func (s *Store) over() error {
	if p := s.ousted.Load(); p != nil {
		return fmt.Errorf("%w: %w", store.ErrClosed, p)
	}
	return store.ErrClosed
}

func (s *Store) leave() { s.calls.Done() }

// Close finishes running calls, gives back what this node holds, and closes
// every session. Receivers that wait get store.ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.end()
	s.calls.Wait()
	s.beats.Wait()
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	for d := range held {
		s.pool.drop(d.session)
	}
	s.pool.close()
	s.ledger.stop()
	if !s.died.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		if err := (member{s}).depart(ctx); err != nil {
			s.log.Warn("oracle: this node could not say that it leaves", "node", s.o.Node, "error", err)
		}
	}
	return wrap("close", s.aq.Close())
}

// leaveTime bounds the last statements of a node whose database may be gone.
const leaveTime = 5 * time.Second

// Node implements backend.Nodes.
func (s *Store) Node() string { return s.o.Node }

// PeerFailures implements backend.Nodes. Several failures may give one value.
func (s *Store) PeerFailures() <-chan struct{} { return s.failed }

// wrap says what was attempted.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("oracle: %s: %w", what, err)
}
