package embedded

import (
	"cmp"
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
func (s inbox) KeepEvent(ctx context.Context, e backend.Event) (bool, error) {
	var n int64
	err := s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(e); err != nil {
			return err
		}
		var err error
		_, n, err = t.Exec("inbox_insert", e.Key, e.Type, conn.Micros(e.ReceivedAt), conn.Micros(e.ExpiresAt), e.Body)
		return err
	})
	return err == nil && n > 0, wrap("keep event "+e.Key, err)
}

// DropEvent implements backend.Inbox.
func (s inbox) DropEvent(ctx context.Context, key string) error {
	return wrap("drop event "+key, s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("inbox_delete", key)
		return err
	}))
}

// KeptEvents implements backend.Inbox.
func (s inbox) KeptEvents(ctx context.Context, those backend.KeptQuery, now time.Time, behind backend.Event) ([]backend.Event, error) {
	r := read("inbox_select")
	r.Equals("EVENT_TYPE", those.Type)
	if those.Unfiled {
		r.Where("RULE_HASH is null and KEY_HASH is null")
	}
	r.Equals("RULE_HASH", those.Rule)
	r.Equals("KEY_HASH", those.Key)
	r.Where("EXPIRES_ON_UTC > ?", now.UnixMicro())
	if behind.Key != "" {
		at := behind.ReceivedAt.UnixMicro()
		r.Where("(RECEIVED_ON_UTC > ? or RECEIVED_ON_UTC = ? and EVENT_KEY > ?)", at, at, behind.Key)
	}
	r.Order("RECEIVED_ON_UTC, EVENT_KEY", cmp.Or(those.Limit, projections.MaxLimit))
	events, err := sqlite.List[backend.Event](ctx, s.Store, r)
	return events, wrap("kept events", err)
}

// FileEvents implements backend.Inbox.
func (s inbox) FileEvents(ctx context.Context, rule string, events []backend.Filed) error {
	return wrap("file events", s.Write(ctx, func(t sqlite.Tx) error {
		for _, e := range events {
			if _, _, err := t.Exec("inbox_file", rule, e.Key, e.Event); err != nil {
				return err
			}
		}
		return nil
	}))
}

// FiledOtherwise implements backend.Inbox.
func (s inbox) FiledOtherwise(ctx context.Context, eventType, rule string) (bool, error) {
	found, err := sqlite.List[struct {
		Others int `db:"OTHERS"`
	}](ctx, s.Store, read("inbox_otherwise", eventType, rule, eventType, rule))
	return err == nil && found[0].Others > 0, wrap("kept events", err)
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
