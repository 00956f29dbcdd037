package service

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Escalations are the edits of the tasks that a turn escalates. Who is a
// candidate from then on depends on who has the task now; a task that is
// changed in between makes the commit stale, and the turn is decided again.
func (ts *Tasks) Escalations(ctx context.Context, out *engine.Outcome) ([]store.TaskEdit, error) {
	var edits []store.TaskEdit
	for _, c := range out.Tasks {
		if c.Event != engine.TaskEscalated {
			continue
		}
		t, err := ts.Tasks.Task(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		if t.Status != projections.TaskReady && t.Status != projections.TaskReserved {
			return nil, errors.Join(store.ErrStale, problem.New(problem.Conflict, "task.closed", "task %s is %s", t.ID, t.Status))
		}
		e, err := escalation(t, out)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return edits, nil
}

func escalation(t projections.Task, out *engine.Outcome) (store.TaskEdit, error) {
	at := out.Snapshot.UpdatedAt
	k := humantask.Escalate(backend.Asked(t))
	data, err := json.Marshal(map[string]any{"from": t.Assignee, "to": append([]string{}, k.EscalateTo...)})
	e := store.TaskEdit{
		ID: t.ID, Version: t.Version, Status: t.Status, Assignee: k.Assignee, Role: t.Role,
		Event:      projections.TaskEvent{TaskID: t.ID, InstanceID: t.InstanceID, Event: string(engine.TaskEscalated), Data: data, At: at},
		Escalation: &store.Escalation{CandidateUsers: projections.List(k.CandidateUsers), CandidateGroups: projections.List(k.CandidateGroups), At: at},
	}
	if e.Assignee == "" {
		e.Status, e.Role = projections.TaskReady, ""
	}
	return e, err
}
