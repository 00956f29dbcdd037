package aq

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godror/godror"
)

// Beside is what a dequeue looks up for its message, in the same round trip: statements
// of PL/SQL that read the body, B, and leave what they find in X, a RAW of 32,767
// bytes. Their errors are none of the dequeue: the message comes without.
type Beside struct {
	Declare, Do string
	Args        []sql.NamedArg // binds of Do
}

// DequeueBeside is Dequeue by a block of PL/SQL that looks something up for the message.
// The queue has one consumer, who removes what it takes. A message that PL/SQL cannot
// hold is taken as Dequeue does.
func (s *Session) DequeueBeside(ctx context.Context, q Queue, b *Beside) (*Message, error) {
	block := context.WithoutCancel(ctx)
	return during(ctx, s, q, func() (*Message, error) {
		m, err := takeBeside(block, s, q, b)
		if !hasCode(err, codeTooLong) {
			return m, err
		}
		queue, err := s.queue(block, q, s.deq)
		if err != nil {
			return nil, err
		}
		s.calls.Add(1)
		return take(queue)
	})
}

// takeBeside is the blocking call. Its names of binds are no words of SQL.
func takeBeside(ctx context.Context, s *Session, q Queue, b *Beside) (*Message, error) {
	wait := s.wait
	if q.NoWait {
		wait = 0
	}
	var about string
	var m Message
	args := []any{
		godror.NoRetry(), sql.Named("AQ_WAIT", int64(wait/time.Second)), sql.Named("AQ_QUEUE", q.Name), sql.Named("AQ_ABOUT", sql.Out{Dest: &about}),
		sql.Named("AQ_BODY", sql.Out{Dest: &m.Body}), sql.Named("AQ_BESIDE", sql.Out{Dest: &m.Beside}),
	}
	for _, a := range b.Args {
		args = append(args, a)
	}
	_, err := s.tx.ExecContext(ctx, b.Block(), args...)
	switch {
	case hasCode(err, codeEmpty):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &m, m.about(about)
}

// Block is the text of the block: statement-level rollback gives the message back when
// it fails.
func (b *Beside) Block() string {
	return "DECLARE\nO DBMS_AQ.DEQUEUE_OPTIONS_T;\nM DBMS_AQ.MESSAGE_PROPERTIES_T;\nI RAW(16);\nB RAW(32767);\nX RAW(32767);\n" + b.Declare + `BEGIN
O.NAVIGATION := DBMS_AQ.FIRST_MESSAGE;
O.WAIT := :AQ_WAIT;
DBMS_AQ.DEQUEUE(queue_name => :AQ_QUEUE, dequeue_options => O, message_properties => M, payload => B, msgid => I);
:AQ_ABOUT := RAWTOHEX(I) || ';' || TO_CHAR(M.PRIORITY) || ';' || TO_CHAR(M.ATTEMPTS) || ';' || TO_CHAR(M.DELAY) || ';' ||
  TO_CHAR(M.ENQUEUE_TIME, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') || ';' || M.CORRELATION;
:AQ_BODY := B;
BEGIN
` + b.Do + `EXCEPTION
WHEN OTHERS THEN X := NULL;
END;
:AQ_BESIDE := X;
END;`
}

// about reads what a block says of its message.
func (m *Message) about(text string) (err error) {
	f := strings.SplitN(text, ";", 6)
	if len(f) != 6 {
		return fmt.Errorf("aq: a block says of its message %.100q", text)
	}
	n := [3]int{}
	for i := range n {
		if n[i], err = strconv.Atoi(f[1+i]); err != nil {
			return fmt.Errorf("aq: a block says of its message %.100q: %w", text, err)
		}
	}
	m.ID, m.Priority, m.Rollbacks, m.Delay, m.Note = strings.ToLower(f[0]), n[0], n[1], time.Duration(n[2])*time.Second, f[5]
	m.EnqueuedAt, err = time.Parse(time.DateTime, f[4])
	return err
}
