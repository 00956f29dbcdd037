package projections

import (
	"context"
	"time"
)

// InstanceReader reads instances. Of every reader here: a list is bounded by its Limit
// and, where rows have bodies, by MaxPageBytes ([Full]), and pages by key: After is the
// Next of the page before. What is not there is store.ErrNotFound; a list of nothing is
// empty. Reads see committed rows only and never block a writer.
type InstanceReader interface {
	Instance(ctx context.Context, id string) (Instance, error)
	Instances(ctx context.Context, q InstanceQuery) (Page[Instance], error)
	// Started returns the instance that a start with a start key began.
	Started(ctx context.Context, definition, businessKey, startKey string) (Instance, error)
}

// StreamReader reads what instances have got and asked for.
type StreamReader interface {
	// Stream returns entries behind a position, in order.
	Stream(ctx context.Context, instanceID string, after int64, limit int) ([]Entry, error)
	// Recorded reports whether an instance's stream has a signal id (B7).
	Recorded(ctx context.Context, instanceID, signalID string) (bool, error)
	// Pending returns unprocessed commands, of one instance when id is given.
	Pending(ctx context.Context, instanceID string, limit int) ([]Entry, error)
}

// TaskReader reads human tasks, with their history.
type TaskReader interface {
	Task(ctx context.Context, id string) (Task, error)
	Tasks(ctx context.Context, q TaskQuery) (Page[Task], error)
	TaskEvents(ctx context.Context, taskID string) ([]TaskEvent, error)
}

// WaitReader finds who waits for an event.
type WaitReader interface {
	// WaitSpecs returns the distinct specs that wait for an event type.
	WaitSpecs(ctx context.Context, eventType string) ([]string, error)
	// Waits returns waits with a token behind after, in order of token.
	Waits(ctx context.Context, eventType, spec, keyHash, after string, limit int) ([]Wait, error)
}

// DeadLetterReader reads dead letters.
type DeadLetterReader interface {
	DeadLetter(ctx context.Context, id string) (DeadLetter, error)
	DeadLetters(ctx context.Context, q DeadLetterQuery) (Page[DeadLetter], error)
}

// BacklogReader says how much waits.
type BacklogReader interface {
	// Queues returns the depth and the age of every queue, counted up to
	// MaxCount so that asking costs little on any volume.
	Queues(ctx context.Context) ([]Queue, error)
	// Gaps returns how much waits for signals that are missing: of MaxCount
	// instances at most.
	Gaps(ctx context.Context) (Gaps, error)
}

// Limits of a list.
const (
	DefaultLimit = 50
	MaxLimit     = 500
	MaxCount     = 10_000
	MaxPageBytes = 4 << 20 // at which a list of rows with bodies ends: the next page goes on
)

// Page is a part of a list. Next is empty on the last page.
type Page[T any] struct {
	Items []T
	Next  string
}

// InstanceQuery selects instances, newest start first. Empty fields do not
// restrict.
type InstanceQuery struct {
	Definition  string
	Status      string
	BusinessKey string
	ParentID    string // the instance that started them
	After       string
	Limit       int
}

// TaskQuery selects tasks, highest priority (smallest number) first, then
// oldest. User and Groups select as a person's list of tasks does: what is
// assigned to the user, and what they, or a member of one of the groups, may
// claim: nobody has it, they are not excluded, and they or a group is a candidate or
// there is no candidate at all. Without a user, Groups select what a member of
// them may claim.
type TaskQuery struct {
	Status     string // of Task, or TaskOpen; "" = any
	InstanceID string
	Assignee   string
	User       string
	Groups     []string
	After      string
	Limit      int
}

// DeadLetterQuery selects dead letters, newest first.
type DeadLetterQuery struct {
	Queue      string
	Reason     string
	InstanceID string
	After      string
	Limit      int
}

// Gaps is what waits for signals with a sequence that have not come.
type Gaps struct {
	Instances int `db:"INSTANCES"` // that keep signals until their turn comes
	Signals   int `db:"SIGNALS"`   // that they keep
}

// Queue is how full a queue is.
type Queue struct {
	Name     string
	Ready    int       // counted up to MaxCount
	Delayed  int       // counted up to MaxCount
	Leased   int       // with a worker now
	OldestAt time.Time // when the oldest ready message became due; zero = none
}

// Measure is how many bytes the bodies of a page's rows have so far.
type Measure int

// With adds a row, and reports whether the page is full with it.
func (m *Measure) With(row any) bool {
	*m += Measure(WeightOf(row))
	return *m >= MaxPageBytes
}

// Full reports whether rows with bodies fill a page, however few they are: the
// next page goes on behind them.
func Full[T any](rows []T) bool {
	var m Measure
	for i := range rows {
		m.With(&rows[i])
	}
	return m >= MaxPageBytes
}

// WeightOf is how many bytes the bodies of a row have, to which row points; 0 =
// it is of a kind that has none.
func WeightOf(row any) int {
	if w, ok := row.(interface{ Weight() int }); ok {
		return w.Weight()
	}
	return 0
}

// Weight is how many bytes the bodies of a row have.
func (e *Entry) Weight() int      { return len(e.Data) + len(e.Metadata) }
func (t *Task) Weight() int       { return len(t.Payload) + len(t.Form) + len(t.Output) }
func (l *DeadLetter) Weight() int { return len(l.Envelope) }
