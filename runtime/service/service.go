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
}

// Signals gives signals to instances.
type Signals struct {
	Writer store.Writer
	Pump   Pump
	Log    *slog.Logger
	Now    func() time.Time

	// Forbade records that an event was refused to who has sent it.
	Forbade func(ctx context.Context, err error)
}

// Tasks works on human tasks.
type Tasks struct {
	Writer store.Writer
	Tasks  backend.TaskStore
	Pump   Pump
	Now    func() time.Time

	forms schema.Cache
}

// Commands reads the commands of instances.
type Commands struct {
	// Entry finds what an instance has at a position of its stream.
	Entry func(ctx context.Context, instance string, position int64) (projections.Entry, bool, error)
	// Command is a command as its row has it.
	Command func(row projections.Entry) (engine.Command, error)
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
	Now         func() time.Time
}

// ActorHeader is the header that says who has sent a signal; nil for nobody.
func ActorHeader(actor string) map[string]string {
	if actor == "" {
		return nil
	}
	return map[string]string{signal.HeaderActor: actor}
}
