package ocisim_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godror/godror"
)

// newQueue makes and starts a queue with a table of its own, and a queue QX for
// what fails in the same table.
func newQueue(t testing.TB, db *sql.DB, maxRetries int) {
	t.Helper()
	exec(t, db, fmt.Sprintf(`BEGIN
	  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'QT', queue_payload_type => 'RAW', sort_list => 'PRIORITY,ENQ_TIME');
	  DBMS_AQADM.CREATE_QUEUE(queue_name => 'Q', queue_table => 'QT', max_retries => %d);
	  DBMS_AQADM.CREATE_QUEUE(queue_name => 'QX', queue_table => 'QT', queue_type => DBMS_AQADM.EXCEPTION_QUEUE);
	  DBMS_AQADM.START_QUEUE(queue_name => 'Q');
	  DBMS_AQADM.START_QUEUE(queue_name => 'QX', enqueue => FALSE, dequeue => TRUE);
	END;`, maxRetries))
}

// queue binds a queue to a transaction or connection.
func queue(t testing.TB, on godror.Execer, name string) *godror.Queue {
	t.Helper()
	q, err := godror.NewQueue(context.Background(), on, name, "", godror.WithQueueTable("QT"))
	must(t, err)
	return q
}

// waiting are options to dequeue with a wait.
func waiting(d time.Duration) *godror.DeqOptions {
	o := godror.DefaultDeqOptions
	o.Navigation, o.Wait = godror.NavFirst, d
	return &o
}

// message is a message that never expires.
func message(text string) godror.Message {
	return godror.Message{Raw: []byte(text), Priority: 5, Expiration: -time.Second}
}

// send enqueues messages in a transaction of their own.
func send(t testing.TB, db *sql.DB, messages ...godror.Message) []godror.Message {
	t.Helper()
	tx := begin(t, db)
	q := queue(t, tx, "Q")
	must(t, q.Enqueue(messages))
	must(t, q.Close())
	must(t, tx.Commit())
	return messages
}

// take dequeues one message in a transaction and ends it.
func take(t testing.TB, db *sql.DB, name string, o *godror.DeqOptions, commit bool) (godror.Message, bool) {
	t.Helper()
	tx := begin(t, db)
	q := queue(t, tx, name)
	var m [1]godror.Message
	n, err := q.DequeueWithOptions(m[:], o)
	must(t, err)
	must(t, q.Close())
	if commit {
		must(t, tx.Commit())
	} else {
		must(t, tx.Rollback())
	}
	return m[0], n == 1
}

func TestRollbackGivesBackAndCounts(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 2)
	in := message("hello")
	in.Correlation, in.ExceptionQ = "c1", "QX"
	sent := send(t, db, in)
	for attempt := range 3 {
		m, ok := take(t, db, "Q", waiting(0), false)
		equal(t, "there", ok, true)
		equal(t, "message", string(m.Raw)+m.Correlation, "helloc1")
		equal(t, "id", m.MsgID, sent[0].MsgID)
		equal(t, "attempts", m.NumAttempts, int32(attempt))
		equal(t, "priority", m.Priority, int32(5))
	}
	_, ok := take(t, db, "Q", waiting(0), false)
	equal(t, "tried too often", ok, false)
	m, ok := take(t, db, "QX", waiting(0), true)
	equal(t, "in the exception queue", ok && string(m.Raw) == "hello", true)
}

func TestDequeueIsPartOfTheTransaction(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 100)
	exec(t, db, `CREATE TABLE done (id NUMBER(10))`)
	send(t, db, message("a"))
	for commits := range 2 {
		tx := begin(t, db)
		q := queue(t, tx, "Q")
		var m [1]godror.Message
		n, err := q.Dequeue(m[:])
		must(t, err)
		equal(t, "messages", n, 1)
		exec(t, tx, `INSERT INTO done VALUES (1)`)
		must(t, q.Enqueue([]godror.Message{message("b")}))
		q.Close()
		if commits == 0 {
			must(t, tx.Rollback())
		} else {
			must(t, tx.Commit())
		}
		equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM done`), commits)
	}
	equal(t, "what is left", one[string](t, db, `SELECT UTL_RAW.CAST_TO_VARCHAR2(user_data) FROM aq$qt`), "b")
}

func TestWaits(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 100)
	soon := false
	for try := 0; !soon && try < 20; try++ { // on a busy machine nothing is at once
		from := time.Now()
		_, ok := take(t, db, "Q", waiting(0), true)
		equal(t, "empty", ok, false)
		soon = time.Since(from) < time.Second
	}
	equal(t, "empty at once", soon, true)
	from := time.Now()
	_, ok := take(t, db, "Q", waiting(2*time.Second), true)
	equal(t, "empty after the wait", !ok && time.Since(from) > 1900*time.Millisecond, true)

	time.AfterFunc(300*time.Millisecond, func() { send(t, db, message("late")) })
	m, ok := take(t, db, "Q", waiting(5*time.Minute), true)
	equal(t, "woken", ok && string(m.Raw) == "late", true)

	far, delayed := message("far"), message("delayed")
	far.Delay, delayed.Delay = time.Hour, time.Second
	send(t, db, far)
	_, ok = take(t, db, "Q", waiting(0), true)
	equal(t, "not due", ok, false)
	from = time.Now()
	send(t, db, delayed)
	m, ok = take(t, db, "Q", waiting(5*time.Minute), true)
	equal(t, "due", ok && string(m.Raw) == "delayed" && time.Since(from) > 500*time.Millisecond, true)
}

func TestExpirationZeroExpiresAtOnce(t *testing.T) {
	d, db := open(t)
	newQueue(t, db, 100)
	m := message("x")
	m.Expiration = 0
	send(t, db, m)
	_, ok := take(t, db, "Q", waiting(0), true)
	equal(t, "there", ok, false)
	_, err := d.Postgres(t.Context(), "select ocisim.aq_sweep(null)")
	must(t, err)
	equal(t, "state", one[string](t, db, `SELECT msg_state FROM aq$qt`), "EXPIRED")
}

// Each subscriber gets a message once, whoever else has had it. With none, none can
// be sent, and what expires lies in the exception queue once.
func TestSubscribersGetEachMessageOnce(t *testing.T) {
	d, db := open(t)
	exec(t, db, `BEGIN
	  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'QT', queue_payload_type => 'RAW', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => TRUE);
	  DBMS_AQADM.CREATE_QUEUE(queue_name => 'Q', queue_table => 'QT', max_retries => 5);
	  DBMS_AQADM.START_QUEUE(queue_name => 'Q');
	  DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_QT_E', enqueue => FALSE, dequeue => TRUE);
	END;`)
	tx := begin(t, db)
	wantCode(t, queue(t, tx, "Q").Enqueue([]godror.Message{message("nobody")}), 24033)
	must(t, tx.Rollback())
	for _, name := range []string{"A", "B"} {
		exec(t, db, "BEGIN DBMS_AQADM.ADD_SUBSCRIBER(queue_name => 'Q', subscriber => SYS.AQ$_AGENT('"+name+"', NULL, NULL)); END;")
	}
	_, err := db.Exec("BEGIN DBMS_AQADM.ADD_SUBSCRIBER(queue_name => 'Q', subscriber => SYS.AQ$_AGENT('A', NULL, NULL)); END;")
	wantCode(t, err, 24034)
	sent := send(t, db, message("m"))
	as := func(consumer string) *godror.DeqOptions {
		o := waiting(0)
		o.Consumer = consumer
		return o
	}
	browse := as("A")
	browse.Mode = godror.DeqBrowse
	byID := as("A")
	byID.MsgID = sent[0].MsgID[:]
	for i, step := range []struct {
		o    *godror.DeqOptions
		want bool
	}{{browse, true}, {byID, true}, {as("A"), false}, {as("B"), true}, {as("B"), false}, {as("C"), false}} {
		if m, got := take(t, db, "Q", step.o, true); got != step.want || got && string(m.Raw) != "m" {
			t.Errorf("step %d: %t, %s", i, got, m.Raw)
		}
	}
	tx = begin(t, db)
	_, err = queue(t, tx, "Q").DequeueWithOptions(make([]godror.Message, 1), as(""))
	wantCode(t, err, 25231)
	must(t, tx.Rollback())
	m := message("late")
	m.Expiration = 0
	send(t, db, m)
	if _, err := d.Postgres(t.Context(), "SELECT ocisim.aq_sweep(NULL)"); err != nil {
		t.Fatal(err)
	}
	var state string
	var n int
	must(t, db.QueryRow("select A.MSG_STATE, count(*) from AQ$QT A group by A.MSG_STATE").Scan(&state, &n))
	if state != "EXPIRED" || n != 1 {
		t.Errorf("what nobody took: %d %s", n, state)
	}
	if m, got := take(t, db, "AQ$_QT_E", waiting(0), true); !got || string(m.Raw) != "late" {
		t.Errorf("from the exception queue: %t, %s", got, m.Raw)
	}
}

func TestPriorityAndId(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 100)
	low, high, delayed := message("low"), message("high"), message("delayed")
	low.Priority, high.Priority, delayed.Delay = 9, 1, time.Hour
	sent := send(t, db, low, high, delayed)
	m, _ := take(t, db, "Q", waiting(0), true)
	equal(t, "first", string(m.Raw), "high")
	o := waiting(0)
	o.MsgID = sent[2].MsgID[:]
	m, _ = take(t, db, "Q", o, true)
	equal(t, "by id, not due", string(m.Raw), "delayed")
	tx := begin(t, db)
	q := queue(t, tx, "Q")
	_, err := q.DequeueWithOptions(make([]godror.Message, 1), o)
	wantCode(t, err, 25263)
}

func TestBreakEndsAWait(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 100)
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	var raw godror.Conn
	must(t, godror.Raw(t.Context(), conn, func(c godror.Conn) error { raw = c; return nil }))
	q := queue(t, conn, "Q")
	defer q.Close()
	ended := make(chan struct{})
	var breaks sync.WaitGroup
	breaks.Go(func() {
		for { // again, if it came before the wait
			select {
			case <-time.After(200 * time.Millisecond):
				raw.Break()
			case <-ended:
				return
			}
		}
	})
	from := time.Now()
	_, err = q.DequeueWithOptions(make([]godror.Message, 1), waiting(2*time.Minute))
	close(ended)
	breaks.Wait()
	wantCode(t, err, 1013)
	equal(t, "at once", time.Since(from) < time.Minute, true)
}

func TestQueueErrors(t *testing.T) {
	d, db := open(t)
	newQueue(t, db, 100)
	must(t, d.CreateUser(t.Context(), "runner"))
	exec(t, db, `GRANT SELECT ON qt TO runner`)
	runner := connect(t, d.UserDSN("runner"))
	enqueue := func(db *sql.DB, name string) error {
		tx := begin(t, db)
		defer tx.Rollback()
		return queue(t, tx, name).Enqueue([]godror.Message{message("x")})
	}
	wantCode(t, enqueue(db, "NOSUCH"), 24010)
	wantCode(t, enqueue(db, "QX"), 25206)
	wantCode(t, enqueue(runner, "APP.Q"), 1031)
	exec(t, db, `BEGIN DBMS_AQADM.GRANT_QUEUE_PRIVILEGE('ENQUEUE', 'APP.Q', 'RUNNER'); END;`)
	must(t, enqueue(runner, "APP.Q"))
	_, err := runner.Exec(`BEGIN DBMS_AQADM.START_QUEUE('APP.Q'); END;`)
	wantCode(t, err, 6550)
	exec(t, db, `BEGIN DBMS_AQADM.STOP_QUEUE('Q'); END;`)
	if err := enqueue(runner, "APP.Q"); err == nil || !strings.Contains(err.Error(), "25207") {
		t.Errorf("stopped: %v", err)
	}
	_, err = db.Exec(`BEGIN DBMS_AQADM.CREATE_QUEUE_TABLE('QT', 'RAW'); END;`)
	wantCode(t, err, 24001)
}

// Consumers that roll back every tenth message get each exactly once.
func TestManyConsumersTakeEachMessageOnce(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 100)
	exec(t, db, `CREATE TABLE acc (msgid RAW(16))`)
	const producers, each = 3, 60
	var all sync.WaitGroup
	var sent atomic.Int64
	for range producers {
		all.Go(func() {
			for range each {
				send(t, db, message(strings.Repeat("x", 500)))
				sent.Add(1)
			}
		})
		all.Go(func() {
			for n := 1; ; n++ {
				over := sent.Load() == producers*each
				tx := begin(t, db)
				q := queue(t, tx, "Q")
				var m [1]godror.Message
				k, err := q.DequeueWithOptions(m[:], waiting(2*time.Second))
				q.Close()
				if err != nil || k == 0 {
					tx.Rollback()
					if err != nil {
						t.Error(err)
					}
					if err != nil || over {
						return
					}
					continue // a producer is slow
				}
				exec(t, tx, `INSERT INTO acc VALUES (:1)`, m[0].MsgID[:])
				if n%10 == 0 {
					must(t, tx.Rollback())
				} else {
					must(t, tx.Commit())
				}
			}
		})
	}
	all.Wait()
	equal(t, "rows", one[int](t, db, `SELECT COUNT(*) FROM acc`), producers*each)
	equal(t, "messages", one[int](t, db, `SELECT COUNT(DISTINCT msgid) FROM acc`), producers*each)
}

// dequeuer is the environment that makes the test binary a consumer that never
// ends its transaction.
const dequeuer = "OCISIM_TEST_DEQUEUER"

func TestKilledConsumerCountsNoAttempt(t *testing.T) {
	if dsn := os.Getenv(dequeuer); dsn != "" {
		q := queue(t, begin(t, connect(t, dsn)), "Q")
		n, err := q.Dequeue(make([]godror.Message, 1))
		must(t, err)
		fmt.Println("holding", n)
		time.Sleep(time.Hour)
	}
	d, db := open(t)
	newQueue(t, db, 100)
	send(t, db, message("x"))
	cmd := startTest(t, "^TestKilledConsumerCountsNoAttempt$", dequeuer+"="+d.DSN())
	_, ok := take(t, db, "Q", waiting(0), true)
	equal(t, "free while it is held", ok, false)
	must(t, cmd.Process.Kill())
	cmd.Wait()
	m, ok := take(t, db, "Q", waiting(5*time.Minute), true)
	equal(t, "free after the kill", ok, true)
	equal(t, "attempts", m.NumAttempts, int32(0))
}

// startTest starts the test binary with one test and waits until it says that it
// holds something.
func startTest(t *testing.T, run string, env ...string) *osexec.Cmd {
	t.Helper()
	cmd := osexec.Command(os.Args[0], "-test.run="+run, "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	for text, b := "", make([]byte, 4096); !strings.Contains(text, "holding"); {
		n, err := out.Read(b)
		must(t, err)
		text += string(b[:n])
	}
	return cmd
}
