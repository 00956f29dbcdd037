// Package events gives CloudEvents to the instances that wait for them, and keeps
// those that nobody waits for yet.
//
// An event and the wait for it may be committed in any order, on any nodes, and
// none of them sees the other's commit while it works. So the event is kept first
// and looks for waits then; the wait is committed first, with a message that looks
// for events then. Whichever commits later finds the other.
package events

import (
	"context"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/prometheus/client_golang/prometheus"
)

// Config wires the events of a node. All of it is required, but for TTL.
type Config struct {
	Writer      store.Writer
	Waits       backend.WaitReader // where events find who waits for them
	Events      backend.Inbox      // those that are kept
	Turns       *turn.Decider
	Recorded    func(ctx context.Context, instance, signalID string) (bool, error) // whether a stream has a signal
	Definitions turn.Definitions
	Now         func() time.Time

	// Declared is what a version declares whose Go code this node does not have.
	Declared func(ctx context.Context, name, version string) (document []byte, err error)

	TTL time.Duration // how long an event that nobody waited for is kept; 0 = not at all

	// Begins makes of an event the request for the instance that it begins at the
	// subscription of a schedule; ok is false where the event goes to the schedule.
	Begins func(ctx context.Context, def engine.Definition, w projections.Wait, env signal.Envelope) (body []byte, ok bool, err error)
	// Paced says when an event with these headers may reach the instances of a
	// definition; the zero time is at once.
	Paced func(headers map[string]string, definition string) time.Time
}

// Router gives events to who waits for them.
type Router struct {
	Config
	Inbox *Inbox
}

// Inbox keeps events for a while, for those who begin to wait for them.
type Inbox struct {
	Config
	kept   prometheus.Counter
	filing sync.Mutex // one looks at what is new, and the others find it filed
}

// New makes the inbox of a node, and the router before it.
func New(c Config) *Router {
	return &Router{Config: c, Inbox: &Inbox{Config: c, kept: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "aqueduct_events_kept_total", Help: "Events that nobody waited for when they came, and that are kept for a while.",
	})}}
}

// Collectors are the metrics of events.
func (b *Inbox) Collectors() []prometheus.Collector { return []prometheus.Collector{b.kept} }

// Bounds of what one commit makes of an event.
const (
	eventFanOut = 500     // instances that it reaches
	eventBytes  = 4 << 20 // of the messages to them
	forgetBatch = 100     // kept events that have expired
)
