package runtime

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/events"
	"github.com/aqueduct-engine/aqueduct/runtime/pump"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// pumping wires the pump, and what is done with messages that are more than a
// signal to an instance.
func (r *Runtime) pumping() pump.Config {
	c := pump.Config{
		Queue: carrying{r.Store.Queue, r.turns.Cache, r.strays}, Ledger: r.Store.Ledger, Joins: r.Store.Joins, Streams: r.Store.Streams,
		Node: r.Store.Nodes.Node(), Turns: r.turns, Retries: r.retries, Log: r.Log, Now: r.Now,
		Handlers: map[signal.Type]*pump.Handler{
			signal.StartRequest: {Alone: r.onStart, Refusal: func(env signal.Envelope, cause error) (store.Send, bool) {
				r.verdicts.refusedMessage(env, cause)
				return r.refusal(env, cause)
			}},
			signal.ExternalSignal: {Refusal: func(env signal.Envelope, cause error) (s store.Send, ok bool) {
				r.verdicts.refusedMessage(env, cause)
				return s, ok
			}},
			signal.CancelRequest:        {Moot: absent},
			signal.SubWorkflowCompleted: {For: storedOutput, Complete: r.fetch, Moot: absent},
			signal.TaskCompleted:        {Bind: func(ctx context.Context, s *turn.Signal) { r.OnTaskCompleted(ctx, s) }},
			signal.OperatorRequest:      {Bind: func(ctx context.Context, s *turn.Signal) { r.OnRequest(ctx, s) }},
			signal.AckRequest:           {Outside: func(ctx context.Context, d store.Delivery, env signal.Envelope) error { return r.onAck(ctx, d, env) }},
			signal.InternalContinue:     {For: events.IsLook, Outside: r.Inbox.Look, Moot: absent},
			signal.TimerDue:             {Moot: absent},
			signal.RetryDue:             {Moot: absent},
		},
		OnCommand: func(ctx, stop context.Context, d store.Delivery, env signal.Envelope) error {
			return r.OnCommand(ctx, stop, d, env)
		},
		Committed: r.committed, TakesNumber: takesNumber,
		First:   func(ctx context.Context, env signal.Envelope) error { return r.verdicts.first(ctx, env) },
		Metrics: r.counts, Hands: r.strays, AtOnce: r.Handlers, CrashMax: r.CrashMax,
	}
	for _, all := range shared {
		c.Handlers[all] = &pump.Handler{Bind: func(_ context.Context, s *turn.Signal) { s.Decide = goOn }, Moot: absent}
	}
	if r.SuspendOnDeadLetter {
		c.Suspend = func(ctx context.Context, instance string) error {
			_, err := r.Operate(ctx, instance, engine.Suspend, nil, "dead-letter policy")
			return err
		}
	}
	return c
}

// takesNumber decides about a signal that has come before, under another number of its
// sender: an empty one takes that number, unless somebody has it or waits for it.
func takesNumber(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
	e := in.Signal
	if last, _ := snap.Last(e.Sender); snap.Status.Closed() || e.Sequence <= last || snap.Waiting(e.Sender, e.Sequence) >= 0 {
		return nil, turn.ErrUntouched
	}
	return turn.Step(def, snap, in)
}

// onStart begins the instance that a program, a schedule or a parent asked for
// through the queue.
func (r *Runtime) onStart(ctx context.Context, d store.Delivery, env signal.Envelope, now time.Time) error {
	start, err := signal.DecodeStart(env.Payload)
	if err != nil {
		return err
	}
	if err := r.allowed(ctx, d, env.InstanceID, start); err != nil {
		return err
	}
	ok, left, err := r.wanted(ctx, d, start.Parent)
	if err != nil {
		return err
	}
	if !ok { // its parent has gone on without it
		var c store.Change
		if answer, told := r.refusal(env, errLeft); left && told {
			c.Send = []store.Send{answer}
		}
		return d.Commit(ctx, c)
	}
	return r.OnStart(ctx, d, env, start, now)
}

// retrying wires what becomes of messages that fail.
func (r *Runtime) retrying() *pump.Retries {
	return &pump.Retries{
		Max: r.RetryMax, Delay: r.RetryDelay, DelayMax: r.RetryDelayMax, Patience: r.Patience, OrderGrace: r.OrderGrace,
		Now: r.Now, Blame: blame,
	}
}

// blame is whose fault a problem is with who answered a human task, triggered an
// event, or asked for an instance or an operation. That is the sender's: trying again does not help,
// unless the instance is just between two states, and the instance has nothing to
// do with it (D2).
func blame(p *problem.Error) pump.Blame {
	ours := p.Kind == problem.Internal || p.Kind == problem.Unavailable
	return pump.Blame{
		Sender: !ours && (strings.HasPrefix(p.Code, "task.") || strings.HasPrefix(p.Code, "lifecycle.") || strings.HasPrefix(p.Code, "ack.") || p.Code == codeForbidden || p.Code == service.CodeTaken || p.Code == service.CodeReserved ||
			slices.Contains(service.Refusals, p.Code)),
		Passing:   slices.Contains(engine.Passing, p.Code),
		Overtaken: p.Code == "lifecycle.refused",
	}
}
