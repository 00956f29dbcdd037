package program

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// emit publishes an event, which is also the task's output. It does not wait:
// the event is a command in the commit of this turn, and is published after
// it (B5).
func (r calls) emit(n *Node, in *scope) error {
	v, err := r.evals.evalAny(n.Emit, in)
	if err != nil {
		return err
	}
	with, ok := v.(map[string]any)
	if !ok {
		return raise(engine.ErrValidation, 400, "Invalid event", fmt.Sprintf("with gives %s, not an object", kindOf(v)))
	}
	event, key, err := r.cloudEvent(with, r.at(n, 0))
	if err != nil {
		return err
	}
	out := anyValue(event)
	raw, err := out.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return err
	}
	if len(raw) > engine.MaxEventBytes {
		return raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("an event of %d bytes exceeds %d", len(raw), engine.MaxEventBytes))
	}
	r.t.Emit(raw, n.Pointer, key)
	return r.complete(n, out, n.Then)
}

// cloudEvent completes the attributes that the author gives. The id is made of
// the key of the effect, so that a retry emits the same event: but for the time,
// which is that of the last emission where the author gives none.
func (r calls) cloudEvent(with map[string]any, at engine.Effect) (event map[string]any, key string, err error) {
	given := anyValue(with)
	raw, err := given.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return nil, "", err
	}
	c := engine.Command{Target: engine.TargetEvent, Input: raw}
	key = r.t.Effects.Key(at, &c)
	event = map[string]any{
		"specversion": "1.0",
		"id":          uuid.NewSHA1(engine.EventSpace, []byte(key)).String(),
		"source":      engine.EventSource(r.t.Snap.Definition.Name),
		"time":        r.t.In.Now.Format(time.RFC3339Nano),
	}
	for name, v := range with {
		if v != nil {
			event[name] = v
		}
	}
	for _, name := range []string{"id", "source", "type"} {
		if s, ok := event[name].(string); !ok || s == "" {
			return nil, "", raise(engine.ErrValidation, 400, "Invalid event", fmt.Sprintf("%s is %s, not a string with content", name, kindOf(event[name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(event)) {
		switch event[name].(type) {
		case []any, map[string]any:
			if name != "data" {
				return nil, "", raise(engine.ErrValidation, 400, "Invalid event", fmt.Sprintf("%s is %s, not one value", name, kindOf(event[name])))
			}
		}
	}
	if event["specversion"] != "1.0" {
		return nil, "", raise(engine.ErrValidation, 400, "Invalid event", "specversion is not 1.0")
	}
	if s, ok := event["time"].(string); !ok || !isMoment(s) {
		return nil, "", raise(engine.ErrValidation, 400, "Invalid event", "time is not a moment in RFC 3339")
	}
	return event, key, nil
}

func isMoment(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}
