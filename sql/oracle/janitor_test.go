package oracle

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// An application that sends with an expiry loses nothing: what expires becomes
// a dead letter.
func TestExpiredMessagesBecomeDeadLetters(t *testing.T) {
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	ctx := t.Context()
	db, err := sql.Open("godror", d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	q, err := godror.NewQueue(ctx, conn, s.schema+".WF_SIGNAL_Q", "")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"workflowInstanceId":"a","waitingToken":"t","x":"Ω"}`
	if err := q.Enqueue([]godror.Message{{Raw: []byte(body), Expiration: time.Second, Priority: 1}}); err != nil {
		t.Fatal(err)
	}
	pause(ctx, 1200*time.Millisecond) // it has expired when it is committed
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Postgres(ctx, "select ocisim.aq_sweep(null)"); err != nil { // Oracle's queue monitor does it by itself
		t.Fatal(err)
	}
	if sent, err := s.Parts().Overdue.Sent(ctx, []string{"t", "none"}, time.Now()); err != nil || len(sent) != 1 || sent[0] != "t" {
		t.Errorf("what the database gave up is a message: %v, %v", sent, err)
	}
	// The view of a queue table decodes each of its rows: nobody may look there
	// every minute.
	if _, err := d.Postgres(ctx, `drop view app."aq$wf_signal_qtab", app."aq$wf_schedule_qtab", app."aq$wf_command_qtab" cascade`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	moved, err := janitor{s}.Drain(ctx)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	for again := 0; took > 2500*time.Millisecond && again < 20; again++ { // a second for each queue is the least that it could wait, each time
		began = time.Now()
		n, err := janitor{s}.Drain(ctx)
		if n != 0 || err != nil {
			t.Fatal(n, err)
		}
		took = time.Since(began)
	}
	if took > 2500*time.Millisecond {
		t.Errorf("it took %s, again and again: it has waited for messages", took)
	}
	page, err := s.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{Reason: reasonExpired, InstanceID: "a", Queue: "signal"})
	if err != nil || moved != 1 || len(page.Items) != 1 || string(page.Items[0].Envelope) != body {
		t.Fatalf("%d moved, %+v, %v", moved, page, err)
	}
}

// TestTheAgeOfAQueueIsUTCInEverySession: the database tells when a message was sent
// in the time zone of who asks.
func TestTheAgeOfAQueueIsUTCInEverySession(t *testing.T) {
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	ctx := t.Context()
	if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("m")}}}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("godror", d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, zone := range []string{"UTC", "+05:00", "-03:30", "Europe/Prague"} {
		if _, err := conn.ExecContext(ctx, "ALTER SESSION SET TIME_ZONE = '"+zone+"'"); err != nil {
			t.Fatal(err)
		}
		var oldest string
		err := conn.QueryRowContext(ctx, "select TO_CHAR(Q.OLDEST_ON_UTC, 'YYYY-MM-DD HH24:MI:SS') from WF_V_QUEUES Q where Q.QUEUE_NAME = 'signal'").Scan(&oldest)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := time.Parse(time.DateTime, oldest)
		if age := time.Since(sent); err != nil || age < -15*time.Minute || age > 15*time.Minute {
			t.Errorf("in a session of %s: sent at %s, %s ago, %v", zone, oldest, age, err)
		}
	}
}

// TestWhatNoColumnHoldsIsSeenInAView: what a row repeats of its snapshot is left
// out of it where it is too long.
func TestWhatNoColumnHoldsIsSeenInAView(t *testing.T) {
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	for id, detail := range map[string]string{"short": "x", "long": strings.Repeat("x", 5_000)} {
		snap := &snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Faulted, Error: &snapshot.Error{Type: "t", Status: 500, Detail: detail}}
		if err := s.Commit(t.Context(), store.Change{Snapshot: snap}); err != nil {
			t.Fatal(err)
		}
		var column, view string
		err := s.db.QueryRow("select R.LAST_ERROR_JSON, V.LAST_ERROR_JSON from WF_RUNTIME_STATES R join WF_V_STATES V on V.INSTANCE_ID = R.INSTANCE_ID where R.INSTANCE_ID = :1", id).
			Scan(&rows.Into{To: &column}, &rows.Into{To: &view})
		if err != nil || (column == "") != (id == "long") || !strings.Contains(view, `"`+detail+`"`) {
			t.Errorf("%s: %d bytes in the column, %d in the view, %v", id, len(column), len(view), err)
		}
	}
}

// TestTheViewShowsWhatAnInstanceKnows: its data, its context, and the variables it is in.
func TestTheViewShowsWhatAnInstanceKnows(t *testing.T) {
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	if err := s.Commit(t.Context(), storetest.Knowing()); err != nil {
		t.Fatal(err)
	}
	var got [3]string
	if err := s.db.QueryRow(storetest.KnownSQL).Scan(&rows.Into{To: &got[0]}, &rows.Into{To: &got[1]}, &rows.Into{To: &got[2]}); err != nil {
		t.Fatal(err)
	}
	if err := storetest.CheckKnown(got); err != nil {
		t.Error(err)
	}
}
