package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// A wait for a moment ends by a message that is due then. Both are written by one
// commit, and yet the message may be gone: its queue was purged, or restored from
// another backup than the tables. The instance would wait for ever. So one node looks,
// now and then, at the waits that are overdue, and sends again what has no message.
// That is safe whenever it is done: a token is good for one signal, and of two
// messages the second is stale.

const (
	reconcileLock = "reconcile"
	reconcileTTL  = time.Minute // at least
	reconcilePage = 100         // instances

	// reconcileSlack is by how much more than RetryDelayMax a message may be late that
	// is tried again: the stores have delays of their own.
	reconcileSlack = 2 * time.Minute
)

// reconciler sends lost messages again.
type reconciler struct {
	*jobs
	after string // where the next look begins: behind those that were found well
}

// reconcile looks every ReconcileEvery.
func (j *jobs) reconcile(ctx context.Context) error {
	if j.ReconcileEvery < 0 || j.Store.Overdue == nil || j.Store.Locks == nil {
		return nil
	}
	r := &reconciler{jobs: j}
	every := time.NewTicker(j.ReconcileEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			if err := r.look(ctx); err != nil && ctx.Err() == nil {
				j.Log.Error("waits that are overdue could not be looked at", "error", err)
			}
		}
	}
}

// look looks at a page of what is overdue, and at the next when messages of it were
// lost: of pages without, which a backlog has many of, each look sees one. The lock
// stays until after the next look, so that one node does all.
func (r *reconciler) look(ctx context.Context) error {
	for ctx.Err() == nil {
		before := r.Now().Add(-r.ReconcileGrace)
		page, err := r.Store.Overdue.Overdue(ctx, before, r.after, reconcilePage)
		if err != nil || len(page.Items) == 0 {
			r.after = ""
			return err
		}
		if ok, err := r.Store.Locks.Lock(ctx, reconcileLock, max(2*r.ReconcileEvery, reconcileTTL)); err != nil || !ok {
			return err
		}
		n, err := r.page(ctx, page.Items, before)
		if err != nil {
			return err
		}
		if r.after = page.Next; n == 0 || r.after == "" {
			return nil
		}
	}
	return nil
}

// page sends again what instances have lost, each in a commit, and returns for how many
// waits.
func (r *reconciler) page(ctx context.Context, ids []string, before time.Time) (int, error) {
	var tokens []string
	for _, id := range ids {
		_, waits, err := r.overdue(ctx, id, before)
		if err != nil {
			return 0, err
		}
		for _, w := range waits {
			tokens = append(tokens, w.Token)
		}
	}
	if len(tokens) == 0 {
		return 0, nil
	}
	sent, err := r.Store.Overdue.Sent(ctx, tokens, r.Now().Add(r.RetryDelayMax+reconcileSlack))
	if err != nil {
		return 0, err
	}
	lost := map[string]bool{}
	for _, token := range tokens {
		lost[token] = true
	}
	for _, token := range sent {
		delete(lost, token)
	}
	count := 0
	for _, id := range ids {
		if len(lost) == 0 {
			break
		}
		list, n, err := r.again(ctx, id, before, lost)
		if err != nil {
			return count, err
		}
		if n == 0 {
			continue
		}
		if err := r.Store.Writer.Commit(ctx, store.Change{Send: list}); err != nil {
			return count, err
		}
		r.metrics.resent.Add(float64(n))
		count += n
	}
	return count, nil
}

// signalOf is the type of signal that ends a wait when its time has come.
var signalOf = map[snapshot.WaitKind]signal.Type{
	snapshot.WaitTimer: signal.TimerDue, snapshot.WaitTimeout: signal.TimerDue, snapshot.WaitDue: signal.TimerDue,
	snapshot.WaitRetry: signal.RetryDue, snapshot.WaitNext: signal.InternalContinue,
}

// moment is when a message is to end a wait; zero: none is. What is left to the next
// turn is due since the last.
func moment(s *snapshot.Snapshot, w *snapshot.Wait) time.Time {
	switch {
	case signalOf[w.Kind] == "":
		return time.Time{}
	case w.Kind == snapshot.WaitNext:
		return s.UpdatedAt
	}
	return w.Until
}

// firstDue is the first moment that an instance waits for; zero: there is none, or it
// is not to go on.
func firstDue(s *snapshot.Snapshot) (first time.Time) {
	if s.Status != snapshot.Waiting && s.Status != snapshot.Running {
		return first
	}
	for i := range s.Waits {
		if at := moment(s, &s.Waits[i]); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// overdue are the waits of an instance whose message was due before a moment. It has
// none when it has ended or stands still, when its snapshot cannot be read, which is
// doctor's to tell, and of those whose message it keeps.
func (r *reconciler) overdue(ctx context.Context, id string, before time.Time) (s snapshot.Snapshot, waits []snapshot.Wait, err error) {
	s, err = r.Store.Writer.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) || strings.HasPrefix(problem.CodeOf(err), "snapshot.") {
		return s, nil, nil
	}
	if err != nil || firstDue(&s).IsZero() {
		return s, nil, err
	}
	for _, w := range s.Waits {
		due := moment(&s, &w)
		if !due.IsZero() && due.Before(before) && !s.Answered(w.Token) {
			waits = append(waits, w)
		}
	}
	return s, waits, nil
}

// again are the messages for those waits of an instance that have lost theirs, and how
// many waits that is. They were there before the queues were looked at, and are still:
// so there was none. A dead letter is an operator's, and is not sent behind their back.
func (r *reconciler) again(ctx context.Context, id string, before time.Time, lost map[string]bool) ([]store.Send, int, error) {
	s, waits, err := r.overdue(ctx, id, before)
	waits = slices.DeleteFunc(waits, func(w snapshot.Wait) bool { return !lost[w.Token] })
	if err != nil || len(waits) == 0 {
		return nil, 0, err
	}
	dead, err := r.dead(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	out := engine.Outcome{}
	var first snapshot.Wait
	n := 0
	for i, w := range s.Waits {
		here := func(l snapshot.Wait) bool { return l.Token == w.Token }
		if dead[w.Token] || !slices.ContainsFunc(waits, here) {
			continue
		}
		if n++; n == 1 {
			first = w
		}
		env := signal.Envelope{
			SignalID: signal.Bounded(fmt.Sprintf("%s.%d.again.%d", id, s.Version, i)), InstanceID: id, RuntimeProvider: signal.Provider,
			Type: signalOf[w.Kind], WaitingToken: w.Token, OccurredAt: r.Now(), Headers: s.Headers,
		}
		if w.Kind != snapshot.WaitNext {
			env.DueAt = before // all of them were due by then, who may share it
		}
		out.Send = append(out.Send, engine.Message{Envelope: env})
	}
	if n == 0 {
		return nil, 0, nil
	}
	if err := together(&out); err != nil {
		return nil, 0, err
	}
	r.Log.Warn("an instance waited for messages that were gone; they are sent again", "instance", id,
		"waits", n, "messages", len(out.Send), "kind", first.Kind, "at", first.Pointer, "due", first.Until)
	var list []store.Send
	for _, m := range out.Send {
		body, err := m.Envelope.Encode()
		if err != nil {
			return nil, 0, err
		}
		send := store.Send{Queue: store.Schedule, Body: body}
		if t := m.Envelope.Type; t == signal.InternalContinue || t == signal.InternalContinueAll {
			send.Queue = store.Signals
		}
		list = append(list, send)
	}
	return list, n, nil
}

// dead are the tokens in the dead letters of an instance.
func (r *reconciler) dead(ctx context.Context, id string) (map[string]bool, error) {
	tokens := map[string]bool{}
	for q := (backend.DeadLetterQuery{InstanceID: id}); ; {
		page, err := r.Store.DeadLetters.DeadLetters(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			var names struct {
				Token   string   `json:"waitingToken"`
				Payload branches `json:"payload"`
			}
			_ = jsonv2.Unmarshal(l.Envelope, &names) // what is no envelope has no token
			tokens[names.Token] = true
			for _, token := range names.Payload.Tokens {
				tokens[token] = true
			}
		}
		if q.After = page.Next; q.After == "" {
			return tokens, nil
		}
	}
}
