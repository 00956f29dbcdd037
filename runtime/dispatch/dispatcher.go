// Package dispatch performs commands: it claims them, gives each its turn at its
// destination, makes attempts, and gives what came of it to the instance.
//
// A command is an effect on the outside. The turn that makes it may claim it for this node in its own commit
// ([Dispatcher.Reserve], [Dispatcher.Launch]); else it is announced on the command queue, and the node that takes that
// claims it ([Dispatcher.OnCommand]). Whoever has claimed a command performs it until it has an end: a result, which is
// the instance's next turn, a dead letter, or another announcement for later. The claims of a dead node are announced
// again.
package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/prometheus/client_golang/prometheus"
)

// Performer performs commands; activity.Performer is one. Perform is one attempt, with the key that is the same on
// every attempt; its ctx ends when the attempt is aborted or given up, but not when it is over.
type Performer interface {
	Can(target string) bool
	Perform(ctx context.Context, c engine.Command, key string, attempt int) (json.RawMessage, *engine.Failure)
	// Destination is where a command goes: what is performed at once there, and
	// whether anything is, is the dispatcher's.
	Destination(c engine.Command) engine.Destination
	// Backoff is the delay before an attempt after the given number of failures; ok is false for none.
	Backoff(failures int, key string) (delay time.Duration, ok bool)
}

// Config wires a dispatcher. All of it is required but Memory, which is as much as there is when its pools are nil.
type Config struct {
	Writer    store.Writer
	Streams   projections.StreamReader
	Node      string // its name
	Performer Performer
	Memory    *memory.Budget
	Log       *slog.Logger
	Now       func() time.Time

	// Turn gives a signal to its instance; its outcome is never nil.
	Turn func(ctx context.Context, env signal.Envelope, now time.Time, decide turn.Decision) (*engine.Outcome, error)
	// Load reads a snapshot in the transaction of a delivery; its memory is taken until the part is released.
	Load func(ctx context.Context, d store.Delivery, instance string) (*snapshot.Snapshot, *memory.Part, error)
	// Suspended reads whether an instance is.
	Suspended func(ctx context.Context, instance string) (bool, error)
	// Publish gives an event to the instances of this installation that wait for it, and Lifecycle those of one
	// outside.
	Publish   func(ctx context.Context, event json.RawMessage, headers map[string]string) (int, error)
	Lifecycle func(ctx context.Context, c engine.Command, attempt int) *engine.Failure
	// Noted commits a change of a command that asks for an acknowledgement, with a notice that says why.
	Noted func(ctx context.Context, c engine.Command, notice string, change store.Change) error
	// Backoff is the pause before something is tried again for the given time.
	Backoff func(attempt int, seed string) time.Duration
	// AckTimes are the time until the nth repetition of a command that is done after first,
	// 0 = a failed delivery, and its age; Repeats says that such a one may yet succeed.
	AckTimes func(ctx context.Context, c engine.Command, first time.Duration, n int) (pause, age time.Duration)
	Repeats  func(f *engine.Failure) bool
	// Unsent says why a command that was performed is not done, and waits for another node; "" = it is.
	Unsent func(c engine.Command) string
	// What is counted: dead letters; commands that were given up while they waited,
	// announcements that found no room, and breakers that have opened.
	Dead, GivenUp, Crowded prometheus.Counter
	Opened                 func(admission.Destination)

	Activities   int           // commands performed at once
	PerHost      int           // requests to one host at once
	Waiting      int           // commands for one destination that wait on this node
	WaitingBytes int           // of all commands that wait on this node
	BreakAfter   int           // failures in a row that open the circuit breaker of a destination
	BreakFor     time.Duration // that it stays open at most
	GiveUpAfter  time.Duration // how long a command may wait for its place where its definition does not say
	AckAge       time.Duration // how long such a command waits for its first attempt
}

// Dispatcher performs a node's commands, between Accept and Close. Many goroutines may call its methods.
type Dispatcher struct {
	Config
	Record     Record
	Admission  *admission.Admission[*Job]
	outside    outside
	performing performing
	jobs       chan *Job // to workers with nothing to do
	work       context.Context
}

// Record writes what comes of commands, outside makes attempts at them.
type (
	Record  struct{ *Config }
	outside struct{ *Config }
)

// performing are the commands that this node performs; the newest at a place is first.
type performing struct {
	mu   sync.Mutex
	jobs map[place]*Job
}

// New makes a dispatcher that accepts nothing yet.
func New(c Config) *Dispatcher {
	d := &Dispatcher{Config: c, jobs: make(chan *Job)}
	d.Record, d.outside, d.performing.jobs = Record{&d.Config}, outside{&d.Config}, map[place]*Job{}
	d.Admission = admission.New(admission.Config[*Job]{
		Slots: c.Activities, PerHost: c.PerHost, BreakAfter: c.BreakAfter, BreakFor: c.BreakFor, Waiting: c.Waiting, WaitingBytes: c.WaitingBytes,
		Now: c.Now, Begin: func(jobs []*Job) { _ = d.Record.begin(d.work, jobs) }, Start: d.start, Expired: d.expired, Opened: d.opened,
	})
	return d
}

// Accept has commands performed from now on, until work ends. Watch runs beside.
func (d *Dispatcher) Accept(work context.Context) {
	d.work = work
	d.Admission.Accept()
}

// partingMax bounds the commits by which a node that ends gives back what it has not finished.
const partingMax = 3 * time.Second

// Close takes nothing any more, gives back what waits, and returns when nothing is performed. What the end of work has
// cut off is given back as well, within [partingMax]: it may be done, and is no attempt that has failed.
func (d *Dispatcher) Close(work context.Context) {
	waiting := d.Admission.Close()
	d.Record.giveBack(work, waiting...)
	cut := d.Admission.Wait()
	for _, j := range cut {
		j.Counted, j.unknown = false, true
	}
	if work.Err() != nil { // some that wait may not have been given back
		cut = append(cut, waiting...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), partingMax)
	defer cancel()
	d.Record.giveBack(ctx, cut...) // what has come to its end is refused
}
