package oracle

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A node that gives a message back has not died in it, whatever the others saw
// while it was at work.
func TestAReleasedMessageHasNoCrash(t *testing.T) {
	dsn := fresh(t)
	a, b := opened(t, Options{DSN: dsn, Node: "a"}), opened(t, Options{DSN: dsn, Node: "b"})
	ctx := t.Context()
	if err := a.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("m")}}}); err != nil {
		t.Fatal(err)
	}
	d, err := a.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.ledger.Enter(d)
	a.ledger.settle()
	if err := b.ledger.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if n := b.ledger.crashes(ctx, d.Message().ID); n != 1 {
		t.Fatalf("the note is not there: %d", n)
	}
	if err := d.Release(ctx, errors.New("not now")); err != nil {
		t.Fatal(err)
	}
	got, err := b.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Message(); m.Crashes != 0 || m.ID != d.Message().ID {
		t.Errorf("%d crashes of %s", m.Crashes, m.ID)
	}
	a.ledger.Leave(d)
	if err := got.Commit(ctx, store.Change{}); err != nil {
		t.Error(err)
	}
}

// Consumers with nothing to do make dequeues and no other call: any statement,
// commit or fetch of theirs would meet a fault and be logged, and be counted.
func TestIdleConsumersOnlyDequeue(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	log := &counter{}
	s, err := Open(t.Context(), Options{DSN: d.DSN(), Node: "n", Wait: time.Second, Heartbeat: time.Hour, DeadAfter: 4 * time.Hour,
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	queues := []store.Queue{store.Signals, store.Schedule, store.Commands}
	for _, q := range queues {
		go func() { _, _ = s.Receive(t.Context(), q, nil) }() // until Close
	}
	until := func(n int64) {
		for s.Counts().Dequeues < n {
			time.Sleep(10 * time.Millisecond)
		}
	}
	// A dequeue is counted in two steps: the least of several looks counts.
	beside := func() int64 {
		least := int64(math.MaxInt64)
		for range 2 {
			a, b := s.Counts(), s.Counts()
			for a.Calls != b.Calls || a.Dequeues != b.Dequeues {
				a, b = b, s.Counts()
			}
			least = min(least, a.Calls-a.Dequeues)
			until(a.Dequeues + int64(len(queues)))
		}
		return least
	}
	until(int64(len(queues)))
	// Each is in its dequeues when nothing else is called while they make several: one
	// that comes late to its first has more to call.
	other := beside()
	for now := beside(); now != other || s.Sessions() < len(queues); now = beside() {
		other = now
	}
	if err := d.Fault(t.Context(), "oracle.test%", "execute:1:cut,fetch:1:cut,commit:1:cut,rollback:1:cut,ping:1:cut"); err != nil {
		t.Fatal(err)
	}
	until(s.Counts().Dequeues + int64(len(queues)))
	if now := beside(); now != other || log.lines.Load() != 0 {
		t.Errorf("%d calls beside the dequeues, %d lines in the log", now-other, log.lines.Load())
	}
	if err := d.Fault(t.Context(), "oracle.test%", ""); err != nil {
		t.Fatal(err)
	}
}

// counter counts what is logged.
type counter struct{ lines atomic.Int64 }

func (c *counter) Write(b []byte) (int, error) { c.lines.Add(1); return len(b), nil }

// What is entered is noted, whatever was entered and left before it.
func TestTheLedgerNotesEveryEntry(t *testing.T) {
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	rows := func() (n int) {
		t.Helper()
		if err := s.db.QueryRow("select count(*) from WF_INFLIGHT").Scan(&rows.Into{To: &n}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 200 { // it comes at every moment of the writing
		first := s.ledger.enter("m")
		second := s.ledger.enter("m")
		<-first
		s.ledger.leave("m")
		select {
		case <-second:
		case <-time.After(lockPatience):
			t.Fatal("the second is not noted")
		}
		s.ledger.leave("m")
		s.ledger.leave("m") // once too often
	}
	kept := s.ledger.enter("m")
	<-kept
	await.Until(t, "one row is noted", func() (bool, any) { n := rows(); return n == 1, n })
	s.ledger.leave("m")
	for rows() != 0 && t.Context().Err() == nil {
		pause(t.Context(), 10*time.Millisecond)
	}
}

// TestANoteGoesWithItsRelease: nothing that is written for other messages brings it
// back while the worker that has given its message back has not left it.
func TestANoteGoesWithItsRelease(t *testing.T) {
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	ctx := t.Context()
	for i := range 20 { // the release comes at every moment of the writing
		if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("m")}}}); err != nil {
			t.Fatal(err)
		}
		d, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.ledger.Enter(d)
		if i%2 == 0 {
			s.ledger.settle()
		}
		if err := d.Release(ctx, errors.New("not now")); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			<-s.ledger.enter("another")
			s.ledger.leave("another")
		}
		var n int
		if err := s.db.QueryRow("select count(*) from WF_INFLIGHT F where F.MESSAGE_ID = :1", d.Message().ID).Scan(&rows.Into{To: &n}); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			t.Fatalf("release %d: the note is there", i)
		}
		s.ledger.Leave(d)
		again, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Commit(ctx, store.Change{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestANoteThatIsThereIsOne: after a lost answer the table may have what the ledger
// does not know of. It is no trouble, for that message or for those beside it.
func TestANoteThatIsThereIsOne(t *testing.T) {
	log := &counter{}
	s := opened(t, Options{DSN: fresh(t), Node: "n", Log: slog.New(slog.NewTextHandler(log, nil))})
	if _, err := s.exec(t.Context(), "inflight_insert", "b", s.run); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		s.ledger.enter(id)
	}
	s.ledger.settle()
	count := func() (n int) {
		if err := s.db.QueryRow("select count(*) from WF_INFLIGHT").Scan(&rows.Into{To: &n}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 3 || log.lines.Load() != 0 {
		t.Errorf("%d notes, %d lines in the log", n, log.lines.Load())
	}
	for _, id := range []string{"a", "b", "c"} {
		s.ledger.leave(id)
	}
	await.Until(t, "the notes are gone", func() (bool, any) { n := count(); return n == 0, n })
	if n := log.lines.Load(); n != 0 {
		t.Errorf("%d lines in the log", n)
	}
}

// A note that somebody has locked is given up, once; those beside it are dropped.
func TestALockedNoteHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	s.ledger.enter("one")
	s.ledger.enter("two")
	s.ledger.settle()
	release, err := stranger(t, s, "update WF_INFLIGHT set ENTERED_ON_UTC = ENTERED_ON_UTC where MESSAGE_ID = 'one'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	}()
	s.ledger.leave("one")
	s.ledger.leave("two")
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	for {
		var left int
		if err := s.db.QueryRowContext(ctx, "select COUNT(*) from WF_INFLIGHT where MESSAGE_ID = 'two'").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		pause(ctx, 10*time.Millisecond)
	}
	s.ledger.enter("three")
	s.ledger.settle()
	if err := soon(ctx, func() error { _, err := s.exec(ctx, "inflight_delete", "two", s.run); return err }); err != nil {
		t.Error(err)
	}
}

// A table that cannot be written is a line of the log in a minute, which says how often
// it failed, not one for each message.
func TestALedgerThatFailsIsNoFloodOfTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := &ledger{s: &Store{o: Options{Now: func() time.Time { return now }}, log: slog.New(slog.NewTextHandler(&out, nil))}}
	for range 150 {
		l.complain(errors.New("ORA-01653"))
		now = now.Add(time.Second)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, line[strings.Index(line, "failures="):len(line)-1])
	}
	if want := []string{"failures=1", "failures=60", "failures=60"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
