package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A message with a key of the application has the verdict of the first one of that key
// (B7), and so it is refused when that was: by an entry of the stream with the id of the
// key, which is all that there is to find by it. Decision 219 says which verdicts that are.

// entryRefused is the entry of a message that was refused under its key.
const entryRefused = "SignalRefused"

// verdictMax is how long an answer waits for its entry.
const verdictMax = 5 * time.Second

// lasting are the refusals that an instance makes of a message: not that of a sender,
// who may not burn another's key, nor one that is over when something else is.
var lasting = []string{"lifecycle.unknown-event", "lifecycle.invalid-payload", "lifecycle.refused", "signal.stale"}

// verdict is the data of the entry.
type verdict struct {
	Code   string       `json:"code"`
	Kind   problem.Kind `json:"kind"`
	Detail string       `json:"detail"`
}

// verdicts keeps refusals under the keys of messages, and tells them.
type verdicts struct {
	*Runtime
	notes *ackNotes
}

// isKeyed reports whether an id is that of a key of the application. Those of long keys are
// digests, as those of other long ids may be: nobody is wronged who has one.
func isKeyed(id string) bool {
	const digest = 1 + 64
	return strings.HasPrefix(id, signal.Keyed("")) || strings.HasPrefix(id, "~") && len(id) == digest
}

// refusedMessage records what is to be known of a message that is refused for good.
func (v *verdicts) refusedMessage(env signal.Envelope, err error) {
	ctx := context.Background()
	if said, there := v.said(ctx, env); there {
		env = said
	}
	v.refused(ctx, env, err)
}

// said is the signal of a message to an instance that is there: the message, or what a
// start request has for the one that was begun before.
func (v *verdicts) said(ctx context.Context, env signal.Envelope) (signal.Envelope, bool) {
	if env.Type != signal.StartRequest {
		return env, true
	}
	start, err := signal.DecodeStart(env.Payload)
	if err != nil || start.Signal == nil {
		return env, false
	}
	id, there, err := v.Find(ctx, env.InstanceID, start)
	if err != nil || !there {
		return env, false
	}
	said, err := start.Signal.Envelope(id, env)
	return said, err == nil
}

// refused keeps that a message was refused, if it has a key and err is such a refusal. It is
// no reason to refuse anything else that this cannot be written: the log says it then. Another
// message of the key may have come meanwhile, and been first: its verdict counts.
func (v *verdicts) refused(ctx context.Context, env signal.Envelope, err error) (overtaken bool) {
	v.notes.forbade(ctx, err)
	var p *problem.Error
	if !isKeyed(env.SignalID) || !errors.As(err, &p) || !slices.Contains(lasting, p.Code) {
		return false
	}
	data, failed := json.Marshal(verdict{p.Code, p.Kind, p.Detail})
	if failed == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verdictMax)
		defer cancel()
		overtaken, failed = v.keep(ctx, env, p.Code, data)
	}
	if failed != nil && problem.KindOf(failed) != problem.NotFound {
		v.Log.Warn("a refusal could not be kept under its key", "instance", env.InstanceID, "signal", env.SignalID, "refused", err, "error", failed)
	}
	return overtaken
}

func (v *verdicts) keep(ctx context.Context, env signal.Envelope, code string, data json.RawMessage) (overtaken bool, err error) {
	now := v.Now()
	s := turn.Signal{Now: now, Envelope: signal.Envelope{
		SignalID: "refused/" + uuid.NewString(), InstanceID: env.InstanceID, RuntimeProvider: signal.Provider, Type: signal.RetryDue, OccurredAt: now,
	}}
	s.Decide = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		return ackTurn(def, snap, in, func(t *engine.Turn) error {
			t.Append(engine.Entry{
				Kind: engine.KindEvent, Dir: engine.In, Type: entryRefused, Data: data, SignalID: env.SignalID,
				Meta: engine.Meta{Actor: env.Headers[signal.HeaderActor], Disposition: engine.Refused, Refusal: code},
			})
			return nil
		})
	}
	out, err := v.pump.Submit(ctx, s)
	return err == nil && out.Disposition == engine.Duplicate, err
}

// first is the refusal of the first of several messages that are one; nil = it was none.
func (v *verdicts) first(ctx context.Context, env signal.Envelope) error {
	if !isKeyed(env.SignalID) {
		return nil
	}
	e, err := v.Store.Streams.Received(ctx, env.InstanceID, env.SignalID)
	if errors.Is(err, store.ErrNotFound) {
		return nil // the instance is gone since
	}
	if err != nil || e.Type != entryRefused {
		return err
	}
	return remembered(e)
}

// remembered is the refusal that an entry keeps.
func remembered(e projections.Entry) error {
	var v verdict
	if err := jsonv2.Unmarshal(e.Data, &v); err != nil {
		return problem.Wrap(err, problem.Internal, "stream.corrupt", "entry %d of %s is no refusal", e.Position, e.InstanceID)
	}
	return problem.New(v.Kind, v.Code, "%s", v.Detail).
		WithHint("the first message of its key was refused so (position %d): what is to be decided anew has another key", e.Position)
}

// anew is what is sent when a dead letter is replayed: what it was, but where it was refused
// under its key, which would refuse it again. It has an id of its own then, which is applied
// once, too; nil = what it was.
func (v *verdicts) anew(ctx context.Context, l projections.DeadLetter) ([]byte, error) {
	env, err := signal.Decode(l.Envelope)
	if err != nil {
		return nil, nil // as it is, for whoever can read it
	}
	said, there := v.said(ctx, env)
	if !there {
		return nil, nil
	}
	switch err := v.first(ctx, said); {
	case err == nil:
		return nil, nil
	case !slices.Contains(lasting, problem.CodeOf(err)):
		return nil, err
	}
	id := "replay/" + l.ID
	if env.Type != signal.StartRequest {
		env.SignalID, env.DedupeKey = id, ""
		return env.Encode()
	}
	start, err := signal.DecodeStart(env.Payload)
	if err != nil {
		return nil, err
	}
	start.Signal.ID = id
	if env.Payload, err = json.Marshal(start); err != nil {
		return nil, err
	}
	return env.Encode()
}
