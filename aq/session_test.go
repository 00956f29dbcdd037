package aq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// makeQueue makes one queue anew.
func makeQueue(ctx context.Context, dsn string) error {
	db, err := Open(Options{DSN: dsn})
	if err != nil {
		return err
	}
	defer db.Close()
	pool := db.Shared(1)
	const noTable = 24002
	if _, err := pool.ExecContext(ctx, "BEGIN DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'QT', force => TRUE); END;"); err != nil && !hasCode(err, noTable) {
		return err
	}
	for _, block := range []string{
		"BEGIN DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'QT', queue_payload_type => 'RAW', sort_list => 'PRIORITY,ENQ_TIME'); END;",
		"BEGIN DBMS_AQADM.CREATE_QUEUE(queue_name => 'Q', queue_table => 'QT', max_retries => 100); END;",
		"BEGIN DBMS_AQADM.START_QUEUE(queue_name => 'Q'); END;",
	} {
		if _, err := pool.ExecContext(ctx, block); err != nil {
			return err
		}
	}
	return nil
}

// opened gives a database with one queue.
func opened(t *testing.T) (*DB, Queue) { return on(t, oracletest.Fresh(t, makeQueue)) }

// breakable is opened on the stand-in, whose calls can be made to fail.
func breakable(t *testing.T) (*DB, Queue) { return on(t, oracletest.StandIn(t, makeQueue).DSN()) }

func on(t *testing.T, dsn string) (*DB, Queue) {
	t.Helper()
	db, err := Open(Options{DSN: dsn, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var schema string
	if err := db.Shared(1).QueryRow("select SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') from DUAL").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	return db, Queue{Name: schema + ".Q", Table: schema + ".QT"}
}

func session(t *testing.T, db *DB) *Session {
	t.Helper()
	s, err := db.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func send(t *testing.T, s *Session, q Queue, list ...Send) {
	t.Helper()
	err := s.Begin(t.Context())
	if err == nil {
		err = s.Enqueue(t.Context(), q, list)
	}
	if err == nil {
		err = s.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func dequeue(t *testing.T, s *Session, q Queue) *Message {
	t.Helper()
	err := s.Begin(t.Context())
	var m *Message
	if err == nil {
		m, err = s.Dequeue(t.Context(), q)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestARollbackBringsTheMessageBack(t *testing.T) {
	t.Parallel()
	db, q := opened(t)
	s := session(t, db)
	send(t, s, q, Send{Body: []byte("a"), Note: "n", Priority: 3})
	for attempt := range 3 {
		m := dequeue(t, s, q)
		if m == nil || string(m.Body) != "a" || m.Note != "n" || m.Priority != 3 || m.Rollbacks != attempt || len(m.ID) != 32 {
			t.Fatalf("%+v", m)
		}
		if err := s.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	dequeue(t, s, q)
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if m := dequeue(t, s, q); m != nil {
		t.Fatalf("%+v", m)
	}
}

func TestNothingIsSentBeforeTheCommit(t *testing.T) {
	t.Parallel()
	db, q := opened(t)
	a, b := session(t, db), session(t, db)
	if err := a.Enqueue(t.Context(), q, []Send{{Body: []byte("a"), Priority: 5}, {Body: []byte("b"), Priority: 5}}); err != nil {
		t.Fatal(err)
	}
	if m := dequeue(t, b, q); m != nil {
		t.Fatalf("%+v", m)
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "b"} {
		if m := dequeue(t, b, q); m == nil || string(m.Body) != want {
			t.Fatalf("%+v, want %s", m, want)
		}
	}
}

func TestAWaitIsBrokenOff(t *testing.T) {
	t.Parallel()
	db, q := opened(t)
	db.wait = MaxWait
	var s *Session
	var begun time.Time
	var err error
	for soon := 100 * time.Millisecond; ; soon *= 10 {
		s = session(t, db)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		begun = time.Now()
		_, err = s.Dequeue(ctx, q)
		cancel()
		if !errors.Is(err, errDeaf) || soon > 5*time.Second {
			break
		}
		// On a busy machine the break may come before the wait.
		await.Until(t, "the session to be closed", func() (bool, any) { return !s.closing(), nil })
	}
	if !errors.Is(err, ErrBroken) || time.Since(begun) > MaxWait-5*time.Second || Classify(err) != Broken {
		t.Fatal(err, time.Since(begun))
	}
	// The session is as good as before.
	if err := s.Rollback(); err != nil || !s.Good() {
		t.Fatal(err, s.Good())
	}
	send(t, s, q, Send{Body: []byte("a"), Priority: 5})
	if m := dequeue(t, s, q); m == nil {
		t.Fatal("nothing came")
	}
}

// A session that does not even answer a break is given up, and its caller goes
// on without it.
func TestADeafSessionIsGivenUp(t *testing.T) {
	t.Parallel()
	db, q := breakable(t)
	db.grace = 200 * time.Millisecond
	s := session(t, db)
	if _, err := s.ExecContext(t.Context(), "alter session set ocisim_fault = 'aqdeq:1:delay=20000'"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err := s.Dequeue(t.Context(), q)
	if !errors.Is(err, errDeaf) || Classify(err) != Reconnect || s.Good() || time.Since(begun) > 19*time.Second {
		t.Fatal(err, time.Since(begun))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := session(t, db)
	send(t, other, q, Send{Body: []byte("a"), Priority: 5})
	if m := dequeue(t, other, q); m == nil {
		t.Fatal("nothing came")
	}
	for s.closing() { // the goroutine comes back and closes
		time.Sleep(20 * time.Millisecond)
	}
}

func TestAStoppedQueueIsPaused(t *testing.T) {
	t.Parallel()
	db, q := opened(t)
	s := session(t, db)
	if _, err := db.Shared(1).Exec("BEGIN DBMS_AQADM.STOP_QUEUE(queue_name => 'Q'); END;"); err != nil {
		t.Fatal(err)
	}
	// This user may start queues, so the driver does, and the call succeeds:
	// why a runtime user has no DBMS_AQADM.
	if err := s.Enqueue(t.Context(), q, []Send{{Body: []byte("a"), Priority: 5}}); err != nil && Classify(err) != Paused {
		t.Fatal(err)
	}
}

func TestAMissingQueueIsFatal(t *testing.T) {
	t.Parallel()
	db, q := opened(t)
	q.Name += "_NONE"
	for range 2 { // the driver's object is gone after the first
		s := session(t, db)
		if _, err := s.Dequeue(t.Context(), q); Classify(err) != Fatal || !hasCode(err, codeNoQueue) {
			t.Fatal(err)
		}
		s = session(t, db)
		if err := s.Enqueue(t.Context(), q, []Send{{Body: []byte("a"), Priority: 5}}); Classify(err) != Fatal {
			t.Fatal(err)
		}
	}
}

func TestErrorsHoldNoPayload(t *testing.T) {
	t.Parallel()
	db, q := opened(t)
	q.Name += "_NONE"
	s := session(t, db)
	err := s.Enqueue(t.Context(), q, []Send{{Body: []byte("secret"), Priority: 5}})
	if text := fmt.Sprint(err); err == nil || containsAny(text, "secret", "115, 101", "0x73, 0x65") {
		t.Fatal(text)
	}
}

func TestALostConnectionIsReconnect(t *testing.T) {
	t.Parallel()
	db, q := breakable(t)
	for _, op := range []string{"aqdeq", "aqenq", "commit", "execute"} {
		s := session(t, db)
		if _, err := s.ExecContext(t.Context(), "alter session set ocisim_fault = '"+op+":1:cut'"); err != nil {
			t.Fatal(err)
		}
		var err error
		switch op {
		case "aqdeq":
			_, err = s.Dequeue(t.Context(), q)
		case "aqenq":
			err = s.Enqueue(t.Context(), q, []Send{{Body: []byte("a"), Priority: 5}})
		case "commit":
			err = s.Commit()
		case "execute":
			_, err = s.ExecContext(t.Context(), "select 1 from DUAL")
		}
		if Classify(err) != Reconnect {
			t.Errorf("%s: %v is %s", op, err, Classify(err))
		}
	}
}

// What follows a statement that found the connection dead does not reach the
// driver, which would free what it has freed before.
func TestNothingIsSentOnADeadConnection(t *testing.T) {
	t.Parallel()
	db, q := breakable(t)
	s := session(t, db)
	send(t, s, q, Send{Body: []byte("a"), Priority: 5}) // leaves its properties behind
	if err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExecContext(t.Context(), "alter session set ocisim_fault = 'execute:1:cut'"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExecContext(t.Context(), "select 1 from DUAL"); Classify(err) != Reconnect {
		t.Fatal(err)
	}
	before := db.Calls()
	err := s.Enqueue(t.Context(), q, []Send{{Body: []byte("b"), Priority: 5}})
	if Classify(err) != Reconnect || s.Good() || db.Calls() != before {
		t.Errorf("%v, good %v, %d calls", err, s.Good(), db.Calls()-before)
	}
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// closing says whether the goroutine of an abandoned call is still there.
func (s *Session) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked
}
