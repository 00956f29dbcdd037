package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// payloads counts the rows of bodies that messages refer to.
func payloads(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.db.QueryRow("select count(*) PAYLOADS from WF_PAYLOADS").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func bigBody(name string) []byte {
	return append([]byte(name+" "), bytes.Repeat([]byte("x"), aq.MaxBytes)...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A payload lives as long as its message: it comes with the commit that sends
// it, stays through releases, and goes with the commit that consumes it.
func TestPayloadsLiveAsLongAsTheirMessages(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	ctx := t.Context()
	count := func(when string, want int) {
		t.Helper()
		if n := payloads(t, s); n != want {
			t.Errorf("%s: %d payloads, want %d", when, n, want)
		}
	}
	receive := func() store.Delivery {
		t.Helper()
		d, err := s.Receive(ctx, store.Signals, nil)
		must(t, err)
		return d
	}
	must(t, s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: bytes.Repeat([]byte("x"), aq.MaxBytes)}}}))
	count("a body that fits", 0)
	must(t, receive().Commit(ctx, store.Change{}))
	must(t, s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: bigBody("a")}}}))
	count("sent", 1)
	d := receive()
	count("held", 1)
	must(t, d.Release(ctx, nil))
	count("released", 1)
	d = receive()
	must(t, d.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: bigBody("b")}}}))
	count("consumed, and another sent", 1)
	must(t, receive().Commit(ctx, store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Reason: "r"}}))
	count("a dead letter", 0)
	must(t, s.Parts().DeadLetters.Replay(ctx, "l", 0, nil))
	count("replayed", 1)
	must(t, receive().Commit(ctx, store.Change{}))
	count("in the end", 0)
}

// A payload whose message is gone is deleted by retention, one whose message
// waits is not, however old it is.
func TestRetentionDeletesPayloadsWithoutMessage(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	ctx := t.Context()
	later := time.Now().Add(time.Hour)
	for _, m := range []store.Send{
		{Queue: store.Signals, Body: bigBody("purged")}, {Queue: store.Commands, Body: bigBody("kept")}, {Queue: store.Schedule, Body: bigBody("delayed"), Due: later},
	} {
		must(t, s.Commit(ctx, store.Change{Send: []store.Send{m}}))
	}
	if _, err := d.Postgres(ctx, "delete from ocisim.aq_msg m using ocisim.aq_queue q where q.qid = m.qid and q.name = 'WF_SIGNAL_Q'"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before time.Time
		want   int
	}{{time.Now().Add(-time.Hour), 3}, {time.Now().Add(time.Minute), 2}, {time.Now().Add(time.Minute), 2}} {
		_, err := s.Parts().Retention.Purge(ctx, c.before, 10)
		must(t, err)
		if n := payloads(t, s); n != c.want {
			t.Errorf("%d payloads, want %d", n, c.want)
		}
	}
	held, err := s.Receive(ctx, store.Commands, nil)
	must(t, err)
	if _, err := s.Parts().Retention.Purge(ctx, time.Now().Add(time.Minute), 10); err != nil || payloads(t, s) != 2 {
		t.Errorf("while it is held: %d payloads, %v", payloads(t, s), err)
	}
	if string(held.Message().Body) != string(bigBody("kept")) {
		t.Error("it is another body")
	}
	must(t, held.Commit(ctx, store.Change{}))
}

// A message whose payload somebody has deleted is a dead letter that says so,
// and those behind it come.
func TestAMessageWithoutItsPayloadIsADeadLetter(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	ctx := t.Context()
	must(t, s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: bigBody("a"), Priority: 1}, {Queue: store.Signals, Body: []byte("next")}}}))
	if _, err := s.db.Exec("delete from WF_PAYLOADS"); err != nil {
		t.Fatal(err)
	}
	d, err := s.Receive(ctx, store.Signals, nil)
	must(t, err)
	if string(d.Message().Body) != "next" {
		t.Fatalf("%.40q", d.Message().Body)
	}
	must(t, d.Commit(ctx, store.Change{}))
	deadLetters, err := s.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{})
	must(t, err)
	if len(deadLetters.Items) != 1 || deadLetters.Items[0].Reason != reasonClaimLost || !strings.Contains(deadLetters.Items[0].Detail, "is gone") {
		t.Errorf("%+v", deadLetters)
	}
}

// What the database gives up has its payload in the dead letter.
func TestAnExpiredLargeMessageKeepsItsBytes(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	ctx := t.Context()
	must(t, s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: bigBody("a")}}}))
	if _, err := d.Postgres(ctx, "update ocisim.aq_msg set expire_at = now(); select ocisim.aq_sweep(null)"); err != nil {
		t.Fatal(err)
	}
	n, err := janitor{s}.Drain(ctx)
	if err != nil || n != 1 || payloads(t, s) != 0 {
		t.Fatalf("%d drained, %v, %d payloads", n, err, payloads(t, s))
	}
	deadLetters, err := s.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{})
	must(t, err)
	l, err := s.Parts().DeadLetters.DeadLetter(ctx, deadLetters.Items[0].ID)
	must(t, err)
	if !bytes.Equal(l.Envelope, bigBody("a")) || l.Reason != reasonExpired {
		t.Errorf("%d bytes, %s", len(l.Envelope), l.Reason)
	}
}

// Every client call of a turn with large messages fails, in each way: in the
// end every turn was made once, and no payload is left.
func TestEveryCallOfALargeTurnMayFail(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	for _, action := range []string{"error=1555", "error_after=1013", "cut", "cut_after"} {
		for k := 1; k <= faultCalls; k++ {
			faultyLarge(t, s, action, k)
		}
	}
	if n := s.Sessions(); n > 4 {
		t.Errorf("%d sessions are left", n)
	}
}

func faultyLarge(t *testing.T, s *Store, action string, k int) {
	t.Helper()
	id := fmt.Sprintf("%s-%d", action, k)
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	first := storetest.Step(&snapshot.Snapshot{InstanceID: id, Status: snapshot.Running}, "n")
	first.Send = []store.Send{{Queue: store.Signals, Body: bigBody("go")}}
	must(t, s.Commit(ctx, first))
	arm(t, s, action, k)
	for done := false; !done; {
		d, err := s.Receive(ctx, store.Signals, nil)
		if ctx.Err() != nil {
			t.Fatal(id, err)
		}
		if err != nil {
			continue
		}
		body := d.Message().Body
		if bytes.Equal(body, bigBody("done")) {
			err := d.Commit(ctx, store.Change{})
			done = err == nil || errors.Is(err, store.ErrUnknown) && messages(t, s) == 0
			continue
		}
		if !bytes.Equal(body, bigBody("go")) {
			t.Fatalf("%s: %d bytes, %.20q", id, len(body), body)
		}
		largeTurn(ctx, d, id)
	}
	s.pool.dropIdle()
	got, err := s.Load(ctx, id)
	if err != nil || got.Version != 2 {
		t.Fatalf("%s: version %d, %v", id, got.Version, err)
	}
	if n, m := messages(t, s), payloads(t, s); n != 0 || m != 0 {
		t.Fatalf("%s: %d messages and %d payloads are left", id, n, m)
	}
}

// largeTurn is what a worker does with a large delivery: it commits the next
// turn, or, the first time, releases it.
func largeTurn(ctx context.Context, d store.Delivery, id string) {
	snap, err := d.Load(ctx, id)
	if err != nil || d.Message().Attempts == 0 {
		release(ctx, d, err)
		return
	}
	c := store.Change{}
	if snap.Version == 1 {
		c = storetest.Step(&snap, "n")
		c.Send = []store.Send{{Queue: store.Signals, Body: bigBody("done")}}
	}
	err = d.Commit(ctx, c)
	if err != nil && !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrUnknown) {
		release(ctx, d, err)
	}
}
