package embedded

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// inbox keeps events that nobody waited for.
type inbox struct{ *sqlite.Store }

// KeepEvent implements backend.Inbox.
func (s inbox) KeepEvent(ctx context.Context, e backend.Event) error {
	return wrap("keep event "+e.Key, s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(e); err != nil {
			return err
		}
		_, _, err := t.Exec("inbox_insert", e.Key, e.Type, conn.Micros(e.ReceivedAt), conn.Micros(e.ExpiresAt), e.Body)
		return err
	}))
}

// DropEvent implements backend.Inbox.
func (s inbox) DropEvent(ctx context.Context, key string) error {
	return wrap("drop event "+key, s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("inbox_delete", key)
		return err
	}))
}

// KeptEvents implements backend.Inbox.
func (s inbox) KeptEvents(ctx context.Context, eventType string, now time.Time, behind backend.Event) ([]backend.Event, error) {
	r := read("inbox_select")
	r.Equals("EVENT_TYPE", eventType)
	r.Where("EXPIRES_ON_UTC > ?", now.UnixMicro())
	if behind.Key != "" {
		at := behind.ReceivedAt.UnixMicro()
		r.Where("(RECEIVED_ON_UTC > ? or RECEIVED_ON_UTC = ? and EVENT_KEY > ?)", at, at, behind.Key)
	}
	r.Order("RECEIVED_ON_UTC, EVENT_KEY", projections.MaxLimit)
	events, err := sqlite.List[backend.Event](ctx, s.Store, r)
	return events, wrap("kept events", err)
}

// PurgeEvents implements backend.Inbox.
func (s inbox) PurgeEvents(ctx context.Context, expiredBefore time.Time, limit int) (int, error) {
	var n int64
	err := s.Write(ctx, func(t sqlite.Tx) error {
		var err error
		_, n, err = t.Exec("inbox_purge", expiredBefore.UnixMicro(), int64(limit))
		return err
	})
	return int(n), wrap("purge events", err)
}
