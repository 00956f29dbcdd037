package runtime

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// consume is one worker: receive, handle, again, until stop ends. A message
// once taken is finished whatever happens to stop, as long as ctx lasts.
func (r *Runtime) consume(ctx, stop context.Context, q store.Queue) error {
	failures := 0
	for {
		d, err := r.Store.Receive(stop, q)
		if err != nil && stop.Err() != nil {
			return nil
		}
		if errors.Is(err, store.ErrClosed) {
			return fmt.Errorf("runtime: queue %s: %w", q, err)
		}
		if err != nil {
			failures++
			delay := r.backoff(failures, string(q))
			r.Log.Error("queue cannot be read", "queue", q, "error", err, "again", delay)
			sleep(stop, delay)
			continue
		}
		failures = 0
		r.hands.take(d)
		r.handlers <- struct{}{}
		r.handle(ctx, stop, d)
		<-r.handlers
		r.hands.leave(d)
	}
}

// handle gives one delivery its end: committed, retried later, or dead.
func (r *Runtime) handle(ctx, stop context.Context, d store.Delivery) {
	m := d.Message()
	if m.Crashes >= r.CrashMax {
		r.bury(ctx, stop, d, problem.New(problem.Internal, "message.crash-loop", "%d processes died while they handled the message", m.Crashes))
		return
	}
	err := r.deliver(ctx, stop, d)
	if err == nil || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrUnknown) {
		return // done, or settled by redelivery (design 4.7)
	}
	if errors.Is(err, store.ErrTaken) { // over the version decided on: its row is damaged
		err = problem.Wrap(err, problem.Conflict, "command.settled", "the message settles a command that is not open")
	}
	var p *problem.Error
	known := errors.As(err, &p)
	switch {
	case !known || strings.HasPrefix(p.Code, "store."): // the store's trouble, not the message's
		r.release(ctx, stop, d, err)
	case p.Code == "snapshot.newer": // a newer node's: it shall have it, however long the upgrade takes
		r.retry(ctx, stop, d, err, m.Attempts)
	case p.Kind == problem.Invalid || p.Kind == problem.TooLarge || p.Code == "snapshot.corrupt" || sendersFault(p) && p.Code != "lifecycle.in-transition" || m.Attempts >= r.RetryMax:
		r.bury(ctx, stop, d, err)
	default:
		r.retry(ctx, stop, d, err, m.Attempts+1)
	}
}

// sendersFault reports whether a problem is one of who answered a human task,
// or triggered an event: trying again does not help, unless the instance is
// just between two states, and the instance has nothing to do with it (D2).
func sendersFault(p *problem.Error) bool {
	ours := p.Kind == problem.Internal || p.Kind == problem.Unavailable
	return !ours && (strings.HasPrefix(p.Code, "task.") || strings.HasPrefix(p.Code, "lifecycle."))
}

// deliver decodes the message and gives it to whom it concerns. A panic is a
// problem like any other.
func (r *Runtime) deliver(ctx, stop context.Context, d store.Delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.Log.Error("panic while a message was handled", "message", d.Message().ID, "panic", v, "stack", string(debug.Stack()))
			err = problem.New(problem.Internal, "message.panic", "panic: %v", v)
		}
	}()
	m := d.Message()
	env, err := signal.Decode(m.Body)
	if err != nil {
		return err
	}
	now := m.EnqueuedAt
	if m.DueAt.After(now) {
		now = m.DueAt
	}
	r.Store.Enter(d)
	defer r.Store.Leave(d)
	switch {
	case env.Type == signal.StartRequest:
		return r.requested(ctx, d, env, now)
	case m.Queue == store.Commands:
		return r.announced(ctx, stop, d, env)
	case env.Type == signal.InternalContinue && env.WaitingToken == "":
		return r.look(ctx, d, env)
	case env.Type == signal.TaskCompleted:
		return r.handed(ctx, d, env)
	case env.Type == signal.CancelRequest:
		return r.disowned(ctx, d, env, m)
	case env.Type == signal.SubWorkflowCompleted:
		if env, err = r.fetch(ctx, d, env); err != nil {
			return err
		}
	}
	if early := env.DueAt.Sub(r.Now()); !env.DueAt.IsZero() && early > 0 && m.Queue == store.Schedule {
		// The queue's clock ran ahead: put it back for the remainder (design 4.8).
		return d.Commit(ctx, store.Change{Send: []store.Send{{Queue: m.Queue, Body: m.Body, Due: env.DueAt, Priority: m.Priority, Attempts: m.Attempts}}})
	}
	_, err = r.turn(ctx, d, env, now, step)
	return err
}

// requested starts the instance an application asked for through the queue.
func (r *Runtime) requested(ctx context.Context, d store.Delivery, env signal.Envelope, now time.Time) error {
	start, err := signal.DecodeStart(env.Payload)
	if err != nil {
		return err
	}
	if ok, err := wanted(ctx, d, start.Parent); err != nil || !ok {
		if err == nil {
			err = d.Commit(ctx, store.Change{}) // its parent has gone on without it
		}
		return err
	}
	// Loading waits for the ledger's note: a definition that kills its process
	// must not do so unnoted.
	id, there, err := r.find(ctx, d, env.InstanceID, start)
	if err != nil {
		return err
	}
	if there {
		return r.startedBefore(ctx, d, id, env, start, now)
	}
	_, err = r.begin(ctx, d, env, start, now)
	if errors.Is(err, store.ErrDuplicate) {
		id, err := r.first(ctx, d, env.InstanceID, start)
		if err != nil {
			return err
		}
		return r.startedBefore(ctx, d, id, env, start, now)
	}
	if err != nil {
		return r.refused(ctx, d, env, err)
	}
	return err
}

// startedBefore gives the signal of a start request to the instance that is
// there. Without one the request is a repeat and changes nothing.
func (r *Runtime) startedBefore(ctx context.Context, d store.Delivery, id string, env signal.Envelope, start signal.Start, now time.Time) error {
	if start.Signal == nil {
		return d.Commit(ctx, store.Change{})
	}
	env, err := start.Signal.Envelope(id, env.OccurredAt, env.Headers)
	if err != nil {
		return err
	}
	_, err = r.turn(ctx, d, env, now, step)
	return err
}

// retry sends the same message again after a delay, in the commit that consumes
// it (design 4.5).
func (r *Runtime) retry(ctx, stop context.Context, d store.Delivery, cause error, attempts int) {
	m := d.Message()
	due := r.Now().Add(r.backoff(max(attempts, 1), m.ID))
	r.Log.Warn("message failed and is tried again", "queue", m.Queue, "message", m.ID, "attempt", attempts, "due", due, "error", cause)
	r.metrics.retries.WithLabelValues(string(m.Queue)).Inc()
	err := d.Commit(ctx, store.Change{Send: []store.Send{{Queue: m.Queue, Body: m.Body, Due: due, Priority: m.Priority, Attempts: attempts}}})
	if err != nil {
		r.release(ctx, stop, d, err)
	}
}

// releaseMax bounds the pause before a message is given back: nobody else can
// have it before, and the store may take commits again at any moment.
const releaseMax = 5 * time.Second

// release gives a message back after a pause, so that a store in trouble is
// not asked again at once. While the store takes nothing, it keeps trying: a
// message that this node holds is nobody else's.
func (r *Runtime) release(ctx, stop context.Context, d store.Delivery, cause error) {
	m := d.Message()
	for attempt := 1; ; attempt++ {
		if attempt&(attempt-1) == 0 { // with growing pauses: a store in trouble has many messages in hand
			r.Log.Error("message is given back", "queue", m.Queue, "message", m.ID, "attempt", attempt, "error", cause)
		}
		if !sleep(stop, min(r.backoff(attempt, m.ID), releaseMax)) {
			return // what a node holds is free again when its store closes
		}
		err := d.Release(ctx, cause)
		if err == nil || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrClosed) {
			return
		}
		cause = err
	}
}

// bury makes the message a dead letter, its bytes unchanged (A13).
func (r *Runtime) bury(ctx, stop context.Context, d store.Delivery, cause error) {
	m := d.Message()
	instance := ""
	var head struct {
		InstanceID string `json:"workflowInstanceId"`
	}
	if jsonv2.Unmarshal(m.Body, &head) == nil && len(head.InstanceID) <= signal.MaxIDBytes {
		instance = head.InstanceID
	}
	code := problem.CodeOf(cause)
	r.Log.Error("message is a dead letter now", "queue", m.Queue, "message", m.ID, "instance", instance, "reason", code, "error", cause)
	change := store.Change{DeadLetter: &projections.DeadLetter{
		ID: newID(), Queue: string(m.Queue), InstanceID: instance, Envelope: m.Body, Reason: code, Detail: cause.Error(),
		Attempts: m.Attempts + 1, Node: r.Store.Node(), EnqueuedAt: m.EnqueuedAt, DiedAt: r.Now(),
	}}
	if env, err := signal.Decode(m.Body); err == nil {
		if answer, ok := r.refusal(env, cause); ok {
			change.Send = []store.Send{answer}
		}
	}
	err := d.Commit(ctx, change)
	if err != nil {
		r.release(ctx, stop, d, err)
		return
	}
	r.metrics.deadLetters.WithLabelValues(string(m.Queue)).Inc()
	var p *problem.Error
	if errors.As(cause, &p) && sendersFault(p) {
		return // the instance waits for another answer, or another event
	}
	if r.SuspendOnDeadLetter && instance != "" {
		_, err := r.Operate(ctx, instance, engine.Suspend, nil, "dead-letter policy")
		if k := problem.KindOf(err); err != nil && k != problem.Conflict && k != problem.NotFound {
			r.Log.Error("instance of a dead letter could not be suspended", "instance", instance, "error", err)
		}
	}
}

// newID is a UUID of version 7: unique, and in order of time, so that what
// belongs together lies together in the database.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// newIncarnation is what tells an instance from all others, those of the same id
// before and after it included: 96 random bits.
func newIncarnation() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// backoff is 1, 2, 4, 8, 16 s … (design 4.5), capped, less up to a fifth of
// jitter taken from a hash of the attempt and seed, so that a repeated decision
// repeats it.
func (r *Runtime) backoff(attempt int, seed string) time.Duration {
	d := r.RetryDelayMax
	if shift := max(attempt-1, 0); r.RetryDelay <= d>>shift {
		d = r.RetryDelay << shift
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", seed, attempt)
	return d - time.Duration(h.Sum32()%200)*(d/1000)
}

// begin decides and commits the first turn of an instance.
func (r *Runtime) begin(ctx context.Context, c committer, env signal.Envelope, start signal.Start, now time.Time) (engine.Outcome, error) {
	def, err := r.Definitions.Find(ctx, start.Definition, start.Version)
	if err != nil {
		return engine.Outcome{}, err
	}
	in := engine.Input{Signal: env, Now: now, Key: r.key, Epoch: r.epoch, Incarnation: newIncarnation(), Limits: r.Limits, Lifecycle: r.Lifecycle}
	out, err := engine.Begin(def, env.InstanceID, start, in)
	if err == nil {
		err = r.commit(ctx, c, nil, &out, start.StartKey, in)
	}
	return out, err
}
