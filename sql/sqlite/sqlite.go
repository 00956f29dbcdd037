// Package sqlite is the store on one SQLite file: what a node needs of it, and no
// more. Who opens one opens sql/embedded, which has what people ask as well.
//
// One goroutine writes. Commits that wait together share one transaction, so the disk is synced once for all of them; a
// change that is refused leaves the others alone. Receivers wait in memory, and a message that finds one waiting is
// handed over by the transaction that writes it: nothing polls.
//
// Several processes of one host may open the file. Each holds a lock on a file of its own in the directory
// <path>-nodes; when it dies, the kernel drops the lock, and whoever notices returns what the dead node held.
//
// A commit is durable when it returns: it survives the loss of power where the disk honours a flush (see [Durability]).
// The file must be on a local disk. The tests of a store are in store/storetest.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/pieces"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Durability is what a commit survives.
type Durability int

const (
	// Full: the loss of power. The disk is synced before a commit returns.
	Full Durability = iota
	// ProcessCrash: the end of the process, however sudden. A loss of power takes the file back to an earlier commit,
	// losing what outside callers were told.
	ProcessCrash
)

// Limits and their defaults.
const (
	DefaultBatch   = 128                  // changes in a transaction
	DefaultBacklog = 1024                 // changes that wait for the writer; more block their callers
	DefaultCache   = 16 << 20             // bytes of database pages in memory
	DefaultReaders = 4                    // connections for reading
	batchTime      = 5 * time.Millisecond // in a transaction before it stops taking changes
	promoteMax     = 500                  // due messages made ready in a transaction
	numbersMax     = 1 << 15              // instance numbers remembered
	piecesMax      = 16 << 20             // bytes of the pieces of snapshots that are remembered
)

// Schema makes the tables that the store works on.
type Schema interface {
	// Migrate makes them in a new database, and brings those of an older program up to date, all or nothing.
	Migrate(c *conn.Conn, path string) error
	// Check refuses a database whose tables are not those that Migrate makes.
	Check(c *conn.Conn, path string) error
}

// Options says how to open a store. Path and Schema are required.
type Options struct {
	Path       string
	Schema     Schema
	Node       string // name under which work is claimed; default: a new UUID
	Durability Durability
	Batch      int // 0 = DefaultBatch
	Backlog    int // 0 = DefaultBacklog
	Cache      int // bytes; 0 = DefaultCache
	Readers    int // 0 = DefaultReaders
	// Group is a group of the host, by name or number, whose members may use the
	// files, too; "" = the user of the process alone.
	Group string
	Log   *slog.Logger
	Now   func() time.Time // the clock of the database; nil = time.Now
	// Extras write what is theirs of a change, and bring statements of their own.
	Extras     []Extra
	Statements []embed.FS
	Perform    func(Tx) store.Perform // does steps of the application in a transaction

	given string        // Path as it was given, absolute; it may be a link
	trust time.Duration // for tests
}

// Store is a store on one file.
type Store struct {
	path   string
	schema Schema
	node   string
	now    func() time.Time
	log    *slog.Logger

	gate   sync.RWMutex // held for reading while a job is handed to the writer
	closed bool
	jobs   chan *job
	failed chan struct{}
	*receivers

	place   *files.Place
	probing conn.Trouble

	nodes   *nodes
	loaders chan *conn.Conn
	db      *sql.DB
	stats   counters
	done    sync.WaitGroup
}

// Open opens the store, makes or migrates its file, and returns what nodes that have died held. Its problems:
// store.newer, store.corrupt, store.read-only, store.full, store.busy, store.node-in-use.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	access, err := files.AccessOf(o.Group)
	if err != nil {
		return nil, wrap("open", err)
	}
	if access, err = access.Database(o.Path); err != nil {
		return nil, wrap("open", conn.ExplainFile(err, o.Path))
	}
	c, err := OpenWriter(o)
	if err != nil {
		return nil, wrap("open", conn.Explain(err, o.Path))
	}
	if err := o.Schema.Migrate(c, o.Path); err != nil {
		c.Close()
		return nil, err
	}
	if err := access.Opened(o.Path); err != nil {
		c.Close()
		return nil, wrap("open", conn.ExplainFile(err, o.Path))
	}
	s := &Store{
		path: o.Path, schema: o.Schema, node: o.Node, now: o.Now, log: o.Log,
		jobs: make(chan *job, o.Backlog), failed: make(chan struct{}, 1),
		receivers: newReceivers(func() int64 { return o.Now().UnixMicro() }), loaders: make(chan *conn.Conn, o.Readers),
	}
	if err := s.start(o, c, access); err != nil {
		s.release(c)
		return nil, wrap("open", conn.Explain(err, o.Path))
	}
	return s, nil
}

func (o Options) complete() (Options, error) {
	if o.Path == "" {
		return o, problem.New(problem.Invalid, "store.options", "the path of the database is missing")
	}
	if o.Schema == nil {
		return o, problem.New(problem.Invalid, "store.options", "nobody makes the tables of the database %s", o.Path)
	}
	path, err := files.Located(o.Path)
	if err != nil {
		return o, fmt.Errorf("sqlite: open %s: %w", o.Path, err)
	}
	if o.given, err = filepath.Abs(o.Path); err != nil {
		return o, fmt.Errorf("sqlite: open %s: %w", o.Path, err)
	}
	o.Path = path
	if o.Node == "" {
		o.Node = uuid.NewString()
	}
	for _, f := range []struct {
		value *int
		std   int
	}{{&o.Batch, DefaultBatch}, {&o.Backlog, DefaultBacklog}, {&o.Cache, DefaultCache}, {&o.Readers, DefaultReaders}} {
		if *f.value <= 0 {
			*f.value = f.std
		}
	}
	o.Statements = append(slices.Clip(o.Statements), Statements, pieces.Statements)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// LogPages is how long the write-ahead log becomes, in pages of 4 KiB, before a commit
// copies it into the database: with 16,000 one signal in a thousand waited for 25 ms.
const LogPages = 600

// OpenWriter opens a connection as the writer of a store has it.
func OpenWriter(o Options) (*conn.Conn, error) {
	c, err := conn.Open(o.Path, "_synchronous="+o.Durability.pragma(), o.Statements...)
	if err != nil {
		return nil, err
	}
	for _, p := range []string{
		fmt.Sprintf("pragma cache_size = -%d", o.Cache/1024),
		fmt.Sprintf("pragma wal_autocheckpoint = %d", LogPages),
		"pragma temp_store = memory",
		fmt.Sprintf("pragma journal_size_limit = %d", logMax),
	} {
		if err := c.Script(p); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

func (d Durability) pragma() string {
	if d == ProcessCrash {
		return "NORMAL"
	}
	return "FULL"
}

// start opens what stands beside the writer's connection, joins the nodes, and starts what Close waits for.
func (s *Store) start(o Options, c *conn.Conn, a files.Access) error {
	for range o.Readers {
		r, err := conn.Open(o.Path, "_query_only=1", o.Statements...)
		if err != nil {
			return err
		}
		s.loaders <- r
	}
	db, err := conn.Pool(o.Path, "_query_only=1&_stmt_cache_size=32")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(o.Readers)
	s.db = db
	if s.nodes, err = join(s, c, a); err != nil {
		return err
	}
	s.alone = s.nodes.Alone
	if s.place, err = files.Identify(o.Path, o.given, files.Folder(o.Path), o.trust); err != nil {
		return err
	}
	w := newWriter(s, c, o)
	s.nodes.Watch(s.nodes)
	s.done.Go(w.run)
	return nil
}

// release closes what is open of a store that did not start, or has stopped.
func (s *Store) release(c *conn.Conn) error {
	var errs []error
	if s.nodes != nil {
		errs = append(errs, s.nodes.Leave(s.nodes.died.Load()))
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	for len(s.loaders) > 0 { // nobody else receives
		errs = append(errs, (<-s.loaders).Close())
	}
	return errors.Join(append(errs, c.Close())...)
}

// Close finishes what was accepted, returns this node's messages, and closes
// the file. Receivers that wait get store.ErrClosed.
func (s *Store) Close() error {
	s.gate.Lock()
	was := s.closed
	s.closed = true
	s.gate.Unlock()
	if was {
		return nil
	}
	s.stopWaiting()
	s.nodes.Stop()
	close(s.jobs)
	s.done.Wait()
	return nil
}

// Abandon ends s as the death of its process would: nothing is given back, and
// the kernel drops the locks. It is for tests of those who survive.
func (s *Store) Abandon() error {
	s.nodes.died.Store(true)
	return s.Close()
}

// do hands a job to the writer and waits for its outcome. ctx ends the wait only until the writer takes it.
func (s *Store) do(ctx context.Context, run func(*tx) error) error {
	j := &job{run: run, done: make(chan struct{})}
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
		return store.ErrClosed
	}
	select {
	case s.jobs <- j:
		s.gate.RUnlock()
	case <-ctx.Done():
		s.gate.RUnlock()
		return ctx.Err()
	}
	<-j.done
	return j.err
}

// wrap says what was attempted.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %s: %w", what, err)
}
