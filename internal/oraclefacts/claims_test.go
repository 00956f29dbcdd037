package oraclefacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
)

func expiration(r *rig) {
	s := r.session("Q")
	s.send("at once", 0, 0)
	s.send("never", never, 0)
	s.commit()
	time.Sleep(1100 * time.Millisecond)
	if m := s.take(); m == nil || string(m.Raw) != "never" {
		r.Errorf("%+v", m)
	}
	if m := s.take(); m != nil {
		r.Errorf("%s came", m.Raw)
	}
}

func attempts(r *rig) {
	s := r.session("Q")
	s.send("a", never, 0)
	s.commit()
	for want := range int32(3) {
		m := s.take()
		if m == nil || m.NumAttempts != want {
			r.Fatalf("%+v, want %d attempts", m, want)
		}
		s.rollback()
	}
}

func savepoints(r *rig) {
	s := r.session("Q")
	s.send("a", never, 0)
	s.commit()
	s.exec("savepoint BEFORE_IT")
	if s.take() == nil {
		r.Fatal("nothing came")
	}
	s.exec("savepoint AFTER_IT")
	s.exec("rollback to savepoint AFTER_IT")
	if s.take() != nil {
		r.Error("ROLLBACK TO a savepoint after the dequeue has undone it")
	}
	s.exec("rollback to savepoint BEFORE_IT")
	if s.take() == nil {
		r.Error("ROLLBACK TO a savepoint before the dequeue has not undone it")
	}
	s.commit()
	if s.take() != nil {
		r.Error("the message is there after the commit")
	}
}

func timers(r *rig) {
	const n, delay = 20, 2 * time.Second
	s := r.session("Q")
	sent := map[string]time.Time{}
	for i := range n {
		body := fmt.Sprint("m", i)
		sent[body] = time.Now()
		s.send(body, never, delay)
	}
	s.commit()
	var late []time.Duration
	for deadline := time.Now().Add(2 * time.Minute); len(late) < n; {
		m := s.take()
		if m == nil {
			if time.Now().After(deadline) {
				r.Fatalf("only %d of %d came", len(late), n)
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		late = append(late, time.Since(sent[string(m.Raw)])-delay)
	}
	s.commit()
	slices.Sort(late)
	// The queue counts whole seconds, and nobody's clock is the other's: a node
	// looks at the due time in the message itself.
	if late[0] < -1*time.Second {
		r.Errorf("a message is %s early", -late[0])
	}
	r.note("late by %.2f s at least, %.2f s in the middle, %.2f s at most", late[0].Seconds(), late[n/2].Seconds(), late[n-1].Seconds())
}

func breaking(r *rig) {
	db, err := aq.Open(aq.Options{DSN: r.dsn, Wait: 30 * time.Second})
	r.must(err)
	defer db.Close()
	s := brokenOff(r, db, func(ctx context.Context, s *aq.Session) error {
		_, err := s.Dequeue(ctx, aq.Queue{Name: "Q", Table: "QT"})
		return err
	})
	defer s.Close()
	r.must(s.Rollback())
	r.must(s.Begin(r.Context()))
	if _, err := s.ExecContext(r.Context(), "BEGIN NULL; END;"); err != nil {
		r.Error(err)
	}
}

// brokenOff is a session whose dequeue was broken off while it waited. On a busy machine
// the break may come before the wait, and the session is given up: then another waits.
func brokenOff(r *rig, db *aq.DB, dequeue func(context.Context, *aq.Session) error) *aq.Session {
	r.Helper()
	for after := 500 * time.Millisecond; ; after *= 4 {
		s, err := db.Session(r.Context())
		r.must(err)
		r.must(s.Begin(r.Context()))
		ctx, cancel := context.WithCancel(r.Context())
		time.AfterFunc(after, cancel)
		begun := time.Now()
		err = dequeue(ctx, s)
		if aq.Classify(err) == aq.Reconnect && after < 10*time.Second {
			_ = s.Close()
			continue
		}
		if !errors.Is(err, aq.ErrBroken) || !s.Good() {
			r.Fatal(err)
		}
		r.note("%.2f s after the break", (time.Since(begun) - after).Seconds())
		return s
	}
}

func bounce(r *rig) {
	server, err := ocisim.Run(r.Context())
	r.must(err)
	defer server.Close()
	d, err := server.Create(r.Context())
	r.must(err)
	r.must(makeQueue(r.Context(), d.DSN()))
	db, err := aq.Open(aq.Options{DSN: d.DSN(), Wait: 30 * time.Second})
	r.must(err)
	defer db.Close()
	s, err := db.Session(r.Context())
	r.must(err)
	r.must(s.Begin(r.Context()))
	restarted := make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() { restarted <- server.Restart(context.Background()) })
	_, err = s.Dequeue(r.Context(), aq.Queue{Name: "Q", Table: "QT"})
	if aq.Classify(err) != aq.Reconnect || s.Good() {
		r.Error(err)
	}
	_ = s.Close()
	r.must(<-restarted)
	s, err = db.Session(r.Context())
	r.must(err)
	defer s.Close()
	r.must(s.Begin(r.Context()))
}

func stopped(r *rig) {
	_, err := r.db.Exec("BEGIN DBMS_AQADM.STOP_QUEUE(queue_name => 'Q'); END;")
	r.must(err)
	s := r.session("Q")
	m := []godror.Message{{Raw: []byte("a"), Expiration: never, Priority: 5, DeliveryMode: godror.DeliverPersistent}}
	if err := s.q.Enqueue(m); err != nil {
		r.Errorf("the driver has not started the queue: %v", err)
	}
}

// runtimeEnv names the data source of a user who may enqueue and dequeue and
// has no DBMS_AQADM.
const runtimeEnv = "AQUEDUCT_ORACLE_RUNTIME_DSN"

func stoppedForOthers(r *rig) {
	dsn := os.Getenv(runtimeEnv)
	if r.there != nil {
		r.must(r.there.CreateUser(r.Context(), "visitor"))
		dsn = r.there.UserDSN("visitor")
	}
	if dsn == "" {
		r.notes = "; NOT PROVED HERE: " + runtimeEnv + " names no user without DBMS_AQADM"
		return
	}
	p, err := godror.ParseDSN(dsn)
	r.must(err)
	var owner string
	r.must(r.db.QueryRow("select SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') from DUAL").Scan(&owner))
	for _, privilege := range []string{"ENQUEUE", "DEQUEUE"} {
		_, err := r.db.Exec(fmt.Sprintf("BEGIN DBMS_AQADM.GRANT_QUEUE_PRIVILEGE('%s', 'Q', '%s'); END;", privilege, strings.ToUpper(p.Username)))
		r.must(err)
	}
	_, err = r.db.Exec("BEGIN DBMS_AQADM.STOP_QUEUE(queue_name => 'Q'); END;")
	r.must(err)
	db, err := aq.Open(aq.Options{DSN: dsn, Wait: time.Second})
	r.must(err)
	defer db.Close()
	s, err := db.Session(r.Context())
	r.must(err)
	defer s.Close()
	r.must(s.Begin(r.Context()))
	q := aq.Queue{Name: owner + ".Q", Table: owner + ".QT"}
	if _, err := s.Dequeue(r.Context(), q); aq.Classify(err) != aq.Paused {
		r.Errorf("dequeue: %v is %s", err, aq.Classify(err))
	}
}

func payload(r *rig) {
	s := r.session("Q")
	for _, size := range []int{32_000, 33_000} {
		s.send(strings.Repeat("x", size), never, 0)
		s.commit()
		var n int
		_, err := s.tx.Exec(`DECLARE
  O DBMS_AQ.DEQUEUE_OPTIONS_T; P DBMS_AQ.MESSAGE_PROPERTIES_T; B RAW(32767); I RAW(16);
BEGIN
  O.WAIT := 0; O.NAVIGATION := DBMS_AQ.FIRST_MESSAGE;
  DBMS_AQ.DEQUEUE(queue_name => 'Q', dequeue_options => O, message_properties => P, payload => B, msgid => I);
  :1 := UTL_RAW.LENGTH(B);
END;`, out(&n))
		if size == 32_000 && (err != nil || n != size) {
			r.Errorf("32,000 bytes: %d, %v", n, err)
		}
		r.note("%d bytes: read %d, codes %v", size, n, aq.Codes(err))
		s.commit()
		s.take()
		s.commit()
	}
}

func blobs(r *rig) {
	const table = "create table FACT_BLOBS (ID NUMBER(10) NOT NULL, BODY BLOB, CONSTRAINT FACT_BLOBS_PK PRIMARY KEY (ID))"
	_, err := r.db.Exec(table)
	r.must(err)
	defer func() { _, err := r.db.Exec("drop table FACT_BLOBS"); r.must(err) }()
	s := r.session("Q")
	s.exec("insert into FACT_BLOBS (ID, BODY) values (1, :1)", []byte("x"))
	for _, size := range []int{100_000, 5_000_000} {
		body := bytes.Repeat([]byte{byte(size / 1000), 0, 1, 2}, size/4)
		s.exec("update FACT_BLOBS set BODY = :1 where ID = :2", body, 1)
		s.commit()
		var got []byte
		r.must(s.tx.QueryRow("select BODY from FACT_BLOBS where ID = 1").Scan(&got))
		if !bytes.Equal(got, body) {
			r.Errorf("%d bytes came back as %d", size, len(got))
		}
	}
	r.must(s.tx.Commit())
	s.begin()
}

// longBinds says where a long value is refused: the store binds none of more than
// 2,000 bytes but as a value of VALUES or SET.
func longBinds(r *rig) {
	_, err := r.db.Exec("create table FACT_LONG (ID NUMBER(10), BODY BLOB)")
	r.must(err)
	defer func() { _, err := r.db.Exec("drop table FACT_LONG"); r.must(err) }()
	for _, text := range []string{"insert into FACT_LONG (ID, BODY) select 1, :1 from DUAL", "BEGIN insert into FACT_LONG (ID, BODY) select 1, :1 from DUAL; END;"} {
		for _, size := range []int{2_000, 2_001, 4_000, 4_001, 32_767, 40_000} {
			_, err := r.db.Exec(text, make([]byte, size))
			if size <= 2_000 && err != nil {
				r.Errorf("%d bytes: %v", size, err)
			}
			r.note("%.5s, %d bytes: codes %v", text, size, aq.Codes(err))
		}
	}
}

func exceptions(r *rig) {
	s, e := r.session("Q"), r.session("AQ$_QT_E")
	s.send("a", time.Second, 0)
	s.commit()
	r.expires(func() bool {
		m := e.take()
		if m != nil && string(m.Raw) != "a" {
			r.Errorf("%q came", m.Raw)
		}
		e.commit()
		return m != nil
	})
}

// expires waits until what has expired is there.
func (r *rig) expires(there func() bool) {
	r.Helper()
	begun := time.Now()
	for time.Since(begun) < 5*time.Minute {
		time.Sleep(100 * time.Millisecond)
		if r.there != nil { // the queue monitor of Oracle does it by itself
			_, err := r.there.Postgres(r.Context(), "select ocisim.aq_sweep(null)")
			r.must(err)
		}
		if there() {
			r.note("there after %.1f s", time.Since(begun).Seconds())
			return
		}
	}
	r.Error("it never came")
}

// messagesEnv is how many messages the claim about memory sends.
const messagesEnv = "AQUEDUCT_ORACLE_MESSAGES"

func memory(r *rig) {
	n := 2000
	if text := os.Getenv(messagesEnv); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		r.must(err)
	}
	in, out := r.session("Q"), r.session("Q")
	body := strings.Repeat("x", 2000)
	turn := func() {
		out.send(body, never, 0)
		out.commit()
		if in.take() == nil {
			r.Fatal("nothing came")
		}
		in.commit()
	}
	for range 500 {
		turn()
	}
	before := resident(r)
	for range n {
		turn()
	}
	const most = 32 // MiB
	grown := resident(r) - before
	r.note("%.1f MiB more after %d messages (%s=1000000 for the whole proof)", grown, n, messagesEnv)
	if grown > most {
		r.Errorf("%.1f MiB more after %d messages", grown, n)
	}
}

func autocommit(r *rig) {
	_, err := r.db.Exec("create table FACT_ROWS (ID NUMBER(10) NOT NULL)")
	r.must(err)
	defer func() { _, err := r.db.Exec("drop table FACT_ROWS"); r.must(err) }()
	_, err = r.db.Exec("insert into FACT_ROWS (ID) values (1)")
	r.must(err)
	conn, err := r.db.Conn(r.Context())
	r.must(err)
	defer conn.Close()
	var id int
	r.must(conn.QueryRowContext(context.Background(), "select ID from FACT_ROWS for update").Scan(&id))
	tx, err := r.db.Begin()
	r.must(err)
	defer func() { r.must(tx.Rollback()) }()
	err = tx.QueryRow("select ID from FACT_ROWS for update nowait").Scan(&id)
	r.note("committed at once: %t, codes %v", err == nil, aq.Codes(err))
}

func blockCommits(r *rig) {
	_, err := r.db.Exec("create table FACT_ROWS (ID NUMBER(10) NOT NULL)")
	r.must(err)
	defer func() { _, err := r.db.Exec("drop table FACT_ROWS"); r.must(err) }()
	s := r.session("Q")
	s.send("a", never, 0)
	s.send("b", never, 0)
	s.commit()
	if m := s.take(); m == nil || string(m.Raw) != "a" {
		r.Fatalf("%+v", m)
	}
	_, err = s.tx.Exec("begin\ninsert into FACT_ROWS (ID) values (1);\ninsert into FACT_ROWS (ID) values (null);\ncommit write immediate wait;\nend;")
	if err == nil {
		r.Error("the block did not fail")
	}
	s.exec("begin\ninsert into FACT_ROWS (ID) values (2);\ncommit write immediate wait;\nend;")
	if m := s.take(); m == nil || string(m.Raw) != "b" {
		r.Fatalf("%+v", m)
	}
	s.rollback()
	if m := s.take(); m == nil || string(m.Raw) != "b" || s.take() != nil {
		r.Errorf("%+v", m)
	}
	var id, n int
	r.must(r.db.QueryRow("select MAX(ID), COUNT(*) from FACT_ROWS").Scan(&id, &n))
	if id != 2 || n != 1 {
		r.Errorf("%d rows, the last is %d", n, id)
	}
}

func blockLocks(r *rig) {
	for _, table := range []string{"FACT_ROWS", "FACT_NAMES"} {
		_, err := r.db.Exec("create table " + table + " (ID NUMBER(10) NOT NULL PRIMARY KEY, TEXT VARCHAR2(10))")
		r.must(err)
		defer func() { _, err := r.db.Exec("drop table " + table); r.must(err) }()
		_, err = r.db.Exec("insert into " + table + " (ID) values (1)")
		r.must(err)
	}
	const block = "begin\nfor L in (select R.ID from FACT_ROWS R join FACT_NAMES N on N.ID = R.ID where R.ID = :1 for update nowait) loop null; end loop;\n" +
		"for L in (select 1\nfrom FACT_ROWS where ID = :1 for update nowait) loop null; end loop;\nupdate FACT_ROWS set TEXT = 'block' where ID = :1;\nend;"
	s := r.session("Q")
	s.send("a", never, 0)
	s.commit()
	if m := s.take(); m == nil || string(m.Raw) != "a" {
		r.Fatalf("%+v", m)
	}
	for _, table := range []string{"FACT_ROWS", "FACT_NAMES"} {
		other, err := r.db.Begin()
		r.must(err)
		_, err = other.Exec("update " + table + " set TEXT = 'other' where ID = 1")
		r.must(err)
		if _, err := s.tx.Exec(block, 1); aq.Classify(err) != aq.Locked || !strings.Contains(err.Error(), "ORA-06512: at line 2") {
			r.Errorf("with a lock on %s: %v", table, err)
		}
		r.must(other.Rollback())
	}
	s.exec(block, 1)
	s.commit()
	var text string
	r.must(r.db.QueryRow("select TEXT from FACT_ROWS").Scan(&text))
	if text != "block" || s.take() != nil {
		r.Errorf("%q, or the message has come again", text)
	}
}

func removal(r *rig) {
	s := r.session("Q")
	id := s.send("a", never, time.Hour)
	s.commit()
	o := godror.DefaultDeqOptions
	o.MsgID, o.Mode, o.Wait = id[:], godror.DeqPeek, 0
	var m [1]godror.Message
	n, err := s.q.DequeueWithOptions(m[:], &o)
	r.must(err)
	s.commit()
	var left int
	r.must(r.db.QueryRow("select count(*) from AQ$QT").Scan(&left))
	if n != 1 || left != 0 {
		r.Errorf("%d removed, %d left", n, left)
	}
}
