package client

import (
	"encoding/json"
	"time"
)

// The documents of the API, as they travel. The server answers with the same
// types, so that the two cannot disagree.

// Page is a part of a list. Next is empty on the last page; otherwise it is
// the `after` of the next one.
type Page[T any] struct {
	Items []T    `json:"items" doc:"In the order of the list." nullable:"false"`
	Next  string `json:"next,omitempty" doc:"The after of the next page; absent on the last."`
}

// Definition is a published definition.
type Definition struct {
	Name        string    `json:"name" doc:"In its namespace: namespace/name." example:"default/loan-approval"`
	Version     string    `json:"version" example:"1.0.0"`
	Digest      string    `json:"digest" doc:"Hex SHA-256 of the canonical document."`
	Kind        string    `json:"kind" doc:"Which language it is written in."`
	Title       string    `json:"title,omitempty"`
	PublishedAt time.Time `json:"publishedAt,omitzero"`
	Warnings    []Warning `json:"warnings,omitempty" doc:"Only in the answer to publishing: what is allowed and probably not meant."`
}

// Warning is a place of a definition that is allowed and probably not meant.
type Warning struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Pointer string `json:"pointer,omitempty" doc:"JSON pointer into the definition."`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"`
}

// StartRequest asks for an instance. A repeat with the same instanceId, or the
// same definition, businessKey and startKey, gives the first one's instance.
type StartRequest struct {
	Definition  string            `json:"definition" minLength:"1" doc:"Name in its namespace." example:"default/loan-approval"`
	Version     string            `json:"version,omitempty" doc:"Absent: the highest published, by semantic versioning; pre-releases count."`
	InstanceID  string            `json:"instanceId,omitempty" doc:"Absent: the node chooses one."`
	BusinessKey string            `json:"businessKey,omitempty" doc:"The application's own key for the instance."`
	KeyParts    map[string]string `json:"keyParts,omitempty" doc:"The business key, taken apart, for those who read it; it is no part of what makes a start the same."`
	StartKey    string            `json:"startKey,omitempty" doc:"Makes a repeat recognisable. Absent: the Idempotency-Key header."`
	Input       json.RawMessage   `json:"input,omitempty" doc:"Any JSON; null when absent."`
	Signal      *SignalRequest    `json:"signal,omitempty" doc:"Given to the instance in its first turn, or, when it is there, at once. One that is refused starts nothing."`
}

// Instance is the summary of an instance.
type Instance struct {
	ID            string         `json:"id"`
	Definition    string         `json:"definition"`
	Version       string         `json:"version" doc:"Of the definition."`
	BusinessKey   string         `json:"businessKey,omitempty"`
	Status        string         `json:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`
	State         string         `json:"state,omitempty" doc:"The task at which it rests."`
	ParentID      string         `json:"parentId,omitempty" doc:"The instance that started it."`
	CorrelationID string         `json:"correlationId,omitempty"`
	StateVersion  int64          `json:"stateVersion" doc:"Counts committed turns, from 1."`
	Error         *InstanceError `json:"error,omitempty" doc:"Why it is faulted, or last was."`
	StartedAt     time.Time      `json:"startedAt"`
	UpdatedAt     time.Time      `json:"updatedAt"`
	EndedAt       time.Time      `json:"endedAt,omitzero" doc:"Absent while it is open."`
}

// Schedule is when instances of a definition begin without being asked for.
type Schedule struct {
	InstanceID string    `json:"instanceId" doc:"The instance that keeps the schedule: suspend it to pause, cancel it to end the schedule."`
	Definition string    `json:"definition"`
	Version    string    `json:"version" doc:"Of the definition."`
	Kind       string    `json:"kind" enum:"every,cron,after,on"`
	Status     string    `json:"status" enum:"running,waiting,suspended"`
	Next       time.Time `json:"next,omitzero" doc:"The next tick; absent while it waits for events, or for a run to end."`
	Ticks      int       `json:"ticks" doc:"That began an instance."`
	Missed     int64     `json:"missed" doc:"That were passed over, because they were long past."`
}

// InstanceError is a workflow error: an RFC 9457 problem of the workflow's own.
type InstanceError struct {
	Type    string `json:"type"`
	Status  int    `json:"status,omitempty"`
	Title   string `json:"title,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Pointer string `json:"pointer,omitempty" doc:"JSON pointer of the task that raised it."`
}

// InstanceDetail is an instance with what it waits for and what it came to.
type InstanceDetail struct {
	Instance
	Digest     string          `json:"digest" doc:"Of the definition."`
	KeyParts   json.RawMessage `json:"keyParts,omitempty" doc:"The business key, taken apart, an object of strings, for those who read it; it is no part of what makes a start the same."`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty" doc:"Of a completed instance."`
	Context    json.RawMessage `json:"context,omitempty" doc:"What was exported last; absent: nothing was."`
	Attributes json.RawMessage `json:"attributes,omitempty" doc:"An object: the search attributes by which it is found. Not in the answer to a start."`
	Branches   []Branch        `json:"branches,omitempty" doc:"What each line of execution knows now, the first one first; none has an instance that has ended." nullable:"false"`
	Waits      []Wait          `json:"waits" nullable:"false"`
	Commands   []Command       `json:"commands" doc:"Work for the outside world that is not done yet." nullable:"false"`
	Reversals  []Reversal      `json:"compensations,omitempty" nullable:"false" doc:"What undoes what it has done, or may have done, the next first. An instance that compensates sends them one after the other."`
	Why        *InstanceError  `json:"compensates,omitempty" doc:"The error because of which it compensates; absent: it does not."`
	Buffered   int             `json:"buffered,omitempty" doc:"Signals that are kept for later."`
	Gaps       []Gap           `json:"gaps,omitempty" nullable:"false" doc:"What senders have not sent, and later signals of theirs wait for."`

	Disposition string `json:"disposition,omitempty" enum:"applied,buffered,duplicate,queued,closed" doc:"Only in the answer to a start with a signal, what the signal did: closed, the new instance ran to its end and did not listen; and to an operation that a node with the code of the instance has yet to do: queued."`
}

// Branch is a line of execution: the first of an instance, or one that a fork has made.
type Branch struct {
	ID        int             `json:"id" doc:"0: the first one."`
	Parent    int             `json:"parent,omitempty" doc:"The line whose fork has made it."`
	Pointer   string          `json:"pointer,omitempty" doc:"JSON pointer of the innermost task that it is in."`
	Data      json.RawMessage `json:"data,omitempty" doc:"The input of its next task; absent: still that of its parent."`
	Variables json.RawMessage `json:"variables,omitempty" doc:"An object: those of the loops, catches and events that it is in."`
}

// Gap is a sequence that is missing.
type Gap struct {
	Sender   string `json:"sender"`
	Sequence int64  `json:"sequence" doc:"The one whose turn it is. A signal with it, or one that says nothing, closes the gap."`
	Waiting  int    `json:"waiting" doc:"Signals of the sender that wait for their turn."`
}

// Wait is something an instance waits for.
type Wait struct {
	Kind    string          `json:"kind" enum:"Command,Task,Timer,Retry,Event,State,SubWorkflow,Timeout,Due,Continue"`
	Pointer string          `json:"pointer" doc:"JSON pointer of the task that waits."`
	Until   time.Time       `json:"until,omitzero" doc:"When it is due."`
	TaskID  string          `json:"taskId,omitempty"`
	Command int64           `json:"command,omitempty" doc:"Stream position of the command."`
	Event   string          `json:"event,omitempty" doc:"Type of the event."`
	Key     json.RawMessage `json:"key,omitempty" doc:"Correlation values that the event must have."`
	Child   string          `json:"child,omitempty" doc:"The instance whose end is awaited."`
	Retry   *Retrying       `json:"retry,omitempty" doc:"Of Retry: what is tried again."`
}

// AckRequest is what a consumer says of a command that it got.
type AckRequest struct {
	Outcome  string          `json:"outcome" enum:"delivered,processed,failed,retry" doc:"delivered: it has it; the time until the next delivery begins anew. processed: it is done. failed: it cannot do it. retry: it wants it once more."`
	Output   json.RawMessage `json:"output,omitempty" doc:"Of processed: the result of the call, where somebody waits for it."`
	Error    *AckError       `json:"error,omitempty" doc:"Of failed: the error of the call."`
	Consumer string          `json:"consumer,omitempty" maxLength:"256" doc:"Who says it, as the policy or the task names its consumer: of another's command nothing is taken. Absent: it is not asked."`
	Delay    string          `json:"delay,omitempty" maxLength:"64" doc:"Of retry: an ISO 8601 duration until the next delivery; absent: at once." example:"PT1M"`
}

// AckError is a workflow error that a consumer gives.
type AckError struct {
	Type   string `json:"type,omitempty" maxLength:"256" doc:"Absent: communication."`
	Status int    `json:"status,omitempty" minimum:"100" maximum:"599" doc:"Absent: 500."`
	Title  string `json:"title,omitempty" maxLength:"256"`
	Detail string `json:"detail,omitempty" maxLength:"4000"`
}

// Acknowledged says that an acknowledgement is durable, and what it did.
type Acknowledged struct {
	InstanceID  string `json:"instanceId"`
	Position    int64  `json:"position" doc:"Of the command in the instance's stream."`
	Disposition string `json:"disposition" enum:"applied,buffered,duplicate,queued" doc:"applied: done. buffered: kept until the instance goes on. duplicate: the command was settled before. queued: could not be applied at once and will be."`
}

// Entry is one message of an instance's stream. Tokens are left out.
type Entry struct {
	Position      int64           `json:"position"`
	Kind          string          `json:"kind" enum:"command,event"`
	Direction     string          `json:"direction" enum:"in,out"`
	Type          string          `json:"type"`
	Name          string          `json:"name,omitempty" doc:"As the definition has it: of the event that came, was emitted or led to a state; else of the task."`
	At            time.Time       `json:"at"`
	Pointer       string          `json:"pointer,omitempty"`
	Actor         string          `json:"actor,omitempty"`
	Disposition   string          `json:"disposition,omitempty" doc:"What the turn did with the signal; absent: applied."`
	Sender        string          `json:"sender,omitempty" doc:"Of a signal with a sequence."`
	Sequence      int64           `json:"sequence,omitempty"`
	Refusal       string          `json:"refusal,omitempty" doc:"Why a signal that waited for its turn was refused then."`
	Answers       int64           `json:"answers,omitempty" doc:"Position of the command that this answers."`
	Steps         []string        `json:"steps,omitempty" doc:"Pointers of the pure tasks that the turn ran."`
	StateVersion  int64           `json:"stateVersion,omitempty"`
	Policy        string          `json:"policy,omitempty" doc:"Version of the lifecycle's policy that the turn was decided by."`
	CorrelationID string          `json:"correlationId,omitempty"`
	SignalID      string          `json:"signalId,omitempty"`
	Data          json.RawMessage `json:"data,omitempty"`
	Processed     *bool           `json:"processed,omitempty" doc:"Of a command: whether its result was applied."`
	ProcessedAt   time.Time       `json:"processedAt,omitzero"`
	ClaimedBy     string          `json:"claimedBy,omitempty"`
	Attempts      int             `json:"attempts,omitempty"`
	NextAt        time.Time       `json:"nextAt,omitzero"`
	LastError     string          `json:"lastError,omitempty"`
	DeliveredAt   time.Time       `json:"deliveredAt,omitzero" doc:"Of a command that is to be acknowledged: when it was delivered last."`
	Deliveries    int             `json:"deliveries,omitempty"`
	Key           string          `json:"key,omitempty" doc:"Of a command: its idempotency key, the same in every command that repeats the effect."`
	Outcome       string          `json:"outcome,omitempty" enum:"known,unknown" doc:"Of the attempts at a command: unknown, when the outside may have done it and no attempt had an answer, not even the last. Absent before the first, and while one is under way."`
	State         string          `json:"state,omitempty" enum:"open,claimed,delivered,given-up,discarded,processed" doc:"Of a command: how far it has come."`
}

// SignalRequest is something the application says to one instance.
type SignalRequest struct {
	Type     string          `json:"type,omitempty" maxLength:"256" doc:"What an event wait listens for. May be absent with a sequence: the signal takes its number and says nothing."`
	Data     json.RawMessage `json:"data,omitempty"`
	SignalID string          `json:"signalId,omitempty" doc:"A repeat is recorded once. Absent: the Idempotency-Key header, else the node chooses one."`
	Sender   string          `json:"sender,omitempty" maxLength:"128" doc:"Who counts the signals that they send to the instance."`
	Sequence int64           `json:"sequence,omitempty" doc:"Of the sender at the instance, from 1: signals are applied in this order, and one that comes before its turn is buffered."`

	DedupeKey string `json:"dedupeKey,omitempty" maxLength:"128" doc:"Of the application: of all that comes to the instance with one key, on whatever way, the first is applied, the others are duplicates; where a lifecycle refused the first, they are refused alike. It counts instead of the signalId."`
}

// Accepted says that a signal is durable, and what it did.
type Accepted struct {
	InstanceID  string `json:"instanceId"`
	SignalID    string `json:"signalId"`
	Disposition string `json:"disposition" enum:"applied,buffered,duplicate,queued" doc:"applied: the instance moved on. buffered: kept until it waits for it. duplicate: applied before. queued: could not be applied at once and will be."`
	First       *First `json:"first,omitempty" doc:"Of a duplicate: what became of the first."`
}

// First is what became of the first of several messages that are one.
type First struct {
	Position    int64     `json:"position" doc:"In the instance's stream."`
	Disposition string    `json:"disposition" doc:"What it did, as that of a signal."`
	Refusal     string    `json:"refusal,omitempty" doc:"Why it was refused, when its turn came."`
	At          time.Time `json:"at"`
}

// TriggerRequest is an event of the application, for what a reference names.
type TriggerRequest struct {
	Event     any             `json:"event" doc:"Its name, or its code: a text or an integer."`
	RequestID string          `json:"requestId,omitempty" doc:"A repeat is applied once. Absent: the Idempotency-Key header, else the node chooses one."`
	Actor     string          `json:"actor,omitempty" maxLength:"256" doc:"Who does it. Absent: the X-Aqueduct-Actor header."`
	Payload   json.RawMessage `json:"payload,omitempty" doc:"Data of the event: any JSON."`
	Input     json.RawMessage `json:"input,omitempty" doc:"Of the instance, when the event begins it."`
	Version   string          `json:"version,omitempty" doc:"Of the definition, when the event begins the instance. Absent: the highest published, by semantic versioning."`
	Sender    string          `json:"sender,omitempty" maxLength:"128" doc:"Who counts the events that they send to the instance."`
	Sequence  int64           `json:"sequence,omitempty" doc:"Of the sender at the instance, from 1: see the signals of an instance."`
	DedupeKey string          `json:"dedupeKey,omitempty" maxLength:"128" doc:"Of the application, instead of the requestId: see the signals of an instance."`

	AckRequired *bool `json:"ackRequired,omitempty" doc:"Absent: true. false: consumers of the transition are told until they have taken it, acknowledge nothing and are not reminded."`
}

// Triggered says what an event did.
type Triggered struct {
	InstanceID  string `json:"instanceId"`
	Created     bool   `json:"created" doc:"The event began the instance."`
	Disposition string `json:"disposition" enum:"applied,buffered,duplicate,queued,closed" doc:"As of a signal. closed: the new instance ran to its end and did not listen."`
	State       string `json:"state" doc:"Where the instance is after it; its status when it rests nowhere; empty, as its status is, when that cannot be read now."`
	Status      string `json:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`

	First *First `json:"first,omitempty" doc:"Of a duplicate: what became of the first."`

	Error *InstanceError `json:"error,omitempty" doc:"Why it is faulted: the event was taken, and what comes with it has failed, as the data of a policy."`
}

// Lifecycle is in which state the instance of a reference is.
type Lifecycle struct {
	InstanceID string    `json:"instanceId"`
	Definition string    `json:"definition"`
	Version    string    `json:"version" doc:"Of the definition."`
	Reference  string    `json:"reference" doc:"The application's own key."`
	State      string    `json:"state" doc:"The state; FROM->TO between two. Of any other definition: the task where the instance rests, or its status."`
	Events     []string  `json:"events" doc:"The events that the state takes; a guard may still refuse one."`
	Status     string    `json:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`
	Since      time.Time `json:"since" doc:"When it came there, or to its status."`
	UpdatedAt  time.Time `json:"updatedAt" doc:"When something happened to it last."`
}

// Reached says how many instances an event was given to.
type Reached struct {
	Reached int `json:"reached"`
}

// OperationRequest is what an operator asks of one instance.
type OperationRequest struct {
	Operation    string          `json:"operation" enum:"suspend,resume,retry,retry-same,retry-new,skip,cancel,compensate,run-now" doc:"compensate cancels the instance once what it has done is compensated; cancel compensates nothing. run-now ends a timer, the pause before a retry or before the next attempt at a command."`
	Output       json.RawMessage `json:"output,omitempty" doc:"Of a skip: what the task is taken to have answered."`
	Wait         string          `json:"wait,omitempty" maxLength:"1024" doc:"Of run-now: the pointer of the task that waits, where several do; of several at one place the first."`
	StateVersion int64           `json:"stateVersion,omitempty" minimum:"0" doc:"That the instance has, or nothing is done; absent: it is not asked."`
}

// Task is a piece of work for a person.
type Task struct {
	ID              string          `json:"id"`
	InstanceID      string          `json:"instanceId"`
	Definition      string          `json:"definition"`
	BusinessKey     string          `json:"businessKey,omitempty"`
	Name            string          `json:"name"`
	Title           string          `json:"title,omitempty"`
	Status          string          `json:"status" enum:"ready,reserved,completed,cancelled,expired"`
	Assignee        string          `json:"assignee,omitempty"`
	AssignedAs      string          `json:"assignedAs,omitempty" doc:"Group by which the assignee claimed it; absent: in person."`
	CandidateUsers  []string        `json:"candidateUsers,omitempty"`
	CandidateGroups []string        `json:"candidateGroups,omitempty"`
	ExcludedUsers   []string        `json:"excludedUsers,omitempty"`
	Outcomes        []string        `json:"outcomes,omitempty" doc:"Absent: any."`
	Priority        int             `json:"priority,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"`
	Form            json.RawMessage `json:"form,omitempty"`
	CreatedAt       time.Time       `json:"createdAt"`
	DueAt           time.Time       `json:"dueAt,omitzero"`
	EscalateTo      []string        `json:"escalateTo,omitempty" doc:"Groups that are candidates once it is due."`
	EscalatedAt     time.Time       `json:"escalatedAt,omitzero"`
	CompletedBy     string          `json:"completedBy,omitempty"`
	EndedAt         time.Time       `json:"endedAt,omitzero"`
	Outcome         string          `json:"outcome,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
}

// TaskDetail is a task with what happened to it.
type TaskDetail struct {
	Task
	Events []TaskEvent `json:"events" nullable:"false"`
}

// TaskEvent is something that happened to a task.
type TaskEvent struct {
	Event string          `json:"event" doc:"created, claimed, released, delegated, reassigned, commented, escalated, completed, cancelled, expired"`
	Actor string          `json:"actor,omitempty"`
	At    time.Time       `json:"at"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// ClaimRequest names who takes a task.
type ClaimRequest struct {
	User   string   `json:"user" minLength:"1" maxLength:"256"`
	Groups []string `json:"groups,omitempty" maxItems:"100" doc:"Of the user."`
}

// ReleaseRequest names who gives a task back.
type ReleaseRequest struct {
	User string `json:"user" minLength:"1" maxLength:"256"`
}

// DelegateRequest names who hands a task on, and to whom.
type DelegateRequest struct {
	User string `json:"user" minLength:"1" maxLength:"256" doc:"Who has it."`
	To   string `json:"to" minLength:"1" maxLength:"256"`
}

// ReassignRequest names who gets a task, whoever has it.
type ReassignRequest struct {
	User string `json:"user" minLength:"1" maxLength:"256" doc:"The administrator who asks."`
	To   string `json:"to,omitempty" maxLength:"256" doc:"Absent: its candidates."`
}

// ClaimNextRequest asks for the next tasks that a user may do.
type ClaimNextRequest struct {
	User   string   `json:"user" minLength:"1" maxLength:"256"`
	Groups []string `json:"groups,omitempty" maxItems:"100" doc:"Of the user."`
	Count  int      `json:"count,omitempty" minimum:"1" maximum:"50" doc:"At most so many; absent: 1."`
}

// CompleteRequest is a person's answer.
type CompleteRequest struct {
	User    string          `json:"user" minLength:"1" maxLength:"256"`
	Groups  []string        `json:"groups,omitzero" nullable:"false" maxItems:"100" doc:"Of the user now: who claimed the task as a member of a group must still be one. Absent: those of who asks, where that is known; else it is not looked at."`
	Outcome string          `json:"outcome,omitempty" maxLength:"256"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Queue is how full a queue is.
type Queue struct {
	Name     string    `json:"name"`
	Ready    int       `json:"ready" doc:"Messages that are due, counted up to 10,000."`
	Delayed  int       `json:"delayed" doc:"Messages that are not due yet, counted up to 10,000."`
	Leased   int       `json:"leased" doc:"With a worker now."`
	OldestAt time.Time `json:"oldestAt,omitzero" doc:"When the oldest ready message became due."`
}

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type        string    `json:"type" doc:"Where the code is explained."`
	Title       string    `json:"title"`
	Status      int       `json:"status"`
	Detail      string    `json:"detail" doc:"What is wrong with which value."`
	Code        string    `json:"code" doc:"Stable: never changes its meaning." example:"instance.unknown"`
	Hint        string    `json:"hint,omitempty" doc:"What to do."`
	Where       []Place   `json:"where,omitempty" doc:"Where in the input, most important first."`
	CompletedBy string    `json:"completedBy,omitempty" doc:"Of task.completed: by whom."`
	CompletedAt time.Time `json:"completedAt,omitzero" doc:"Of task.completed: when."`
}

// Place is a position in the input.
type Place struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty" doc:"From 1."`
	Column  int    `json:"column,omitempty" doc:"From 1, in characters."`
	Pointer string `json:"pointer,omitempty" doc:"JSON pointer into the document, or the name of a parameter."`
	Code    string `json:"code,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Target is where a node sends commands: a function, or a method and path of a
// host.
type Target struct {
	Name      string    `json:"name"`
	Host      string    `json:"host,omitempty"`
	Breaker   string    `json:"breaker" enum:"closed,open,half-open"`
	Failures  int       `json:"failures" doc:"In a row."`
	OpenUntil time.Time `json:"openUntil,omitzero" doc:"Of an open breaker."`
	Running   int       `json:"running" doc:"Commands under way."`
	Waiting   int       `json:"waiting" doc:"Commands that wait on this node."`
	WaitsFor  string    `json:"waitsFor,omitempty" doc:"What those wait for."`
}

// ResetTargetRequest names a target.
type ResetTargetRequest struct {
	Target string `json:"target" minLength:"1" maxLength:"256"`
}

// Login says where a person gets a token of an identity provider.
type Login struct {
	Issuer   string `json:"issuer" doc:"URL of the OpenID Connect provider."`
	ClientID string `json:"clientId" doc:"By which who logs in is known to the provider; it has no secret."`
	Scopes   string `json:"scopes" doc:"What is asked for, separated by blanks."`
}

// Me is as whom somebody is known to a node.
type Me struct {
	Kind   string   `json:"kind" enum:"nobody,user,token,certificate,node" doc:"How it is known who asks; nobody: it is not asked."`
	Name   string   `json:"name,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Roles  []string `json:"roles,omitempty"`
	May    []string `json:"may" nullable:"false" doc:"The operations that they may do, if only in some namespaces."`

	Only map[string][]string `json:"only,omitempty" doc:"Of the operations that they may do in some namespaces only, which these are."`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name     string   `json:"name" minLength:"1" maxLength:"128" doc:"Who bears it: the actor of what they do, and the user of tasks."`
	Roles    []string `json:"roles" minItems:"1" maxItems:"50" doc:"What they may do: viewer, task-user, operator, author, application, admin; ROLE@NAMESPACE is viewer, task-user, operator or application for one namespace of definitions."`
	Groups   []string `json:"groups,omitempty" maxItems:"50" doc:"Of which they are a member, as tasks name them."`
	Lifetime string   `json:"lifetime,omitempty" maxLength:"32" doc:"How long it is valid, at most 366d; absent: 90d. Days, hours (720h), or an ISO 8601 duration (P30D)." example:"30d"`
}

// Token is by whom a program or a person is known; its secret is not kept.
type Token struct {
	ID        string    `json:"id" doc:"That of a session of the console begins with s."`
	Name      string    `json:"name"`
	Roles     []string  `json:"roles"`
	Groups    []string  `json:"groups,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	RevokedBy string    `json:"revokedBy,omitempty"`
	UsedAt    time.Time `json:"usedAt,omitzero" doc:"About when it was used last."`
}

// NewToken is a token that was just made.
type NewToken struct {
	Token
	Secret string `json:"secret" doc:"What its bearer sends: Authorization: Bearer SECRET. It is not shown again."`
}

// AuditEntry says who has done something, or was refused it.
type AuditEntry struct {
	ID            string    `json:"id"`
	At            time.Time `json:"at"`
	Action        string    `json:"action" doc:"What: discard, replay, purge, suspend, resume, retry, skip, cancel, migrate, publish, reassign and others."`
	Target        string    `json:"target" doc:"Of what: an id, a name or, of what was refused, the path."`
	InstanceID    string    `json:"instanceId,omitempty"`
	User          string    `json:"user,omitempty" doc:"Who it was; absent where nobody was asked."`
	Claimed       string    `json:"claimed,omitempty" doc:"In whose name they said they did it."`
	Kind          string    `json:"kind,omitempty" doc:"How it is known who it was: user, token, certificate, database, node or nobody."`
	Via           string    `json:"via,omitempty" doc:"Which way they came: api, console, cli, plsql or go."`
	VersionBefore int64     `json:"versionBefore,omitempty" doc:"Of the instance."`
	VersionAfter  int64     `json:"versionAfter,omitempty"`
	Result        string    `json:"result" doc:"done, or the code of the problem with which it was refused."`
	Reason        string    `json:"reason,omitempty"`
	RequestID     string    `json:"requestId,omitempty" doc:"X-Request-Id of the answer."`
}
