package aq

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Dequeue takes one message within the open transaction, or returns nil when
// none came within the wait. When ctx ends it breaks the wait off and returns
// ErrBroken. A session that does not come back in time is ErrDeaf: close it and
// make another.
func (s *Session) Dequeue(ctx context.Context, q Queue) (*Message, error) {
	queue, err := s.queue(ctx, q, s.deq)
	if err != nil {
		return nil, err
	}
	return during(ctx, s, q, func() (*Message, error) { return take(queue) })
}

// during waits for the end of a dequeue of a session.
func during(ctx context.Context, s *Session, q Queue, take func() (*Message, error)) (*Message, error) {
	type result struct {
		m   *Message
		err error
	}
	done := make(chan result, 1)
	s.calls.Add(1)
	s.dequeues.Add(1)
	was := s.dirty
	s.dirty = true
	s.mu.Lock()
	s.blocked, s.broken = true, false
	s.mu.Unlock()
	go func() {
		m, err := take()
		s.mu.Lock()
		s.blocked = false
		left := s.abandoned
		s.mu.Unlock()
		done <- result{m, err}
		if left {
			_ = s.close() // nobody waits for its outcome
		}
	}()
	deaf := time.NewTimer(s.wait + s.grace)
	defer deaf.Stop()
	end := ctx.Done()
	for {
		select {
		case r := <-done:
			if r.m == nil && r.err == nil {
				s.dirty = was
			}
			return s.taken(q, r.m, r.err)
		case <-end:
			end = nil
			if err := s.Break(); err != nil {
				s.spoil()
			}
			deaf.Reset(s.grace)
		case <-deaf.C:
			if s.isBroken() {
				return nil, s.abandon(q)
			}
			if err := s.Break(); err != nil {
				s.spoil()
			}
			deaf.Reset(s.grace)
		}
	}
}

func (s *Session) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// abandon gives up a call that does not return. The goroutine in it closes the
// connection if it ever does.
func (s *Session) abandon(q Queue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoiled, s.abandoned = true, s.blocked
	return fmt.Errorf("aq: dequeue from %s: %w", q.Name, errDeaf)
}

// taken judges the end of a dequeue. A break that came too late to end it
// would end the next call instead, so such a session is not used again.
func (s *Session) taken(q Queue, m *Message, err error) (*Message, error) {
	broken := s.isBroken()
	if err == nil {
		if broken {
			s.spoil()
		}
		return m, nil
	}
	if broken && hasCode(err, codeBreak) {
		return nil, fmt.Errorf("aq: dequeue from %s: %w", q.Name, ErrBroken)
	}
	if broken {
		s.spoil()
	}
	if hasCode(err, codeNoQueue) {
		delete(s.deq, q) // the driver has closed it
	}
	return nil, s.failed("dequeue from "+q.Name, err)
}

// Remove takes a message by its id within the open transaction, or returns false when
// it is not there for the queue's consumer.
func (s *Session) Remove(ctx context.Context, q Queue, id string) (bool, error) {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != len(godror.Message{}.MsgID) {
		return false, fmt.Errorf("aq: remove from %s: %.40q is no id of a message", q.Name, id)
	}
	q.NoWait, q.Browse = true, false
	queue, err := s.queue(ctx, q, s.deq)
	if err != nil {
		return false, err
	}
	s.calls.Add(1)
	s.dirty = true
	o := godror.DefaultDeqOptions
	o.Navigation, o.Consumer, o.MsgID = godror.NavFirst, q.Consumer, raw
	n, err := queue.DequeueWithOptions(make([]godror.Message, 1), &o)
	switch {
	case hasCode(err, codeNoMessage):
		return false, nil
	case hasCode(err, codeNoQueue):
		delete(s.deq, q) // the driver has closed it
	}
	if err != nil {
		return false, s.failed("remove from "+q.Name, err)
	}
	return n == 1, nil
}

// take is the blocking call: exactly one message, for the batch call of the
// client library leaks and counts the whole table first.
func take(queue *godror.Queue) (*Message, error) {
	var list [1]godror.Message
	n, err := queue.Dequeue(list[:])
	if err != nil || n == 0 {
		return nil, err
	}
	m := &list[0]
	return &Message{
		ID: hex.EncodeToString(m.MsgID[:]), Body: m.Raw, Note: m.Correlation, Priority: int(m.Priority),
		Rollbacks: int(m.NumAttempts), Delay: m.Delay, EnqueuedAt: m.Enqueued.UTC(),
	}, nil
}

// queue returns the session's object for a queue, made once.
func (s *Session) queue(ctx context.Context, q Queue, role map[Queue]*godror.Queue) (*godror.Queue, error) {
	if queue := role[q]; queue != nil {
		return queue, nil
	}
	deq := godror.DefaultDeqOptions
	// The next message of the first snapshot would be an old one; the first of
	// a new snapshot is what a worker that lives long wants.
	if deq.Navigation, deq.Wait = godror.NavFirst, s.wait; q.NoWait {
		deq.Wait = 0
	}
	if deq.Consumer = q.Consumer; q.Browse {
		deq.Mode = godror.DeqBrowse
	}
	queue, err := godror.NewQueue(context.WithoutCancel(ctx), s.conn, q.Name, "", godror.WithQueueTable(q.Table),
		godror.WithDeqOptions(deq), godror.WithEnqOptions(godror.DefaultEnqOptions))
	if err != nil {
		s.spoil() // the driver has closed its connection
		return nil, fmt.Errorf("aq: queue %s: %w", q.Name, bare(err))
	}
	role[q] = queue
	return queue, nil
}

// Enqueue sends messages within the open transaction, in their order. It is
// the only place that enqueues.
func (s *Session) Enqueue(ctx context.Context, q Queue, list []Send) error {
	if len(list) == 0 {
		return nil
	}
	messages := make([]godror.Message, len(list))
	for i, m := range list {
		if err := m.Check(); err != nil {
			return fmt.Errorf("aq: enqueue to %s: %w", q.Name, err)
		}
		messages[i] = m.message()
	}
	// On a dead connection the driver can make no properties for the messages, and
	// releases those of the enqueue before instead, a second time: by then the
	// memory may be another session's.
	if !s.alive() {
		return s.failed("enqueue to "+q.Name, driver.ErrBadConn)
	}
	queue, err := s.queue(ctx, q, s.enq)
	if err != nil {
		return err
	}
	s.calls.Add(1)
	s.dirty = true
	if err := queue.Enqueue(messages); err != nil {
		// After an error the object holds properties that are already freed.
		delete(s.enq, q)
		if !hasCode(err, codeNoQueue) {
			err = errors.Join(err, queue.Close())
		}
		return s.failed("enqueue to "+q.Name, err)
	}
	return nil
}

// message is m as the driver sends it. Its zero expiration would mean at once.
func (m Send) message() godror.Message {
	return godror.Message{
		Raw: m.Body, Correlation: m.Note, Priority: int32(m.Priority), Delay: wholeSeconds(m.Delay),
		Expiration: -1 * time.Second, DeliveryMode: godror.DeliverPersistent,
	}
}

// Seconds is the delay as the database takes it.
func (m Send) Seconds() int64 { return int64(wholeSeconds(m.Delay) / time.Second) }

// maxDelay is the longest delay that the database takes, some 68 years. What is due
// later comes early, and who receives it puts it back.
const maxDelay = math.MaxInt32 * time.Second

// wholeSeconds rounds up, so that no message is early.
func wholeSeconds(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return (min(d, maxDelay) + time.Second - 1) / time.Second * time.Second
}

// Check refuses what no queue takes.
func (m Send) Check() error {
	switch {
	case len(m.Body) == 0:
		return problem.New(problem.Internal, "queue.empty", "a message without a byte cannot be sent")
	case len(m.Body) > MaxBytes:
		return problem.New(problem.TooLarge, "signal.too-large", "message of %d bytes exceeds %d", len(m.Body), MaxBytes)
	case len(m.Note) > MaxNote:
		return problem.New(problem.Internal, "queue.note", "note of %d bytes exceeds %d", len(m.Note), MaxNote)
	case m.Priority < 1 || m.Priority > 9:
		return problem.New(problem.Invalid, "queue.priority", "priority %d is not from 1 to 9", m.Priority)
	}
	return nil
}
