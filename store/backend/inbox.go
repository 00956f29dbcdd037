package backend

import (
	"context"
	"time"
)

// Inbox keeps events that nobody waited for when they came.
type Inbox interface {
	// KeepEvent keeps an event; one with its key that is kept already stays as
	// it is, unless it has expired when this one is received. It reports whether this one
	// was kept.
	KeepEvent(ctx context.Context, e Event) (bool, error)
	// DropEvent forgets an event; that it is not there is no error.
	DropEvent(ctx context.Context, key string) error
	// KeptEvents returns those events that expire after now, the first received
	// first, as many as are asked for or as Full says, behind the last of
	// the page before (the zero Event for the first page).
	KeptEvents(ctx context.Context, those KeptQuery, now time.Time, behind Event) ([]Event, error)
	// FileEvents notes by which keys events are found under a rule. One that is gone,
	// or that is filed already, stays as it is.
	FileEvents(ctx context.Context, rule string, events []Filed) error
	// FiledOtherwise reports whether an event of a type is filed under another rule.
	FiledOtherwise(ctx context.Context, eventType, rule string) (bool, error)
	// PurgeEvents deletes up to limit events that expired before a moment, and
	// returns how many.
	PurgeEvents(ctx context.Context, expiredBefore time.Time, limit int) (int, error)
}

// KeptQuery says which kept events are asked for.
type KeptQuery struct {
	Type    string // "" = any
	Unfiled bool   // those that are filed under no rule
	Rule    string // those that are filed under it, with Key; "" = however they are filed
	Key     string
	Limit   int // 0 = projections.MaxLimit
}

// Filed is an event that is found by a key.
type Filed struct {
	Event string // its Key
	Key   string
}

// Event is a CloudEvent that is kept: a row of WF_INBOX.
type Event struct {
	Key        string    `db:"EVENT_KEY" width:"128"` // of its source and id
	Type       string    `db:"EVENT_TYPE" width:"256"`
	ReceivedAt time.Time `db:"RECEIVED_ON_UTC"`
	ExpiresAt  time.Time `db:"EXPIRES_ON_UTC"`
	Body       []byte    `db:"BODY"`

	// Events of a type are filed by how those who listen for it tell theirs: who begins to
	// listen need not look at all of them. Both are "" until somebody has looked.
	Rule  string `db:"RULE_HASH" width:"32"` // of the correlation
	Found string `db:"KEY_HASH" width:"32"`  // of the values that it has for that
}

// Weight is how many bytes the body has.
func (e *Event) Weight() int { return len(e.Body) }
