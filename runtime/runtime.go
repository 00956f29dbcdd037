// Package runtime is a node at work: it receives messages, has the engine
// decide, commits the outcome, and performs the commands that come of it.
//
// It wires the rooms below it: a message comes by the pump to a turn, which
// commits; the dispatcher performs what a turn has claimed; events go to who waits
// for them; service is what people and programs ask. Schedules, children and the
// jobs of a database are here.
//
// A [Runtime] has the methods of service.Services and events.Router: it is what is
// behind the API. Each of them that changes something is one turn and one commit,
// and may be called on any node. Nothing an instance needs is kept in memory only;
// what a node remembers (snapshots it wrote last, results on their way) may be lost
// at any moment.
package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/runtime/cache"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/events"
	"github.com/aqueduct-engine/aqueduct/runtime/pump"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Definitions finds what instances run; definition.Catalogue is one.
type Definitions = turn.Definitions

// Performer performs commands; activity.Performer is one.
type Performer = dispatch.Performer

// Traces is told of turns, and says in which traces instances are.
type Traces interface {
	// Headers are those of a start, with the trace of its instance.
	Headers(headers map[string]string, instance, incarnation string) map[string]string
	// Turn is told of a turn that is over. It returns the id of its trace, "" = it is in
	// none. It must not block, nor keep anything of the turn.
	Turn(made turn.Made, over time.Time) (trace string)
}

// Config wires a node. Store, Definitions and Performer are required; a zero
// number means its default. Which parts a store may lack is said at backend.Parts.
type Config struct {
	Store       backend.Parts
	Definitions Definitions
	Performer   Performer
	Now         func() time.Time      // nil = the clock of the store
	Log         *slog.Logger          // nil = discard
	Metrics     prometheus.Registerer // nil = not registered
	Traces      Traces                // nil = nobody traces

	SignalConsumers   int // that receive from the signal queue; default 64
	ScheduleConsumers int // that receive from the schedule queue; default 64
	CommandConsumers  int // that receive from the command queue; default 8
	Handlers          int // messages handled at once, whatever their queue; default 128
	Activities        int // commands performed at once; default 256
	PerHost           int // requests to one host at once; default 64
	Waiting           int // commands for one destination that wait on this node; default 8,192
	WaitingBytes      int // of all commands that wait on this node; default 64 MiB
	CacheBytes        int // of snapshots kept in memory; default 64 MiB
	Limits            engine.Limits
	Engine            string         // version of the program, which every turn records
	Memory            *memory.Budget // nil = as much as there is
	Rates             Rates          // of what definitions cause to themselves

	BreakAfter int           // failures in a row that open the circuit breaker of a destination; default 5
	BreakFor   time.Duration // that it stays open at most; default 30 s

	GiveUpAfter time.Duration // how long a command may wait for its place where its definition does not say; default 1 h

	RetryMax      int           // retries of a message that names what is not there, or not so, yet; default 5, negative = none
	RetryDelay    time.Duration // before the first retry, doubled with each; default 1 s
	RetryDelayMax time.Duration // the longest; default 5 min
	Patience      time.Duration // how long a message that fails by a fault of the engine's own is tried again; default 24 h, negative = without end
	OrderGrace    time.Duration // how long a refused message of the queue waits for one that should have come before it; default 10 s, negative = not at all
	CrashMax      int           // processes a message may kill before it is a dead letter; default 3
	AckAge        time.Duration // how long a command is delivered again that is not acknowledged; default 24 h
	AckPause      time.Duration // bound of the pause between two deliveries; default 15 min
	// SuspendOnDeadLetter suspends the instance whose message became a dead
	// letter, so that it stands among what operators look at.
	SuspendOnDeadLetter bool

	DrainTimeout   time.Duration // how long running activities are waited for at shutdown; default 30 s
	RetentionKeep  time.Duration // closed instances are deleted after this; 0 = never
	Windows        Windows       // how long the rest is kept
	RetentionEvery time.Duration // how often; default 1 h
	StraysEvery    time.Duration // how often a node that works looks for messages it has locked and nobody works on; default 1 min
	ReconcileEvery time.Duration // how often a node looks for waits that are overdue and have lost their message; default 1 min, negative = never
	ReconcileGrace time.Duration // how long a wait is overdue before that; default 1 min
	NoticeKeep     time.Duration // how long a notice that no node could send for want of a sink is kept; default 7 d, negative = not at all
	UnsentEvery    time.Duration // how often a node looks for such notices; default 1 min
	EventTTL       time.Duration // how long an event that nobody waited for is kept; 0 = not at all
	// DeadLetterEvents publishes an event about each dead letter to the same target as Lifecycle.
	DeadLetterEvents bool
	Lifecycle        bool // publish the lifecycle events of instances and tasks to the performer's engine.TargetEvent
}

// Defaults of Config.
const (
	DefaultSignalConsumers   = 64
	DefaultScheduleConsumers = 64
	DefaultCommandConsumers  = 8
	DefaultHandlers          = 128
	DefaultActivities        = 256
	DefaultPerHost           = 64
	DefaultWaiting           = 8_192
	DefaultWaitingBytes      = 64 << 20
	DefaultBreakAfter        = 5
	DefaultBreakFor          = 30 * time.Second
	DefaultGiveUpAfter       = time.Hour
	DefaultCacheBytes        = 64 << 20
	DefaultRetryMax          = 5
	DefaultRetryDelay        = time.Second
	DefaultRetryDelayMax     = 5 * time.Minute
	DefaultPatience          = 24 * time.Hour
	DefaultOrderGrace        = 10 * time.Second
	DefaultCrashMax          = 3
	DefaultAckAge            = 24 * time.Hour
	DefaultAckPause          = 15 * time.Minute
	DefaultDrainTimeout      = 30 * time.Second
	DefaultRetentionEvery    = time.Hour
	DefaultStraysEvery       = time.Minute
	DefaultReconcileEvery    = time.Minute
	DefaultReconcileGrace    = time.Minute
	DefaultNoticeKeep        = 7 * 24 * time.Hour
	DefaultUnsentEvery       = time.Minute
)

func (c Config) withDefaults() Config {
	or(&c.SignalConsumers, DefaultSignalConsumers)
	or(&c.ScheduleConsumers, DefaultScheduleConsumers)
	or(&c.CommandConsumers, DefaultCommandConsumers)
	or(&c.Handlers, DefaultHandlers)
	or(&c.Activities, DefaultActivities)
	or(&c.PerHost, DefaultPerHost)
	or(&c.Waiting, DefaultWaiting)
	or(&c.WaitingBytes, DefaultWaitingBytes)
	or(&c.BreakAfter, DefaultBreakAfter)
	or(&c.BreakFor, DefaultBreakFor)
	or(&c.GiveUpAfter, DefaultGiveUpAfter)
	or(&c.CacheBytes, DefaultCacheBytes)
	or(&c.RetryMax, DefaultRetryMax)
	or(&c.RetryDelay, DefaultRetryDelay)
	or(&c.RetryDelayMax, DefaultRetryDelayMax)
	or(&c.Patience, DefaultPatience)
	or(&c.OrderGrace, DefaultOrderGrace)
	or(&c.CrashMax, DefaultCrashMax)
	or(&c.AckAge, DefaultAckAge)
	or(&c.AckPause, DefaultAckPause)
	or(&c.DrainTimeout, DefaultDrainTimeout)
	or(&c.RetentionEvery, DefaultRetentionEvery)
	or(&c.StraysEvery, DefaultStraysEvery)
	or(&c.ReconcileEvery, DefaultReconcileEvery)
	or(&c.ReconcileGrace, DefaultReconcileGrace)
	or(&c.NoticeKeep, DefaultNoticeKeep)
	or(&c.UnsentEvery, DefaultUnsentEvery)
	or(&c.Rates.Starts, DefaultSelfStarts)
	or(&c.Rates.Events, DefaultSelfEvents)
	or(&c.Rates.Loops, DefaultSelfLoops)
	or(&c.Rates.Burst, DefaultBurst)
	if c.Memory == nil {
		c.Memory = &memory.Budget{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = c.Store.Clock.Now
	}
	if c.Store.Ledger == nil {
		c.Store.Ledger = noLedger{}
	}
	return c
}

// or sets a zero field to its default.
func or[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// complete says which part of the store is missing for what is configured.
func (c *Config) complete() error {
	s := &c.Store
	for _, part := range []struct {
		name   string
		absent bool
	}{
		{"Queue", s.Queue == nil}, {"Writer", s.Writer == nil}, {"Instances", s.Instances == nil}, {"Streams", s.Streams == nil},
		{"Waits", s.Waits == nil}, {"Tasks", s.Tasks == nil}, {"DeadLetters", s.DeadLetters == nil}, {"Identity", s.Identity == nil},
		{"Nodes", s.Nodes == nil}, {"Clock, or set Now", s.Clock == nil && c.Now == nil},
		{"Retention and Locks, or set no RetentionKeep and no Windows", (c.RetentionKeep != 0 || c.Windows != Windows{}) && (s.Retention == nil || s.Locks == nil)},
		{"Inbox, or set no EventTTL", c.EventTTL != 0 && s.Inbox == nil},
	} {
		if part.absent {
			return fmt.Errorf("runtime: the Store has no part %s", part.name)
		}
	}
	return nil
}

// noLedger is that of a store which notes nothing.
type noLedger struct{}

func (noLedger) Enter(store.Delivery) {}
func (noLedger) Leave(store.Delivery) {}

// Runtime is one node. Its methods may be called from many goroutines, before,
// during and after Run; commands are performed only while Run runs.
type Runtime struct {
	Config
	*dispatch.Dispatcher
	*acknowledger
	*targets
	*functions
	*events.Router
	service.Services
	key     []byte
	epoch   int64 // of the database
	turns   *turn.Decider
	cache   *cache.Cache
	metrics *metrics
	counts  *turnMetrics
	pace    *pacer
	retries *pump.Retries
	pump    *pump.Pump
	strays  *strays
	notices *noticeMetrics
	sending *unsentMetrics
	steps   insides

	verdicts *verdicts
}

// New makes a node on an open store.
func New(ctx context.Context, c Config) (*Runtime, error) {
	if c.Definitions == nil || c.Performer == nil {
		return nil, fmt.Errorf("runtime: Store, Definitions and Performer are required")
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	key, err := c.Store.Identity.Key(ctx)
	if err != nil {
		return nil, fmt.Errorf("runtime: key: %w", err)
	}
	epoch, err := c.Store.Identity.Epoch(ctx)
	if err != nil {
		return nil, fmt.Errorf("runtime: epoch: %w", err)
	}
	r := &Runtime{Config: c, functions: &functions{Config: &c}, key: key, epoch: epoch, strays: newStrays(c.Store.Strays), cache: cache.New(c.CacheBytes, c.RetentionKeep), notices: newNoticeMetrics(), sending: newUnsentMetrics(), counts: newTurnMetrics(&c), steps: newInsides()}
	r.pace, r.metrics, r.retries = newPacer(c.Rates), newMetrics(r), r.retrying()
	r.turns = turn.New(r.turning())
	r.Router = events.New(r.routing())
	r.pump = pump.New(r.pumping())
	commands := newCommandMetrics(r.Activities, r.Waiting)
	notes := &ackNotes{&r.Config, r.pump, commands.redelivered}
	r.Dispatcher = dispatch.New(r.dispatching(commands, notes))
	commands.d = r.Dispatcher
	r.acknowledger, r.targets = newAcknowledger(r.Dispatcher, notes), &targets{r.Admission, c.Log}
	r.verdicts = &verdicts{r, notes}
	r.Services = r.serving()
	if p, ok := c.Definitions.(publisher); ok {
		p.LiveBy(backend.LiveVersions(c.Store.Instances))
		p.CanBy(c.Performer.Can)
		p.ServedBy(r.unserved)
		if err := p.Through(ctx, r.Publish); err != nil {
			return nil, fmt.Errorf("runtime: schedules: %w", err)
		}
	}
	if c.Metrics != nil {
		for _, m := range slices.Concat(commands.collectors(), r.Inbox.Collectors(), r.counts.collectors(), r.notices.collectors(), r.sending.collectors(), []prometheus.Collector{r.metrics, r.acks, r.strays.given, r.steps.seconds}) {
			if err := c.Metrics.Register(m); err != nil {
				return nil, fmt.Errorf("runtime: metrics: %w", err)
			}
		}
	}
	return r, nil
}

// dispatching wires the dispatcher of the node's commands.
func (r *Runtime) dispatching(m *commandMetrics, n *ackNotes) dispatch.Config {
	return dispatch.Config{
		Writer: r.Store.Writer, Streams: r.Store.Streams, Node: r.Store.Nodes.Node(), Performer: r.Performer, Memory: r.Memory, Log: r.Log, Now: r.Now,
		Turn: r.pump.Turn,
		Load: func(ctx context.Context, d store.Delivery, id string) (*snapshot.Snapshot, *memory.Part, error) {
			return r.turns.Load(ctx, d, id)
		},
		Suspended: func(ctx context.Context, id string) (bool, error) {
			row, err := r.Store.Instances.Instance(ctx, id)
			return err == nil && row.Status == string(snapshot.Suspended), err
		},
		Publish: r.PublishEvent, Lifecycle: newLifecycle(r).publish, Backoff: r.retries.Backoff,
		Dead: r.counts.deadLetters.WithLabelValues(string(store.Commands)), GivenUp: m.givenUp, Crowded: m.crowded,
		Opened:     func(to admission.Destination) { m.opened.WithLabelValues(m.host(to)).Inc() },
		Activities: r.Activities, PerHost: r.PerHost, Waiting: r.Waiting, WaitingBytes: r.WaitingBytes,
		BreakAfter: r.BreakAfter, BreakFor: r.BreakFor, GiveUpAfter: r.GiveUpAfter, AckAge: r.AckAge, AckTimes: n.times, Repeats: repeats, Noted: n.noted,
		Unsent: r.Config.unsent,
	}
}

// routing wires what becomes of events.
func (r *Runtime) routing() events.Config {
	return events.Config{
		Writer: r.Store.Writer, Waits: r.Store.Waits, Events: r.Store.Inbox, Recorded: r.Store.Streams.Recorded, Turns: r.turns, Definitions: r.Definitions, Now: r.Now, TTL: r.EventTTL,
		Begins: r.begins, Declared: declarations(r.Definitions),
		Paced: func(headers map[string]string, definition string) (due time.Time) {
			if causedBy(headers, definition) {
				due = r.paced(selfEvent, definition)
			}
			return due
		},
	}
}

// serving wires what people and the API ask.
func (r *Runtime) serving() service.Services {
	signals := &service.Signals{Writer: r.Store.Writer, Pump: r.pump, Log: r.Log, Now: r.Now, Refused: r.verdicts.refused}
	commands := service.Commands{Entry: r.Record.Entry, Command: commandOf, Sleeping: sleeping(r.Store.Streams, r.Now), Retry: r.retryAt}
	var traced func(headers map[string]string, instance, incarnation string) map[string]string
	if r.Traces != nil {
		traced = r.Traces.Headers
	}
	operator := &service.Operator{Writer: r.Store.Writer, Turns: r.turns, Pump: r.pump, Definitions: r.Definitions, Commands: commands, Now: r.Now}
	return service.Services{
		Starts: &service.Starts{
			Writer: r.Store.Writer, Instances: r.Store.Instances, Turns: r.turns, Pump: r.pump, Signals: signals, Now: r.Now,
			Committed: r.committed, Refused: r.refused, Traced: traced,
		},
		Followers:   &service.Followers{},
		Signals:     signals,
		Tasks:       &service.Tasks{Writer: r.Store.Writer, Tasks: r.Store.Tasks, Pump: r.pump, Now: r.Now},
		Operator:    operator,
		Migrator:    &service.Migrator{Instances: r.Store.Instances, Pump: r.pump, Definitions: r.Definitions, Operator: operator, Now: r.Now},
		DeadLetters: &service.DeadLetters{Writer: r.Store.Writer, DeadLetters: r.Store.DeadLetters, Commands: commands, Pump: r.pump, Note: ackTurn, Recorded: r.Store.Streams.Recorded, Anew: r.verdicts.anew, Now: r.Now},
	}
}

// Run works until ctx ends, then drains: no new message is taken, and turns and
// activities under way get DrainTimeout, counted from the end of ctx, whether
// or not the store still answers. What is still running then is given up;
// another node, or the next start, performs it again with the same idempotency
// key.
func (r *Runtime) Run(ctx context.Context) error {
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	defer watch.Wait()
	defer giveUp()
	r.pump.Accept(work)
	r.Accept(work)
	if err := r.declare(ctx); err != nil {
		r.Log.Warn("the other nodes do not know which functions this one has", "error", err)
	}
	g, loops := errgroup.WithContext(ctx)
	for queue, consumers := range map[store.Queue]int{
		store.Signals: r.SignalConsumers, store.Schedule: r.ScheduleConsumers, store.Commands: r.CommandConsumers,
	} {
		for range consumers {
			g.Go(func() error { return r.pump.Consume(work, loops, queue) })
		}
	}
	g.Go(func() error { return newJobs(r).run(loops) })
	g.Go(func() error { return newJobs(r).reconcile(loops) })
	g.Go(func() error { return newJobs(r).tell(loops) })
	g.Go(func() error { return newJobs(r).send(loops) })
	watch.Go(func() { r.Watch(work) })
	stopped := make(chan struct{})
	defer close(stopped)
	go r.limit(loops, stopped, giveUp)
	err := g.Wait()

	r.Dispatcher.Close(work)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// limit gives up what still runs DrainTimeout after the loops were told to end.
func (r *Runtime) limit(loops context.Context, stopped <-chan struct{}, giveUp context.CancelFunc) {
	<-loops.Done()
	timer := time.NewTimer(r.DrainTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		r.Log.Warn("work still runs after the drain timeout; it will be done again", "timeout", r.DrainTimeout)
		giveUp()
	case <-stopped:
	}
}
