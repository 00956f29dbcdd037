package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// unverifiable says why a turn cannot be made again here, though nothing is wrong
// with it.
type unverifiable struct{ why string }

func (u *unverifiable) Error() string { return u.why }

// decide makes the decision that a group of entries is of.
func (p *player) decide(ctx context.Context, group []row) (*engine.Outcome, error) {
	first := &group[0]
	b := first.meta.Basis
	p.policed = p.policed || first.meta.Policy != ""
	in := p.input(first)
	if b.Origin != nil {
		return p.begin(ctx, group, in)
	}
	if b.By == ack.ByNote {
		return p.note(group, in)
	}
	if b.By == engine.EntryFaulted {
		e, err := fault(group)
		if err != nil {
			return nil, err
		}
		return engine.FaultWith(p.snap, e, in)
	}
	def, err := p.goneOn(ctx, group, p.snap.Definition, first.meta.Policy)
	if err != nil {
		return nil, err
	}
	switch op := engine.Operation(b.By); {
	case b.By == "":
		in.Own = true // what was before is not needed any more
		return engine.Step(def, p.snap, in)
	case b.By == definition.ByMigration:
		return p.migrate(ctx, def, first, in)
	case b.By == schedule.ByHandOver:
		var successor string
		if err := jsonv2.Unmarshal(b.With, &successor); err != nil || p.snap.Schedule == nil {
			return nil, fmt.Errorf("the basis hands over what is no schedule, or to %s", b.With)
		}
		return schedule.End(def, p.snap, successor, in)
	case op == operate.RunNow, op == operate.Rewind, slices.Contains(engine.Operations, op):
		in.Requests = p.commands
		return operate.Operate(def, p.snap, op, b.With, in)
	}
	return nil, &unverifiable{fmt.Sprintf("the turn was decided by %q, which this program does not know", b.By)}
}

// definition is what an instance runs.
func (p *player) definition(ctx context.Context, ref snapshot.Definition, policy string) (engine.Definition, error) {
	def, err := p.Definitions.Under(ctx, ref, policy)
	if err != nil {
		return nil, &unverifiable{fmt.Sprintf("definition %s@%s: %v", ref.Name, ref.Version, err)}
	}
	if s, ok := def.(engine.Superseded); ok {
		return nil, &unverifiable{fmt.Sprintf("definition %s@%s is Go code, and this program has it as %s only", ref.Name, ref.Version, s.Successor().Ref().Version)}
	}
	return def, nil
}

// goneOn is what a turn was decided by: what the instance ran, or the version in which it
// has gone on in that turn, by upcasts.
func (p *player) goneOn(ctx context.Context, group []row, ref snapshot.Definition, policy string) (engine.Definition, error) {
	i := slices.IndexFunc(group, func(x row) bool { return x.Type == definition.EntryMigrated })
	if i < 0 || group[0].meta.Basis.By == definition.ByMigration {
		return p.definition(ctx, ref, policy)
	}
	var to struct {
		To snapshot.Definition `json:"to"`
	}
	if err := jsonv2.Unmarshal(group[i].Data, &to); err != nil {
		return nil, fmt.Errorf("entry %d does not say what the instance has gone on in: %w", group[i].Position, err)
	}
	next, err := p.definition(ctx, to.To, policy)
	if err != nil {
		return nil, err
	}
	if newer, ok := next.(definition.Newer); ok {
		if def, leads := newer.From(ref); leads {
			return def, nil
		}
	}
	return nil, &unverifiable{fmt.Sprintf("definition %s@%s goes on with no instance of version %s here", to.To.Name, to.To.Version, ref.Version)}
}

// input is what a turn was decided on. The moment and what the signal said stand in
// its first entry.
func (p *player) input(first *row) engine.Input {
	b := first.meta.Basis
	in := engine.Input{
		Now: first.CreatedAt, Clock: b.Clock, Key: p.Key, Epoch: cmp.Or(b.Epoch, p.snap.Epoch, 1),
		Lifecycle: b.Lifecycle, Crowded: b.Crowded, Engine: b.Engine,
	}
	if l := b.Limits; len(l) == 5 {
		in.Limits.Steps, in.Limits.FanOut, in.Limits.Items = l[0], l[1], l[2]
		in.Limits.Expression.Steps, in.Limits.Expression.Bytes = l[3], l[4]
	}
	env := signal.Envelope{
		SignalID: first.SignalID, InstanceID: p.found.Instance, RuntimeProvider: signal.Provider, Type: signal.Type(first.Type), Payload: first.Data,
		Sender: first.meta.Sender, Sequence: first.meta.Sequence, ExpectedVersion: b.Expected, DueAt: b.Due,
		OccurredAt: first.CreatedAt, Principal: b.Principal,
	}
	if !b.Occurred.IsZero() {
		env.OccurredAt = b.Occurred
	}
	if first.meta.Actor != "" {
		env.Headers = map[string]string{signal.HeaderActor: first.meta.Actor}
	}
	switch {
	case b.Wait < 0:
		env.WaitingToken = "-" // which no wait has
	case b.Wait > 0 && b.Wait <= len(p.snap.Waits):
		env.WaitingToken = p.snap.Waits[b.Wait-1].Token
	}
	switch {
	case b.By != "" && b.By != engine.EntryFaulted && first.SignalID != "":
		env.Type = signal.OperatorRequest
	case b.By == "" && first.Type == engine.EntryCancelled && p.snap.Parent != nil: // of whose word only this is left
		env.Type = signal.CancelRequest
		var c signal.Cancellation
		if len(b.With) > 0 {
			_ = jsonv2.Unmarshal(b.With, &c) // what the engine has written
		}
		c.Token = p.snap.Parent.Token
		env.Payload, _ = json.Marshal(c) // strings cannot fail
	}
	in.Signal = env
	return in
}

// begin makes the first turn.
func (p *player) begin(ctx context.Context, group []row, in engine.Input) (*engine.Outcome, error) {
	first, o := &group[0], *group[0].meta.Basis.Origin
	input := first.Data
	if digest(input) != string(o.State.Input) { // a store may give it with other spaces
		if input = p.given; digest(input) != string(o.State.Input) {
			return nil, fmt.Errorf("the input has the digest %s, and began with %s", digest(input), o.State.Input)
		}
	}
	def, err := p.goneOn(ctx, group, o.Definition, first.meta.Policy)
	if err != nil {
		return nil, err
	}
	if first.meta.Basis.By == schedule.ByHeir {
		if def, err = p.heir(ctx, def, first.meta.Basis.With); err != nil {
			return nil, err
		}
	}
	in.Incarnation = o.Incarnation
	o.State.Input = input
	if first.meta.Basis.By == engine.EntryFaulted {
		e, err := fault(group)
		if err != nil {
			return nil, err
		}
		return engine.FaultFirst(def, o, e, in)
	}
	start := signal.Start{
		Definition: o.Definition.Name, Version: o.Definition.Version, BusinessKey: o.Business.Key, KeyParts: o.Business.Parts,
		Input: input, Parent: (*signal.Parent)(o.Parent),
	}
	if s := o.Schedule; s != nil {
		start.Schedule = &signal.Schedule{Generation: s.Generation, Due: s.Due}
	}
	in.Signal.Headers = withActor(o.Headers, first.meta.Actor)
	for _, x := range group[1:] {
		if x.Direction == string(engine.In) && x.Type == string(signal.ExternalSignal) {
			if start.Signal, in.Signal.OccurredAt, err = said(x, in.Signal.OccurredAt, !first.meta.Basis.Occurred.IsZero()); err != nil {
				return nil, err
			}
			break
		}
	}
	return engine.Begin(def, p.found.Instance, start, in)
}

// heir is the definition of a schedule that goes on from the instance of another
// version, which has left a snapshot.
func (p *player) heir(ctx context.Context, next engine.Definition, left []byte) (engine.Definition, error) {
	snap, err := snapshot.Decode(left)
	if err != nil {
		return nil, err
	}
	old, err := p.definition(ctx, snap.Definition, "")
	if err != nil {
		return nil, err
	}
	return schedule.Heir(next, old, &snap), nil
}

// digest is that of an input, as the basis has it.
func digest(input json.RawMessage) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(input)) }

// withActor are headers of a start, by whoever has asked for it.
func withActor(headers map[string]string, actor string) map[string]string {
	if actor == "" {
		return headers
	}
	all := map[string]string{signal.HeaderActor: actor}
	for k, v := range headers {
		all[k] = v
	}
	return all
}

// said is the signal of a start, as its entry has it. Its moment stands in its event,
// and more exactly in the basis, where the signal was kept.
func said(x row, occurred time.Time, exact bool) (*signal.FirstSignal, time.Time, error) {
	var event struct {
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
		Time time.Time       `json:"time"`
		Acks *bool           `json:"ackRequired"`
	}
	if err := jsonv2.Unmarshal(x.Data, &event, jsonv2.RejectUnknownMembers(false)); err != nil {
		return nil, occurred, fmt.Errorf("entry %d is no event: %w", x.Position, err)
	}
	if !exact {
		occurred = event.Time
	}
	return &signal.FirstSignal{
		ID: cmp.Or(x.SignalID, event.ID), Type: event.Type, Data: event.Data, Actor: x.meta.Actor, Sender: x.meta.Sender, Sequence: x.meta.Sequence,
		AckRequired: event.Acks,
	}, occurred, nil
}

// fault is the error with which a turn that could not be written has ended.
func fault(group []row) (e snapshot.Error, err error) {
	for _, x := range group {
		if x.Type == engine.EntryFaulted {
			return e, jsonv2.Unmarshal(x.Data, &e)
		}
	}
	return e, fmt.Errorf("the turn has faulted the instance, and no entry says so")
}

// migrate takes the instance to another version.
func (p *player) migrate(ctx context.Context, from engine.Definition, first *row, in engine.Input) (*engine.Outcome, error) {
	var refs struct {
		To snapshot.Definition `json:"to"`
	}
	if err := jsonv2.Unmarshal(first.Data, &refs); err != nil {
		return nil, err
	}
	var pointers map[string]string
	if with := first.meta.Basis.With; len(with) > 0 {
		if err := jsonv2.Unmarshal(with, &pointers); err != nil {
			return nil, err
		}
	}
	to, err := p.definition(ctx, refs.To, "")
	if err != nil {
		return nil, err
	}
	plan, err := definition.PlanMigration(from, to, pointers)
	var out *engine.Outcome
	if err == nil {
		out, err = plan.Migrate(p.snap, in)
	}
	if err != nil && p.policed {
		return nil, &unverifiable{"the migration was planned under policies, which its entry does not name: " + err.Error()}
	}
	return out, err
}

// note records what a consumer has said, or was told: of the instance it changes
// nothing, and its entries are all there is of it.
func (p *player) note(group []row, in engine.Input) (*engine.Outcome, error) {
	return engine.Decide(nil, p.snap, in, func(t *engine.Turn) error {
		t.Basis.By, t.Snap.UpdatedAt = ack.ByNote, p.snap.UpdatedAt
		for _, x := range group {
			if x.Type == engine.EntryLifecycle {
				continue
			}
			e := engine.Entry{
				Kind: engine.EntryKind(x.Kind), Dir: engine.Direction(x.Direction), Type: x.Type, Data: x.Data, Meta: x.meta, SignalID: x.SignalID,
			}
			e.Meta.Steps, e.Meta.Version, e.Meta.Basis = nil, 0, nil
			if e.Kind == engine.KindCommand {
				var err error
				if e.Command, err = commandIn(x.Data); err != nil {
					return err
				}
				e.Data = nil
			}
			t.Append(e)
		}
		return nil
	})
}
