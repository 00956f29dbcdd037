package engine

import (
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Definition is what an instance runs: a program compiled from a document, or Go code. Its methods are called with a
// Turn that holds a private copy of the snapshot; an error means that the decision cannot be made at all (the snapshot
// does not fit the definition), never that the workflow failed.
//
// The interfaces below are what only some definitions can do. A program is all
// of them; Go code has those that it wants, by itself or by embedding a program.
type Definition interface {
	// Ref names the definition exactly.
	Ref() snapshot.Definition
	// Begin makes the first branch and runs until every branch waits.
	Begin(t *Turn, input json.RawMessage) error
	// Resume goes on at w, which the turn has already removed from the snapshot, with what satisfied it.
	Resume(t *Turn, w snapshot.Wait, r Result) error
	// Matches reports whether an event satisfies an event wait.
	Matches(s *snapshot.Snapshot, w snapshot.Wait, event json.RawMessage) (bool, error)
	// Correlate returns the key under which an event finds the instances whose event waits have this pointer, arm and
	// set of bound correlations; ok is false when the event cannot match there.
	Correlate(pointer string, arm, bound int, event json.RawMessage) (key string, ok bool, err error)
	// Recover has a faulted instance go on at the task that failed: Skip takes
	// it as done with output, each of the retries runs it again.
	Recover(t *Turn, op Operation, output json.RawMessage) error
}

// Scheduled is a definition whose instances may begin by themselves. One of its instances, which a start with a
// Schedule begins, keeps the schedule: it is begun and resumed by these, and only Matches and Correlate are asked
// about its waits for events. Absent: instances begin when somebody asks for one.
type Scheduled interface {
	BeginSchedule(t *Turn) error
	ResumeSchedule(t *Turn, w snapshot.Wait, r Result) error
}

// Superseded is a definition whose instances go on in a newer version from their next
// turn on, which Resume and Recover set. Absent: they stay what they are.
type Superseded interface{ Successor() Definition }

// Stateful is a definition whose instances rest in states, at waits of the kind [snapshot.WaitState], as those of
// lifecycles do: an event is taken at once or refused. Absent, or HasStates false: one that nothing takes is kept.
type Stateful interface {
	HasStates() bool
	// Takes lists the events that an instance takes now, guards aside; none between two states.
	Takes(s *snapshot.Snapshot) []string
	// Admit refuses an event that the instance, resting at w, does not take. It
	// changes nothing: Resume is called with the same next.
	Admit(t *Turn, w snapshot.Wait, event Result) error
}

// Retrier is a definition whose author says how often a command is tried; see
// [Retries]. The turn may be spoilt. Absent: it is tried as the node says.
type Retrier interface {
	Retries(t *Turn, w snapshot.Wait, e snapshot.Error) (bool, error)
}

// Repeater is a definition that may come to a task again by a retry, and has
// the Effect of its waits remembered. Absent: until the instance ends.
type Repeater interface {
	// Outermost is the task outside of which nothing runs again.
	Outermost(s *snapshot.Snapshot) (pointer, visit string, ok bool)
	// NewKey: the call at a pointer may be sent anew though its outcome is unknown.
	NewKey(pointer string) bool
}

// Compensator is a definition whose instances undo what they have done when somebody ends them, and tell no parent
// when they are alone; false: there is nothing. Absent: nothing is compensated.
type Compensator interface {
	Compensate(t *Turn, alone bool) bool
}

// Postponer is a definition that keeps an event for a wait while its work on the
// one before goes on. Absent: each goes at once to all waits that it satisfies.
type Postponer interface {
	Postpones(s *snapshot.Snapshot, w snapshot.Wait) bool
}

// Patient is a definition that says how long a command may wait for a place,
// when the command does not. Absent, or 0: as the node says.
type Patient interface{ GiveUp() time.Duration }

// Tasked is a definition whose tasks have lifecycle events of their own; what
// else has a pointer has none. Absent: only the workflow has events.
type Tasked interface{ IsTask(pointer string) bool }

// Retries reports whether the failure e of the command that the wait with a token is for leads to a retry by its
// author's policy: a try around the task takes it, and has a policy that is for it, used up or not. Who performs the
// command then makes one attempt, since the author has said how often. It changes nothing.
func Retries(def Definition, snap snapshot.Snapshot, token string, e snapshot.Error, in Input) (bool, error) {
	d, ok := def.(Retrier)
	w, waits := snap.Wait(token)
	if !ok || !waits || w.Kind != snapshot.WaitCommand || snap.Compensating != nil {
		return false, nil
	}
	return d.Retries(newTurn(snap.Clone(), in), w, e)
}

// Child is a definition that another one runs and waits for.
type Child struct {
	Definition string
	Version    string // "" = the latest
	Pointer    string // of the task that runs it
}

// AnyType is the type under which a wait for events of any type is found.
const AnyType = "*"

// Key is the canonical form of correlation values.
func Key(values map[string]string) string {
	if len(values) == 0 {
		return ""
	}
	b, _ := json.Marshal(values) // keys in order; strings cannot fail
	return string(b)
}
