// Package backend is a store as a node and those around it are given it: whole.
//
// The kernel asks a store for messages, changes and the streams of instances, and
// package store says how. Here is what everybody else asks: a node when it is made
// and its hosted jobs, people, operators, metrics and the API.
package backend

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Store is an open database, as the package of a store gives it.
type Store interface {
	Parts() Parts
	// Close waits for running calls, gives back what this node holds, and
	// releases the database. Later calls return ErrClosed.
	Close() error
}

// Parts is what a store can do, each part by itself: who is given one sees no more
// of the database. All may be called from many goroutines. What is nil, a store
// cannot: a node needs every part of which nothing else is said. To put something
// before a part, copy the parts and replace that one.
type Parts struct {
	Queue       store.Receiver  // every consumer, for its next message
	Writer      store.Writer    // a turn, and whoever changes a row
	Instances   InstanceReader  // starts, migrations, schedules and the API
	Streams     StreamReader    // the pump, of what came before; the dispatcher, of its commands; the API
	Waits       WaitReader      // an event, for who waits for it
	Tasks       TaskStore       // people
	DeadLetters DeadLetterStore // operators
	Identity    Identity        // a node, when it is made; a restore
	Nodes       Nodes           // a node, of itself and the others
	Clock       Clock           // a node without a clock of its own

	Joins     bool          // a commit can consume several deliveries (Change.Also)
	Ledger    store.Ledger  // the pump; nil = it is not known which message kills its process
	Strays    Strays        // a job of every node; nil = a message that is dropped stays with its node
	Locks     Locks         // a job of one node; with Retention
	Retention Retention     // a job of one node; nil = what is over stays
	Overdue   Overdue       // a job of one node; with Locks. nil = a message that is lost stays so
	Notices   Notices       // a job of one node, of dead letters; with Locks. nil = it tells of none
	Repeats   Repeats       // acknowledgements that come again; nil = only their first is known
	Inbox     Inbox         // events that nobody waits for; nil = they are not kept
	Backlog   BacklogReader // metrics and the API; nil = they do not show it
	Members   NodeReader    // the API; nil = it does not say which nodes there are
	Prober    Prober        // readiness, which is no part of a runtime
	Tokens    Tokens        // who asks, where nodes ask; nil = nobody has a token
	Audit     AuditReader   // the API; nil = it shows none
	Settings  Settings      // a node, when it begins; nil = nobody knows how the others are set

	Functions  Functions    // a node, of what the others perform; nil = it is not known
	Activities Activities   // what applications note of instances; nil = they cannot
	Moments    MomentReader // what has happened, in time; nil = the API does not say

	Caches Caches // a node that rests; nil = the store keeps nothing worth giving back

	Bulk  BulkPlans  // what operators do to many at once; nil = they cannot
	Plans BulkReader // the API of them; with Bulk
}

// Nodes knows the nodes on the database, and moves commands between them.
type Nodes interface {
	// Node is the name under which this store claims.
	Node() string
	// PeerFailures delivers a value after another node has died: the moment to
	// call Orphans. It is never closed; nil = the store does not tell.
	PeerFailures() <-chan struct{}
	// Orphans announces again, on the Commands queue, up to limit commands
	// whose node is dead or, after a restart, is this one; it returns how
	// many. Attempts stays as it is: an attempt is counted by the claim that
	// begins it. It is called by a hosted job and at start-up.
	Orphans(ctx context.Context, limit int) (int, error)
}

// Strays finds messages whose worker has dropped the delivery without ending it:
// nobody else would ever get them, for this node lives.
type Strays interface {
	// Strays gives back, as Release does but with no attempt more, each message
	// that this node has locked and held does not know by its id, when that was
	// so at the last call, too: one just received is on its way to its worker. It
	// returns how many. A node that does nothing need not call it.
	Strays(ctx context.Context, held func(messageID string) bool) (int, error)
}

// Caches is the memory that a store keeps for what it may be asked again.
type Caches interface {
	// Shrink gives it back. A node that has had nothing to do for a while calls it.
	Shrink(ctx context.Context) error
}

// TaskStore reads human tasks and gives them out (B10).
type TaskStore interface {
	TaskReader
	// ClaimNext reserves for a user up to Limit of the ready tasks that they may
	// claim, the most urgent first, and returns them. Callers at once get
	// different tasks, and none waits for another: a task that is being claimed
	// is passed over. Each gets the event that is named.
	ClaimNext(ctx context.Context, c NextClaim) ([]projections.Task, error)
}

// Asked is a task as its definition asked for it: who may do it.
func Asked(t projections.Task) engine.Task {
	return engine.Task{
		Assignee: t.Assignee, CandidateUsers: Names(t.CandidateUsers), CandidateGroups: Names(t.CandidateGroups),
		ExcludedUsers: Names(t.ExcludedUsers), EscalateTo: Names(t.EscalateTo),
	}
}

// Names reads a JSON array of a task's columns. What is none has no names.
func Names(list string) []string {
	var out []string
	if json.Unmarshal([]byte(list), &out) != nil {
		return nil
	}
	return out
}

// NextClaim says who asks for tasks.
type NextClaim struct {
	User   string
	Groups []string // of the user
	Scope  Scope
	Limit  int
	Event  string
	At     time.Time
}

// Edit is what the claim does to a task, or false when the user may not.
func (c *NextClaim) Edit(t projections.Task) (store.TaskEdit, bool) {
	role, ok := humantask.Candidate(Asked(t), c.User, c.Groups)
	return store.TaskEdit{
		ID: t.ID, Version: t.Version, Status: projections.TaskReserved, Assignee: c.User, Role: role,
		Event: projections.TaskEvent{TaskID: t.ID, InstanceID: t.InstanceID, Event: c.Event, Actor: c.User, At: c.At},
	}, ok
}

// DeadLetterStore reads dead letters and works on them.
type DeadLetterStore interface {
	DeadLetterReader
	// Replay sends a dead letter's envelope to its queue again, or body if it is not
	// nil (an empty one is sent by somebody else), with no attempts on it, and removes
	// the dead letter, in one commit, with who has done it. Its edits stay, until its instance is purged. Where edit is not
	// the number of the newest (0 = there is none) it is refused with store.ErrStale.
	Replay(ctx context.Context, id string, edit int64, body []byte, by ...store.Audit) error
	// Discard removes a dead letter for good, with its edits, and with who has done it, and
	// settles commands in the same commit: store.ErrTaken, and nothing is removed, where a claim is
	// refused. Where edit is neither AnyEdit nor the number of the newest it is store.ErrStale.
	Discard(ctx context.Context, id string, edit int64, settle []store.Claim, by ...store.Audit) error
	// EditDeadLetter adds an edit, with who has made it: store.ErrNotFound where the letter is
	// gone, store.ErrStale where its number does not follow the newest, ErrEdited
	// where there are MaxDeadLetterEdits.
	EditDeadLetter(ctx context.Context, e DeadLetterEdit, by ...store.Audit) error
}

// Locks lets one node run a hosted job (A14).
type Locks interface {
	// Lock takes or renews the named lock until ttl from now by the
	// database's clock; ok is false while another node holds it.
	Lock(ctx context.Context, name string, ttl time.Duration) (ok bool, err error)
	Unlock(ctx context.Context, name string) error
}

// Identity tells a database, and a life of it, from others. What is done after a
// backup was restored is not what was done after it was made: the epoch is in the
// keys of effects, in tokens and in the ids of signals, so that none comes twice.
type Identity interface {
	// Key is the secret from which tokens are derived: made once per database.
	Key(ctx context.Context) ([]byte, error)
	// Epoch is 1 in a new database. It stays the same while a node has the store
	// open.
	Epoch(ctx context.Context) (int64, error)
	// Raise begins another epoch (NextEpoch), in one transaction, and returns the
	// one before and the new one. While another node is on the database nothing
	// is raised: it would go on in the old one (store.in-use).
	Raise(ctx context.Context) (from, to int64, err error)
}

// NextEpoch is the epoch that begins now, by the clock of the database. It is
// the time, in milliseconds: one that counted by one would come again when the
// same backup is restored again.
func NextEpoch(last int64, now time.Time) int64 { return max(last+1, now.UnixMilli()) }

// NotAlone is the answer to Raise while others are on the database.
func NotAlone(others int) error {
	return problem.New(problem.Unavailable, "store.in-use", "%d other nodes are on the database; they would go on in the old epoch", others).
		WithHint("stop every node, and repeat; on Oracle a node that was killed counts until it has been silent for 15s")
}

// Clock tells the time of the database: the time by which it holds messages
// back, on whichever node it is asked.
type Clock interface {
	Now() time.Time
}

// Overdue knows what should have happened. Its answers are not of one moment: who
// acts on them looks again.
type Overdue interface {
	// Overdue returns instances whose store.Runtime.Due was before a moment, the longest
	// overdue first, a page at a time.
	Overdue(ctx context.Context, before time.Time, after string, limit int) (Page[string], error)
	// Sent returns those tokens that a message has, as its waitingToken or among its
	// payload.tokens, on the queues of signals and timers, or given up by the database.
	// It may leave out messages of the Schedule queue that are due after a moment.
	Sent(ctx context.Context, tokens []string, due time.Time) ([]string, error)
}

// Prober says whether the store takes commits.
type Prober interface {
	// Probe makes a small commit, as durable as any, and checks that the database
	// is still the one that was opened. It says what is wrong as a call would
	// hear it.
	Probe(ctx context.Context) error
}
