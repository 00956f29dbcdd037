package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

func (d *delivery) Message() store.Message { return d.m }

func (d *delivery) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	return d.s.Load(ctx, id)
}

func (d *delivery) Commit(ctx context.Context, c store.Change) error {
	return d.finish(ctx, "commit", func(t *tx) error { return t.change(d, &c) })
}

func (d *delivery) Release(ctx context.Context, cause error) error {
	d.s.log.Debug("sqlite: release", "message", d.m.ID, "cause", cause)
	return d.finish(ctx, "release", func(t *tx) error {
		t.deliveries = append(t.deliveries, d)
		_, n, err := t.exec("message_release", d.id, d.s.nodes.no)
		if err == nil && n == 0 {
			return store.ErrLost
		}
		t.released(d.m.Queue)
		t.returned = append(t.returned, d.m.Queue)
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
