package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
)

// An event that its sender may not trigger changes nothing of its instance, but it is
// told: by an entry of the stream, and by a CloudEvent. Who tries again is counted on
// the entry, so that nobody fills a stream with what they may not do.

// codeForbidden is the reason why an event was refused.
const codeForbidden = "event.forbidden"

const (
	entryForbidden = "EventForbidden"
	typeForbidden  = "io.aqueduct.lifecycle.event-forbidden.v1"
)

// forbiddenMax is how long an answer waits for its entry.
const forbiddenMax = 5 * time.Second

// forbidden is the refusal of an event to whoever has sent it; program.Forbidden is one.
type forbidden interface {
	error
	Notice() (instance, actor, same string, data json.RawMessage)
}

// forbade records that an event was refused to its sender, if that is what err says. It
// is no reason to refuse anything else that this cannot be written: the log says it then.
func (a *ackNotes) forbade(ctx context.Context, err error) {
	var f forbidden
	if !errors.As(err, &f) {
		return
	}
	instance, actor, same, data := f.Notice()
	if instance == "" {
		return // the audit has it
	}
	once := "forbidden/" + uuid.NewSHA1(engine.EventSpace, []byte(same)).String()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forbiddenMax)
	defer cancel()
	did, failed := a.forbid(ctx, instance, actor, once, data)
	if failed == nil && did == engine.Duplicate && a.Store.Repeats != nil {
		failed = counted(ctx, a.Store.Repeats, instance, once)
	}
	if failed != nil && !errors.Is(failed, store.ErrNotFound) {
		a.Log.Warn("a forbidden event could not be recorded", "instance", instance, "actor", actor, "refused", err, "error", failed)
	}
}

func (a *ackNotes) forbid(ctx context.Context, instance, actor, once string, data json.RawMessage) (engine.Disposition, error) {
	now := a.Now()
	s := turn.Signal{Now: now, Envelope: signal.Envelope{
		SignalID: "forbidden/" + uuid.NewString(), InstanceID: instance, RuntimeProvider: signal.Provider, Type: signal.RetryDue, OccurredAt: now,
	}}
	var refused struct {
		State string `json:"state"`
	}
	if err := jsonv2.Unmarshal(data, &refused); err != nil {
		return "", err
	}
	s.Decide = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		return ackTurn(def, snap, in, func(t *engine.Turn) error {
			at := t.Append(engine.Entry{
				Kind: engine.KindEvent, Dir: engine.In, Type: entryForbidden, Data: data, SignalID: once,
				Meta: engine.Meta{Actor: actor, Disposition: engine.Refused, Refusal: codeForbidden},
			})
			id := ack.EventID(t, "forbidden", at)
			event, err := json.Marshal(map[string]any{
				"specversion": "1.0", "id": id, "type": typeForbidden, "source": engine.EventSource(t.Snap.Definition.Name), "subject": t.Snap.InstanceID,
				"time": t.In.Now.Format(time.RFC3339Nano), "datacontenttype": "application/json", "data": data,
			})
			if !ack.Stays(def, "/states/"+refused.State, entryForbidden) {
				t.Emit(event, "", "")
			}
			return err
		})
	}
	out, err := a.pump.Submit(ctx, s)
	return out.Disposition, err
}
