package backend

import (
	"context"
	"time"
)

// Inbox keeps events that nobody waited for when they came.
type Inbox interface {
	// KeepEvent keeps an event; one with its key that is kept already stays as
	// it is.
	KeepEvent(ctx context.Context, e Event) error
	// DropEvent forgets an event; that it is not there is no error.
	DropEvent(ctx context.Context, key string) error
	// KeptEvents returns events of a type ("" = any) that expire after now, the
	// first received first, projections.MaxLimit at most or as many as
	// Full says, behind the last of the page before (the zero Event for
	// the first page).
	KeptEvents(ctx context.Context, eventType string, now time.Time, behind Event) ([]Event, error)
	// PurgeEvents deletes up to limit events that expired before a moment, and
	// returns how many.
	PurgeEvents(ctx context.Context, expiredBefore time.Time, limit int) (int, error)
}

// Event is a CloudEvent that is kept: a row of WF_INBOX.
type Event struct {
	Key        string    `db:"EVENT_KEY" width:"128"` // of its source and id
	Type       string    `db:"EVENT_TYPE" width:"256"`
	ReceivedAt time.Time `db:"RECEIVED_ON_UTC"`
	ExpiresAt  time.Time `db:"EXPIRES_ON_UTC"`
	Body       []byte    `db:"BODY"`
}

// Weight is how many bytes the body has.
func (e *Event) Weight() int { return len(e.Body) }
