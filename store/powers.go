package store

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// The optional interfaces: what a store can do beside Store. The runtime asks
// for them once, when it is made; every store here has all of them, and
// storetest has their cases.

// Ledger notes what a worker is about to execute where a crash leaves it
// readable, so that a message that kills its process is known. A message that
// was entered and not left when its process died comes back with Crashes + 1.
// Both calls are cheap (no commit, no sync).
type Ledger interface {
	Enter(d Delivery)
	Leave(d Delivery)
}

// Leases finds the messages that this node has locked and nobody works on. There
// are none, unless a worker has dropped its delivery without ending it: then
// nobody else would ever get the message, for this node lives.
type Leases interface {
	// Strays gives back, as Release does but with no attempt more, each message
	// that this node has locked and held does not know by its id, when that was
	// so at the last call, too: a message that has just been received is on its
	// way to its worker. It returns how many. A node that does nothing need not
	// call it.
	Strays(ctx context.Context, held func(messageID string) bool) (int, error)
}

// Joiner says whether one commit can consume several deliveries (Change.Also).
// A store that holds each in a transaction of its own cannot.
type Joiner interface {
	Joins() bool
}

// Performer moves commands between nodes.
type Performer interface {
	// Node is the name under which this store claims.
	Node() string
	// Orphans announces again, on the Commands queue, up to limit commands
	// whose node is dead or, after a restart, is this one; it returns how
	// many. Attempts stays as it is: an attempt is counted by the claim that
	// begins it. It is called by a hosted job and at start-up.
	Orphans(ctx context.Context, limit int) (int, error)
}

// Assigner gives out human tasks (B10).
type Assigner interface {
	// ClaimNext reserves for a user up to Limit of the ready tasks that he may
	// claim, the most urgent first, and returns them. Callers at once get
	// different tasks, and none waits for another: a task that is being claimed
	// is passed over. Each gets the event that is named.
	ClaimNext(ctx context.Context, c NextClaim) ([]projections.Task, error)
}

// NextClaim says who asks for tasks.
type NextClaim struct {
	User   string
	Groups []string // of the user
	Limit  int
	Event  string
	At     time.Time
}

// Edit is what the claim does to a task, or false when the user may not.
func (c *NextClaim) Edit(t projections.Task) (TaskEdit, bool) {
	role, ok := t.MayClaim(c.User, c.Groups)
	return TaskEdit{
		ID: t.ID, Version: t.Version, Status: projections.TaskReserved, Assignee: c.User, Role: role,
		Event: projections.TaskEvent{TaskID: t.ID, InstanceID: t.InstanceID, Event: c.Event, Actor: c.User, At: c.At},
	}, ok
}

// Letters works on dead letters.
type Letters interface {
	// Replay sends a dead letter's envelope to its queue again, with no
	// attempts on it, and removes the letter, in one commit.
	Replay(ctx context.Context, id string) error
	// Discard removes a dead letter for good.
	Discard(ctx context.Context, id string) error
}

// Locks lets one node run a hosted job (A14).
type Locks interface {
	// Lock takes or renews the named lock until ttl from now by the
	// database's clock; ok is false while another node holds it.
	Lock(ctx context.Context, name string, ttl time.Duration) (ok bool, err error)
	Unlock(ctx context.Context, name string) error
}

// Retention removes what is over. It never touches an instance that is not
// closed, nor a message.
type Retention interface {
	// Purge deletes up to limit instances that ended before a moment, with
	// everything that belongs to them, and returns how many. One that has a
	// command which is not processed is kept: the command would be lost with it.
	Purge(ctx context.Context, endedBefore time.Time, limit int) (int, error)
}

// Keys holds the secret from which tokens are derived: made once per database.
type Keys interface {
	Key(ctx context.Context) ([]byte, error)
}

// Epochs numbers the lives of a database. What is done after a backup was
// restored is not what was done after it was made: the epoch is in the keys of
// effects, in tokens and in the ids of signals, so that none of them comes twice.
type Epochs interface {
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

// Prober says whether the store takes commits.
type Prober interface {
	// Probe makes a small commit, as durable as any, and checks that the database
	// is still the one that was opened. It says what is wrong as a call would
	// hear it.
	Probe(ctx context.Context) error
}

// Full is every power together, as the runtime wants it.
type Full interface {
	Store
	Ledger
	Leases
	Joiner
	Performer
	Assigner
	Letters
	Locks
	Retention
	Inbox
	Keys
	Epochs
	Clock
	Prober
	projections.Reader
}
