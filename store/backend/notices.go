package backend

import (
	"context"
	"time"
)

// Notices tells nodes of dead letters: of each a notice is written by the commit that
// makes it. The letter is the truth, and needs no notice: one may be lost, when it
// expires or somebody removes it, and one may come again.
type Notices interface {
	// Next waits for a notice that no node has told of, and returns the oldest, or
	// ErrNotFound when none has come in about that time. It stays until Told: callers
	// at once get the same.
	Next(ctx context.Context, wait time.Duration) (Notice, error)
	// Told removes a notice; that it is gone is no error.
	Told(ctx context.Context, n Notice) error
}

// Notice says that there is a dead letter. On Oracle it is the JSON of a message of
// WF_DLQ_Q: who reads it may rely on the names.
type Notice struct {
	Ref          string    `json:"-" db:"NOTICE_NO"` // of the notice, for Told
	DeadLetterID string    `json:"deadLetterId" db:"DEAD_LETTER_ID"`
	Queue        string    `json:"queue,omitempty" db:"QUEUE"`
	InstanceID   string    `json:"workflowInstanceId,omitempty" db:"INSTANCE_ID"`
	Reason       string    `json:"reason,omitempty" db:"REASON"` // a problem's code
	Detail       string    `json:"detail,omitempty" db:"DETAIL"`
	Attempts     int       `json:"attempts" db:"ATTEMPTS"`
	Node         string    `json:"node,omitempty" db:"NODE"`
	DiedAt       time.Time `json:"diedAtUtc" db:"DIED_ON_UTC"`
}
