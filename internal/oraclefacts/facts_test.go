package oraclefacts

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
)

// fact is a claim that correctness leans on.
type fact struct {
	claim   string
	run     func(*rig)
	real    string // why only a real database can prove it; it does not run on the stand-in
	standIn string // why it runs on the stand-in only
	where   string // the test elsewhere that has it; run is nil
}

var facts = []fact{
	{claim: "a message with expiration 0 expires at once, with -1 never", run: expiration},
	{claim: "attempts are 0 at first delivery, 1 after a rollback", run: attempts},
	{claim: "a savepoint after the dequeue keeps it at ROLLBACK TO, one before it does not", run: savepoints},
	{claim: "a delayed message is never early; its lateness is printed", run: timers},
	{claim: "Break ends a dequeue that waits, and the session goes on", run: breaking},
	{claim: "kill -9 between dequeue and commit gives the message back, attempts not raised", run: killed},
	{claim: "a database that restarts during the wait is class reconnect", run: bounce, standIn: "an operator must restart the database during a run of internal/cluster"},
	{claim: "the driver starts a stopped queue again when its user may", run: stopped},
	{claim: "a stopped queue stays so for a user without DBMS_AQADM", run: stoppedForOthers},
	{claim: "PL/SQL reads a payload of 32,000 bytes from Go; what it does with 33,000 is printed", run: payload},
	{claim: "a BLOB of 100 KB and of 5 MB is updated by a bind", run: blobs},
	{claim: "INSERT ... SELECT takes a bind of 2,000 bytes; what it does with longer ones, also in a block, is printed", run: longBinds},
	{claim: "two engines race for one instance and lose nothing", where: "internal/cluster: TestCluster, AQUEDUCT_CLUSTER_SECONDS=600"},
	{claim: "expired messages come out of the exception queue", run: exceptions},
	{claim: "each subscriber gets a message once; without one, none is sent (ORA-24033); what is browsed is removed by its id; what expires lies in the exception queue once, for nobody", run: subscribers},
	{claim: "memory of the client library stays flat over many messages", run: memory},
	{claim: "whether a SELECT FOR UPDATE outside a transaction is committed at once; the store has none", run: autocommit, real: "the stand-in does not commit it"},
	{claim: "a block consumes what was dequeued before it when it ends with COMMIT, and not when it fails; the next dequeue needs no new transaction of the driver", run: blockCommits},
	{claim: "a block that dequeues says the same of a message as the client library, waits as long, is broken off as soon, and gives the message back with its statement when it fails; an error in a handler behind the dequeue leaves it dequeued", run: besides},
	{claim: "a block that begins by locking a join of rows, NOWAIT and in a loop of a cursor, is ORA-00054 where another session has either; the dequeue before it stays, ORA-06512 says the line, a bind that stands twice is given once, and the block works when the lock is gone", run: blockLocks},
	{claim: "ALTER SESSION DISABLE COMMIT IN PROCEDURE refuses COMMIT, ROLLBACK and DDL of a procedure (ORA-00034), and nothing else; what it says of ROLLBACK TO and autonomous transactions is printed", run: commitGuard, real: "no procedure commits on the stand-in"},
	{claim: "ALL_PROCEDURES and ALL_ARGUMENTS describe the procedures of a package, overloads, defaults and directions, ALL_SYNONYMS its synonyms; the names of types are printed", run: described},
	{claim: "RETURNING ... INTO sets texts, also of a number and of NULL; of no row it sets nothing, and of several the count of rows is known", run: returns},
	{claim: "REMOVE_NODATA by id takes away a message that still waits", run: removal},
}

// TestFacts runs the table. What cannot run here is no skip: its line says so.
func TestFacts(t *testing.T) {
	for i, f := range facts {
		t.Run(fmt.Sprintf("%02d", i+1), func(t *testing.T) {
			worth := "imitated by the stand-in"
			if oracletest.Real() {
				worth = "proved"
			}
			switch {
			case f.run == nil:
				worth = "see " + f.where
			case f.real != "" && !oracletest.Real():
				worth = "NOT PROVED HERE, only on a real database: " + f.real
			case f.standIn != "" && oracletest.Real():
				worth = "NOT PROVED HERE: " + f.standIn
			default:
				r := newRig(t)
				f.run(r)
				worth += r.notes
			}
			if t.Failed() {
				worth = "WRONG"
			}
			t.Logf("report: fact %d: %s: %s", i+1, f.claim, worth)
		})
	}
}

// TestVersions says what was tested.
func TestVersions(t *testing.T) {
	db, err := sql.Open("godror", oracletest.Fresh(t, makeQueue))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var banner string
	if err := db.QueryRow("select BANNER_FULL from V$VERSION").Scan(&banner); err != nil {
		t.Log("V$VERSION:", err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := godror.DriverConn(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	server, err := raw.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	client, err := raw.ClientVersion()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("report: database: %s, version %s; client library %s; driver %s", strings.Join(strings.Fields(banner), " "), &server, &client, godror.Version)
}

// rig is a database with a queue Q.
type rig struct {
	*testing.T
	dsn   string
	db    *sql.DB
	there *ocisim.Database // nil on a real database
	notes string           // figures for the report
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t}
	if oracletest.Real() {
		r.dsn = oracletest.Fresh(t, makeQueue)
	} else {
		r.there = oracletest.StandIn(t, makeQueue)
		r.dsn = r.there.DSN()
	}
	var err error
	if r.db, err = sql.Open("godror", r.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.db.Close() })
	return r
}

func (r *rig) note(format string, args ...any) { r.notes += "; " + fmt.Sprintf(format, args...) }

// makeQueue makes queue Q in table QT anew, with its exception queue open.
func makeQueue(ctx context.Context, dsn string) error {
	db, err := sql.Open("godror", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "BEGIN DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'QT', force => TRUE); END;")
	const noTable = 24002
	if err != nil && !slices.Contains(aq.Codes(err), noTable) {
		return err
	}
	for _, block := range []string{
		"BEGIN DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'QT', queue_payload_type => 'RAW', storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)', sort_list => 'PRIORITY,ENQ_TIME'); END;",
		"BEGIN DBMS_AQADM.CREATE_QUEUE(queue_name => 'Q', queue_table => 'QT', max_retries => 100); END;",
		"BEGIN DBMS_AQADM.START_QUEUE(queue_name => 'Q'); END;",
		"BEGIN DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_QT_E', enqueue => FALSE, dequeue => TRUE); END;",
	} {
		if _, err := db.ExecContext(ctx, block); err != nil {
			return fmt.Errorf("%s: %w", block, err)
		}
	}
	return nil
}

// session is a connection with a transaction and a queue on it.
type session struct {
	r    *rig
	conn *sql.Conn
	tx   *sql.Tx
	q    *godror.Queue
}

func (r *rig) session(queue string) *session {
	r.Helper()
	conn, err := r.db.Conn(context.Background())
	r.must(err)
	o := godror.DefaultDeqOptions
	o.Navigation, o.Wait = godror.NavFirst, 0
	q, err := godror.NewQueue(context.Background(), conn, queue, "", godror.WithQueueTable("QT"), godror.WithDeqOptions(o), godror.WithEnqOptions(godror.DefaultEnqOptions))
	r.must(err)
	s := &session{r: r, conn: conn, q: q}
	s.begin()
	r.Cleanup(func() { _ = s.tx.Rollback(); _ = q.Close(); _ = conn.Close() })
	return s
}

func (s *session) begin() {
	s.r.Helper()
	var err error
	s.tx, err = s.conn.BeginTx(context.Background(), nil)
	s.r.must(err)
}

func (s *session) commit() { s.r.Helper(); s.r.must(s.tx.Commit()); s.begin() }

func (s *session) rollback() { s.r.Helper(); s.r.must(s.tx.Rollback()); s.begin() }

func (s *session) exec(text string, args ...any) {
	s.r.Helper()
	_, err := s.tx.Exec(text, args...)
	s.r.must(err)
}

// send enqueues; an expiration of -1 s is never.
func (s *session) send(body string, expiration, delay time.Duration) [16]byte {
	s.r.Helper()
	m := []godror.Message{{Raw: []byte(body), Expiration: expiration, Delay: delay, Priority: 5, DeliveryMode: godror.DeliverPersistent}}
	s.r.must(s.q.Enqueue(m))
	return m[0].MsgID
}

// take dequeues what is there now, or nil.
func (s *session) take() *godror.Message {
	s.r.Helper()
	var m [1]godror.Message
	n, err := s.q.Dequeue(m[:])
	s.r.must(err)
	if n == 0 {
		return nil
	}
	return &m[0]
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

const never = -1 * time.Second

// The test binary is also the process that is killed with a message in hand.
const holdEnv = "AQUEDUCT_TEST_HOLD"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(holdEnv); dsn != "" {
		os.Exit(hold(dsn))
	}
	os.Exit(m.Run())
}

func hold(dsn string) int {
	db, err := aq.Open(aq.Options{DSN: dsn, Wait: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx := context.Background()
	s, err := db.Session(ctx)
	if err == nil {
		err = s.Begin(ctx)
	}
	var m *aq.Message
	if err == nil {
		m, err = s.Dequeue(ctx, aq.Queue{Name: "Q", Table: "QT"})
	}
	fmt.Println("held", m != nil, err)
	select {} // until it is killed
}

func killed(r *rig) {
	s := r.session("Q")
	s.send("a", never, 0)
	s.commit()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+r.dsn)
	out, err := cmd.StdoutPipe()
	r.must(err)
	r.must(cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, _ := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "held true") {
		r.Fatal(line)
	}
	if s.take() != nil {
		r.Fatal("a message that another holds can be taken")
	}
	s.rollback()
	begun := time.Now()
	r.must(cmd.Process.Kill())
	var m *godror.Message
	for m == nil && time.Since(begun) < 2*time.Minute {
		if m = s.take(); m == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if m == nil || m.NumAttempts != 0 {
		r.Fatalf("%+v", m)
	}
	r.note("back after %.2f s", time.Since(begun).Seconds())
}
