package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/google/uuid"
)

// node is a runtime on a store of its own, watched.
type node struct {
	db    Database
	store *watched
	rt    *runtime.Runtime

	catalogue *definition.Catalogue

	stop context.CancelFunc
	done chan error
}

// noop performs every function at once, but for the slow one, and answers with a
// small object.
type noop struct{}

func (noop) Can(target string) bool { return target == "noop" || target == "slow" }

func (noop) Destination(c engine.Command) engine.Destination {
	return engine.Destination{Target: c.Target}
}

func (noop) Perform(ctx context.Context, c engine.Command, _ string, _ int) (json.RawMessage, *engine.Failure) {
	if c.Target == "slow" {
		_ = rest(ctx, slowCall) // whoever ends it wants no answer
	}
	return json.RawMessage(`{"ok":true}`), nil
}

func (noop) Backoff(int, string) (time.Duration, bool) { return time.Second, true }

// document builds the definitions of the workloads.
func document(name, tasks string) string {
	return "document: {dsl: '1.0.3', namespace: bench, name: " + name + ", version: '1.0.0'}\ndo:\n" + tasks
}

func callDocument(name string, calls int) string {
	tasks := ""
	for i := range calls {
		tasks += fmt.Sprintf("  - step%d: {call: noop, with: {n: %d}}\n", i+1, i+1)
	}
	return document(name, tasks)
}

const parkTasks = `  - park:
      listen: {to: {one: {with: {type: go}}}}
`

// begin opens a store in dir and runs a node on it.
func (o *Options) begin(ctx context.Context, dir string, documents ...string) (*node, error) {
	db, err := o.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	catalogue := definition.New(db, openworkflow.Parsers(), time.Now)
	for _, d := range documents {
		if _, _, err := catalogue.Publish(ctx, "bench.yaml", []byte(d)); err != nil {
			return nil, err
		}
	}
	parts := db.Parts()
	n := &node{db: db, catalogue: catalogue, store: &watched{Receiver: parts.Queue, Writer: parts.Writer, Ledger: parts.Ledger, waiting: map[string]chan time.Time{}}, done: make(chan error, 1)}
	parts.Queue, parts.Writer, parts.Ledger = n.store, n.store, n.store
	n.rt, err = runtime.New(ctx, runtime.Config{Store: parts, Definitions: catalogue, Performer: noop{}, EventTTL: o.eventTTL})
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	n.stop = stop
	go func() { n.done <- n.rt.Run(run) }()
	return n, n.ready(ctx, catalogue)
}

// ready waits until the node performs commands: a workflow of one step passes.
func (n *node) ready(ctx context.Context, catalogue *definition.Catalogue) error {
	if _, _, err := catalogue.Publish(ctx, "ready.yaml", []byte(callDocument("ready", 1))); err != nil {
		return err
	}
	_, err := n.complete(ctx, "ready")
	return err
}

// end stops the node and closes its store.
func (n *node) end() error {
	n.stop()
	err := <-n.done
	if closeErr := n.db.Close(); err == nil {
		err = closeErr
	}
	return err
}

// launch starts an instance and returns a channel on which the moment of its
// completion arrives.
func (n *node) launch(ctx context.Context, name, id string, input any) (<-chan time.Time, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	done := n.store.expect(id)
	_, _, err = n.rt.Start(ctx, id, signal.Start{Definition: "bench/" + name, Version: "1.0.0", Input: raw}, nil)
	return done, err
}

// newID makes ids in order of time, as the runtime itself does.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// complete runs one workflow and returns how long it took.
func (n *node) complete(ctx context.Context, name string) (time.Duration, error) {
	begun := time.Now()
	done, err := n.launch(ctx, name, newID(), map[string]any{"n": 1})
	if err != nil {
		return 0, err
	}
	at, err := within(ctx, done)
	return at.Sub(begun), err
}

// within waits for a completion, at most ten minutes.
func within(ctx context.Context, done <-chan time.Time) (time.Time, error) {
	timer := time.NewTimer(10 * time.Minute)
	defer timer.Stop()
	select {
	case at := <-done:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-timer.C:
		return time.Time{}, fmt.Errorf("a workflow did not complete within ten minutes")
	}
}

// each calls f for 0 to n-1 from a number of goroutines; the first error ends it.
func each(n, callers int, f func(i int) error) error {
	var wg sync.WaitGroup
	work := make(chan int)
	errs := make(chan error, callers)
	for range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range work {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	var failed error
	for i := 0; i < n && failed == nil; i++ {
		select {
		case work <- i:
		case failed = <-errs:
		}
	}
	close(work)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return failed
	}
}

// watched is the part of a store that tells when an instance has completed.
type watched struct {
	store.Receiver
	store.Writer
	store.Ledger
	mu      sync.Mutex
	waiting map[string]chan time.Time
	turns   func() // called after every committed turn; nil = not
}

func (w *watched) expect(id string) <-chan time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := make(chan time.Time, 1)
	w.waiting[id] = done
	return done
}

func (w *watched) committed(c store.Change) {
	if c.Snapshot == nil {
		return
	}
	if w.turns != nil {
		w.turns()
	}
	if c.Snapshot.Status != snapshot.Completed {
		return
	}
	at := time.Now()
	w.mu.Lock()
	done := w.waiting[c.Snapshot.InstanceID]
	delete(w.waiting, c.Snapshot.InstanceID)
	w.mu.Unlock()
	if done != nil {
		done <- at
	}
}

// Commit implements store.Writer.
func (w *watched) Commit(ctx context.Context, c store.Change) error {
	err := w.Writer.Commit(ctx, c)
	if err == nil {
		w.committed(c)
	}
	return err
}

// Receive implements store.Receiver.
func (w *watched) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := w.Receiver.Receive(ctx, q, arrived)
	if err != nil {
		return nil, err
	}
	return &watchedDelivery{d, w}, nil
}

// Enter and Leave implement store.Ledger on the store's own deliveries.
func (w *watched) Enter(d store.Delivery) { w.Ledger.Enter(d.(*watchedDelivery).Delivery) }

// Leave implements store.Ledger.
func (w *watched) Leave(d store.Delivery) { w.Ledger.Leave(d.(*watchedDelivery).Delivery) }

type watchedDelivery struct {
	store.Delivery
	w *watched
}

func (d *watchedDelivery) Commit(ctx context.Context, c store.Change) error {
	err := d.Delivery.Commit(ctx, c)
	if err == nil {
		d.w.committed(c)
	}
	return err
}
