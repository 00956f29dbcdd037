// Package engine decides what an instance does next.
//
// It is one function of values: a definition, a snapshot and a signal go in, an [Outcome] comes out, and the caller
// commits it whole or not at all. The package reads no clock, draws no random number, and does no I/O; the same
// arguments always give the same bytes, so a decision that was lost in a crash is simply made again.
//
// [Begin] makes the first turn of an instance, [Step] every later one, and [Decide]
// those that somebody asks for without a signal.
package engine

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Result is what satisfied a wait.
type Result struct {
	Output json.RawMessage // of a command or a task; the event itself of an event wait; nil for a timer
	Error  *snapshot.Error // of a failed command or child
	Actor  string

	Compensations []snapshot.Compensation // of a completed child: they are its parent's now
	Unknown, Open bool                    // with Error: nobody knows whether the command was done; no answer says that it was not
}

// Input is what a turn is decided on beside the definition and the snapshot.
type Input struct {
	Signal signal.Envelope
	Now    time.Time // the moment of the signal by the database's clock: the same at every delivery
	Clock  time.Time // when it is decided, by the database's clock; only what may be missed reads it: a tick, a late retry
	Key    []byte    // secret from which tokens are derived, the same on every node
	Epoch  int64     // of the database; 0 = the first, 1

	Requests map[int64]Command // of RetrySame: the commands whose outcome is unknown, by position

	Incarnation string // of an instance that begins with this turn: random, and never used before
	Limits      Limits

	// Own says that the snapshot is this decision's alone, so that Step need not
	// copy it: what the decision before has left. An error leaves it spoilt.
	Own bool

	Engine    string // version of the program that decides
	Lifecycle bool   // the turn publishes the lifecycle events of what it does
	Crowded   bool   // the turn has done so many steps of the application that the next is for another turn
}

// Limits bounds one turn. A zero field means the default.
type Limits struct {
	Steps  int // tasks run in one turn before it continues in another; default 1,000
	FanOut int // arms of one fan-out; default 1,000
	Items  int // of one loop's collection; default 100,000

	// Expression bounds one expression of a definition; what they mean, and their defaults, the language says.
	Expression struct {
		Steps int // operations
		Bytes int // of a value, as JSON
	}
}

// Defaults of Limits.
const (
	DefaultSteps  = 1_000
	DefaultFanOut = 1_000
	DefaultItems  = 100_000
)

// Disposition says what a turn did with its signal.
type Disposition string

const (
	Applied  Disposition = "applied"  // the instance moved on
	Buffered Disposition = "buffered" // no wait matched yet: kept in the continuation buffer
	Stale    Disposition = "stale"    // its wait is gone: recorded and ignored
	Closed   Disposition = "closed"   // the instance has ended: recorded and ignored

	Queued    Disposition = "queued"    // left to the queue, for it could not be decided at once
	Duplicate Disposition = "duplicate" // it came before, or its sequence is taken: ignored
	Refused   Disposition = "refused"   // it waited for its turn, and the instance did not take it then
)

// Outcome is everything a turn changes. All of it is committed together, with the consumption of the signal.
type Outcome struct {
	Disposition Disposition
	Snapshot    snapshot.Snapshot // the next one; its Version is the old one's plus 1
	Entries     []Entry           // appended to the stream, in order
	Settled     []Settled         // commands that are done with, here or by cancellation
	Send        []Message         // signals to other turns
	Tasks       []TaskChange      // human tasks made, completed, withdrawn
	Policy      *Policy           // that it was decided by; nil = by none. A newer one refuses the commit
}

// Policy is the newest that is known of a definition: which publication of its name.
type Policy struct {
	Name, Version string // "" = none is published
	Ordinal       int
}

// Under says by which policy a turn is decided.
func Under(t *Turn, p *Policy) { t.out.Policy = p }

// Settled is a command that is done with.
type Settled struct {
	Position int64
	Unknown  bool // no attempt that was begun has said what it did: withdrawn, or answered so
}

// Then is the outcome of two decisions, one made on the snapshot that the other has left. Its disposition is the
// second's.
func (o *Outcome) Then(next *Outcome) *Outcome {
	both := *next
	both.Entries = append(o.Entries, next.Entries...)
	both.Settled = append(o.Settled, next.Settled...)
	both.Send = append(o.Send, next.Send...)
	both.Tasks = append(o.Tasks, next.Tasks...)
	if p := o.Policy; p != nil && (next.Policy == nil || p.Ordinal < next.Policy.Ordinal) {
		both.Policy = p
	}
	return &both
}

// EntryKind and Direction classify a message of the stream (C2).
type (
	EntryKind string
	Direction string
)

const (
	KindCommand EntryKind = "command"
	KindEvent   EntryKind = "event"
	In          Direction = "in"
	Out         Direction = "out"
)

// Types of stream entries that the engine writes itself, beside signal types.
const (
	EntryStarted      = "InstanceStarted"
	EntryCompleted    = "InstanceCompleted"
	EntryFaulted      = "InstanceFaulted"
	EntryCancelled    = "InstanceCancelled"
	EntrySuspended    = "InstanceSuspended"
	EntryResumed      = "InstanceResumed"
	EntryRetried      = "TaskRetried"
	EntrySkipped      = "TaskSkipped"
	EntryTask         = "TaskCreated"
	EntryCall         = "Call"
	EntryCompensating = "CompensationStarted"
	EntryEmitted      = "EventEmitted"
	EntryChild        = "ChildStarted"
	EntryEscalated    = "TaskEscalated"
	EntryLifecycle    = "LifecycleEvents"
)

// Entry is one message of an instance's stream.
type Entry struct {
	Position int64
	Kind     EntryKind
	Dir      Direction
	Type     string
	Data     json.RawMessage
	Meta     Meta
	SignalID string   // of a message that came in
	Command  *Command // of a command
	At       time.Time
}

// Meta is what a timeline shows beside an entry's data.
type Meta struct {
	Pointer     string      `json:"ptr,omitempty"`
	Actor       string      `json:"actor,omitempty"`
	Disposition Disposition `json:"disposition,omitempty"` // absent = applied
	Correlation string      `json:"correlationId,omitempty"`
	Traceparent string      `json:"traceparent,omitempty"`
	Command     int64       `json:"command,omitempty"`  // position of the command this answers
	Sender      string      `json:"sender,omitempty"`   // of a signal with a sequence
	Sequence    int64       `json:"sequence,omitempty"` // of its sender
	Refusal     string      `json:"refusal,omitempty"`  // why the signal was refused
	Steps       []string    `json:"steps,omitempty"`    // pointers of the pure tasks the turn ran
	Version     int64       `json:"version,omitempty"`  // of the snapshot the turn wrote
	Policy      string      `json:"policy,omitempty"`   // version of the policy that it was decided by
	Basis       *Basis      `json:"basis,omitempty"`    // of the decision that begins with the entry
}

// Command is work for the outside world. Its stream position identifies it.
type Command struct {
	Target  string            `json:"target"` // "http" or the name of a function
	Token   string            `json:"token"`  // of the wait that takes the result; "" = nobody waits for one
	Input   json.RawMessage   `json:"input,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"` // of one attempt, in nanoseconds; 0 = the performer's default
	Pointer string            `json:"ptr"`
	Headers map[string]string `json:"headers,omitempty"`
	Key     string            `json:"key"` // idempotency key: of the effect, the same in every command that repeats it

	// Instance and Position are where the command is; whoever reads it sets them.
	Instance string `json:"-"`
	Position int64  `json:"-"`

	// Ack makes of the performer's success a delivery only: the result is what the consumer acknowledges later (D5),
	// and a command that is not acknowledged for so long after a delivery, in nanoseconds, is performed again. 0 =
	// the performer's answer is the result; less: its first success is all.
	Ack   time.Duration `json:"ack,omitempty"`
	Await string        `json:"await,omitempty"` // any = of those that are asked at once, one is enough

	Compensates bool   `json:"compensates,omitempty"` // it undoes the task at Pointer
	Reverses    string `json:"reverses,omitempty"`    // key of the command that it undoes; "" = it has none

	// GiveUp is how long the command may wait for a place, in nanoseconds, before
	// it is given up and not sent any more; 0 = as the node says.
	GiveUp time.Duration `json:"giveUp,omitempty"`
}

// Inside reports whether a target is a step of the application, in the turn's transaction.
func Inside(target string) bool { return strings.Contains(target, "/") }

// Destination is where a command goes. Those with one Target share a circuit
// breaker, those with one Host a number of requests at once.
type Destination struct {
	Target string // the name of a function, or method, host and path of an HTTP request
	Host   string // with its port; "" = no request
}

// TargetEvent is the target of a command that publishes a CloudEvent, which is its input. It has no token: nothing
// waits for it. No function can have this name.
const TargetEvent = "event:publish"

// MaxEventBytes bounds an emitted event, as JSON. It leaves room for the envelope of a listening instance.
const MaxEventBytes = 28_000

// EventSpace is the namespace of the ids of emitted events.
var EventSpace = uuid.MustParse("0f6d0c7e-3b0e-5d53-8a43-64c6a1d6b6a8")

// EventSource is the source of events that instances of a definition emit, where their author names none.
func EventSource(definition string) string { return "aqueduct:" + definition }

// Message is a signal to be delivered, to this instance or to another.
type Message struct {
	Envelope signal.Envelope // SignalID is derived, so a repeated decision repeats it
	Due      time.Time       // zero = at once
}

// TaskChange makes, completes, escalates or withdraws a human task.
type TaskChange struct {
	ID      string
	Event   TaskEvent
	Actor   string
	Outcome string          // of a completion
	Output  json.RawMessage // of a completion
	Create  *Task           // of a creation
}

// TaskEvent is what happens to a human task in a turn.
type TaskEvent string

const (
	TaskCreated   TaskEvent = "created"
	TaskCompleted TaskEvent = "completed"
	TaskCancelled TaskEvent = "cancelled"
	TaskExpired   TaskEvent = "expired"   // its timeout fired
	TaskEscalated TaskEvent = "escalated" // its due date passed; it stays open
)

// Task is a piece of work for a person: what a document says has its name in JSON.
type Task struct {
	Name            string          `json:"-"`
	Title           string          `json:"title,omitempty" max:"1000"`
	Assignee        string          `json:"assignee,omitempty" max:"256"`
	CandidateUsers  []string        `json:"candidateUsers,omitempty"`
	CandidateGroups []string        `json:"candidateGroups,omitempty"`
	ExcludedUsers   []string        `json:"excludedUsers,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"`
	Form            json.RawMessage `json:"form,omitempty"`
	Priority        int             `json:"priority,omitempty"`
	DueAt           time.Time       `json:"-"`
	EscalateTo      []string        `json:"escalateTo,omitempty"` // groups that are candidates once it is due
	Outcomes        []string        `json:"outcomes,omitempty"`
	Pointer         string          `json:"-"`
}

// Failure is how an attempt to perform a command ended without a result.
type Failure struct {
	Error snapshot.Error
	Retry bool          // another attempt may succeed
	Ill   bool          // it is the destination's own, and counts for its circuit breaker
	After time.Duration // not before this long from now; 0 = by the retry policy

	// Unknown says that the outside may have done what the command asks for: it was sent, and no answer came. Else
	// the outside has answered, or nothing was sent: Open, when the answer does not say that nothing was done.
	Unknown, Open bool
}
