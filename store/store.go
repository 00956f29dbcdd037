// Package store is what the runtime asks of a database.
//
// A store holds snapshots, queues and projections, and changes them in one commit. It has no opinion about workflows:
// what it writes is told by the fields of a [Change]. Two stores exist, sql/sqlite and sql/oracle; a new one is done
// when storetest passes.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Sentinels. Stores wrap them with what was attempted.
var (
	ErrStale     = errors.New("the state version has moved")          // load again and decide again
	ErrLost      = errors.New("the delivery is no longer ours")       // another holds it, or it is done
	ErrTaken     = errors.New("the command is not as it is claimed")  // another has it, or it is processed
	ErrNotFound  = errors.New("not found")                            //
	ErrDuplicate = errors.New("recorded before")                      // same signal id, or same start
	ErrClosed    = errors.New("the store is closed")                  //
	ErrUnknown   = errors.New("the outcome of the commit is unknown") // drop everything, let it be redelivered
)

// Unknown is ErrUnknown, as a problem that says so whatever the database has said.
func Unknown(cause error) error {
	return problem.Wrap(fmt.Errorf("%w: %w", ErrUnknown, cause), problem.Unavailable, "store.outcome-unknown", "the store did not say whether it was done").
		WithHint("repeat the request with the ids that it had, and it is done once; of one without look first whether it was done")
}

// Queue names a queue.
type Queue string

const (
	Signals  Queue = "signal"   // due at once
	Schedule Queue = "schedule" // due at a time
	Commands Queue = "command"  // work announced to every node
)

// Receiver gives messages to the consumers of the pump.
type Receiver interface {
	// Receive blocks until a message of the queue is due and gives it to this caller alone, or returns ctx's error.
	// Among due messages the smallest priority comes first, then the one committed first. A message is never delivered
	// before its due time by the database's clock.
	//
	// arrived, unless nil, is told the message before Receive returns with it: in the order in which the queue hands
	// messages to this process, so that what came in order is worked on in order. It must not block, nor call the
	// store.
	Receive(ctx context.Context, q Queue, arrived func(Message)) (Delivery, error)
}

// Writer is where a turn reads and writes: a delivery, or the store itself for a change that no message caused.
type Writer interface {
	// Commit writes a change, all or nothing. Errors: ErrStale, ErrDuplicate, ErrTaken, ErrUnknown; none of them has
	// written anything but, perhaps, ErrUnknown.
	Commit(ctx context.Context, c Change) error
	// Load returns an instance's last committed snapshot, or ErrNotFound. One that cannot be read is a problem
	// snapshot.*.
	Load(ctx context.Context, instanceID string) (snapshot.Snapshot, error)
}

// Delivery is one message, locked to one worker until it is committed or released. It ends with its first successful
// Commit or Release; a later one returns ErrLost.
type Delivery interface {
	Message() Message
	// Load reads inside the delivery's transaction, where the store has one. Commit consumes the message, too. On
	// ErrStale, ErrDuplicate and ErrTaken the message is still held, and Commit may be called again with another
	// change. On ErrLost and ErrUnknown the delivery is over.
	Writer
	// Release gives the message back, visible at once, with one attempt more but where cause is trouble of the
	// database, which is [problem.Unavailable]; its place among messages of its priority may be another.
	Release(ctx context.Context, cause error) error
}

// Carrier is a delivery that may have brought the snapshot of its instance along, so
// that it need not be loaded. A store need not have any.
type Carrier interface {
	// Carried returns the snapshot and its size when encoded, once; nil when none came.
	// It is what was committed when the message was received, and may be old since.
	Carried() (snap *snapshot.Snapshot, encoded int)
}

// Ledger knows what the workers of a node are at. What a worker is about to execute is noted where a crash leaves it
// readable: a message that was entered and not left when its process died comes back with Crashes + 1. Both calls are
// cheap (no commit, no sync).
type Ledger interface {
	Enter(d Delivery)
	Leave(d Delivery)
}

// Message is what a queue delivers.
type Message struct {
	ID         string // the store's, unique among its messages
	Queue      Queue
	Body       []byte
	Priority   int
	Attempts   int       // times it was released
	Crashes    int       // times a process died while it was Enter-ed (see Ledger)
	EnqueuedAt time.Time // by the database's clock
	DueAt      time.Time // zero = at once
}

// Again is the message as it is sent once more.
func (m Message) Again(due time.Time, attempts int) Send {
	return Send{Queue: m.Queue, Body: m.Body, Due: due, Priority: m.Priority, Attempts: attempts}
}

// Send is a message to put on a queue.
type Send struct {
	Queue    Queue
	Body     []byte
	Due      time.Time // zero = at once
	Priority int       // 0 = DefaultPriority; smaller comes first, 1 to 9
	Attempts int       // what its Message.Attempts begins with: a repeated message keeps its bytes
}

// MaxBody bounds a message's body, in bytes: that of the largest envelope. A store takes it whatever its queues can
// hold.
const MaxBody = 1 << 20

// The two are one limit: a difference of either sign does not compile.
const _ = uint(MaxBody-signal.MaxBytes) + uint(signal.MaxBytes-MaxBody)

// Check refuses a message that no store takes: signal.too-large.
func (m *Send) Check() error {
	if len(m.Body) > MaxBody {
		return problem.New(problem.TooLarge, "signal.too-large", "message of %d bytes exceeds %d", len(m.Body), MaxBody).
			WithHint("store large data in the application's own table and send a reference")
	}
	return nil
}

// Base is the version of the instance that the change is written over.
func (c *Change) Base() int64 {
	if c.Over != 0 || c.Snapshot == nil {
		return max(c.Over, 0)
	}
	return c.Snapshot.Version - 1
}

// DefaultPriority is the priority of a message that does not say.
const DefaultPriority = 5

// Change is everything that one commit writes. Its zero value, committed on a delivery, just consumes the message.
type Change struct {
	// Snapshot is the next snapshot, or nil. It is written only over version Over of the instance (0 =
	// Snapshot.Version-1; below: none is there); otherwise the commit fails with ErrStale, or with ErrDuplicate over
	// none. A change of several signals advances the version by as many.
	Snapshot *snapshot.Snapshot
	Over     int64
	Encoded  []byte // Snapshot.Encode(), made by the caller; a store that has committed it keeps no hold of it
	Runtime  Runtime
	// Rows are the projections of the turn.
	Rows projections.Rows
	// Claims changes the claims of commands that exist already: those that are Seen before any is settled, the others then.
	Claims []Claim
	// Tasks are changes to open human tasks: claim, release, delegation, escalation.
	Tasks []TaskEdit
	Send  []Send
	// Also are messages of further deliveries that the caller holds, and that are
	// consumed with the one it commits. Only a store with Parts.Joins takes any.
	Also []Message
	// DeadLetter takes the delivery's message out of circulation; without a delivery it is one more dead letter.
	DeadLetter *projections.DeadLetter
	// Definition publishes a version of a definition. It fails the commit with
	// ErrDuplicate when the version is there, or another has its Ordinal.
	Definition *Definition
	// Audit says who has had it made; what the stream tells needs none.
	Audit []Audit
	// With are changes of other instances that are part of this commit. They have no DeadLetter or With of their own.
	With []Change
	// Inside, unless nil, makes the change in the transaction that commits it, each
	// time that it is made, over the version that Snapshot and Over of this one say.
	Inside func(do Perform) (Change, error)
}

// Perform does a step of the application in a transaction, behind a savepoint: one that has failed has done nothing.
// With err the transaction is over; when failed is there, too, that is what the step comes to in the next one.
type Perform func(target string, input json.RawMessage) (output json.RawMessage, failed *snapshot.Error, err error)

// HasExtras says whether the change has more than a turn decides about by itself:
// human tasks, who waits for events, or a definition.
func (c *Change) HasExtras() bool {
	r := &c.Rows
	return c.Definition != nil || len(c.Audit)+len(c.Tasks)+len(r.Tasks)+len(r.TaskEnds)+len(r.TaskEvents)+len(r.Waits)+len(r.WaitsGone)+len(r.Attributes) > 0
}

// Audit is who has done something, or was refused it: a row of WF_AUDIT, which nothing changes or deletes.
type Audit struct {
	ID         string    `db:"AUDIT_ID" width:"36"`
	At         time.Time `db:"OCCURRED_ON_UTC"`
	Action     string    `db:"ACTION" width:"32"`
	Target     string    `db:"OBJECT_ID" width:"128"`
	InstanceID string    `db:"INSTANCE_ID" width:"128"`
	User       string    `db:"USER_NAME" width:"128"`        // who it was; "" = nobody has asked
	Claimed    string    `db:"CLIENT_IDENTIFIER" width:"64"` // in whose name they said they did it
	Kind       string    `db:"KIND" width:"16"`              // how it is known who it was
	Via        string    `db:"VIA" width:"16"`
	Before     int64     `db:"VERSION_BEFORE"` // of the instance; 0 = it is about none
	After      int64     `db:"VERSION_AFTER"`
	Result     string    `db:"RESULT" width:"256"` // a problem's code; "" = done
	Reason     string    `db:"REASON" width:"1000"`
	Request    string    `db:"REQUEST_ID" width:"64"`
}

// Definition is a version of a definition: a row of WF_DEFINITIONS.
type Definition struct {
	Name, Version    string `width:"256"`
	Title            string `width:"1000"`
	Digest, Kind     string
	Source, Document []byte
	PublishedAt      time.Time
	Ordinal          int // how many versions of its name are there with it: who publishes has seen all the others
}

// Runtime is what a runtime-state row says beside the snapshot (A3).
type Runtime struct {
	LastSignalID string `width:"128"`
	ExecutedBy   string `width:"128"` // node
	ExecutedAt   time.Time
	Due          time.Time // the first moment that the instance waits for; zero: none, or it is stopped
}

// Claim changes who performs a command. It fails the commit with ErrTaken
// unless the command is unprocessed and its present claim is Expect.
type Claim struct {
	InstanceID string
	Position   int64
	Expect     string    // node; "" = nobody
	Any        bool      // whoever has it: Expect does not count
	ExpectNext time.Time // its next attempt, on which this was decided; zero = whichever. It does not count for Done
	Seen       bool      // only while Attempts is its count already, and none of them is under way
	Owner      string    `width:"128"` // node; "" = gives it back
	Attempts   int       // the new count
	NextAt     time.Time
	Error      string
	Delivered  time.Time // when it was delivered last; zero = not yet, or not any more
	Deliveries int       // the new count
	Unknown    bool      // nobody knows whether the outside has done it
	GivenUp    time.Time // since when it is not tried any more; zero = it is
	// Done marks the command as settled: as processed, unless it is GivenUp. Of the
	// others only Expect, Any and Unknown count then; as with Rows.Settled, its row says
	// that the outcome is unknown when it said so before, or an attempt is under way.
	Done bool
}

// TaskEdit changes an open task that has Version; otherwise the commit fails with ErrStale.
type TaskEdit struct {
	ID       string
	Version  int64
	Status   string // projections.TaskReady or TaskReserved
	Assignee string `width:"256"`
	Role     string `width:"256"` // group by which the assignee claimed it; "" = in person
	Event    projections.TaskEvent
	// Escalation is not nil when the task's due date has passed.
	Escalation *Escalation
}

// Escalation is what an escalation changes of a task beside its assignee.
type Escalation struct {
	CandidateUsers  string `width:"4000B"` // JSON array: all of them from now on
	CandidateGroups string `width:"4000B"` // JSON array: all of them from now on
	At              time.Time
}
