package service

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
)

// An answer to a human task comes from the API, from the package AQUEDUCT_API or
// as an envelope that an application has put on the queue. All are held to the
// same rules (B3); through the queue, the sender cannot be told at once, and
// an answer that is refused is a dead letter with the code that the API gives.

// OnTaskCompleted has a TaskCompleted from the queue decided by those rules, and
// committed only over the version of the task that was checked.
func (ts *Tasks) OnTaskCompleted(ctx context.Context, s *turn.Signal) {
	id, version := "", int64(0)
	s.Decide = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		id = ""
		w, ok := snap.Wait(in.Signal.WaitingToken)
		if !ok || w.Kind != snapshot.WaitTask || snap.Status.Closed() {
			return turn.Step(def, snap, in)
		}
		var err error
		if in.Signal.Payload, version, err = ts.accepted(ctx, w.TaskID, in.Signal); err != nil {
			return nil, err
		}
		id = w.TaskID
		return turn.Step(def, snap, in)
	}
	s.Amend = func(c *store.Change) { overTask(c.Rows.TaskEnds, id, version) }
}

// overTask has a turn end a task only at a version.
func overTask(ends []projections.TaskEnd, id string, version int64) {
	for i := range ends {
		if id != "" && ends[i].ID == id {
			ends[i].Version = version
		}
	}
}

// accepted checks an answer as CompleteTask does, and returns it in the form
// that the workflow gets, with the version of the task. Who answers is the
// actor of the envelope, whatever its payload says; their groups are not known
// here, and were checked when they claimed the task.
func (ts *Tasks) accepted(ctx context.Context, id string, env signal.Envelope) (json.RawMessage, int64, error) {
	var p struct {
		Output struct {
			Outcome     string          `json:"outcome"`
			Data        json.RawMessage `json:"data"`
			CompletedBy string          `json:"completedBy"`
		} `json:"output"`
		Error json.RawMessage `json:"error"`
	}
	if err := jsonv2.Unmarshal(env.Payload, &p); err != nil {
		return nil, 0, problem.Wrap(err, problem.Invalid, "task.invalid-data", "the answer to task %s is not {output: {outcome, data}}", id)
	}
	if len(p.Error) > 0 {
		return nil, 0, problem.New(problem.Invalid, "task.invalid-data", "the answer to task %s is an error, which a person cannot give", id)
	}
	t, err := ts.openTask(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	user := env.Headers[signal.HeaderActor]
	if by := p.Output.CompletedBy; by != "" && by != user {
		return nil, 0, problem.New(problem.Denied, "task.not-yours", "task %s is answered by %q in the name of %q", id, user, by)
	}
	if err := mayComplete(t, user, nil, p.Output.Outcome); err != nil {
		return nil, 0, err
	}
	if err := ts.answers(t, p.Output.Data); err != nil {
		return nil, 0, err
	}
	whole, err := completion(t, user, p.Output.Outcome, p.Output.Data, env.OccurredAt)
	return whole.Payload, t.Version, err
}
