package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

// delivery implements store.Delivery.
type delivery struct {
	s    *Store
	id   int64
	enq  int64
	m    store.Message
	mu   sync.Mutex // one Commit or Release at a time
	over bool
	slot files.Slot
}

func message(id int64, q store.Queue, prio, visible, enq, attempts, crashes int64, body []byte) *delivery {
	d := &delivery{id: id, enq: enq, m: store.Message{
		ID:    MessageID(id, enq),
		Queue: q, Body: body, Priority: int(prio), Attempts: int(attempts), Crashes: int(crashes), EnqueuedAt: conn.FromMicros(enq),
	}}
	if visible != 0 {
		d.m.DueAt = conn.FromMicros(visible)
	}
	return d
}

// MessageID names a message: a row id is used again after its row is gone; with its time it is unique.
func MessageID(id, enq int64) string {
	return strconv.FormatInt(id, 10) + "." + strconv.FormatInt(enq, 36)
}

// rowOf is the row of a message, by its ID.
func rowOf(message string) (id, enq int64, ok bool) {
	row, at, ok := strings.Cut(message, ".")
	id, err := strconv.ParseInt(row, 10, 64)
	enq, errAt := strconv.ParseInt(at, 36, 64)
	return id, enq, ok && err == nil && errAt == nil
}

func (d *delivery) Message() store.Message { return d.m }

func (d *delivery) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	return d.s.Load(ctx, id)
}

func (d *delivery) Commit(ctx context.Context, c store.Change) error {
	return d.finish(ctx, "commit", func(t *tx) error { return t.change(d, &c) })
}

func (d *delivery) Release(ctx context.Context, cause error) error {
	d.s.log.Debug("sqlite: release", "message", d.m.ID, "cause", cause)
	made := int64(1)
	if problem.KindOf(cause) == problem.Unavailable {
		made = 0
	}
	return d.finish(ctx, "release", func(t *tx) error {
		t.deliveries = append(t.deliveries, d)
		_, n, err := t.exec("message_release", made, d.id, d.enq, d.s.nodes.no)
		if err == nil && n == 0 {
			return store.ErrLost
		}
		Tx{t}.Returned(d.m.Queue)
		return err
	})
}

func (d *delivery) finish(ctx context.Context, what string, run func(*tx) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return fmt.Errorf("sqlite: %s message %s: %w", what, d.m.ID, store.ErrLost)
	}
	err := d.s.do(ctx, run)
	if err == nil {
		d.over = true
		return nil
	}
	d.over = errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrClosed)
	return fmt.Errorf("sqlite: %s message %s: %w", what, d.m.ID, err)
}
