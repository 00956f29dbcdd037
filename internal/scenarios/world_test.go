package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// world is one scenario: a database, the nodes on it, the functions outside,
// and what the steps remember.
type world struct {
	place     place
	elsewhere func() (place, error) // a place for another database
	functions map[string]*function
	documents []string
	limits    engine.Limits
	ttl       time.Duration // how long early events are kept
	secrets   activity.Secrets
	log       *slog.Logger
	logged    lockedBuffer
	sink      *sink         // gets lifecycle events; nil = nobody does
	clock     time.Duration // how far the nodes' clocks are from the database's

	mu    sync.Mutex
	node  *node
	more  []*node // further nodes
	lives int     // nodes that died and were replaced
	ended bool

	begun   time.Time                    // when the first instance was started
	waits   map[string]snapshot.Wait     // by the name a step gave them
	closers []func()                     // of what is outside
	notes   map[string]string            // bytes by the name a step gave them
	lost    atomic.Pointer[store.Change] // a decision that was not committed
	refused error                        // what the last refused step was told
	answer  string                       // what the last step was told
}

func newWorld(p place) *world {
	w := &world{place: p, functions: map[string]*function{}, waits: map[string]snapshot.Wait{}, notes: map[string]string{}}
	w.log = slog.New(slog.NewTextHandler(&w.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return w
}

// start boots the first node when a step needs one.
func (w *world) start(ctx context.Context, m mode) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node != nil {
		return nil
	}
	return w.replace(ctx, m)
}

// replace boots a node in the place of one that died. It publishes what the
// scenario has published: that is repeatable.
func (w *world) replace(ctx context.Context, m mode) error {
	n, err := boot(ctx, w, m)
	if err != nil {
		return err
	}
	w.node = n
	go w.replaceDead(ctx, n, m)
	for _, d := range w.documents {
		if _, _, err := n.cat.Publish(ctx, "workflow.yaml", []byte(d)); err != nil {
			return err
		}
	}
	return nil
}

// replaceDead replaces a node that dies of its mode, for as long as the scenario runs.
func (w *world) replaceDead(ctx context.Context, n *node, m mode) {
	select {
	case <-n.life.dead:
	case <-ctx.Done():
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.node != n {
		return
	}
	_ = n.close()
	w.lives++
	if m == beforeCommit {
		m = immortal
	}
	if err := w.replace(ctx, m); err != nil {
		w.node = nil
	}
}

// die ends the node and boots another.
func (w *world) die(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.node
	w.node = nil
	old.life.end()
	if err := old.close(); err != nil {
		return err
	}
	w.lives++
	return w.replace(ctx, immortal)
}

func (w *world) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, f := range w.functions {
		f.release()
	}
	for _, end := range w.closers {
		defer end()
	}
	var errs []error
	if w.sink != nil {
		defer w.sink.server.Close()
	}
	for _, n := range append([]*node{w.node}, w.more...) {
		if n != nil {
			errs = append(errs, n.close())
		}
	}
	return errors.Join(errs...)
}

// with does something on the node, and again on its successor when it died
// under it: every operation of a service may be repeated.
func (w *world) with(ctx context.Context, do func(n *node) error) error {
	var again await.Wait
	for {
		if err := w.start(ctx, immortal); err != nil {
			return err
		}
		w.mu.Lock()
		n := w.node
		w.mu.Unlock()
		if n == nil {
			return errors.New("no node could be booted")
		}
		err := do(n)
		died := errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrClosed) ||
			problem.KindOf(err) == problem.Unavailable && problem.CodeOf(err) != "snapshot.newer" // an answer: no successor reads it either
		if !died || !again.Again(2*time.Millisecond, nil) {
			return err
		}
	}
}

// until waits until an instance's committed snapshot is as a step says.
func (w *world) until(ctx context.Context, id string, ok func(s snapshot.Snapshot) error) error {
	var again await.Wait
	for {
		var why error
		var version int64
		err := w.with(ctx, func(n *node) error {
			s, err := n.db.Parts().Writer.Load(ctx, w.id(id))
			if err == nil {
				why, version = ok(s), s.Version
			}
			return err
		})
		if err == nil && why == nil {
			return nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if !again.Again(2*time.Millisecond, version) {
			return errors.Join(err, why)
		}
	}
}

// id is the instance that a step means: one it named, or one by its id.
func (w *world) id(name string) string {
	if id := w.notes["child "+name]; id != "" {
		return id
	}
	return name
}

// snapshot returns an instance's last committed snapshot.
func (w *world) snapshot(ctx context.Context, id string) (s snapshot.Snapshot, err error) {
	err = w.with(ctx, func(n *node) error {
		s, err = n.db.Parts().Writer.Load(ctx, w.id(id))
		return err
	})
	return s, err
}

// stream returns all of an instance's stream.
func (w *world) stream(ctx context.Context, id string) (all []projections.Entry, err error) {
	err = w.with(ctx, func(n *node) error {
		all = nil
		for {
			after := int64(0)
			if len(all) > 0 {
				after = all[len(all)-1].Position
			}
			page, err := n.db.Parts().Streams.Stream(ctx, w.id(id), after, projections.MaxLimit)
			all = append(all, page...)
			if err != nil || len(page) < projections.MaxLimit {
				return err
			}
		}
	})
	return all, err
}

// enqueue puts an envelope on the signal queue, as an application does.
func (w *world) enqueue(ctx context.Context, env signal.Envelope, times int) error {
	if env.OccurredAt.IsZero() {
		env.OccurredAt = time.Now()
	}
	body, err := env.Encode()
	if err != nil {
		return err
	}
	var c store.Change
	for range times {
		c.Send = append(c.Send, store.Send{Queue: store.Signals, Body: body})
	}
	return w.with(ctx, func(n *node) error { return n.db.Parts().Writer.Commit(ctx, c) })
}

// function is something outside that commands call.
type function struct {
	name    string
	mu      sync.Mutex
	answers []answer // the last one is repeated
	calls   []call
	hold    chan struct{} // closed when calls may end
	onCall  func(number int)
	aborted int // calls whose context was ended
}

type answer struct {
	output json.RawMessage
	err    error
}

type call struct {
	key   string
	input string
}

func (f *function) perform(ctx context.Context, input json.RawMessage) (any, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call{activity.Info(ctx).Key, string(input)})
	number, hold, onCall := len(f.calls), f.hold, f.onCall
	f.mu.Unlock()
	if onCall != nil {
		onCall(number)
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			f.mu.Lock()
			f.aborted++
			f.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) == 0 {
		return json.RawMessage(`{}`), nil
	}
	a := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	if a.err != nil {
		return nil, a.err
	}
	if string(a.output) == `"$input"` {
		return json.RawMessage(input), nil
	}
	return a.output, nil
}

func (f *function) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hold != nil {
		close(f.hold)
		f.hold = nil
	}
}

// keys returns the distinct idempotency keys of the calls.
func (f *function) keys() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := map[string]bool{}
	for _, c := range f.calls {
		keys[c.key] = true
	}
	return keys
}

func (f *function) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func (w *world) function(name string) *function {
	f := w.functions[name]
	if f == nil {
		f = &function{name: name}
		w.functions[name] = f
	}
	return f
}

// same compares two JSON texts as values.
func same(got, want []byte) error {
	var g, x any
	if err := json.Unmarshal(got, &g); err != nil {
		return fmt.Errorf("got %s: %w", got, err)
	}
	if err := json.Unmarshal(want, &x); err != nil {
		return fmt.Errorf("the step's own JSON %s: %w", want, err)
	}
	if !reflect.DeepEqual(g, x) {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// eventually repeats a check until it holds.
func eventually(check func() error) error {
	var again await.Wait
	for {
		err := check()
		if err == nil || !again.Again(2*time.Millisecond, err.Error()) {
			return err
		}
	}
}

// duration reads a time as the steps write it: 50ms, 2s.
func duration(s string) (time.Duration, error) {
	return time.ParseDuration(strings.ReplaceAll(s, " ", ""))
}
