// Package snapshot is all that the engine remembers of an instance, as one versioned value.
//
// A node that holds a snapshot and its definition can go on with the instance; nothing is replayed. The document is
// canonical JSON: the same snapshot always has the same bytes. Old schema versions are upcast when they are read; a
// newer one than this program knows is refused and never rewritten.
//
// The package is pure: it reads no clock and does no I/O.
package snapshot

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// SchemaVersion is the engineSchemaVersion this program writes.
const SchemaVersion = 1

// MaxBytes bounds an encoded snapshot. A turn whose snapshot would be larger
// faults the instance with the code limit.snapshot.
const MaxBytes = 4 << 20

// Status is the life phase of an instance, in the words of the Open Workflow DSL.
type Status string

const (
	Pending     Status = "pending"
	Running     Status = "running"   // a turn is due: a continuation is in the queue
	Waiting     Status = "waiting"   // every branch waits for something
	Suspended   Status = "suspended" // an operator stopped it; signals are kept
	Cancelled   Status = "cancelled"
	Faulted     Status = "faulted" // an error nobody caught; an operator may retry, skip or cancel
	Completed   Status = "completed"
	Compensated Status = "compensated" // ended by an error or by somebody, and what it had done is undone
)

// Closed reports whether nothing can happen to the instance any more. A
// faulted instance is not closed: an operator can still mend it.
func (s Status) Closed() bool { return s == Cancelled || s == Completed || s == Compensated }

// Snapshot is the state of one instance after a turn. Its tags are those of the
// stored document, which has more members: see the codec.
type Snapshot struct {
	InstanceID string            `json:"instanceId"`
	Definition Definition        `json:"definition"`
	Business   BusinessReference `json:"businessReference"`
	Status     Status            `json:"status"`
	Version    int64             `json:"version"`  // counts committed turns, from 1
	Position   int64             `json:"position"` // of the last message in the instance's stream
	StartedAt  time.Time         `json:"startedAtUtc"`
	UpdatedAt  time.Time         `json:"updatedAtUtc"`
	Headers    map[string]string `json:"headers,omitempty"` // of the start: trace and correlation ids, carried to every command
	State      State             `json:"workflowState"`
	Parent     *Parent           `json:"parent,omitempty"`     // who asked for this instance; nil = an application
	Schedule   *Schedule         `json:"schedule,omitempty"`   // of a schedule instance; nil = it runs the definition's tasks
	Branches   []*Branch         `json:"branches,omitempty"`   // in order of their ids
	LastBranch int               `json:"lastBranch,omitempty"` // id of the branch made last; ids are used once
	Waits      []Wait            `json:"waits,omitempty"`
	SubFrames  []SubFrame        `json:"subWorkflowFrames,omitempty"`
	Buffer     []Buffered        `json:"continuationBuffer,omitempty"` // signals that came before their wait
	Senders    []Sender          `json:"senders,omitempty"`            // of signals with a sequence, in order of their first
	Ahead      []Buffered        `json:"ahead,omitempty"`              // their signals that came before their turn, in order of arrival
	Error      *Error            `json:"error,omitempty"`              // why the instance is faulted, or last was
	ResumeAs   Status            `json:"resumeAs,omitempty"`           // of a suspended instance: what it was

	Compensations []Compensation `json:"compensations,omitempty"` // what undoes the completed tasks that say how, in order of completion
	LastStep      int            `json:"lastStep,omitempty"`      // Step of the compensation recorded last
	Compensating  *Compensating  `json:"undo,omitempty"`          // of an instance that compensates, or has

	Lifecycle int64 `json:"lifecycle,omitempty"` // position of the command that published lifecycle events last; 0 = none has

	Incarnation string            `json:"incarnation,omitempty"` // random, of the first turn: part of every key, token and id that the instance makes
	Epoch       int64             `json:"epoch,omitempty"`       // of the database at the last turn, from 1; a restore raises it
	Effects     []Effect          `json:"effects,omitempty"`     // past calls that a retry may repeat, where it cannot tell their keys by itself
	Moved       map[string]string `json:"moved,omitempty"`       // pointers under which keys know tasks that a migration has moved, by their present ones
}

// Effect is a call that is over, and that a retry may repeat. A retry that
// finds none here makes the same key from the same place and request.
type Effect struct {
	Pointer     string `json:"ptr"`
	Visit       string `json:"visit"`             // of the place: see Wait
	Arm         int    `json:"arm,omitempty"`     // of a fan-out
	Key         string `json:"key,omitempty"`     // "" = it has been compensated since
	Command     int64  `json:"command,omitempty"` // stream position of the command, which has the request
	Unknown     bool   `json:"unknown,omitempty"` // nobody knows whether it was done
	Compensated int    `json:"undone,omitempty"`  // how often it has been compensated
}

// Compensation is the command that undoes a task which is completed, or whose command was sent.
type Compensation struct {
	Step    int             `json:"step"` // counts the compensations recorded by the instance, from 1
	Pointer string          `json:"ptr"`  // of the task
	Target  string          `json:"target"`
	Input   json.RawMessage `json:"input,omitempty"`
	Key     string          `json:"key,omitempty"`     // idempotency key, whenever and however often it is performed
	Visit   string          `json:"visit,omitempty"`   // of the task
	Effect  string          `json:"effect,omitempty"`  // idempotency key of the task's command; "" = it has none
	Open    bool            `json:"open,omitempty"`    // the command was sent, and nobody has heard that it was done
	Unknown bool            `json:"unknown,omitempty"` // with Open: it was sent before this, and nobody knows what that did
	Lacks   string          `json:"lacks,omitempty"`   // why there is no input: it is made of an answer that never came
}

// Compensating says why an instance compensates.
type Compensating struct {
	Error     Error `json:"error"`               // that nobody caught, or that it was cancelled
	Done      bool  `json:"done,omitempty"`      // nothing is left to compensate
	Cancelled bool  `json:"cancelled,omitempty"` // somebody has ended it
	Children  bool  `json:"children,omitempty"`  // it waits for its children, which compensate first
}

// Definition pins the exact definition an instance runs on.
type Definition struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`           // hex SHA-256 of the canonical source
	Policy  string `json:"policy,omitempty"` // version of the policy whose hooks are under way; "" = of none
}

// Alone is the definition whatever the policy.
func (d Definition) Alone() Definition { d.Policy = ""; return d }

// BusinessReference is the application's own key for the instance.
type BusinessReference struct {
	Key   string            `json:"key,omitempty"`
	Parts map[string]string `json:"parts,omitempty"`
}

// State is what the author's program works on.
type State struct {
	Input   json.RawMessage `json:"input,omitempty"`   // of the instance
	Context json.RawMessage `json:"context,omitempty"` // $context; absent = {}
	Output  json.RawMessage `json:"output,omitempty"`  // of a completed instance
	Name    string          `json:"name,omitempty"`    // of a lifecycle: the state it is in; between two, "FROM->TO"
}

// Branch is one line of execution: a stack of frames, outermost first. The root branch has id 0. The others are arms
// of a fork, whose frame is the innermost of the branch Parent.
type Branch struct {
	ID     int             `json:"id"`
	Parent int             `json:"parent,omitempty"`
	Arm    int             `json:"arm,omitempty"` // which task of the fork it runs
	Frames []Frame         `json:"frames"`
	Data   json.RawMessage `json:"data,omitempty"` // current data: input of the next task; absent = that of the parent, of the root the instance's input
}

// Frame is a task that has begun and not ended.
type Frame struct {
	Pointer   string                     `json:"ptr"`                // JSON pointer of the task in the definition
	Next      int                        `json:"next,omitempty"`     // do: child to run; for: index of the iteration
	Phase     string                     `json:"phase,omitempty"`    // "" = body; "catch" = running catch.do
	Input     json.RawMessage            `json:"input,omitempty"`    // the task's input, where something still asks for it
	Raw       json.RawMessage            `json:"raw,omitempty"`      // its raw input, where a retry may ask for it
	Items     []json.RawMessage          `json:"items,omitempty"`    // for: what is left of the frozen collection; listen: events not yet processed
	Results   []json.RawMessage          `json:"results,omitempty"`  // fork: outputs of the arms, null until done; listen: of the events; try and hooks: the error that is to be retried
	Open      int                        `json:"open,omitempty"`     // fork: arms still running
	Done      []int                      `json:"done,omitempty"`     // listen: filters that have had their event
	Bound     map[string]string          `json:"bound,omitempty"`    // listen: correlation values that came first, each canonical JSON
	Vars      map[string]json.RawMessage `json:"vars,omitempty"`     // for and catch: $item, $index, $error
	Mark      int                        `json:"mark,omitempty"`     // try: LastStep when it began
	Attempt   int                        `json:"attempt,omitempty"`  // try: retries so far
	StartedAt time.Time                  `json:"startedAt,omitzero"` // where a timeout, a retry limit or $task asks for it
	FailedAt  time.Time                  `json:"failedAt,omitzero"`  // try: when it failed first, once it has been retried
	Deadline  string                     `json:"deadline,omitempty"` // token of the wait for its timeout
	Jumps     int                        `json:"jumps,omitempty"`    // list: how often its flow has gone back
	Epoch     int64                      `json:"epoch,omitempty"`    // root list: the task at Next began under this one; 0 = the snapshot's
}

// WaitKind says what a wait waits for.
type WaitKind string

const (
	WaitCommand WaitKind = "Command"     // the result of a command
	WaitTask    WaitKind = "Task"        // a person
	WaitTimer   WaitKind = "Timer"       // a moment
	WaitRetry   WaitKind = "Retry"       // the end of a backoff
	WaitEvent   WaitKind = "Event"       // a signal from the application
	WaitState   WaitKind = "State"       // an event that a transition of its state takes
	WaitChild   WaitKind = "SubWorkflow" // the end of a child instance
	WaitTimeout WaitKind = "Timeout"     // a frame's deadline; beside another wait
	WaitDue     WaitKind = "Due"         // the due date of a human task; beside its wait
	WaitNext    WaitKind = "Continue"    // the next turn's share of a long computation
)

// Wait is something an instance waits for. Its token is single-use: the turn that takes a signal with it removes it.
type Wait struct {
	Kind    WaitKind          `json:"kind"`
	Token   string            `json:"token"`
	Branch  int               `json:"branch,omitempty"`
	Pointer string            `json:"ptr"`               // of the task that waits
	Until   time.Time         `json:"untilUtc,omitzero"` // when it is due
	Arm     int               `json:"arm,omitempty"`     // of a fan-out, or filter of a listen
	Command int64             `json:"command,omitempty"` // stream position of the command
	TaskID  string            `json:"taskId,omitempty"`  // of the human task
	Event   string            `json:"event,omitempty"`   // type or name of the signal
	Key     map[string]string `json:"key,omitempty"`     // expected correlation values, each canonical JSON
	Bound   int               `json:"bound,omitempty"`   // bit i: correlation i of the filter has the value that came first
	Effect  string            `json:"effect,omitempty"`  // idempotency key of the command
	Visit   string            `json:"visit,omitempty"`   // of the command's place: the rounds and jumps of the lists and loops around it
	Left    int               `json:"left,omitempty"`    // of a child whose task was left: LastStep when it was; 0 = it was not
}

// SubFrame is a child instance this one waits for.
type SubFrame struct {
	InstanceID string `json:"instanceId"`
	Token      string `json:"token"`
	Pointer    string `json:"ptr"`
}

// Parent is the instance that started this one.
type Parent struct {
	InstanceID string `json:"instanceId"`
	Token      string `json:"token,omitempty"` // of its wait for this one's end; "" = it does not wait
	Depth      int    `json:"depth,omitempty"` // instances that wait above this one
}

// Schedule is the state of a schedule instance.
type Schedule struct {
	Generation int       `json:"generation,omitempty"` // schedule instances before this one
	Ticks      int       `json:"ticks,omitempty"`      // that began a run
	Missed     int64     `json:"missed,omitempty"`     // passed over, because they were long past
	Due        time.Time `json:"dueUtc,omitzero"`      // the next tick; zero = it waits for events or for a run's end
	Successor  string    `json:"successor,omitempty"`  // the schedule instance that goes on when this one has ended; "" = none
}

// Buffered is a signal that is kept for later: one that no wait matched when
// it came, or, with a token, one that came while the instance was suspended.
type Buffered struct {
	SignalID   string          `json:"signalId"`
	Type       string          `json:"signalType"`
	Token      string          `json:"waitingToken,omitempty"`
	OccurredAt time.Time       `json:"occurredAtUtc"`
	Actor      string          `json:"actor,omitempty"`
	Payload    json.RawMessage `json:"payload,omitempty"`
	Sender     string          `json:"sender,omitempty"` // of one that waits for its turn
	Sequence   int64           `json:"sequence,omitempty"`
	Principal  json.RawMessage `json:"principal,omitempty"`
	For        []string        `json:"for,omitempty"`   // pointers of the listens that were at work when it came, also when they begin anew
	Taken      bool            `json:"taken,omitempty"` // another has had it: it is for nobody else
}

// Left is what is left of a kept signal when the listens at some pointers have taken it and others shall have it later;
// without anybody, it is gone.
func (b Buffered) Left(took, later []string) (left Buffered, ok bool) {
	b.Taken = b.Taken || len(took) > 0
	of := slices.Concat(b.For, later)
	b.For = nil
	for _, p := range of {
		if !slices.Contains(took, p) && !slices.Contains(b.For, p) {
			b.For = append(b.For, p)
		}
	}
	return b, !b.Taken || len(b.For) > 0
}

// Over reports whether no listen that a kept signal is for is under way; it may yet begin anew.
func (s *Snapshot) Over(b Buffered) bool {
	return b.Taken && !slices.ContainsFunc(s.Branches, func(in *Branch) bool {
		return slices.ContainsFunc(in.Frames, func(f Frame) bool { return slices.Contains(b.For, f.Pointer) })
	})
}

// Sender is who numbers the signals that it sends to the instance.
type Sender struct {
	Name string `json:"sender"`
	Last int64  `json:"last,omitempty"` // sequence that the instance took last; 0 = none
}

// MaxBuffered bounds the continuation buffer of one instance; a signal over it
// is refused with the code limit.buffer and goes to the dead letters.
const MaxBuffered = 1_000

// MaxBufferedBytes bounds the payloads of the signals without a token that an instance keeps for later, in its buffer
// and before their turn: who sends too early shall not take the room that the instance needs for its own work.
const MaxBufferedBytes = 1 << 20

// MaxPosition is the last position of an instance's stream. Before it there is room that only a fault may use, and
// then only an end, so that an instance with a full stream still says so, and can be cancelled.
const (
	MaxPosition   = 1<<24 - 1
	MaxErrorType  = 512 // bytes of an Error's type: a store's column holds as many
	positionsKept = 512 // for each of both
)

// lastPosition is the last one that the instance may use in its state.
func (s *Snapshot) lastPosition() int64 {
	switch {
	case s.Status.Closed():
		return MaxPosition
	case s.Status == Faulted:
		return MaxPosition - positionsKept
	}
	return MaxPosition - 2*positionsKept
}

// Bounds of what an instance keeps of signals with a sequence. A signal over
// them is refused with the codes limit.senders and limit.ahead.
const (
	MaxSenders = 256   // whose last sequence is remembered
	MaxAhead   = 1_000 // signals, of all senders, that wait for their turn
)

// Last is the sequence that the instance took last from a sender, 0 when it
// took none; known says whether it has heard of the sender.
func (s *Snapshot) Last(sender string) (last int64, known bool) {
	if i := slices.IndexFunc(s.Senders, func(x Sender) bool { return x.Name == sender }); i >= 0 {
		return s.Senders[i].Last, true
	}
	return 0, false
}

// Waiting is the index of the signal that waits for its turn with a sequence of a sender; -1 = none does.
func (s *Snapshot) Waiting(sender string, sequence int64) int {
	return slices.IndexFunc(s.Ahead, func(b Buffered) bool { return b.Sequence == sequence && b.Sender == sender })
}

// NextAhead is the index of a signal whose turn has come; -1 = none.
func (s *Snapshot) NextAhead() int {
	return slices.IndexFunc(s.Ahead, func(b Buffered) bool {
		last, _ := s.Last(b.Sender)
		return b.Sequence == last+1
	})
}

// Error is a workflow error, an RFC 9457 problem as the DSL defines it.
type Error struct {
	Type     string `json:"type"`
	Status   int    `json:"status"`
	Title    string `json:"title,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"` // JSON pointer of the task that raised it
}

// Wait returns the wait with a token.
func (s *Snapshot) Wait(token string) (Wait, bool) {
	for _, w := range s.Waits {
		if w.Token == token {
			return w, true
		}
	}
	return Wait{}, false
}

// Answered reports whether the answer to a wait is kept, because the instance is suspended.
func (s *Snapshot) Answered(token string) bool {
	return token != "" && slices.ContainsFunc(s.Buffer, func(b Buffered) bool { return b.Token == token })
}

// standing orders the kinds of waits by what they tell about an instance:
// somebody who must act comes before what the engine does by itself.
var standing = []WaitKind{WaitTask, WaitEvent, WaitState, WaitChild, WaitTimer, WaitRetry, WaitCommand, WaitNext}

// A child that was left comes last.
func rank(w Wait) int { return slices.Index(standing, w.Kind) + len(standing)*min(w.Left, 1) }

// Primary returns the wait that stands for the instance in its summary: a person's before an event's, a child's, a
// moment's and a command's; of one kind the oldest. A mere deadline or due date stands for nothing.
func (s *Snapshot) Primary() (Wait, bool) {
	i := s.primary()
	if i < 0 {
		return Wait{}, false
	}
	return s.Waits[i], true
}

func (s *Snapshot) primary() int {
	best := -1
	for i, w := range s.Waits {
		if w.Kind != WaitTimeout && w.Kind != WaitDue && (best < 0 || rank(w) < rank(s.Waits[best])) {
			best = i
		}
	}
	return best
}

// At is the product-facing state of an instance: that of a lifecycle, else the
// name of the task at which it rests or has failed; "" when it does neither.
func (s *Snapshot) At() string {
	if s.State.Name != "" {
		return s.State.Name
	}
	pointer := ""
	if w, ok := s.Primary(); ok && s.Status != Faulted {
		pointer = w.Pointer
	} else if s.Error != nil {
		pointer = s.Error.Instance
	}
	return unescape.Replace(pointer[strings.LastIndexByte(pointer, '/')+1:])
}

// unescape reads a key of a JSON pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// Resting returns the wait of an instance that rests in a state.
func (s *Snapshot) Resting() (Wait, bool) {
	i := slices.IndexFunc(s.Waits, func(w Wait) bool { return w.Kind == WaitState })
	if i < 0 || s.Status == Suspended {
		return Wait{}, false
	}
	return s.Waits[i], true
}

// Arrange puts the primary wait first, where the stored form has it, so that
// a snapshot in memory and the same one read back go on alike.
func (s *Snapshot) Arrange() {
	i := s.primary()
	if i <= 0 {
		return
	}
	w := s.Waits[i]
	copy(s.Waits[1:i+1], s.Waits[:i])
	s.Waits[0] = w
}

// Clone returns a copy that shares only immutable bytes with s, so that a refused decision leaves s as it was.
func (s Snapshot) Clone() Snapshot {
	c := s
	c.Branches = make([]*Branch, len(s.Branches))
	for i, branch := range s.Branches {
		b := *branch
		b.Frames = append([]Frame(nil), b.Frames...)
		for j := range b.Frames {
			b.Frames[j].Vars = maps.Clone(b.Frames[j].Vars)
			b.Frames[j].Results = append([]json.RawMessage(nil), b.Frames[j].Results...)
			b.Frames[j].Done = slices.Clone(b.Frames[j].Done)
			b.Frames[j].Bound = maps.Clone(b.Frames[j].Bound)
		}
		c.Branches[i] = &b
	}
	c.Waits = append([]Wait(nil), s.Waits...)
	c.SubFrames = append([]SubFrame(nil), s.SubFrames...)
	c.Buffer = append([]Buffered(nil), s.Buffer...)
	c.Senders = slices.Clone(s.Senders)
	c.Ahead = slices.Clone(s.Ahead)
	c.Effects = slices.Clone(s.Effects)
	c.Error, c.Parent, c.Schedule = copyOf(s.Error), copyOf(s.Parent), copyOf(s.Schedule)
	return c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
