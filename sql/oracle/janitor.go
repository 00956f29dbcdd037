package oracle

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// The database has an exit of its own for messages: the exception queue of each
// queue table, for what was rolled back too often or has an expiry that an
// application has given it. Nobody looks there, so what lies there becomes dead
// letters.

// reasonExpired is the reason of a dead letter that the database gave up.
const reasonExpired = "message.expired"

const (
	drainEvery = time.Minute
	drainMax   = 100 // messages of a queue at a time
)

// Drain moves messages from the exception queues to the dead letters, each in
// one commit, and returns how many. Nodes call it now and then. Notices that nobody
// has read in time it drops.
func (s janitor) Drain(ctx context.Context) (int, error) {
	if err := s.enter(); err != nil {
		return 0, wrap("drain", err)
	}
	defer s.leave()
	count := 0
	for name, object := range queueNames {
		// The view of the queue table would decode every row to find those.
		q := aq.Queue{Name: s.schema + ".AQ$_" + object + "_QTAB_E", Table: s.schema + "." + object + "_QTAB", NoWait: true}
		for range drainMax {
			moved, err := s.moveExpired(ctx, name, q)
			if err != nil {
				return count, wrap("drain", err)
			}
			if !moved {
				break
			}
			count++
		}
	}
	return count, wrap("drain", s.forgetNotices(ctx))
}

// moveExpired moves one message.
func (s janitor) moveExpired(ctx context.Context, name store.Queue, q aq.Queue) (moved bool, err error) {
	err = change(ctx, s.Store, nil, func(session *aq.Session) error {
		raw, err := session.Dequeue(ctx, q)
		if moved = raw != nil; err != nil || !moved {
			return err
		}
		whole, c, err := redeem(ctx, session, raw)
		detail := "the database gave the message up: it was rolled back too often, or it had an expiry"
		if errors.Is(err, errClaimLost) {
			detail += "; " + err.Error()
		} else if err != nil {
			return err
		}
		m := message(name, whole)
		w := &work{}
		planner(s).deadLetter(w, nil, projections.DeadLetter{
			ID: m.ID, Queue: string(name), InstanceID: instanceIn(m.Body), Envelope: m.Body, Reason: reasonExpired,
			Detail: detail, Attempts: raw.Rollbacks, Priority: m.Priority, Node: s.o.Node, EnqueuedAt: m.EnqueuedAt, DiedAt: s.clock.now(),
		})
		if c != nil {
			w.add(nil, "payload_delete", c.ID)
		}
		defer unsent(s.log, w)
		return execute(ctx, session, w, false)
	})
	return moved && err == nil, err
}

// idMax is what a column of an id holds.
const idMax = 128
