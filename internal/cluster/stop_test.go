package cluster

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/cluster/history"
)

// stopWait is a dequeue wait that no stop may use up.
const stopWait = 30 * time.Second

// A node that is asked to stop ends within the dequeue wait, whether its
// consumers are idle or hold a message, and no message stays locked.
func TestStopDrainsWithinTheDequeueWait(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	p := &producer{b: b, name: "p"}
	if !p.connect() {
		t.Fatal("the producer cannot connect")
	}
	defer p.disconnect(nil)

	// A turn that begins to wait has its instance look for events that have come
	// before, which another node may do as well.
	const keepNone = "--events-ttl=0s"
	idle := b.must("idle", "--queue-wait", stopWait.String(), keepNone)
	b.send(p, "before", "i", true)
	b.eventually("the node works", time.Minute, func() bool { return b.applied() == 1 })
	time.Sleep(time.Second) // its consumers are in their dequeues again
	took := idle.stop(b)
	t.Logf("report: stop: idle consumers: ended %.2f s after SIGTERM, dequeue wait %s", took.Seconds(), stopWait)
	within(t, "idle", took)
	b.send(p, "after", "i", false)
	if !b.free() {
		t.Error("a message that came after the stop cannot be dequeued")
	}

	hold := b.occupy("i")
	busy := b.must("busy", "--queue-wait", stopWait.String(), keepNone)
	b.eventually("the node has the message in hand", time.Minute, func() bool { return !b.free() })
	time.Sleep(time.Second) // and its turn waits for the place: one that is only dequeued would be given back
	if b.standIn != nil {   // later, on a busy machine
		for w := new(await.Wait); ; {
			n, err := b.standIn.Postgres(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(n) != "0" || !w.Again(50*time.Millisecond, n) {
				break
			}
		}
	}
	asked := make(chan time.Duration, 1)
	go func() { asked <- busy.stop(b) }()
	const held = 700 * time.Millisecond
	time.Sleep(held)
	if busy.Gone() {
		t.Error("the node has ended with a message in hand")
	}
	if err := hold.Rollback(); err != nil {
		t.Fatal(err)
	}
	took = <-asked
	t.Logf("report: stop: message in hand for %s more: ended %.2f s after SIGTERM, dequeue wait %s", held, took.Seconds(), stopWait)
	within(t, "busy", took)
	if n := b.applied(); n != 2 {
		t.Errorf("%d signals are applied, the one in hand was not finished", n)
	}
	if n := b.count("select count(*) from AQ$WF_SIGNAL_QTAB"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	p.disconnect(nil)
	if left := b.sessionsLeft(); left != "0" {
		t.Errorf("%s sessions are left behind", left)
	}
}

func within(t *testing.T, what string, took time.Duration) {
	t.Helper()
	if took >= stopWait {
		t.Errorf("%s: the stop took %s, the dequeue wait is %s", what, took, stopWait)
	}
}

// send commits one signal.
func (b *testCluster) send(p *producer, id, instance string, begins bool) {
	b.t.Helper()
	outcome, err := p.transaction(history.Signal{ID: id, Instance: instance, How: "package"}, begins, false)
	if err != nil || outcome != history.Committed {
		b.t.Fatal(outcome, err)
	}
}

// free says whether a message of the signal queue can be dequeued now; it is
// put back.
func (b *testCluster) free() bool {
	b.t.Helper()
	conn, err := b.pool.Conn(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	o := godror.DefaultDeqOptions
	o.Navigation, o.Wait = godror.NavFirst, 0
	q, err := godror.NewQueue(context.Background(), conn, "WF_SIGNAL_Q", "", godror.WithDeqOptions(o))
	if err != nil {
		b.t.Fatal(err)
	}
	defer q.Close()
	tx, err := conn.BeginTx(context.Background(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer tx.Rollback()
	n, err := q.Dequeue(make([]godror.Message, 1))
	if err != nil {
		b.t.Fatal(err)
	}
	return n == 1
}

// occupy takes the next place in the stream of an instance, in a transaction that is to
// be rolled back: a turn waits for that. (For the rows of the instance it does not.)
func (b *testCluster) occupy(instance string) *sql.Tx {
	b.t.Helper()
	tx, err := b.pool.Begin()
	if err == nil {
		_, err = tx.Exec("insert into WF_STREAM (INSTANCE_ID, POSITION) select INSTANCE_ID, MAX(POSITION) + 1 from WF_STREAM where INSTANCE_ID = :1 group by INSTANCE_ID", instance)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return tx
}
