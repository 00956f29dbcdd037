package service

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Events of a task beside those of the engine.
const (
	taskClaimed    = "claimed"
	taskReleased   = "released"
	taskDelegated  = "delegated"
	taskReassigned = "reassigned"
)

// ClaimTask reserves a ready task for a user who may do it. Claiming again
// what one has already is a no-op. Problems: task.unknown, task.completed,
// task.closed, task.taken, task.denied.
func (ts *Tasks) ClaimTask(ctx context.Context, id, user string, groups []string) (projections.Task, error) {
	return ts.editTask(ctx, id, func(t projections.Task) (*store.TaskEdit, error) {
		if user == "" {
			return nil, problem.New(problem.Invalid, "task.user-missing", "claiming task %s needs a user", id)
		}
		if t.Assignee == user {
			return nil, nil
		}
		if t.Assignee != "" {
			return nil, problem.New(problem.Conflict, "task.taken", "task %s is reserved for %s", id, t.Assignee)
		}
		if err := mayDo(t, user, groups); err != nil {
			return nil, err
		}
		role, _ := humantask.Candidate(backend.Asked(t), user, groups)
		return &store.TaskEdit{Status: projections.TaskReserved, Assignee: user, Role: role, Event: projections.TaskEvent{Event: taskClaimed, Actor: user}}, nil
	})
}

// ReleaseTask gives a reserved task back to its candidates. Problems:
// task.unknown, task.completed, task.closed, task.not-yours.
func (ts *Tasks) ReleaseTask(ctx context.Context, id, user string) (projections.Task, error) {
	return ts.editTask(ctx, id, func(t projections.Task) (*store.TaskEdit, error) {
		if t.Assignee == "" {
			return nil, nil
		}
		if t.Assignee != user {
			return nil, problem.New(problem.Denied, "task.not-yours", "task %s is reserved for %s, not for %q", id, t.Assignee, user)
		}
		return &store.TaskEdit{Status: projections.TaskReady, Event: projections.TaskEvent{Event: taskReleased, Actor: user}}, nil
	})
}

// DelegateTask hands a task from the user that has it to another, whether or
// not they are a candidate. Problems: task.unknown, task.completed, task.closed,
// task.user-missing, task.not-claimed, task.not-yours, task.denied (the other
// is excluded).
func (ts *Tasks) DelegateTask(ctx context.Context, id, user, to string) (projections.Task, error) {
	return ts.editTask(ctx, id, func(t projections.Task) (*store.TaskEdit, error) {
		switch {
		case user == "" || to == "":
			return nil, problem.New(problem.Invalid, "task.user-missing", "delegating task %s needs the user that has it and another", id)
		case t.Assignee == "":
			return nil, problem.New(problem.Conflict, "task.not-claimed", "task %s is not claimed", id).WithHint("claim it first")
		case t.Assignee != user:
			return nil, problem.New(problem.Denied, "task.not-yours", "task %s is reserved for %s, not for %q", id, t.Assignee, user)
		case to == user:
			return nil, nil
		}
		return handOn(t, taskDelegated, user, to)
	})
}

// ReassignTask gives an open task to a user, whoever has it and whether or not
// they are a candidate; with to empty, it takes the task away, back to its
// candidates. It is an administrator's: the caller must have made sure that
// actor is one. Problems: task.unknown, task.completed, task.closed,
// task.user-missing (no actor), task.denied (the user is excluded).
func (ts *Tasks) ReassignTask(ctx context.Context, id, actor, to string) (projections.Task, error) {
	return ts.editTask(ctx, id, func(t projections.Task) (*store.TaskEdit, error) {
		if actor == "" {
			return nil, problem.New(problem.Invalid, "task.user-missing", "reassigning task %s needs an actor", id)
		}
		if to == t.Assignee {
			return nil, nil
		}
		return handOn(t, taskReassigned, actor, to)
	}, audit.As(audit.Row(ctx, ts.Now(), "reassign", id, ""), actor))
}

// ClaimMax bounds how many tasks one ClaimNext reserves.
const ClaimMax = 50

// ClaimNext reserves for a user up to count of the ready tasks that they may
// claim, the most urgent first (B10). Many may ask at once: each gets tasks of
// their own. It returns none when there is nothing to do. Problems:
// task.user-missing, task.count.
func (ts *Tasks) ClaimNext(ctx context.Context, user string, groups []string, scope backend.Scope, count int) ([]projections.Task, error) {
	if user == "" {
		return nil, problem.New(problem.Invalid, "task.user-missing", "claiming tasks needs a user")
	}
	if count < 1 || count > ClaimMax {
		return nil, problem.New(problem.Invalid, "task.count", "%d tasks cannot be claimed at once", count).WithHint("1 to %d", ClaimMax)
	}
	return ts.Tasks.ClaimNext(ctx, backend.NextClaim{User: user, Groups: groups, Scope: scope, Limit: count, Event: taskClaimed, At: ts.Now()})
}

// handOn gives a task to a user in person, or to nobody.
func handOn(t projections.Task, event, actor, to string) (*store.TaskEdit, error) {
	data, err := json.Marshal(map[string]string{"from": t.Assignee, "to": to})
	e := store.TaskEdit{Status: projections.TaskReserved, Assignee: to, Event: projections.TaskEvent{Event: event, Actor: actor, Data: data}}
	if to == "" {
		e.Status = projections.TaskReady
	}
	return &e, err
}

// mayDo checks who may claim a task: nobody excluded; when candidates are
// named, one of them.
func mayDo(t projections.Task, user string, groups []string) error {
	k := backend.Asked(t)
	if _, ok := humantask.Candidate(k, user, groups); ok {
		return nil
	}
	k.ExcludedUsers = nil
	if _, ok := humantask.Candidate(k, user, groups); ok {
		return excluded(t, user)
	}
	return problem.New(problem.Denied, "task.denied", "%s is no candidate for task %s", user, t.ID).
		WithHint("candidates: users [%s], groups [%s]", strings.Join(k.CandidateUsers, ", "), strings.Join(k.CandidateGroups, ", "))
}

func excluded(t projections.Task, user string) error {
	return problem.New(problem.Denied, "task.denied", "%s is excluded from task %s", user, t.ID)
}
