package service

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
)

// Snapshot returns an instance's last committed snapshot. Problem:
// instance.unknown.
func (o *Operator) Snapshot(ctx context.Context, id string) (snapshot.Snapshot, error) {
	s, part, err := o.Turns.Load(ctx, o.Writer, id)
	if err != nil {
		return snapshot.Snapshot{}, turn.Unknown(err, id)
	}
	part.Release()
	return *s, nil
}

// Takes lists the events that an instance of a lifecycle takes now, by their
// names; its guards may still refuse one. Problems: definition.unknown,
// definition.digest.
func (o *Operator) Takes(ctx context.Context, s snapshot.Snapshot) ([]string, error) {
	def, err := o.Definitions.Pinned(ctx, s.Definition)
	if err != nil {
		return nil, err
	}
	p, ok := def.(engine.Stateful)
	if !ok {
		return nil, nil
	}
	return p.Takes(&s), nil
}

// SearchAttributes are those that a version of a definition declares; version "" is the
// highest. Problem: definition.unknown.
func (o *Operator) SearchAttributes(ctx context.Context, name, version string) ([]attribute.Declared, error) {
	def, err := o.Definitions.Find(ctx, name, version)
	if err != nil {
		return nil, err
	}
	if d, ok := def.(attribute.Searchable); ok {
		return d.SearchAttributes(), nil
	}
	return nil, nil
}

// Operate does what an operator asks, in one turn (B8): applied. Where only another node
// has the code of the instance it is queued, and that node does it. Problems:
// instance.unknown and those of operate.Operate.
func (o *Operator) Operate(ctx context.Context, id string, op engine.Operation, output json.RawMessage, actor string) (engine.Disposition, error) {
	return o.OperateAt(ctx, id, op, output, 0, actor)
}

// OperateAt is Operate of an instance as somebody has seen it, at a version; 0 = whatever it
// is. Problem: instance.changed.
func (o *Operator) OperateAt(ctx context.Context, id string, op engine.Operation, output json.RawMessage, version int64, actor string) (engine.Disposition, error) {
	return o.operate(ctx, id, request{Operation: op, Output: output, Version: version}, actor)
}

func (o *Operator) operate(ctx context.Context, id string, r request, actor string) (engine.Disposition, error) {
	now := o.Now()
	env := signal.Envelope{SignalID: NewID(), InstanceID: id, Type: signal.ExternalSignal, OccurredAt: now, Headers: ActorHeader(actor)}
	by := audit.As(audit.Row(ctx, now, string(r.Operation), id, id), actor)
	out, err := o.Pump.Submit(ctx, turn.Signal{
		Envelope: env, Now: now, Decide: o.decision(ctx, r), Amend: func(c *store.Change) { audit.Over(c, by) },
	})
	if problem.CodeOf(err) == engine.CodeElsewhere && r.Operation != operate.Rewind {
		return engine.Queued, o.handOn(ctx, env, r, by)
	}
	return out.Disposition, err
}

// OnRequest has an OperatorRequest from the queue decided as Operate decides. One
// that is refused is a dead letter with the code that the API gives.
func (o *Operator) OnRequest(ctx context.Context, s *turn.Signal) {
	var r request
	if err := jsonv2.Unmarshal(s.Envelope.Payload, &r); err != nil {
		r.Operation = "" // which is none
	}
	if r.Operation == operate.Rewind { // whoever may send messages would write what an instance remembers
		r.Operation = ""
	}
	s.Decide = o.decision(ctx, r)
}

// Refusals are the codes with which an operation is refused.
var Refusals = []string{
	"instance.closed", "instance.not-faulted", "instance.compensated", "instance.suspended", "instance.not-suspended", "instance.faulted",
	"instance.not-compensable", "instance.compensating", "effect.undecided", "operation.unknown", codeChanged,
	"instance.nothing-to-run", "instance.several-to-run",
}

// codeChanged refuses what was asked of an instance as it was.
const codeChanged = "instance.changed"

// ChangedSince says that an instance is not what it was at a version; 0 = whatever it is.
func ChangedSince(snap *snapshot.Snapshot, version int64) error {
	if version == 0 || snap.Version == version {
		return nil
	}
	return problem.Wrap(turn.ErrUntouched, problem.Conflict, codeChanged, "instance %s has version %d, not %d", snap.InstanceID, snap.Version, version)
}

func (o *Operator) decision(ctx context.Context, r request) turn.Decision {
	op := r.Operation
	return func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		if err := ChangedSince(snap, r.Version); err != nil {
			return nil, err
		}
		if op == engine.RetrySame {
			var err error
			if in.Requests, err = o.requests(ctx, snap); err != nil {
				return nil, err
			}
		}
		return operate.Operate(def, *snap, op, r.Output, in)
	}
}

// requests are the commands of an instance whose outcome is unknown, as their
// rows have them.
func (o *Operator) requests(ctx context.Context, snap *snapshot.Snapshot) (map[int64]engine.Command, error) {
	list := map[int64]engine.Command{}
	for _, e := range snap.Effects {
		if !e.Unknown {
			continue
		}
		row, ok, err := o.Commands.Entry(ctx, snap.InstanceID, e.Command)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, problem.New(problem.Internal, "command.corrupt", "command %d of %s is not in its stream", e.Command, snap.InstanceID)
		}
		if list[e.Command], err = o.Commands.Command(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}
