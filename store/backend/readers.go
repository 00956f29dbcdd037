package backend

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// InstanceReader reads instances. Of every reader here: a list is bounded by its Limit
// and, where rows have bodies, by MaxPageBytes ([Full]), and pages by key: After is the
// Next of the page before. What is not there is store.ErrNotFound; a list of nothing is
// empty. Reads see committed rows only and never block a writer.
type InstanceReader interface {
	Instance(ctx context.Context, id string) (projections.Instance, error)
	Instances(ctx context.Context, q InstanceQuery) (Page[projections.Instance], error)
	// Started returns the instance that a start with a start key began.
	Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error)
	// NextLive is the version behind another, in the order of the database, that
	// instances of a definition run which have not ended; "" = there is none. It is
	// looked up, however many instances there are.
	NextLive(ctx context.Context, definition, after string) (version string, err error)
	// Attributes are the values that an instance is found by, in order of name.
	Attributes(ctx context.Context, id string) ([]projections.Attribute, error)
}

// StreamReader reads what instances have got and asked for.
type StreamReader interface {
	projections.StreamReader
	// Pending returns unprocessed commands, of one instance when id is given.
	Pending(ctx context.Context, instanceID string, limit int) ([]projections.Entry, error)
	// Received is what came to an instance under a signal id.
	Received(ctx context.Context, instanceID, signalID string) (projections.Entry, error)
	// Commands is a page of unprocessed commands, in order of instance and position.
	Commands(ctx context.Context, q CommandQuery) (Page[projections.Entry], error)
}

// CommandQuery selects unprocessed commands. Empty fields do not restrict.
type CommandQuery struct {
	InstanceID string
	Before     time.Time // created before it
	Error      string    // that the last error begins with
	After      string
	Limit      int
}

// TaskReader reads human tasks, with their history.
type TaskReader interface {
	Task(ctx context.Context, id string) (projections.Task, error)
	Tasks(ctx context.Context, q TaskQuery) (Page[projections.Task], error)
	TaskEvents(ctx context.Context, taskID string) ([]projections.TaskEvent, error)
}

// WaitReader finds who waits for an event.
type WaitReader interface {
	// WaitSpecs returns the distinct specs that wait for an event type.
	WaitSpecs(ctx context.Context, eventType string) ([]string, error)
	// Waits returns waits with a token behind after, in order of token.
	Waits(ctx context.Context, eventType, spec, keyHash, after string, limit int) ([]projections.Wait, error)
}

// DeadLetterReader reads dead letters.
type DeadLetterReader interface {
	DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error)
	DeadLetters(ctx context.Context, q DeadLetterQuery) (Page[projections.DeadLetter], error)
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

// MaxCount is up to which what waits is counted.
const MaxCount = 10_000

// Page is a part of a list. Next is empty on the last page.
type Page[T any] struct {
	Items []T
	Next  string
}

// InstanceQuery selects instances, newest start first. Empty fields do not
// restrict. With OrderBy it selects those that have an attribute of this name, in
// the order of its values.
type InstanceQuery struct {
	Definition  string
	Status      string
	BusinessKey string
	ParentID    string // the instance that started them
	Where       []attribute.Condition
	OrderBy     string
	Descending  bool // with OrderBy: the largest value first
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

// Full reports whether rows with bodies fill a page, however few they are: the
// next page goes on behind them.
func Full[T any](rows []T) bool {
	bytes := 0
	for i := range rows {
		if w, ok := any(&rows[i]).(interface{ Weight() int }); ok {
			bytes += w.Weight()
		}
	}
	return bytes >= projections.MaxPageBytes
}

// TaskOpen is the status of open tasks in a TaskQuery: ready or reserved.
const TaskOpen = "open"
