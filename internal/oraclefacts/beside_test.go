package oraclefacts

import (
	"context"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
)

// besides is what the block of a dequeue is taken to do.
func besides(r *rig) {
	db, err := aq.Open(aq.Options{DSN: r.dsn, Wait: time.Second})
	r.must(err)
	defer db.Close()
	s, err := db.Session(r.Context())
	r.must(err)
	defer s.Close()
	q := aq.Queue{Name: "Q", Table: "QT"}
	echo, breaks := &aq.Beside{Do: "X := B;\n"}, &aq.Beside{Declare: "N NUMBER;\n", Do: "SELECT 1 INTO N FROM DUAL WHERE 1 = 0;\n"}
	dequeue := func(b *aq.Beside) *aq.Message {
		r.Helper()
		r.must(s.Begin(r.Context()))
		take := func() (*aq.Message, error) { return s.Dequeue(r.Context(), q) }
		if b != nil {
			take = func() (*aq.Message, error) { return s.DequeueBeside(r.Context(), q, b) }
		}
		m, err := take()
		r.must(err)
		return m
	}
	if m := dequeue(echo); m != nil {
		r.Fatalf("an empty queue: %+v", m)
	}
	r.must(s.Enqueue(r.Context(), q, []aq.Send{{Body: []byte("one"), Note: "a;note", Priority: 3}}))
	r.must(s.Commit())
	byClient := dequeue(nil)
	r.must(s.Rollback())
	byBlock := dequeue(echo)
	r.must(s.Rollback())
	if byBlock.ID != byClient.ID || string(byBlock.Body) != "one" || string(byBlock.Beside) != "one" || byBlock.Note != "a;note" || byBlock.Priority != 3 ||
		byBlock.Rollbacks != 1 || !byBlock.EnqueuedAt.Equal(byClient.EnqueuedAt) {
		r.Errorf("the client library says %+v, the block %+v", byClient, byBlock)
	}
	if m := dequeue(breaks); string(m.Body) != "one" || m.Beside != nil || m.Rollbacks != 2 {
		r.Errorf("with an error behind it: %+v", m)
	}
	r.must(s.Commit())
	large := r.session("Q")
	large.send(strings.Repeat("x", 33_000), never, 0)
	large.commit()
	m := dequeue(echo)
	if len(m.Body) != 33_000 {
		r.Errorf("%d bytes of 33,000", len(m.Body))
	}
	r.note("33,000 bytes: beside them %d", len(m.Beside))
	r.must(s.Commit())
	breakBlock(r, q, echo)
}

// breakBlock breaks a block off that waits.
func breakBlock(r *rig, q aq.Queue, b *aq.Beside) {
	db, err := aq.Open(aq.Options{DSN: r.dsn, Wait: 30 * time.Second})
	r.must(err)
	defer db.Close()
	s := brokenOff(r, db, func(ctx context.Context, s *aq.Session) error {
		_, err := s.DequeueBeside(ctx, q, b)
		return err
	})
	defer s.Close()
	if _, err := s.ExecContext(r.Context(), "BEGIN NULL; END;"); err != nil {
		r.Error(err)
	}
}
