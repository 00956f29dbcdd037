package runtime

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// goOnMax is how many waits one message has go on: a fork of a thousand branches that
// wait for another turn, or for the same moment, is a few messages, behind which others
// do not wait for long. Their tokens are less than 4,000 bytes, which a query of Oracle
// reads.
const goOnMax = 128

// shared are the types of signals that waits of an instance share one of, and what the
// one is called.
var shared = map[signal.Type]signal.Type{
	signal.InternalContinue: signal.InternalContinueAll,
	signal.TimerDue:         signal.TimerDueAll,
	signal.RetryDue:         signal.RetryDueAll,
}

// branches is the payload of a shared signal.
type branches struct {
	Tokens []string `json:"tokens"` // of the waits
}

// together has the waits that a turn leaves for the same moment share messages. Each
// has the id of the first that it stands for.
func together(out *engine.Outcome) error {
	type moment struct {
		typ signal.Type
		due time.Time
	}
	of := func(m *engine.Message) (moment, bool) {
		e := &m.Envelope
		return moment{e.Type, m.Due.UTC()}, shared[e.Type] != "" && e.WaitingToken != "" && len(e.Payload) == 0
	}
	count := map[moment]int{}
	for i := range out.Send {
		if at, ok := of(&out.Send[i]); ok {
			count[at]++
		}
	}
	type share struct {
		place  int // in send
		tokens []string
	}
	var all []*share
	last := map[moment]*share{}
	send := out.Send[:0:0]
	for _, m := range out.Send {
		at, ok := of(&m)
		if !ok || count[at] < 2 {
			send = append(send, m)
			continue
		}
		s := last[at]
		if s == nil || len(s.tokens) == goOnMax {
			s = &share{place: len(send)}
			send, all, last[at] = append(send, m), append(all, s), s
		}
		s.tokens = append(s.tokens, m.Envelope.WaitingToken)
	}
	for _, s := range all {
		payload, err := jsonv2.Marshal(branches{s.tokens})
		if err != nil {
			return err
		}
		e := &send[s.place].Envelope
		e.Type, e.WaitingToken, e.Payload = shared[e.Type], "", payload
	}
	out.Send = send
	return nil
}

// goOn decides a shared signal: each wait goes on as if it had a message of its
// own, with its share of the steps of a turn. Whose wait is gone, or is left when the
// turn has written much, is as with messages of their own, too: stale, or the next's.
func goOn(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
	var all branches
	if err := jsonv2.Unmarshal(in.Signal.Payload, &all); err != nil || len(all.Tokens) == 0 {
		return nil, problem.New(problem.Invalid, "signal.invalid", "the payload of %s names no tokens", in.Signal.Type)
	}
	if in.Limits.Steps == 0 {
		in.Limits.Steps = engine.DefaultSteps
	}
	in.Limits.Steps = max(in.Limits.Steps/len(all.Tokens), 1)
	for one, all := range shared {
		if in.Signal.Type == all {
			in.Signal.Type, in.Signal.Payload = one, nil
			break
		}
	}
	var out *engine.Outcome
	written := 0
	for i, token := range all.Tokens {
		if out != nil {
			if _, ok := out.Snapshot.Wait(token); !ok {
				continue
			}
			snap, in.Own = &out.Snapshot, true
			if d, ok := def.(engine.Superseded); ok && snap.Definition.Alone() != def.Ref() { // the wait before has brought it there
				def = d.Successor()
			}
		} else if _, ok := snap.Wait(token); !ok && i < len(all.Tokens)-1 {
			continue
		}
		in.Signal.WaitingToken = token
		if written >= engine.MaxTurnBytes {
			later := in.Signal
			later.SignalID = signal.Bounded(fmt.Sprintf("%s.%d", in.Signal.SignalID, i))
			out.Send = append(out.Send, engine.Message{Envelope: later})
			continue
		}
		next, err := engine.Step(def, *snap, in)
		if err != nil {
			return nil, err
		}
		for _, e := range next.Entries {
			if written += len(e.Data); e.Command != nil {
				written += len(e.Command.Input)
			}
		}
		if out != nil {
			next = out.Then(next)
		}
		out = next
	}
	return out, nil
}
