package projections

import "context"

// StreamReader reads what instances have got and asked for.
type StreamReader interface {
	// Stream returns entries behind a position, in order.
	Stream(ctx context.Context, instanceID string, after int64, limit int) ([]Entry, error)
	// Recorded reports whether an instance's stream has a signal id (B7).
	Recorded(ctx context.Context, instanceID, signalID string) (bool, error)
}

// Limits of a list. It ends at its Limit and, where rows have bodies, at MaxPageBytes.
const (
	DefaultLimit = 50
	MaxLimit     = 500
	MaxPageBytes = 4 << 20 // at which a list of rows with bodies ends: the next page goes on
)

// Weight is how many bytes the bodies of a row have.
func (e *Entry) Weight() int      { return len(e.Data) + len(e.Metadata) }
func (t *Task) Weight() int       { return len(t.Payload) + len(t.Form) + len(t.Output) }
func (l *DeadLetter) Weight() int { return len(l.Envelope) }

// EntryRow is an entry of a stream with its checksum.
type EntryRow struct {
	Sum       int64 `db:"CHECKSUM"`
	Elsewhere bool  `db:"ELSEWHERE"` // the snapshot has the data
	Entry
}

// Verify says what ails the row.
func (e *EntryRow) Verify() error {
	if e.Elsewhere {
		return e.Check(nil, e.Sum)
	}
	return e.Check(e.Data, e.Sum)
}

// Item is what the row shows.
func (e EntryRow) Item() Entry { return e.Entry }

// Bounded gives a list its limit.
func Bounded(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}
