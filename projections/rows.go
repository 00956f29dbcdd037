// Package projections turns an outcome into the rows that people and programs query, and says how they are queried.
//
// A fold is pure: the same outcome always gives the same rows, and the store writes them in the commit that writes the
// snapshot, so a projection is never behind. Rows are flat, with the names of the tables they go to.
package projections

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
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
	Attributes []Attribute      // of the instance: each in the place of what it had under the name
	Policy     *engine.Policy   // the commit is stale when a newer one is published; nil = that is no matter
}

// Instance is a row of WF_INSTANCES, for people. What names columns is written from it: see internal/shapes.
type Instance struct {
	ID          string    `db:"INSTANCE_ID" width:"128" doc:"identity of the instance"`
	Definition  string    `db:"DEFINITION" width:"256" doc:"name of its definition"`
	DefVersion  string    `db:"DEFINITION_VERSION" width:"256" doc:"version of its definition"`
	BusinessKey string    `db:"BUSINESS_KEY" width:"256" doc:"key of the application for the instance"`
	StartKey    string    `db:"START_KEY" width:"256" doc:"key that makes a repeated start recognisable"` // unique with definition and business key
	Status      string    `db:"STATUS" width:"32" doc:"phase of life"`
	Position    string    `db:"STATE" width:"256" doc:"task the instance is at"`
	ParentID    string    `db:"PARENT_ID" width:"128" doc:"instance that started this one"`
	Correlation string    `db:"CORRELATION_ID" width:"1024" doc:"follows everything one request causes"`
	Version     int64     `db:"STATE_VERSION" doc:"version this row shows"`
	Ahead       int       `db:"AHEAD" null:"0" doc:"signals with a sequence that it keeps until their turn; null when there are none"` // 0 when it is closed
	ErrorType   string    `db:"ERROR_TYPE" width:"512" doc:"type of the error the instance stands at"`
	ErrorDetail string    `db:"ERROR_DETAIL" width:"4000B" doc:"that error in words"`
	StartedAt   time.Time `db:"STARTED_ON_UTC" doc:"start"`
	UpdatedAt   time.Time `db:"UPDATED_ON_UTC" doc:"last visible change"`
	EndedAt     time.Time `db:"ENDED_ON_UTC" doc:"end; null while it is not closed"`
}

func instance(s *snapshot.Snapshot, startKey string) *Instance {
	row := &Instance{
		ID: s.InstanceID, Definition: s.Definition.Name, DefVersion: s.Definition.Version,
		BusinessKey: s.Business.Key, StartKey: startKey, Status: string(s.Status), Position: s.At(),
		Correlation: s.Headers[signal.HeaderCorrelation], Version: s.Version, Ahead: len(s.Ahead),
		StartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt,
	}
	if s.Parent != nil {
		row.ParentID = s.Parent.InstanceID
	}
	if s.Error != nil {
		row.ErrorType, row.ErrorDetail = s.Error.Type, clip(s.Error.Title+": "+s.Error.Detail)
	}
	if s.Status.Closed() {
		row.EndedAt, row.Ahead = s.UpdatedAt, 0
	}
	return row
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

	// Of a command.
	Key       string    `db:"EFFECT_KEY" width:"1024"` // the effect that it is
	Unknown   bool      `db:"OUTCOME_UNKNOWN"`         // the outside may have done it although no attempt had an answer
	GivenUpAt time.Time `db:"GIVEN_UP_ON_UTC"`         // processed then means discarded; zero = it is not given up

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
)

// Task is a row of WF_TASKS, from which what names its columns is written, too.
type Task struct {
	ID              string    `db:"TASK_ID" width:"128" doc:"identity"`
	InstanceID      string    `db:"INSTANCE_ID" width:"128" doc:"instance"`
	Definition      string    `db:"DEFINITION" width:"256" doc:"name of the definition"`
	BusinessKey     string    `db:"BUSINESS_KEY" width:"256" doc:"key of the application"`
	Name            string    `db:"NAME" width:"256" doc:"name of the task"`
	Title           string    `db:"TITLE" width:"1000" doc:"what people read"`
	Status          string    `db:"STATUS" width:"16" doc:"ready, reserved, completed, cancelled, expired"`
	Assignee        string    `db:"ASSIGNEE" width:"256" doc:"who has it"`
	Role            string    `db:"ASSIGNED_AS" width:"256" doc:"group by which the assignee claimed it; null: in person"`
	CandidateUsers  string    `db:"CANDIDATE_USERS" width:"4000B" doc:"JSON array"`
	CandidateGroups string    `db:"CANDIDATE_GROUPS" width:"4000B" doc:"JSON array"`
	ExcludedUsers   string    `db:"EXCLUDED_USERS" width:"4000B" doc:"JSON array"`
	Outcomes        string    `db:"OUTCOMES" width:"4000B" doc:"JSON array of allowed outcomes"` // [] = any
	Priority        int       `db:"PRIORITY" doc:"smaller comes first"`
	Payload         []byte    `db:"PAYLOAD" doc:"what the task is about, JSON"`
	Form            []byte    `db:"FORM" doc:"JSON Schema of the answer"`
	Token           string    `db:"WAITING_TOKEN" width:"128" doc:"token that completes it"`
	Version         int64     `db:"TASK_VERSION" doc:"guards every edit"`
	CreatedAt       time.Time `db:"CREATED_ON_UTC" doc:"creation"`
	DueAt           time.Time `db:"DUE_ON_UTC" doc:"due date"`
	EscalateTo      string    `db:"ESCALATE_TO" width:"4000B" doc:"JSON array of groups that are candidates once it is due"`
	EscalatedAt     time.Time `db:"ESCALATED_ON_UTC" doc:"when it was escalated"`
	EndedAt         time.Time `db:"ENDED_ON_UTC" doc:"end"`
	EndedBy         string    `db:"ENDED_BY" width:"256" doc:"who ended it"`
	Outcome         string    `db:"OUTCOME" width:"256" doc:"how it ended"`
	Output          []byte    `db:"OUTPUT" doc:"the answer, JSON"`
}

func task(s *snapshot.Snapshot, c engine.TaskChange, at time.Time) Task {
	t := c.Create
	row := Task{
		ID: c.ID, InstanceID: s.InstanceID, Definition: s.Definition.Name, BusinessKey: s.Business.Key,
		Name: t.Name, Title: t.Title, Status: TaskReady, Assignee: t.Assignee,
		CandidateUsers: List(t.CandidateUsers), CandidateGroups: List(t.CandidateGroups),
		ExcludedUsers: List(t.ExcludedUsers), Outcomes: List(t.Outcomes),
		Priority: t.Priority, Payload: t.Payload, Form: t.Form, Version: 1, CreatedAt: at, DueAt: t.DueAt,
		EscalateTo: List(t.EscalateTo),
	}
	if t.Assignee != "" {
		row.Status = TaskReserved
	}
	for _, w := range s.Waits {
		if w.Kind == snapshot.WaitTask && w.TaskID == c.ID {
			row.Token = w.Token
		}
	}
	return row
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
	Event      string    `db:"EVENT" width:"32"` // created, claimed, released, delegated, reassigned, commented, escalated, completed, cancelled, expired
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

// Attribute is a row of WF_ATTRIBUTES: a value that an instance is found by.
type Attribute struct {
	InstanceID string `db:"INSTANCE_ID" width:"128"`
	Name       string `db:"NAME" width:"64"`
	Kind       string `db:"KIND" width:"8"`
	Value      string `db:"VALUE" width:"256"`
	Key        []byte `db:"VALUE_KEY"` // in the order of values; nil = it has none any more
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
	Priority   int       `db:"PRIORITY"` // that its message had; 0 = the usual one
}
