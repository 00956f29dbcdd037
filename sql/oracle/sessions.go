package oracle

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
)

// queueNames are the queues of the store, as the schema names them.
var queueNames = map[store.Queue]string{
	store.Signals:  "WF_SIGNAL",
	store.Schedule: "WF_SCHEDULE",
	store.Commands: "WF_COMMAND",
}

// What the sessions of a node work at before their first turn.
const (
	nodeModule = "aqueduct"
	noTurn     = "no turn yet"
)

func (s *Store) queue(q store.Queue) (aq.Queue, bool) {
	name, ok := queueNames[q]
	return aq.Queue{Name: s.schema + "." + name + "_Q", Table: s.schema + "." + name + "_QTAB"}, ok
}

// pool has the sessions that nobody uses.
type pool struct {
	aq  *aq.DB
	log *slog.Logger

	mu     sync.Mutex
	closed bool
	idle   []*aq.Session // the one used last is the next to be used
	unused int           // the fewest of idle since trim
	open   atomic.Int64  // those in use, too
}

// take takes a session that nobody uses, or connects.
func (p *pool) take(ctx context.Context) (*aq.Session, error) {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		session := p.idle[last]
		p.idle, p.unused = p.idle[:last], min(p.unused, last)
		p.mu.Unlock()
		return session, nil
	}
	p.mu.Unlock()
	session, err := p.aq.Session(ctx)
	if err == nil {
		p.open.Add(1)
	}
	return session, err
}

// begin opens a transaction on a session. When the connection has died while it
// waited for work, so have probably those beside it.
func (p *pool) begin(ctx context.Context, session *aq.Session) error {
	err := session.Begin(aq.Doing(ctx, nodeModule, noTurn))
	if aq.Classify(err) == aq.Reconnect {
		p.dropIdle()
	}
	return err
}

// dropIdle closes the sessions that wait for work.
func (p *pool) dropIdle() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, session := range idle {
		p.drop(session)
	}
}

// trim closes the sessions that nobody has used since it was called last, but for
// one.
func (p *pool) trim() {
	p.mu.Lock()
	n := max(min(p.unused, len(p.idle))-1, 0)
	old := p.idle[:n:n]
	p.idle = p.idle[n:]
	p.unused = len(p.idle)
	p.mu.Unlock()
	for _, session := range old {
		p.drop(session)
	}
}

// giveBack keeps a session for the next user. One with an open transaction, or
// with an error behind it, is closed, and so is any once the pool is.
func (p *pool) giveBack(session *aq.Session) {
	if session.Open() {
		if err := session.Rollback(); err != nil {
			p.log.Warn("oracle: rollback", "error", err)
		}
	}
	if session.Good() {
		p.mu.Lock()
		if !p.closed {
			p.idle = append(p.idle, session)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
	p.drop(session)
}

// drop closes a session; the database rolls back what it had open.
func (p *pool) drop(session *aq.Session) {
	p.open.Add(-1)
	if err := session.Close(); err != nil {
		p.log.Warn("oracle: close session", "error", err)
	}
}

// close has no session kept any more.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.dropIdle()
}

// Sessions is how many database sessions the store holds beside those for
// reading.
func (s *Store) Sessions() int { return int(s.pool.open.Load()) }

// Counts are the calls that a store has made to its database.
type Counts struct {
	Calls    int64 // of turns and changes: each is a round trip, the loading of a snapshot two
	Dequeues int64 // among Calls: all that consumers with nothing to do are allowed
	Commits  int64 // among Calls
	Beats    int64 // statements of heartbeats: beatStatements each, whatever the number of consumers
	Reads    int64 // queries of everybody who asks: a round trip each, more for many or large rows
	Notes    int64 // statements of the ledger of messages under way, each for all that there are at the time
}

// Counts says what the store has asked of the database so far.
func (s *Store) Counts() Counts {
	return Counts{s.aq.Calls(), s.aq.Dequeues(), s.aq.Commits(), s.beatCalls.Load(), s.readCalls.Load(), s.noteCalls.Load()}
}
