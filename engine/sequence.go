package engine

import (
	"bytes"
	"slices"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// A sender that numbers its signals to an instance has them applied in that order, on whatever ways and nodes they
// come (design-2 §1). The instance remembers the number that it took last, and keeps those that come before their
// turn. What is refused to somebody who still has it (a caller, the dead letters) takes no number; a kept signal has
// nobody to go back to, so its refusal is recorded and takes the number. An empty signal takes its number and says
// nothing: so closes a gap whoever knows that nothing will come.

// numbered applies a signal with a sequence, when it is its turn.
func (t intake) numbered(def Definition) (*Outcome, error) {
	env, s := t.In.Signal, t.Snap
	last, known := s.Last(env.Sender)
	if i := s.Waiting(env.Sender, env.Sequence); i >= 0 && isEmpty(env) {
		s.Ahead = slices.Delete(s.Ahead, i, i+1)
	} else if i >= 0 || env.Sequence <= last {
		return t.ignore(Duplicate)
	}
	if !known {
		if len(s.Senders) >= snapshot.MaxSenders {
			return nil, problem.New(problem.TooLarge, "limit.senders", "instance %s has %d senders already", s.InstanceID, snapshot.MaxSenders).
				WithHint("send without sender and sequence, or fewer senders to one instance")
		}
		s.Senders = append(s.Senders, snapshot.Sender{Name: env.Sender})
	}
	if env.Sequence > last+1 {
		return t.keepAhead()
	}
	t.took(env)
	if isEmpty(env) {
		return t.ignore(Applied)
	}
	return t.external(def)
}

// took notes that the number of a signal is taken.
func (t intake) took(env signal.Envelope) {
	i := slices.IndexFunc(t.Snap.Senders, func(x snapshot.Sender) bool { return x.Name == env.Sender })
	t.Snap.Senders[i].Last = env.Sequence
}

// isEmpty reports whether the payload of a signal says nothing.
func isEmpty(env signal.Envelope) bool {
	p := bytes.TrimSpace(env.Payload)
	return len(p) == 0 || p[0] == '{' && len(bytes.TrimSpace(p[1:len(p)-1])) == 0
}

// keepAhead keeps a signal until its turn comes.
func (t intake) keepAhead() (*Outcome, error) {
	env := t.In.Signal
	if len(t.Snap.Ahead) >= snapshot.MaxAhead {
		return nil, problem.New(problem.TooLarge, "limit.ahead", "instance %s keeps %d signals already that wait for their turn", env.InstanceID, snapshot.MaxAhead).
			WithHint("send what is missing before them first")
	}
	if err := t.roomFor(env); err != nil {
		return nil, err
	}
	b := buffered(env)
	b.Sender, b.Sequence = env.Sender, env.Sequence
	t.Snap.Ahead, t.Basis.Occurred = append(t.Snap.Ahead, b), env.OccurredAt
	return t.ignore(Buffered)
}

// followed applies the kept signals whose turn has come, each in a decision of its own on what the one before has
// left. Where one cannot be decided now, it and those behind it stay.
func followed(def Definition, out *Outcome, in Input) *Outcome {
	did := out.Disposition
	in.Own = false // what one that is refused has changed must not stay
	for {
		if d, ok := def.(Superseded); ok && out.Snapshot.Definition != def.Ref() {
			def = d.Successor()
		}
		i := out.Snapshot.NextAhead()
		if i < 0 || out.Snapshot.Status.Closed() {
			return out
		}
		s := out.Snapshot
		b := s.Ahead[i]
		s.Ahead = slices.Delete(slices.Clone(s.Ahead), i, i+1)
		in.Signal = signal.Envelope{
			InstanceID: s.InstanceID, RuntimeProvider: signal.Provider, Type: signal.Type(b.Type), OccurredAt: b.OccurredAt,
			Payload: b.Payload, Sender: b.Sender, Sequence: b.Sequence, Principal: b.Principal,
		}
		if b.Actor != "" {
			in.Signal.Headers = map[string]string{signal.HeaderActor: b.Actor}
		}
		next, err := step(def, &s, in)
		if err != nil && !final(err) {
			return out
		}
		if err != nil {
			t := newTurn(s.Clone(), in)
			intake{t}.took(in.Signal)
			t.refusal = err.Error()
			if next, err = (intake{t}).ignore(Refused); err != nil {
				return out
			}
		}
		next.Entries[0].Meta.Basis = nil // the decision before leads to it
		out = out.Then(next)
		out.Disposition = did
	}
}

// final reports whether a refusal stays one: not so when the instance is just
// between two states or keeps too much, nor when the fault is ours.
func final(err error) bool {
	switch problem.KindOf(err) {
	case problem.Internal, problem.Unavailable, problem.TooLarge:
		return false
	}
	return !slices.Contains(Passing, problem.CodeOf(err))
}
