package oracle

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
)

// queueNames are the queues of the store, as the schema names them.
var queueNames = map[store.Queue]string{
	store.Signals:  "WF_SIGNAL",
	store.Schedule: "WF_SCHEDULE",
	store.Commands: "WF_COMMAND",
}

func (s *Store) queue(q store.Queue) (aq.Queue, bool) {
	name, ok := queueNames[q]
	return aq.Queue{Name: s.schema + "." + name + "_Q", Table: s.schema + "." + name + "_QTAB"}, ok
}

// session takes a session that nobody uses, or connects.
func (s *Store) session(ctx context.Context) (*aq.Session, error) {
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		session := s.idle[last]
		s.idle, s.unused = s.idle[:last], min(s.unused, last)
		s.mu.Unlock()
		return session, nil
	}
	s.mu.Unlock()
	session, err := s.aq.Session(ctx)
	if err == nil {
		s.sessions.Add(1)
	}
	return session, err
}

// begin opens a transaction on a session. When the connection has died while it
// waited for work, so have probably those beside it.
func (s *Store) begin(ctx context.Context, session *aq.Session) error {
	err := session.Begin(ctx)
	if aq.Classify(err) == aq.Reconnect {
		s.dropIdle()
	}
	return err
}

// dropIdle closes the sessions that wait for work.
func (s *Store) dropIdle() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, session := range idle {
		s.drop(session)
	}
}

// trim closes the sessions that nobody has used since it was called last, but for
// one.
func trim(s *Store) {
	s.mu.Lock()
	n := max(min(s.unused, len(s.idle))-1, 0)
	old := s.idle[:n:n]
	s.idle = s.idle[n:]
	s.unused = len(s.idle)
	s.mu.Unlock()
	for _, session := range old {
		s.drop(session)
	}
}

// giveBack keeps a session for the next user. One with an open transaction, or
// with an error behind it, is closed.
func (s *Store) giveBack(session *aq.Session) {
	if session.Open() {
		if err := session.Rollback(); err != nil {
			s.log.Warn("oracle: rollback", "error", err)
		}
	}
	if session.Good() {
		s.mu.Lock()
		if !s.closed {
			s.idle = append(s.idle, session)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
	s.drop(session)
}

// drop closes a session; the database rolls back what it had open.
func (s *Store) drop(session *aq.Session) {
	s.sessions.Add(-1)
	if err := session.Close(); err != nil {
		s.log.Warn("oracle: close session", "error", err)
	}
}

// Sessions is how many database sessions the store holds beside those for
// reading.
func (s *Store) Sessions() int { return int(s.sessions.Load()) }

// Calls counts the calls that turns and changes have made to the database: each
// is a round trip, the loading of a snapshot two. Reading, heartbeats and the
// ledger are not counted.
func (s *Store) Calls() int64 { return s.aq.Calls() }

// Dequeues counts the dequeues among Calls: all that consumers with nothing to
// do are allowed.
func (s *Store) Dequeues() int64 { return s.aq.Dequeues() }

// Commits counts the commits among Calls.
func (s *Store) Commits() int64 { return s.aq.Commits() }

// Beats counts the statements of heartbeats: beatStatements each, whatever the
// number of consumers.
func (s *Store) Beats() int64 { return s.beatCalls.Load() }
