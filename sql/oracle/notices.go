package oracle

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Of each dead letter a notice goes to WF_DLQ_Q, by the block that writes the letter.
// The queue has several consumers: the nodes together are one, and each application or
// tool that subscribes is another. Nothing here reads a notice to know of a letter.

// The DLQ queue, and what the nodes are called there.
const (
	noticeObject = "WF_DLQ"
	noticeNodes  = "NODES"
)

// noticeBlock sends a notice. A letter is written whether or not its notice can be: a
// queue that was stopped or dropped, has no subscriber, or is not granted, refuses the
// notice alone, and the code says so.
const noticeBlock = `DECLARE
NO DBMS_AQ.ENQUEUE_OPTIONS_T;
NM DBMS_AQ.MESSAGE_PROPERTIES_T;
NI RAW(16);
NC NUMBER := 0;
BEGIN
NM.CORRELATION := :REASON; NM.PRIORITY := :PRIORITY; NM.EXPIRATION := :EXPIRATION;
BEGIN
DBMS_AQ.ENQUEUE(queue_name => :QUEUE_NAME, enqueue_options => NO, message_properties => NM, payload => :PAYLOAD, msgid => NI);
EXCEPTION
WHEN OTHERS THEN
NC := SQLCODE;
IF NC NOT IN (-24033, -25207, -24010, -24002, -1031) THEN
RAISE;
END IF;
END;
:CODE := NC;
END`

// notice adds the notice of a dead letter to a change.
func (s planner) notice(w *work, l *projections.DeadLetter) {
	if s.o.Notices < 0 {
		return
	}
	n := backend.Notice{
		DeadLetterID: l.ID, Queue: l.Queue, InstanceID: l.InstanceID, Reason: l.Reason, Detail: clip(l.Detail), Attempts: l.Attempts,
		Node: l.Node, DiedAt: l.DiedAt.UTC().Truncate(time.Microsecond),
	}
	body, err := json.Marshal(n)
	if err != nil {
		panic(err) // texts, a number and a time
	}
	if len(body) > aq.MaxBytes { // each byte of the detail can become six
		n.Detail = ""
		if body, err = json.Marshal(n); err != nil {
			panic(err)
		}
	}
	o := op{block: noticeBlock, code: new(int64)}
	o.args = []any{within(l.Reason, aq.MaxNote), priorityUsual, int64((s.o.Notices + time.Second - 1) / time.Second), noticeQueue(s.schema).Name, body, sql.Out{Dest: o.code}}
	w.ops = append(w.ops, o)
}

// priorityUsual is the priority of a notice.
const priorityUsual = 5

// unsent says in the log which letters were written without their notice.
func unsent(log *slog.Logger, w *work) {
	for i := range w.ops {
		if code := w.ops[i].code; code != nil && *code != 0 {
			log.Error("oracle: a dead letter has no notice: the queue does not take it", "queue", noticeObject+"_Q", "error", fmt.Sprintf("ORA-%05d", -*code))
		}
	}
}

func noticeQueue(schema string) aq.Queue {
	return aq.Queue{Name: schema + "." + noticeObject + "_Q", Table: schema + "." + noticeObject + "_QTAB", Consumer: noticeNodes}
}

// notices implements backend.Notices.
type notices struct{ *Store }

// Next implements backend.Notices: it looks at the first message, and blocks in the
// database while there is none.
func (s notices) Next(ctx context.Context, wait time.Duration) (backend.Notice, error) {
	if err := s.enter(); err != nil {
		return backend.Notice{}, wrap("notices", err)
	}
	defer s.leave()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	n, err := s.next(waiting, time.Now().Add(wait))
	switch {
	case s.life.Err() != nil:
		err = store.ErrClosed
	case ctx.Err() != nil:
		return backend.Notice{}, ctx.Err()
	}
	return n, wrap("notices", explain(err))
}

func (s notices) next(ctx context.Context, until time.Time) (n backend.Notice, err error) {
	session, err := s.pool.take(ctx)
	if err != nil {
		return n, err
	}
	defer s.pool.giveBack(session)
	q := noticeQueue(s.schema)
	q.Browse = true
	for ctx.Err() == nil {
		if err := s.pool.begin(ctx, session); err != nil {
			return n, err
		}
		raw, err := session.Dequeue(ctx, q)
		if err != nil {
			return n, err
		}
		if raw == nil && !time.Now().Before(until) {
			return n, store.ErrNotFound
		}
		if raw == nil {
			continue
		}
		if jsonv2.Unmarshal(raw.Body, &n) == nil && n.DeadLetterID != "" {
			n.Ref = raw.ID
			return n, nil
		}
		s.log.Warn("oracle: a message of the DLQ queue is no notice, and is removed", "message", raw.ID)
		if _, err := session.Remove(ctx, noticeQueue(s.schema), raw.ID); err != nil {
			return n, err
		}
		if err := commit(session); err != nil {
			return n, err
		}
	}
	return n, ctx.Err()
}

// Told implements backend.Notices.
func (s notices) Told(ctx context.Context, n backend.Notice) error {
	if err := s.enter(); err != nil {
		return wrap("notices", err)
	}
	defer s.leave()
	return wrap("notice "+n.Ref, change(ctx, s.Store, nil, func(session *aq.Session) error {
		_, err := session.Remove(ctx, noticeQueue(s.schema), n.Ref)
		return err
	}))
}

// forgetNotices drops those that have expired, whoever has not read them: the letters
// are there.
func (s janitor) forgetNotices(ctx context.Context) error {
	q := aq.Queue{Name: s.schema + ".AQ$_" + noticeObject + "_QTAB_E", Table: s.schema + "." + noticeObject + "_QTAB", NoWait: true}
	return change(ctx, s.Store, nil, func(session *aq.Session) error {
		for range drainMax {
			if raw, err := session.Dequeue(ctx, q); err != nil || raw == nil {
				return err
			}
		}
		return nil
	})
}
