// Package service is what people and programs ask of a node: instances begun and
// signalled, human tasks claimed and answered, operators' work, instances moved to
// another version, dead letters replayed and discarded.
//
// There is a type for each who asks, with the store that it needs. Whatever changes
// an instance is a turn, and goes through its mailbox by the [Pump]; what changes a
// task, or takes a dead letter away, is one commit. Any node may be asked, whether it
// works or not.
package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Services is all of them, with the methods of each.
type Services struct {
	*Starts
	*Followers
	*Signals
	*Tasks
	*Operator
	*Migrator
	*DeadLetters
}

// Pump gives signals to instances; pump.Pump is one. What its methods promise is
// said there.
type Pump interface {
	Submit(ctx context.Context, s turn.Signal) (*engine.Outcome, error)
	Instead(ctx context.Context, d store.Delivery, held string, env signal.Envelope, now time.Time) error
	Standing(instance string) bool
	Enqueue(ctx context.Context, to store.Writer, env signal.Envelope, body []byte) error
}

// Starts begins instances.
type Starts struct {
	Writer    store.Writer
	Instances backend.InstanceReader
	Turns     *turn.Decider
	Pump      Pump
	Signals   *Signals // gets the signal of a start whose instance is there
	Now       func() time.Time

	// Committed acts on what a first turn has committed.
	Committed func(c turn.Committed)
	// Refused ends the message of an instance that cannot begin, or returns why.
	Refused func(ctx context.Context, d store.Delivery, env signal.Envelope, cause error) error
	// Traced are the headers of an instance that begins, with its trace; nil = as they are.
	Traced func(headers map[string]string, instance, incarnation string) map[string]string
}

// Signals gives signals to instances.
type Signals struct {
	Writer store.Writer
	Pump   Pump
	Log    *slog.Logger
	Now    func() time.Time

	// Refused records that a signal was refused, where that is to be known. Overtaken: what
	// another of its key has done is the answer.
	Refused func(ctx context.Context, env signal.Envelope, err error) (overtaken bool)
}

// Tasks works on human tasks.
type Tasks struct {
	Writer store.Writer
	Tasks  backend.TaskStore
	Pump   Pump
	Now    func() time.Time

	forms schema.Cache
}

// Commands is what the services ask of the commands of instances.
type Commands struct {
	// Entry finds what an instance has at a position of its stream.
	Entry func(ctx context.Context, instance string, position int64) (projections.Entry, bool, error)
	// Command is a command as its row has it.
	Command func(row projections.Entry) (engine.Command, error)
	// Sleeping are those whose next attempt is not due, and Retry has nodes try one at once,
	// where the instance is at the version; 0 = whatever it is.
	Sleeping func(ctx context.Context, instance string) ([]Sleeping, error)
	Retry    func(ctx context.Context, instance string, position, version int64, actor string) (projections.Entry, error)
}

// Operator looks into one instance and does what an operator asks of it.
type Operator struct {
	Writer      store.Writer
	Turns       *turn.Decider
	Pump        Pump
	Definitions turn.Definitions
	Commands    Commands
	Now         func() time.Time
}

// Migrator compares versions of a definition and moves instances between them.
type Migrator struct {
	Instances   backend.InstanceReader
	Pump        Pump
	Definitions turn.Definitions
	Operator    *Operator
	Now         func() time.Time
}

// DeadLetters works on dead letters.
type DeadLetters struct {
	Writer      store.Writer
	DeadLetters backend.DeadLetterStore
	Commands    Commands
	Pump        Pump
	Now         func() time.Time
	// Note decides a turn of an instance that records something, and changes nothing else.
	Note func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input, record func(t *engine.Turn) error) (*engine.Outcome, error)
	// Recorded says whether an instance has an entry with a signal id.
	Recorded func(ctx context.Context, instance, signalID string) (bool, error)
	// Anew is what is sent in place of a dead letter that would be refused as it was, to be
	// decided anew; nil = the bytes that it has.
	Anew func(ctx context.Context, l projections.DeadLetter) ([]byte, error)
}

// ActorHeader is the header that says who has sent a signal; nil for nobody.
func ActorHeader(actor string) map[string]string {
	if actor == "" {
		return nil
	}
	return map[string]string{signal.HeaderActor: actor}
}
