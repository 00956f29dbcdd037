// Package projections turns an outcome into the rows that people and
// programs query, and says how they are queried.
//
// A fold is pure: the same outcome always gives the same rows, and the store
// writes them in the commit that writes the snapshot, so a projection is never
// behind. Rows are flat, with the names of the tables they go to.
package projections

import (
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// Rows is what one turn writes beside its snapshot.
type Rows struct {
	Instance   *Instance        // inserted with version 1, else updated
	Stream     []Entry          // appended
	Settled    []engine.Settled // this instance's commands that are processed now; the commit is refused when one is already
	Tasks      []Task           // inserted
	TaskEnds   []TaskEnd        // of open tasks
	TaskEvents []TaskEvent      // appended
	Waits      []Wait           // inserted
	WaitsGone  []string         // tokens of waits that were consumed or withdrawn
}

// Instance is a row of WF_INSTANCES: the summary a person looks for.
type Instance struct {
	ID          string    `db:"INSTANCE_ID" width:"128"`
	Definition  string    `db:"DEFINITION" width:"256"`
	DefVersion  string    `db:"DEFINITION_VERSION" width:"256"`
	BusinessKey string    `db:"BUSINESS_KEY" width:"256"` // "" = none
	StartKey    string    `db:"START_KEY" width:"256"`    // "" = none; unique with definition and business key
	Status      string    `db:"STATUS" width:"32"`
	Position    string    `db:"STATE" width:"256"` // product-facing: the task the instance is at
	ParentID    string    `db:"PARENT_ID" width:"128"`
	Correlation string    `db:"CORRELATION_ID" width:"1024"`
	Version     int64     `db:"STATE_VERSION"`
	Ahead       int       `db:"AHEAD"` // signals with a sequence that it keeps until their turn; 0 when it is closed
	ErrorType   string    `db:"ERROR_TYPE" width:"512"`
	ErrorDetail string    `db:"ERROR_DETAIL" width:"4000B"`
	StartedAt   time.Time `db:"STARTED_ON_UTC"`
	UpdatedAt   time.Time `db:"UPDATED_ON_UTC"`
	EndedAt     time.Time `db:"ENDED_ON_UTC"` // zero = not yet
}

// Entry is a row of WF_STREAM (C2).
type Entry struct {
	InstanceID  string    `db:"INSTANCE_ID" width:"128"`
	Position    int64     `db:"POSITION"`
	Kind        string    `db:"KIND" width:"16"`     // command, event
	Direction   string    `db:"DIRECTION" width:"8"` // in, out
	Type        string    `db:"TYPE" width:"256"`
	Data        []byte    `db:"DATA"`
	Metadata    []byte    `db:"METADATA"`
	SignalID    string    `db:"SIGNAL_ID" width:"256"` // "" = none; recorded once in an instance
	CreatedAt   time.Time `db:"CREATED_ON_UTC"`
	Processed   *bool     `db:"PROCESSED"` // nil for events
	ProcessedAt time.Time `db:"PROCESSED_ON_UTC"`

	// IsInput says that Data is the instance's input, which its snapshot keeps
	// for good: a store may keep it there only, as long as it reads it back.
	IsInput bool `db:"-"`

	// Of a command that is not processed yet.
	ClaimedBy     string    `db:"CLAIMED_BY" width:"128"` // node; "" = nobody
	Attempts      int       `db:"ATTEMPTS"`               // begun so far; since the last delivery, where it has one
	NextAttemptAt time.Time `db:"NEXT_ATTEMPT_ON_UTC"`
	LastError     string    `db:"LAST_ERROR"`

	// Of a command: the effect that it is, and whether the outside may have done
	// it although no attempt had an answer.
	Key     string `db:"EFFECT_KEY" width:"1024"`
	Unknown bool   `db:"OUTCOME_UNKNOWN"`

	// Of a command that asks for an acknowledgement (D5).
	DeliveredAt time.Time `db:"DELIVERED_ON_UTC"` // last; zero = not yet
	Deliveries  int       `db:"DELIVERIES"`       // so far
}

// Task states.
const (
	TaskReady     = "ready"    // anybody who may can claim it
	TaskReserved  = "reserved" // claimed or assigned
	TaskCompleted = "completed"
	TaskCancelled = "cancelled"
	TaskExpired   = "expired"

	TaskOpen = "open" // of a TaskQuery: ready or reserved
)

// Task is a row of WF_TASKS.
type Task struct {
	ID              string    `db:"TASK_ID" width:"128"`
	InstanceID      string    `db:"INSTANCE_ID" width:"128"`
	Definition      string    `db:"DEFINITION" width:"256"`
	BusinessKey     string    `db:"BUSINESS_KEY" width:"256"`
	Name            string    `db:"NAME" width:"256"`
	Title           string    `db:"TITLE" width:"1000"`
	Status          string    `db:"STATUS" width:"16"`
	Assignee        string    `db:"ASSIGNEE" width:"256"`           // "" = nobody
	Role            string    `db:"ASSIGNED_AS" width:"256"`        // group by which the assignee claimed it; "" = in person
	CandidateUsers  string    `db:"CANDIDATE_USERS" width:"4000B"`  // JSON array
	CandidateGroups string    `db:"CANDIDATE_GROUPS" width:"4000B"` // JSON array
	ExcludedUsers   string    `db:"EXCLUDED_USERS" width:"4000B"`   // JSON array
	Outcomes        string    `db:"OUTCOMES" width:"4000B"`         // JSON array; [] = any
	Priority        int       `db:"PRIORITY"`
	Payload         []byte    `db:"PAYLOAD"`
	Form            []byte    `db:"FORM"`
	Token           string    `db:"WAITING_TOKEN" width:"128"`
	Version         int64     `db:"TASK_VERSION"`
	CreatedAt       time.Time `db:"CREATED_ON_UTC"`
	DueAt           time.Time `db:"DUE_ON_UTC"`
	EscalateTo      string    `db:"ESCALATE_TO" width:"4000B"` // JSON array of groups
	EscalatedAt     time.Time `db:"ESCALATED_ON_UTC"`          // zero = not yet, or never
	EndedAt         time.Time `db:"ENDED_ON_UTC"`
	EndedBy         string    `db:"ENDED_BY" width:"256"`
	Outcome         string    `db:"OUTCOME" width:"256"`
	Output          []byte    `db:"OUTPUT"`
}

// Asked is the task as the engine knows it: who may do it.
func (t Task) Asked() engine.Task {
	return engine.Task{
		Assignee: t.Assignee, CandidateUsers: Names(t.CandidateUsers), CandidateGroups: Names(t.CandidateGroups),
		ExcludedUsers: Names(t.ExcludedUsers), EscalateTo: Names(t.EscalateTo),
	}
}

// MayClaim reports whether a user with these groups is a candidate, and by
// which of the groups; "" = in person.
func (t Task) MayClaim(user string, groups []string) (role string, ok bool) {
	return engine.Candidate(t.Asked(), user, groups)
}

// Names reads a JSON array of a task's columns. What is none has no names.
func Names(list string) []string {
	var out []string
	if json.Unmarshal([]byte(list), &out) != nil {
		return nil
	}
	return out
}

// TaskEnd closes an open task.
type TaskEnd struct {
	ID      string `width:"128"`
	Version int64  // that the task must have; 0 = any
	Status  string `width:"16"`
	By      string `width:"256"`
	At      time.Time
	Outcome string `width:"256"`
	Output  []byte
}

// TaskEvent is a row of WF_TASK_EVENTS: append-only.
type TaskEvent struct {
	TaskID     string    `db:"TASK_ID" width:"128"`
	InstanceID string    `db:"INSTANCE_ID" width:"128"`
	Event      string    `db:"EVENT" width:"32"` // created, claimed, released, delegated, reassigned, escalated, completed, cancelled, expired
	Actor      string    `db:"ACTOR" width:"256"`
	Data       []byte    `db:"DATA"`
	At         time.Time `db:"OCCURRED_ON_UTC"`
}

// Wait is a row of WF_WAITS: an event wait, found by what it waits for.
type Wait struct {
	Token      string    `db:"WAITING_TOKEN" width:"128"`
	InstanceID string    `db:"INSTANCE_ID" width:"128"`
	EventType  string    `db:"EVENT_TYPE" width:"256"`
	Spec       string    `db:"SPEC" width:"4000B"`   // name@version#pointer, with arm and bound correlations: how events are correlated
	KeyHash    string    `db:"KEY_HASH" width:"128"` // hex of 128 bits of the correlation key's SHA-256
	CreatedAt  time.Time `db:"CREATED_ON_UTC"`
}

// DeadLetter is a row of WF_DEAD_LETTERS.
type DeadLetter struct {
	ID         string    `db:"DEAD_LETTER_ID" width:"128"`
	Queue      string    `db:"QUEUE" width:"32"`
	InstanceID string    `db:"INSTANCE_ID" width:"128"` // "" = unknown
	Envelope   []byte    `db:"ENVELOPE"`                // byte for byte
	Reason     string    `db:"REASON" width:"256"`      // a problem's code
	Detail     string    `db:"DETAIL"`
	Attempts   int       `db:"ATTEMPTS"`
	Node       string    `db:"NODE" width:"128"`
	EnqueuedAt time.Time `db:"ENQUEUED_ON_UTC"`
	DiedAt     time.Time `db:"DIED_ON_UTC"`
}
