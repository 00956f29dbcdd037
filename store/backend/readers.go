package backend

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// Scope is the namespaces of definitions to whose instances somebody is limited; nil = they
// are not.
type Scope []string

// Has says whether a definition is in the scope, by its name, NAMESPACE/NAME.
func (s Scope) Has(definition string) bool {
	namespace, _, named := strings.Cut(definition, "/")
	return s == nil || named && slices.Contains(s, namespace)
}

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
	Type       string    // the type of its entry, its target, or its name: the event that it emits, else the last part of its pointer
	Before     time.Time // created before it
	Error      string    // that the last error begins with
	Scope      Scope
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
	// Waits returns waits behind one that it has returned, or from the first, in an order of the store's own.
	Waits(ctx context.Context, eventType, spec, keyHash string, after projections.Wait, limit int) ([]projections.Wait, error)
}

// DeadLetterReader reads dead letters.
type DeadLetterReader interface {
	DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error)
	DeadLetters(ctx context.Context, q DeadLetterQuery) (Page[projections.DeadLetter], error)
	// DeadLetterEdits lists the edits of a dead letter, those too of one that was replayed
	// since, the newest first, in pages by number; the last is number 0, what died.
	DeadLetterEdits(ctx context.Context, id, after string, limit int) (Page[DeadLetterEdit], error)
}

// BacklogReader says how much waits.
type BacklogReader interface {
	// Queues returns the depth and the age of every queue, counted up to
	// MaxCount so that asking costs little on any volume.
	Queues(ctx context.Context) ([]Queue, error)
	// Gaps returns how much waits for signals that are missing: of MaxCount
	// instances at most.
	Gaps(ctx context.Context) (Gaps, error)
	// Counts returns how many instances have not ended, by status, how many tasks are
	// open, and how many dead letters wait, by queue: each counted up to MaxOpen, by an
	// index. What there is none of may be absent.
	Counts(ctx context.Context) ([]Count, error)
	// Reasons counts the newest MaxCount dead letters that a query is of, in all of its
	// pages, by reason, the most frequent first; more = there are others.
	Reasons(ctx context.Context, q DeadLetterQuery) (counts []ReasonCount, more bool, err error)
}

// ReasonCount is how many dead letters have a reason.
type ReasonCount struct {
	Reason string
	Rows   int
}

// Count is how many there are of a kind of rows.
type Count struct {
	What string `db:"WHAT"` // CountInstances, CountTasks, CountDeadLetters, CountUnclaimed
	Name string `db:"NAME"` // status, "open", queue
	Rows int    `db:"ROW_COUNT"`
}

// What is counted.
const (
	CountInstances   = "instances"
	CountTasks       = "tasks"
	CountDeadLetters = "dead-letters"
	CountUnclaimed   = "unclaimed" // by Functions
)

// MaxOpen is up to which rows are counted that operators see as a gauge.
const MaxOpen = 100_000

// MaxCount is up to which what waits is counted.
const MaxCount = 10_000

// Page is a part of a list. Next is empty on the last page.
type Page[T any] struct {
	Items []T
	Next  string
}

// MaxSearched is how many instances with an error, the newest, a list looks at for a text.
const MaxSearched = 20_000

// InstanceQuery selects instances, newest start first. Empty fields do not
// restrict. With OrderBy it selects those that have an attribute of this name, in
// the order of its values.
type InstanceQuery struct {
	Definition  string
	Version     string // of the definition
	Status      string
	Live        bool // that have not ended
	State       string
	BusinessKey string
	ParentID    string    // the instance that started them
	ErrorCode   string    // type of the error that they stand at, or the part of it behind its last /
	Text        string    // in the words of that error; a list looks at the newest MaxSearched that have one
	Before      time.Time // that have not visibly changed since
	Where       []attribute.Condition
	OrderBy     string
	Descending  bool // with OrderBy: the largest value first
	Scope       Scope
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
	Scope      Scope
	After      string
	Limit      int
}

// DeadLetterQuery selects dead letters, newest first.
type DeadLetterQuery struct {
	Queue      string
	Reason     string
	InstanceID string
	Definition string    // of the instance, where there is one
	Text       string    // in the detail of the reason
	Before     time.Time // that died before
	Scope      Scope     // of their instances: a letter of none is in no scope
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

// NodeReader says which nodes are on the database.
type NodeReader interface {
	// Members returns the nodes by their names, MaxLimit at most: those that live, and for a
	// moment those that have just ended.
	Members(ctx context.Context) ([]Node, error)
}

// Node is a run of a node on the database.
type Node struct {
	Name      string    `db:"NODE"`
	Version   string    `db:"ENGINE_VERSION"` // of its program; "" = not known
	StartedAt time.Time `db:"STARTED_ON_UTC"`
	SeenAt    time.Time `db:"BEAT_ON_UTC"` // when it gave a sign of life last
	Held      int       `db:"HELD"`        // messages with its workers, counted up to MaxCount
}

// Full reports whether rows with bodies fill a page, however few they are: the
// next page goes on behind them.
func Full(rows any) bool {
	list := reflect.ValueOf(rows)
	if !reflect.PointerTo(list.Type().Elem()).Implements(weighed) {
		return false
	}
	bytes := 0
	for i := range list.Len() {
		bytes += list.Index(i).Addr().Interface().(interface{ Weight() int }).Weight()
	}
	return bytes >= projections.MaxPageBytes
}

var weighed = reflect.TypeFor[interface{ Weight() int }]()

// TaskOpen is the status of open tasks in a TaskQuery: ready or reserved.
const TaskOpen = "open"
