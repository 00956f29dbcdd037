package oracle

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

func deadLetterOf(id string) store.Change {
	return store.Change{DeadLetter: &projections.DeadLetter{ID: id, Queue: "signal", InstanceID: "a", Reason: "signal.foreign", Envelope: []byte(id), DiedAt: time.Now()}}
}

// texts is what a log says.
type texts struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *texts) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// taken is what it has said since it was taken last.
func (l *texts) taken() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func subscribe(t *testing.T, db *sql.DB, name string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "BEGIN DBMS_AQADM.ADD_SUBSCRIBER(queue_name => 'WF_DLQ_Q', subscriber => SYS.AQ$_AGENT('"+name+"', NULL, NULL)); END;"); err != nil {
		t.Fatal(err)
	}
}

func connected(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("godror", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// readNotice is an application that blocks on the queue, as a subscriber, for at most
// wait; it commits what it has read.
func readNotice(ctx context.Context, db *sql.DB, queue, consumer string, wait time.Duration) (n backend.Notice, m godror.Message, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return n, m, err
	}
	defer tx.Rollback()
	table, _, _ := strings.Cut(queue, "_Q")
	o := godror.DefaultDeqOptions
	o.Consumer, o.Navigation, o.Wait = consumer, godror.NavFirst, wait
	q, err := godror.NewQueue(ctx, tx, queue, "", godror.WithQueueTable(table+"_QTAB"), godror.WithDeqOptions(o))
	if err != nil {
		return n, m, err
	}
	defer q.Close()
	var list [1]godror.Message
	if got, err := q.Dequeue(list[:]); err != nil || got == 0 {
		return n, m, err
	}
	if err := json.Unmarshal(list[0].Raw, &n); err != nil {
		return n, m, err
	}
	return n, list[0], tx.Commit()
}

// An application, and a tool of an operator with nothing but his role, each hear of
// every letter, once, by the commit that makes it, and of none that was rolled back.
func TestANoticeComesByTheCommitOfItsDeadLetter(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	a, s, tool := c.apart, c.node, c.db
	owner := a.open(t, a.owner)
	subscribe(t, owner, "SHOP")
	subscribe(t, owner, "OPS")
	type got struct {
		n   backend.Notice
		m   godror.Message
		err error
	}
	ch := make(chan got, 1)
	go func() {
		n, m, err := readNotice(t.Context(), tool, a.owner+".WF_DLQ_Q", "SHOP", lockPatience)
		ch <- got{n, m, err}
	}()
	refused := deadLetterOf("l-never")
	refused.Claims = []store.Claim{{InstanceID: "nobody", Position: 1, Owner: "n"}}
	if err := s.Commit(t.Context(), refused); err == nil {
		t.Fatal("the change is refused")
	}
	if err := s.Commit(t.Context(), deadLetterOf("l-1")); err != nil {
		t.Fatal(err)
	}
	h := <-ch
	if h.err != nil || h.n.DeadLetterID != "l-1" || h.n.Reason != "signal.foreign" || h.n.InstanceID != "a" || h.m.Correlation != "signal.foreign" || h.m.Expiration != DefaultNotices {
		t.Fatalf("%+v, %+v, %v", h.n, h.m, h.err)
	}
	for _, consumer := range []string{"OPS", noticeNodes} {
		if n, _, err := readNotice(t.Context(), tool, a.owner+".WF_DLQ_Q", consumer, 0); err != nil || n.DeadLetterID != "l-1" {
			t.Errorf("%s: %+v, %v", consumer, n, err)
		}
	}
	for _, consumer := range []string{"SHOP", "OPS", noticeNodes} {
		if n, _, err := readNotice(t.Context(), tool, a.owner+".WF_DLQ_Q", consumer, 0); err != nil || n.DeadLetterID != "" {
			t.Errorf("a second time %s: %+v, %v", consumer, n, err)
		}
	}
}

// A letter takes no round trip more for its notice.
func TestANoticeCostsNoRoundTrip(t *testing.T) {
	t.Parallel()
	calls := func(notices time.Duration) int64 {
		s := opened(t, Options{DSN: fresh(t), Node: "n", Notices: notices})
		for range 2 { // the second on a connection that is known to live
			if err := s.Commit(t.Context(), deadLetterOf("l"+time.Now().String())); err != nil {
				t.Fatal(err)
			}
		}
		least := int64(math.MaxInt64)
		for i := range 10 { // on a busy machine it may not be known any more, now and then
			before := s.Counts().Calls
			if err := s.Commit(t.Context(), deadLetterOf(fmt.Sprint("l-", i))); err != nil {
				t.Fatal(err)
			}
			least = min(least, s.Counts().Calls-before)
		}
		return least
	}
	if with, without := calls(0), calls(-1); with != without {
		t.Errorf("%d calls, %d without a notice", with, without)
	}
}

// A letter is written whatever is wrong with the queue of notices, and so are those
// that the database itself has given up.
func TestADeadLetterNeedsNoNotice(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	log := &texts{}
	s := opened(t, Options{DSN: d.DSN(), Node: "n", Log: slog.New(slog.NewTextHandler(log, nil))})
	db := connected(t, d.DSN())
	run := func(block string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), "BEGIN "+block+" END;"); err != nil {
			t.Fatal(err)
		}
	}
	written := func(id, code string) {
		t.Helper()
		if err := s.Commit(t.Context(), deadLetterOf(id)); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(id)}}}); err != nil {
			t.Fatal(err)
		}
		m, err := s.Receive(t.Context(), store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Commit(t.Context(), deadLetterOf(id+"-2")); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if _, err := s.Parts().DeadLetters.DeadLetter(t.Context(), id+"-2"); err != nil {
			t.Error(err)
		}
		if got := log.taken(); strings.Count(got, "has no notice") != 2 || strings.Count(got, code) != 2 {
			t.Errorf("%s: the log says %s", id, got)
		}
	}
	run("DBMS_AQADM.STOP_QUEUE(queue_name => 'WF_DLQ_Q', enqueue => TRUE, dequeue => FALSE);")
	written("stopped", "ORA-25207")
	run("DBMS_AQADM.START_QUEUE(queue_name => 'WF_DLQ_Q');")
	run("DBMS_AQADM.REMOVE_SUBSCRIBER(queue_name => 'WF_DLQ_Q', subscriber => SYS.AQ$_AGENT('NODES', NULL, NULL));")
	written("nobody", "ORA-24033")
	run("DBMS_AQADM.STOP_QUEUE(queue_name => 'WF_DLQ_Q'); DBMS_AQADM.DROP_QUEUE(queue_name => 'WF_DLQ_Q');")
	written("dropped", "ORA-24010")
}

// What the database gives up, and what has lost its payload, has a notice as any.
func TestDeadLettersOfTheDatabaseHaveNotices(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	ctx := t.Context()
	if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("x")}, {Queue: store.Signals, Body: slices.Repeat([]byte("y"), 40_000)}}}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"UPDATE ocisim.aq_msg SET expire_at = clock_timestamp() - interval '1s' WHERE payload = 'x'", "SELECT ocisim.aq_sweep(NULL)", "DELETE FROM app.wf_payloads"} {
		if _, err := d.Postgres(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := (janitor{s}).Drain(ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	go func() { // a message without its payload never reaches a receiver
		if m, err := s.Receive(ctx, store.Signals, nil); err == nil {
			t.Errorf("received %s", m.Message().ID)
		}
	}()
	var reasons []string
	for range 2 {
		n, err := s.Parts().Notices.Next(ctx, time.Minute)
		if err == nil {
			err = s.Parts().Notices.Told(ctx, n)
		}
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, n.Reason)
	}
	slices.Sort(reasons)
	if want := []string{reasonClaimLost, reasonExpired}; !slices.Equal(reasons, want) {
		t.Errorf("got %q, want %q", reasons, want)
	}
}

// A notice that nobody reads goes away; so does what is none.
func TestNoticesExpireAndAreForgotten(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n", Notices: time.Hour})
	ctx := t.Context()
	db := connected(t, d.DSN())
	subscribe(t, db, "OPS")
	if err := s.Commit(ctx, deadLetterOf("l-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Postgres(ctx, "UPDATE ocisim.aq_msg SET expire_at = expire_at - interval '2h'; SELECT ocisim.aq_sweep(NULL)"); err != nil {
		t.Fatal(err)
	}
	state := func() (text string) {
		t.Helper()
		err := db.QueryRowContext(ctx, "select nvl(min(V.MSG_STATE || ' ' || V.MESSAGES), 'none') from WF_V_QUEUES V where V.QUEUE_NAME = 'dlq'").Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := state(); got != "EXPIRED 1" {
		t.Errorf("expired: %s", got)
	}
	if n, err := (janitor{s}).Drain(ctx); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if got := state(); got != "none" {
		t.Errorf("drained: %s", got)
	}
	if page, err := s.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{}); err != nil || len(page.Items) != 1 {
		t.Errorf("the letter stays, and its notice makes none: %+v, %v", page, err)
	}
	if _, err := d.Postgres(ctx, "SELECT set_config('search_path', 'app,ocisim,pg_catalog', false); SELECT ocisim.aq_enq('APP.WF_DLQ_Q', '\\x01020304050607080910111213141516', NULL, 1, 0, -1, NULL, NULL, 'rubbish')"); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, deadLetterOf("l-2")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Parts().Notices.Next(ctx, time.Minute); err != nil || n.DeadLetterID != "l-2" {
		t.Errorf("behind what is no notice: %+v, %v", n, err)
	}
}

// Each former version can be made, so that runtime's TestInstancesOutliveEachUpgrade
// begins with it.
func TestEachFormerVersionIsKnown(t *testing.T) {
	t.Parallel()
	for v := 1; v < schemaVersion; v++ {
		if oracletest.Former[v] == "" {
			t.Errorf("internal/oracletest/former.go does not say what version %d was", v)
		}
	}
	if len(oracletest.Former) != schemaVersion-1 {
		t.Errorf("%d former versions, the schema has %d", len(oracletest.Former), schemaVersion)
	}
}

// An upgrade that was broken off behind the end of the old queue goes on.
func TestABrokenUpgradeGoesOn(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	a.run(t, a.owner, oracletest.Former[1])
	a.run(t, a.owner, `BEGIN
	  DBMS_AQADM.STOP_QUEUE(queue_name => 'WF_DLQ_Q');
	  DBMS_AQADM.DROP_QUEUE(queue_name => 'WF_DLQ_Q');
	  DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'WF_DLQ_QTAB', force => TRUE);
	END;`)
	if from, to, err := Migrate(t.Context(), Installation{DSN: a.d.UserDSN(a.owner), RuntimeUser: a.runtime}); from != 1 || to != 2 || err != nil {
		t.Fatal(from, to, err)
	}
	// What Oracle says of a block that reads a missing table, as the stand-in can say it.
	_, err := a.open(t, a.owner).ExecContext(t.Context(), "BEGIN RAISE_APPLICATION_ERROR(-20001, 'line 2: ORA-00942: table or view does not exist'); END;")
	if !aq.Names(err, 942) || aq.Names(err, 24010) || aq.Names(nil, 942) {
		t.Errorf("the codes of %v", err)
	}
	s := opened(t, Options{DSN: a.d.UserDSN(a.runtime), Schema: a.owner, Node: "n"})
	if err := s.Commit(t.Context(), deadLetterOf("l")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Parts().Notices.Next(t.Context(), time.Minute); err != nil || n.DeadLetterID != "l" {
		t.Errorf("%+v, %v", n, err)
	}
	if err := s.Commit(t.Context(), store.Change{Audit: []store.Audit{{ID: "a", At: time.Now(), Action: "discard", Target: "l", Kind: "nobody", Via: "api"}}}); err != nil {
		t.Errorf("an audit without a name and a reason: %v", err)
	}
}

// A schema of version 1 becomes one of version 2 by engine-node migrate and by the
// script of a DBA, but not under a live node, nor with messages in the queue.
func TestTheDLQQueueGetsSeveralConsumers(t *testing.T) {
	t.Parallel()
	for how, upgrade := range map[string]func(a apart) error{
		"migrate": func(a apart) error {
			from, to, err := Migrate(t.Context(), Installation{DSN: a.d.UserDSN(a.owner), RuntimeUser: a.runtime})
			if err == nil && (from != 1 || to != 2) {
				t.Errorf("from %d to %d", from, to)
			}
			return err
		},
		"script": func(a apart) error {
			return a.d.ScriptFile(t.Context(), a.owner, schemaFolder(t), "upgrade_2.sql", []string{a.runtime})
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a := installApart(t)
			s := opened(t, Options{DSN: a.d.UserDSN(a.runtime), Schema: a.owner, Node: "n"})
			if err := s.Commit(t.Context(), deadLetterOf("before")); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			a.run(t, a.owner, oracletest.Former[1])
			put := "SELECT set_config('search_path', 'aqueduct,ocisim,pg_catalog', false); SELECT ocisim.aq_enq('AQUEDUCT.WF_DLQ_Q', '\\x01', NULL, 1, 0, -1, NULL, NULL, 'mine')"
			if _, err := a.d.Postgres(t.Context(), put); err != nil {
				t.Fatal(err)
			}
			if err := upgrade(a); err == nil || !strings.Contains(err.Error(), "holds 1 messages") {
				t.Fatalf("over somebody's message: %v", err)
			}
			if _, err := a.d.Postgres(t.Context(), "DELETE FROM ocisim.aq_msg"); err != nil {
				t.Fatal(err)
			}
			if err := upgrade(a); err != nil {
				t.Fatal(err)
			}
			s = opened(t, Options{DSN: a.d.UserDSN(a.runtime), Schema: a.owner, Node: "n"})
			if err := s.Commit(t.Context(), deadLetterOf("after")); err != nil {
				t.Fatal(err)
			}
			if n, err := s.Parts().Notices.Next(t.Context(), time.Minute); err != nil || n.DeadLetterID != "after" {
				t.Errorf("%+v, %v", n, err)
			}
			if _, err := s.Parts().DeadLetters.DeadLetter(t.Context(), "before"); err != nil {
				t.Error(err)
			}
			for _, f := range Check(t.Context(), CheckOptions{DSN: a.d.UserDSN(a.runtime), Schema: a.owner}) {
				if f.Severity == survey.Wrong {
					t.Errorf("doctor: %+v", f)
				}
			}
		})
	}
}

// Every client call of a commit that makes a dead letter fails, in each way: there are
// as many notices as letters, of the same.
func TestADeadLetterAndItsNoticeAreOneCommit(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n", Apart: apart})
		count := 0
		for _, action := range []string{"error=1555", "error_after=1013", "cut", "cut_after", "error_after=3113"} {
			for k := 1; k <= 8; k++ {
				diesUnderFault(t, s, action, k)
				count++
			}
		}
		var made, told []string
		page, err := s.Parts().DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Limit: projections.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Items {
			made = append(made, l.ID)
		}
		for range made {
			n, err := s.Parts().Notices.Next(t.Context(), time.Minute)
			if err == nil {
				err = s.Parts().Notices.Told(t.Context(), n)
			}
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, n.DeadLetterID)
		}
		slices.Sort(made)
		slices.Sort(told)
		if len(made) != count || !slices.Equal(made, told) {
			t.Errorf("%d letters of %d, %q; told %q", len(made), count, made, told)
		}
		if n, err := s.Parts().Notices.Next(t.Context(), 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a notice without a letter: %+v, %v", n, err)
		}
	}
}

// diesUnderFault makes a dead letter of a message, on sessions of which the next fails.
func diesUnderFault(t *testing.T, s *Store, action string, k int) {
	t.Helper()
	if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("go")}}}); err != nil {
		t.Fatal(action, k, err)
	}
	arm(t, s, action, k)
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	for messages(t, s) > 0 {
		d, err := s.Receive(ctx, store.Signals, nil)
		if ctx.Err() != nil {
			t.Fatal(action, k, err)
		}
		if err != nil {
			continue
		}
		if err := d.Commit(ctx, deadLetterOf(fmt.Sprintf("%s-%d", action, k))); err != nil && !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrUnknown) {
			release(ctx, d, err)
		}
	}
	s.pool.dropIdle()
}
