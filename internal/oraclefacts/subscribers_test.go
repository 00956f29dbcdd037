package oraclefacts

import (
	"context"
	"slices"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
)

// subscribers makes the queue one of several consumers. Sends are refused until
// somebody has subscribed, so that this comes first.
func subscribers(r *rig) {
	r.block("DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'QT', force => TRUE);")
	r.block("DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'QT', queue_payload_type => 'RAW', storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => TRUE);")
	r.block("DBMS_AQADM.CREATE_QUEUE(queue_name => 'Q', queue_table => 'QT', max_retries => 100);")
	r.block("DBMS_AQADM.START_QUEUE(queue_name => 'Q');")
	r.block("DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_QT_E', enqueue => FALSE, dequeue => TRUE);")
	s := r.session("Q")
	nobody := []godror.Message{{Raw: []byte("a"), Expiration: never, Priority: 5}}
	if codes := aq.Codes(s.q.Enqueue(nobody)); !slices.Contains(codes, 24033) {
		r.Errorf("nobody has subscribed: codes %v", codes)
	}
	for _, name := range []string{"A", "B"} {
		r.block("DBMS_AQADM.ADD_SUBSCRIBER(queue_name => 'Q', subscriber => SYS.AQ$_AGENT('" + name + "', NULL, NULL));")
	}
	s = r.session("Q")
	s.send("a", never, 0)
	s.commit()
	db, err := aq.Open(aq.Options{DSN: r.dsn, Wait: time.Second})
	r.must(err)
	defer db.Close()
	reader, err := db.Session(context.Background())
	r.must(err)
	defer reader.Close()
	look := func(what string, q aq.Queue, want bool) *aq.Message {
		r.Helper()
		r.must(reader.Begin(context.Background()))
		m, err := reader.Dequeue(context.Background(), q)
		r.must(err)
		if (m != nil) != want {
			r.Errorf("%s: there is %+v", what, m)
		}
		return m
	}
	a, b := aq.Queue{Name: "Q", Table: "QT", Consumer: "A"}, aq.Queue{Name: "Q", Table: "QT", Consumer: "B"}
	browsing := a
	browsing.Browse = true
	if m := look("A looks", browsing, true); m != nil {
		look("A looks again", browsing, true)
		there, err := reader.Remove(context.Background(), a, m.ID)
		r.must(err)
		again, err := reader.Remove(context.Background(), a, m.ID)
		r.must(err)
		if !there || again {
			r.Errorf("A takes what it has seen: %t, and again: %t", there, again)
		}
		r.must(reader.Commit())
	}
	look("A", a, false)
	look("B", b, true)
	r.must(reader.Commit())
	look("B again", b, false)
	s.send("b", time.Second, 0)
	s.commit()
	expired := func() bool {
		r.must(reader.Begin(context.Background()))
		m, err := reader.Dequeue(context.Background(), aq.Queue{Name: "AQ$_QT_E", Table: "QT", NoWait: true})
		r.must(err)
		if m != nil {
			r.must(reader.Commit())
		}
		return m != nil
	}
	r.expires(expired)
	if expired() {
		r.Error("it lies there for each subscriber")
	}
}

// block executes PL/SQL on a connection of its own.
func (r *rig) block(text string) {
	r.Helper()
	_, err := r.db.ExecContext(r.Context(), "BEGIN "+text+" END;")
	r.must(err)
}
