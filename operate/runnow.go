package operate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// RunNow has a timer, or the pause before a retry, end now. Its output is a [Which].
const RunNow engine.Operation = "run-now"

// Which says what is to run now.
type Which struct {
	Wait string `json:"wait,omitempty"` // pointer of the task that waits; "" = there is only one
}

// entryRunNow is the stream's record that somebody has brought a timer forward. The
// timer follows as if it had come.
const entryRunNow = "RunNow"

// Sleeps reports whether somebody may bring a wait forward: a timer, or the pause before
// a retry. The time limit of a task and the due date of a person's are none: nothing
// waits for them to pass.
func Sleeps(w *snapshot.Wait) bool {
	return (w.Kind == snapshot.WaitTimer || w.Kind == snapshot.WaitRetry) && w.Left == 0
}

// runNow has the first of the waits of a task that sleep go on.
func runNow(t *engine.Turn, output json.RawMessage) error {
	switch t.Snap.Status {
	case snapshot.Suspended:
		return conflict(t, "instance.suspended", "is suspended").WithHint("resume it first")
	case snapshot.Faulted:
		return conflict(t, "instance.faulted", "is faulted: nothing goes on until it is retried or skipped")
	}
	var which Which
	if len(output) > 0 {
		if err := jsonv2.Unmarshal(output, &which); err != nil {
			return problem.Wrap(err, problem.Invalid, "signal.invalid", "what is to run now is not told by its wait")
		}
	}
	var w *snapshot.Wait // the first to come
	var places []string
	for i := range t.Snap.Waits {
		x := &t.Snap.Waits[i]
		if !Sleeps(x) || which.Wait != "" && which.Wait != x.Pointer {
			continue
		}
		if places = append(places, x.Pointer); w == nil || x.Until.Before(w.Until) {
			w = x
		}
	}
	if err := OneOf(t.Snap.InstanceID, which.Wait, places); err != nil {
		return err
	}
	env := t.In.Signal
	e := engine.Entry{
		Kind: engine.KindEvent, Dir: engine.In, Type: entryRunNow, Data: env.Payload,
		Meta: engine.Meta{Pointer: w.Pointer, Actor: env.Headers[signal.HeaderActor]},
	}
	if env.Type == signal.OperatorRequest { // from a queue: it may come again
		e.SignalID = env.SignalID
	}
	t.Append(e)
	typ := signal.TimerDue
	if w.Kind == snapshot.WaitRetry {
		typ = signal.RetryDue
	}
	t.Snap.Buffer = append([]snapshot.Buffered{{Type: string(typ), Token: w.Token, OccurredAt: t.In.Now}}, t.Snap.Buffer...)
	return t.CatchUp()
}

// OneOf refuses when of the places where an instance sleeps there is none, or are
// several, of which nobody has said which. Problems: instance.nothing-to-run,
// instance.several-to-run.
func OneOf(instance, said string, places []string) error {
	slices.Sort(places)
	switch places = slices.Compact(places); {
	case len(places) == 0 && said != "":
		return problem.New(problem.Conflict, "instance.nothing-to-run", "at %.200s instance %s waits for no time that can be brought forward", said, instance).
			WithHint("a timer and the pause before a retry can; why says what it waits for")
	case len(places) == 0:
		return problem.New(problem.Conflict, "instance.nothing-to-run", "instance %s waits for no time that can be brought forward", instance).
			WithHint("a timer and the pause before a retry can; why says what it waits for")
	case len(places) > 1:
		list := strings.Join(places[:min(len(places), maxPlaces)], ", ")
		if len(places) > maxPlaces {
			list += ", …"
		}
		return problem.New(problem.Conflict, "instance.several-to-run", "instance %s waits for several: %s", instance, list).
			WithHint("say which, by its pointer: --wait %s", places[0])
	}
	return nil
}

// maxPlaces is how many places an error names.
const maxPlaces = 20
