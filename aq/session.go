package aq

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godror/godror"
)

// Errors of a session.
var (
	ErrBroken = errors.New("the dequeue was broken off")
	errDeaf   = errors.New("the session does not answer") // it must be closed
)

// Queue names a queue and its table, both with their owner.
type Queue struct {
	Name, Table string
	NoWait      bool   // a dequeue takes what is there
	Consumer    string // who dequeues, where a queue has several
	Browse      bool   // a dequeue only looks: the message stays, and nobody is kept from it
}

// Message is what a queue delivers.
type Message struct {
	ID         string // 32 hex digits
	Body       []byte
	Note       string // what Send carried beside the body
	Priority   int
	Rollbacks  int           // of transactions that had dequeued it
	Delay      time.Duration // it was sent with
	EnqueuedAt time.Time     // to the second
	Beside     []byte        // what Beside has found for it
}

// Send is a message to put on a queue.
type Send struct {
	Body     []byte        // 1 to MaxBytes bytes
	Note     string        // travels beside the body; costs memory that the driver does not free, so leave it empty on hot paths
	Priority int           // 1 to 9, smaller comes first
	Delay    time.Duration // rounded up to whole seconds
}

// Session is one connection. Its methods are for one goroutine at a time,
// except Break.
type Session struct {
	conn     *sql.Conn
	raw      godror.Conn
	wait     time.Duration
	grace    time.Duration
	deq, enq map[Queue]*godror.Queue // one object per role: an enqueue leaves its properties behind
	tx       *sql.Tx
	calls    *atomic.Int64
	dequeues *atomic.Int64
	commits  *atomic.Int64
	dirty    bool      // something was done on tx since it began or was committed
	last     time.Time // commit that succeeded

	mu        sync.Mutex
	blocked   bool // in a dequeue
	broken    bool // Break was called during it
	spoiled   bool // not to be used again
	abandoned bool // a call never returned: nothing may touch the connection
}

// Begin opens a transaction unless one is open. It is never cancelled: a
// rollback of database/sql beside a blocked dequeue would use the connection
// from two sides.
func (s *Session) Begin(ctx context.Context) error {
	if s.tx != nil {
		return nil
	}
	s.calls.Add(1)
	tx, err := s.conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return s.failed("begin", err)
	}
	s.tx, s.dirty = tx, false
	return nil
}

// ExecCommit executes a block whose last statement is COMMIT: with what was dequeued
// before, it takes one round trip. The transaction of database/sql stays open for the
// next. After an error that is [Unanswered] nobody knows whether the database has
// committed; every other is an answer: the block has changed nothing, and what was
// dequeued still is. The driver repeats nothing.
func (s *Session) ExecCommit(ctx context.Context, block string, args ...any) error {
	s.calls.Add(1)
	s.commits.Add(1)
	s.dirty = true
	_, err := s.tx.ExecContext(context.WithoutCancel(ctx), block, append(args, godror.NoRetry())...)
	switch {
	case err == nil:
	case !s.alive():
		s.spoil()
		return fmt.Errorf("aq: execute and commit: %w: %w", errUnanswered, bare(err))
	default:
		if Unanswered(err) {
			s.spoil()
		}
		return fmt.Errorf("aq: execute and commit: %w", bare(err))
	}
	s.dirty, s.last = false, time.Now()
	return nil
}

// Fresh says whether the session has committed in the last seconds: its connection is
// probably there.
func (s *Session) Fresh() bool { return time.Since(s.last) < freshFor }

// freshFor is how long a connection that has worked is taken to be there.
const freshFor = 2 * time.Second

// Open says whether there is something to roll back.
func (s *Session) Open() bool { return s.tx != nil && s.dirty }

// ExecContext executes a statement on the open transaction. No deadline and no
// cancellation reaches it: the driver leaves a deadline's time limit on the
// connection, and a later dequeue would end by it in silence.
func (s *Session) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.calls.Add(1)
	s.dirty = true
	return s.tx.ExecContext(context.WithoutCancel(ctx), query, args...)
}

// QueryContext is ExecContext for a query.
func (s *Session) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s.calls.Add(1)
	s.dirty = true
	return s.tx.QueryContext(context.WithoutCancel(ctx), query, args...)
}

// QueryRowContext is QueryContext for one row.
func (s *Session) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s.calls.Add(1)
	s.dirty = true
	return s.tx.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// Commit commits. After an error nobody knows whether it did: the session must
// be closed and everything in memory forgotten.
func (s *Session) Commit() error {
	s.calls.Add(1)
	s.commits.Add(1)
	err := s.tx.Commit()
	s.tx = nil
	if err != nil {
		s.spoil()
		return fmt.Errorf("aq: commit: %w", bare(err))
	}
	s.last = time.Now()
	return nil
}

// Rollback rolls back what is open, if anything. A transaction in which nothing was
// done stays for the next.
func (s *Session) Rollback() error {
	if !s.Open() {
		return nil
	}
	s.calls.Add(1)
	err := s.tx.Rollback()
	s.tx = nil
	if err != nil {
		s.spoil()
		return fmt.Errorf("aq: rollback: %w", bare(err))
	}
	return nil
}

// alive says whether the connection is there, as far as the client library
// knows. It asks no server.
func (s *Session) alive() bool {
	v, ok := s.raw.(driver.Validator)
	return !ok || v.IsValid()
}

// Lost says that the transaction of an error is gone with its connection. Where
// neither knows of that, a rollback would still count as one.
func (s *Session) Lost(err error) bool {
	return err != nil && !s.alive() || Classify(err) == Reconnect && (errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone))
}

// Good says whether the session may be used for another transaction.
func (s *Session) Good() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.spoiled
}

func (s *Session) spoil() {
	s.mu.Lock()
	s.spoiled = true
	s.mu.Unlock()
}

// failed notes what an error means for the session.
func (s *Session) failed(what string, err error) error {
	if c := Classify(err); c == Reconnect || c == Fatal {
		s.spoil()
	}
	return fmt.Errorf("aq: %s: %w", what, bare(err))
}

// Break ends a dequeue that is blocked on this session; otherwise it does
// nothing.
func (s *Session) Break() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.blocked || s.broken || s.abandoned {
		return nil
	}
	s.broken = true
	return s.raw.Break()
}

// Within calls f, and breaks off the call of the database that it is in when ctx ends.
// One that has ended meanwhile may have the next call of the session broken off.
func Within(ctx context.Context, s *Session, f func() error) error {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = s.raw.Break() // f says what came of it
	})
	err := f()
	if !stop() {
		<-over
	}
	return err
}

// Spoil has the session closed when it is given back.
func Spoil(s *Session) { s.spoil() }

// Close rolls back, and ends queues and connection.
func (s *Session) Close() error {
	s.mu.Lock()
	abandoned := s.abandoned
	s.mu.Unlock()
	if abandoned {
		return nil // the goroutine that is still in the client library closes
	}
	return s.close()
}

func (s *Session) close() error {
	var errs []error
	good := s.Good()
	if s.tx != nil {
		errs = append(errs, s.tx.Rollback())
		s.tx = nil
	}
	for _, queues := range []map[Queue]*godror.Queue{s.deq, s.enq} {
		for _, q := range queues {
			errs = append(errs, q.Close())
		}
		clear(queues)
	}
	if !good {
		// The error is the order to drop the connection.
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	if err := s.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
		errs = append(errs, err)
	}
	if !good {
		return nil // it was not to be expected to end well
	}
	return errors.Join(errs...)
}
