package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// database is what a node needs of its store.
type database interface {
	backend.Store
	definition.Repository
}

// place is where the database of one scenario is.
type place struct {
	dsn string // of Oracle; "" = an SQLite file
	dir string
}

// open opens the database for a node whose clock is fast. A file has no clock
// of its own: its nodes share the host's.
func (p place) open(ctx context.Context, clock time.Duration) (database, error) {
	if p.dsn != "" {
		return oracle.Open(ctx, oracle.Options{
			DSN: p.dsn, Now: func() time.Time { return time.Now().Add(clock) }, Consumers: 4, Wait: time.Second, Heartbeat: 200 * time.Millisecond, DeadAfter: 10 * time.Second, // a node that lives may be late
		})
	}
	return embedded.Open(ctx, sqlite.Options{Path: p.dir + "/a.db"})
}

// node is one runtime on a place. It can die: then nothing that it still tries
// reaches the database.
type node struct {
	db   database
	rt   *runtime.Runtime
	cat  *definition.Catalogue
	life *life
	stop context.CancelFunc
	done chan error
}

// boot starts a node that can perform the functions of the world.
func boot(ctx context.Context, w *world, mode mode) (*node, error) {
	db, err := w.place.open(ctx, w.clock)
	if err != nil {
		return nil, err
	}
	n := &node{db: db, life: &life{mode: mode, dead: make(chan struct{}), lost: &w.lost}, done: make(chan error, 1)}
	n.cat = definition.New(db, openworkflow.Parsers(), time.Now)
	attempts := 3
	if w.sink != nil || mode == everyRelease {
		attempts = 20 // nodes that die take attempts at publishing with them
	}
	performer := activity.New(activity.Config{Sink: w.sink.address(), SinkMode: activity.SinkStructured, Policy: activity.Policy{MaxAttempts: attempts, Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond}, Secrets: w.secrets, Log: w.log})
	for name, f := range w.functions {
		performer.Register(name, f.perform)
	}
	parts := db.Parts()
	m := &mortal{parts.Queue, parts.Writer, parts.Ledger, n.life}
	parts.Queue, parts.Writer, parts.Ledger = m, m, m
	n.rt, err = runtime.New(ctx, runtime.Config{
		Store: parts, Definitions: n.cat, Performer: performer,
		Limits: w.limits, EventTTL: w.ttl, Lifecycle: w.sink != nil,
		RetryMax: 2, RetryDelay: 20 * time.Millisecond, SignalConsumers: 4, ScheduleConsumers: 4, CommandConsumers: 4,
		DrainTimeout: 50 * time.Millisecond, Log: w.log, BreakAfter: 1000, NoticeKeep: -1, // who asks for notices has a sink
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	run, stop := context.WithCancel(ctx)
	n.stop = stop
	go func() { n.done <- n.rt.Run(run) }()
	return n, nil
}

// close ends the node; what a dead one reports of its end is of no interest.
func (n *node) close() error {
	n.stop()
	err := <-n.done
	if n.life.over() {
		err = nil
	}
	return errors.Join(err, n.db.Close())
}

// mode says when a node dies by itself.
type mode int

const (
	immortal     mode = iota
	everyCommit       // after each commit of a snapshot
	beforeCommit      // in place of its next commit of a snapshot
	everyRelease      // after each commit of a snapshot, and each that gives a command back or ends it
)

// life is whether a node lives.
type life struct {
	mode mode
	dead chan struct{}
	once sync.Once
	lost *atomic.Pointer[store.Change] // gets the change that beforeCommit refused
}

func (l *life) end() { l.once.Do(func() { close(l.dead) }) }

func (l *life) over() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

var errDead = fmt.Errorf("the node is dead: %w", store.ErrUnknown)

// commit lets a commit pass, or not.
func (l *life) commit(c store.Change, do func() error) error {
	if l.over() {
		return errDead
	}
	if l.mode == beforeCommit && c.Snapshot != nil {
		l.lost.Store(&c)
		l.end()
		return errDead
	}
	if err := do(); err != nil {
		return err
	}
	released := len(c.Claims) > 0 && c.Claims[0].Owner == ""
	if (l.mode == everyCommit || l.mode == everyRelease) && c.Snapshot != nil || l.mode == everyRelease && released {
		l.end()
		return errDead
	}
	return nil
}

// mortal is the store of a node as long as the node lives.
type mortal struct {
	store.Receiver
	store.Writer
	store.Ledger
	life *life
}

func (m *mortal) Commit(ctx context.Context, c store.Change) error {
	return m.life.commit(c, func() error { return m.Writer.Commit(ctx, c) })
}

func (m *mortal) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := m.Receiver.Receive(ctx, q, arrived)
	if err != nil {
		return nil, err
	}
	return &mortalDelivery{d, m.life}, nil
}

func (m *mortal) Enter(d store.Delivery) { m.Ledger.Enter(d.(*mortalDelivery).Delivery) }
func (m *mortal) Leave(d store.Delivery) { m.Ledger.Leave(d.(*mortalDelivery).Delivery) }

type mortalDelivery struct {
	store.Delivery
	life *life
}

func (d *mortalDelivery) Commit(ctx context.Context, c store.Change) error {
	return d.life.commit(c, func() error { return d.Delivery.Commit(ctx, c) })
}

func (d *mortalDelivery) Release(ctx context.Context, cause error) error {
	if d.life.over() {
		return errDead // its store gives it back when it is closed
	}
	return d.Delivery.Release(ctx, cause)
}
