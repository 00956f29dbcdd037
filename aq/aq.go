// Package aq holds sessions of an Oracle database and the queues on them:
// bytes in, bytes out. It knows nothing of workflows.
//
// A [Session] is one connection, used by one goroutine at a time, with the
// queues it has used made once on it. What it dequeues, what is executed on its
// transaction and what it enqueues commit together. A dequeue blocks in the
// database for a bounded time, takes exactly one message, and can be broken off
// from another goroutine.
//
// The package never starts or purges a queue, never waits for ever, and never
// retries a commit. [Classify] says what an error means for the caller.
package aq

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits.
const (
	MaxBytes    = 32_000          // of a body: what PL/SQL and Java can read as well
	MaxNote     = 128             // bytes of a note
	MinWait     = 1 * time.Second // of a dequeue; the database counts whole seconds
	MaxWait     = 30 * time.Second
	DefaultWait = 3 * time.Second
	deafAfter   = 10 * time.Second // beyond its wait a dequeue is broken off, and after as long again abandoned
)

// Options says how to reach a database. DSN is required.
type Options struct {
	DSN    string        // godror's data source name: user, password, connectString, libDir ...
	Schema string        // owner of tables and queues; empty = the user's own
	Pooled bool          // OCI's session pool instead of connections of their own
	Wait   time.Duration // of a dequeue, in whole seconds; 0 = DefaultWait
	Idle   time.Duration // after which a connection of Shared that nobody uses is closed; 0 = not for that
	Client string        // CLIENT_IDENTIFIER of its sessions, set when they connect; 64 bytes count, empty = none
	// Password is asked for each connection; nil = it is as in DSN.
	Password func() (string, error)
}

// DB opens sessions and pooled connections.
type DB struct {
	sessions *sql.DB // one connection each, closed with its session
	shared   *sql.DB // for reading and small writes
	wait     time.Duration
	grace    time.Duration // deafAfter
	idle     time.Duration
	calls    atomic.Int64
	dequeues atomic.Int64
	commits  atomic.Int64
}

// Commits counts the commits among Calls.
func (d *DB) Commits() int64 { return d.commits.Load() }

// Dequeues counts the dequeues among Calls. What a session that waits for work
// does is nothing else.
func (d *DB) Dequeues() int64 { return d.dequeues.Load() }

// Calls counts the calls that sessions have made: each is a round trip to the
// database, a query of large values two. Statements on the shared pool are not
// counted.
func (d *DB) Calls() int64 { return d.calls.Load() }

// Open prepares a database; it makes no connection.
func Open(o Options) (*DB, error) {
	params, err := godror.ParseDSN(o.DSN)
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "store.options", "the data source name cannot be read")
	}
	if o.Wait == 0 {
		o.Wait = DefaultWait
	}
	if o.Wait < MinWait || o.Wait > MaxWait || o.Wait%time.Second != 0 {
		return nil, problem.New(problem.Invalid, "store.options", "the dequeue wait %s is not in whole seconds from %s to %s", o.Wait, MinWait, MaxWait)
	}
	inOneWay(&params)
	if o.Schema != "" {
		params.SetSessionParamOnInit("CURRENT_SCHEMA", o.Schema)
	}
	if o.Client != "" {
		params.OnInitStmts = append(params.OnInitStmts, "BEGIN DBMS_SESSION.SET_IDENTIFIER('"+strings.ReplaceAll(cut(o.Client, maxClient), "'", "''")+"'); END;")
	}
	params.StandaloneConnection = godror.Bool(!o.Pooled)
	// Standalone connections run their initial statements only while this is off.
	params.InitOnNewConn = o.Pooled
	d := &DB{sessions: sql.OpenDB(newConnector(params, o.Password)), shared: sql.OpenDB(newConnector(params, o.Password)), wait: o.Wait, grace: deafAfter, idle: o.Idle}
	d.sessions.SetMaxIdleConns(0)
	return d, nil
}

// inOneWay has every session tell the time, and compare and order texts, in one way, whatever
// the environment of the host or a trigger of the database says: ids are other ids in other letters.
func inOneWay(params *godror.ConnectionParams) {
	params.Timezone = time.UTC // without one the driver asks the database and may panic on the answer
	for _, name := range []string{"NLS_COMP", "NLS_SORT"} {
		params.SetSessionParamOnInit(name, "BINARY")
	}
	params.SetSessionParamOnInit("TIME_ZONE", "UTC")
}

// Shared is a pool of connections for statements that stand alone. Every
// statement on it commits by itself unless it runs in a transaction.
func (d *DB) Shared(size int) *sql.DB {
	d.shared.SetMaxOpenConns(size)
	d.shared.SetMaxIdleConns(size) // many reconnects upset the client library
	d.shared.SetConnMaxLifetime(30 * time.Minute)
	d.shared.SetConnMaxIdleTime(d.idle)
	return d.shared
}

// Session connects. ctx bounds the connecting.
func (d *DB) Session(ctx context.Context) (*Session, error) {
	conn, err := d.sessions.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("aq: connect: %w", bare(err))
	}
	raw, err := godror.DriverConn(context.WithoutCancel(ctx), conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("aq: connect: %w", bare(err))
	}
	return &Session{conn: conn, raw: raw, wait: d.wait, grace: d.grace, calls: &d.calls, dequeues: &d.dequeues, commits: &d.commits, deq: map[Queue]*godror.Queue{}, enq: map[Queue]*godror.Queue{}}, nil
}

// Close ends the pools. Sessions must have been closed.
func (d *DB) Close() error {
	if err := d.shared.Close(); err != nil {
		d.sessions.Close()
		return err
	}
	return d.sessions.Close()
}
