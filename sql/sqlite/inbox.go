package sqlite

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// KeepEvent implements store.Inbox.
func (s *Store) KeepEvent(ctx context.Context, e store.Event) error {
	return wrap("keep event "+e.Key, s.do(ctx, func(t *tx) error {
		if err := rows.Fit(e); err != nil {
			return err
		}
		_, _, err := t.exec("inbox_insert", e.Key, e.Type, conn.Micros(e.ReceivedAt), conn.Micros(e.ExpiresAt), e.Body)
		return err
	}))
}

// DropEvent implements store.Inbox.
func (s *Store) DropEvent(ctx context.Context, key string) error {
	return wrap("drop event "+key, s.do(ctx, func(t *tx) error {
		_, _, err := t.exec("inbox_delete", key)
		return err
	}))
}

// KeptEvents implements store.Inbox.
func (s *Store) KeptEvents(ctx context.Context, eventType string, now time.Time, behind store.Event) ([]store.Event, error) {
	r := read("inbox_select")
	r.Equals("EVENT_TYPE", eventType)
	r.Where("EXPIRES_ON_UTC > ?", now.UnixMicro())
	if behind.Key != "" {
		at := behind.ReceivedAt.UnixMicro()
		r.Where("(RECEIVED_ON_UTC > ? or RECEIVED_ON_UTC = ? and EVENT_KEY > ?)", at, at, behind.Key)
	}
	r.Order("RECEIVED_ON_UTC, EVENT_KEY", projections.MaxLimit)
	events, err := list[store.Event](ctx, s, r)
	return events, wrap("kept events", err)
}

// PurgeEvents implements store.Inbox.
func (s *Store) PurgeEvents(ctx context.Context, expiredBefore time.Time, limit int) (int, error) {
	var n int64
	err := s.do(ctx, func(t *tx) (err error) {
		_, n, err = t.exec("inbox_purge", expiredBefore.UnixMicro(), int64(limit))
		return err
	})
	return int(n), wrap("purge events", err)
}
