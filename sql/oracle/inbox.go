package oracle

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// KeepEvent implements backend.Inbox.
func (s inbox) KeepEvent(ctx context.Context, e backend.Event) (bool, error) {
	if err := rows.Fit(e); err != nil {
		return false, wrap("keep event", err)
	}
	keep := op{name: "inbox_insert", args: []any{e.Key, e.Type, stamp(e.ReceivedAt), stamp(e.ExpiresAt), e.Body}}
	err := runStatement(ctx, s.Store, &keep)
	if errors.Is(err, store.ErrDuplicate) { // one that has expired makes room, unless it is purged meanwhile
		w := &work{}
		w.add(nil, "inbox_purge", e.Key, stamp(e.ReceivedAt.Add(time.Microsecond))) // what expires when this comes is given to nobody
		w.ops = append(w.ops, keep)
		err = s.write(ctx, w)
	}
	if errors.Is(err, store.ErrDuplicate) {
		return false, nil
	}
	return err == nil, wrap("keep event "+e.Key, err)
}

// DropEvent implements backend.Inbox.
func (s inbox) DropEvent(ctx context.Context, key string) error {
	return wrap("drop event "+key, runStatement(ctx, s.Store, &op{name: "inbox_delete", args: []any{key}}))
}

func (s inbox) write(ctx context.Context, w *work) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) })
}

// FileEvents implements backend.Inbox. Who files them at the same time does it in the
// same order.
func (s inbox) FileEvents(ctx context.Context, rule string, events []backend.Filed) error {
	w := &work{}
	for _, e := range slices.SortedFunc(slices.Values(events), func(a, b backend.Filed) int { return cmp.Compare(a.Event, b.Event) }) {
		w.add(nil, "inbox_file", rule, e.Key, e.Event)
	}
	if len(events) == 0 {
		return nil
	}
	return wrap("file events", s.write(ctx, w))
}

// FiledOtherwise implements backend.Inbox.
func (s inbox) FiledOtherwise(ctx context.Context, eventType, rule string) (bool, error) {
	found, err := list[struct {
		Others int `db:"OTHERS"`
	}](ctx, s.Store, read("inbox_otherwise", eventType, rule, eventType, rule))
	return err == nil && found[0].Others > 0, wrap("kept events", err)
}

// KeptEvents implements backend.Inbox.
func (s inbox) KeptEvents(ctx context.Context, those backend.KeptQuery, now time.Time, behind backend.Event) ([]backend.Event, error) {
	r := read("inbox_select")
	r.Equals("E.EVENT_TYPE", those.Type)
	if those.Unfiled {
		r.Where("E.RULE_HASH is null and E.KEY_HASH is null")
	}
	r.Equals("E.RULE_HASH", those.Rule)
	r.Equals("E.KEY_HASH", those.Key)
	r.Where("E.EXPIRES_ON_UTC > CAST(? AS TIMESTAMP(6))", stamp(now))
	if behind.Key != "" {
		at := stamp(behind.ReceivedAt)
		r.Where("(E.RECEIVED_ON_UTC > CAST(? AS TIMESTAMP(6)) or E.RECEIVED_ON_UTC = CAST(? AS TIMESTAMP(6)) and E.EVENT_KEY > ?)", at, at, behind.Key)
	}
	r.Order("E.RECEIVED_ON_UTC, E.EVENT_KEY", cmp.Or(those.Limit, projections.MaxLimit))
	events, err := list[backend.Event](ctx, s.Store, r)
	return events, wrap("kept events", err)
}

// PurgeEvents implements backend.Inbox. One that was kept anew since it was found stays.
func (s inbox) PurgeEvents(ctx context.Context, expiredBefore time.Time, limit int) (int, error) {
	found, err := list[struct {
		Key string `db:"EVENT_KEY"`
	}](ctx, s.Store, read("inbox_expired", stamp(expiredBefore), limit))
	if err != nil || len(found) == 0 {
		return 0, wrap("purge events", err)
	}
	w := &work{}
	for _, e := range found {
		w.add(nil, "inbox_purge", e.Key, stamp(expiredBefore))
	}
	passed, err := passingOver(w.ops, func(ops []op) error { return s.write(ctx, &work{ops: ops}) })
	if err != nil {
		return 0, wrap("purge events", err)
	}
	return len(w.ops) - len(passed), nil
}
