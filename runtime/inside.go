package runtime

import (
	"encoding/json"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A turn that has done so many steps of the application, or for so long, leaves the
// next to another turn: it holds locks of the database, and on the embedded store
// everybody else's commit.
const (
	insideMax  = 32
	insideTime = 500 * time.Millisecond
)

// asked is the first step of the application that a decision asks for and waits for.
func asked(out *engine.Outcome) *engine.Entry {
	for i := range out.Entries {
		e := &out.Entries[i]
		if e.Command == nil || !engine.Inside(e.Command.Target) {
			continue
		}
		if _, waits := out.Snapshot.Wait(e.Command.Token); waits {
			return e
		}
	}
	return nil
}

// insides does the steps of the application that decisions ask for.
type insides struct{ seconds *prometheus.HistogramVec }

func newInsides() insides {
	return insides{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "aqueduct_step_seconds", Help: "Time that a step of the application took in the transaction of a turn, by what it ran and how it ended.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
	}, []string{"target", "outcome"})}
}

// goOn is turn.Config.Inside. Each result is a signal of its own, and decided about as
// that of any other command: the stream has both, and the turn commits all.
func (s insides) goOn(out *engine.Outcome, in engine.Input) turn.GoOn {
	if asked(out) == nil {
		return nil
	}
	over := map[string]*snapshot.Error{} // what ended a transaction, and comes to this in the next
	return func(do store.Perform, decide func(*turn.Signal, *snapshot.Snapshot) (*engine.Outcome, error)) (*engine.Outcome, error) {
		made, begun := out, time.Now()
		for done := 1; ; done++ {
			e := asked(made)
			if e == nil {
				break
			}
			key := e.Command.Token + " " + e.Command.Target + " " + string(e.Command.Input)
			output, failed, err := json.RawMessage(nil), over[key], error(nil)
			crowded := failed != nil
			if failed == nil {
				if output, failed, err = s.timed(do, e.Command); err != nil {
					over[key] = failed
					return nil, err
				}
			}
			payload := dispatch.Payload(output)
			if failed != nil {
				failed.Instance = e.Command.Pointer
				payload = dispatch.Failed(failed, false, false)
			}
			crowded = crowded || done >= insideMax || time.Since(begun) > insideTime
			next, err := decide(&turn.Signal{Now: in.Now, Envelope: signal.Envelope{
				SignalID: e.Command.Token + "/1", InstanceID: made.Snapshot.InstanceID, RuntimeProvider: signal.Provider,
				Type: signal.TaskCompleted, WaitingToken: e.Command.Token, OccurredAt: in.Now, Payload: payload,
			}, Decide: func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
				in.Crowded = crowded
				return turn.Step(def, snap, in)
			}}, &made.Snapshot)
			if err != nil {
				return nil, err
			}
			made = made.Then(next)
		}
		made.Disposition = out.Disposition
		return made, nil
	}
}

// timed does a step and measures it.
func (s insides) timed(do store.Perform, c *engine.Command) (json.RawMessage, *snapshot.Error, error) {
	begun := time.Now()
	output, failed, err := do(c.Target, c.Input)
	outcome := "done"
	if err != nil {
		outcome = "rolled-back"
	} else if failed != nil {
		outcome = "failed"
	}
	s.seconds.WithLabelValues(c.Target, outcome).Observe(time.Since(begun).Seconds())
	return output, failed, err
}
