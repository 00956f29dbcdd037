package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// editTask changes an open task as edit says, again when somebody was faster.
// Nobody who is excluded gets it, however it is handed on.
func (ts *Tasks) editTask(ctx context.Context, id string, edit func(projections.Task) (*store.TaskEdit, error), by ...store.Audit) (projections.Task, error) {
	for range turn.StaleMax {
		t, err := ts.openTask(ctx, id)
		if err != nil {
			return projections.Task{}, err
		}
		e, err := edit(t)
		if err != nil || e == nil {
			return t, err
		}
		if slices.Contains(backend.Names(t.ExcludedUsers), e.Assignee) {
			return t, excluded(t, e.Assignee)
		}
		e.ID, e.Version = id, t.Version
		e.Event.TaskID, e.Event.InstanceID, e.Event.At = id, t.InstanceID, ts.Now()
		for i := range by {
			by[i].InstanceID = t.InstanceID
		}
		err = ts.Writer.Commit(ctx, store.Change{Tasks: []store.TaskEdit{*e}, Audit: by})
		if errors.Is(err, store.ErrStale) {
			continue
		}
		if err != nil {
			return projections.Task{}, err
		}
		return ts.Tasks.Task(ctx, id)
	}
	return projections.Task{}, problem.New(problem.Unavailable, "task.contended", "task %s is changed by many at once", id)
}

// openTask returns a task that can still be done, or the problem that says who
// did it and when.
func (ts *Tasks) openTask(ctx context.Context, id string) (projections.Task, error) {
	t, err := ts.Tasks.Task(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return t, problem.Wrap(err, problem.NotFound, "task.unknown", "task %s does not exist", id)
	}
	if err != nil {
		return t, err
	}
	switch t.Status {
	case projections.TaskReady, projections.TaskReserved:
		return t, nil
	case projections.TaskCompleted:
		return t, problem.New(problem.Conflict, "task.completed", "task %s was completed by %s at %s", id, t.EndedBy, t.EndedAt.UTC().Format(time.RFC3339))
	}
	return t, problem.New(problem.Conflict, "task.closed", "task %s is %s since %s", id, t.Status, t.EndedAt.UTC().Format(time.RFC3339))
}

// contendedMax bounds how often an answer is decided again because another is
// under way.
const contendedMax = 3

// CompleteTask answers a task in one commit: the task, its event, the
// projection, the snapshot and what follows (A8). Only the user it is reserved
// for may; where they claimed it as a member of a group, and groups is not nil,
// they must still be one of a candidate group. A second completion changes nothing and says who completed it and
// when. Problems: task.unknown, task.completed, task.closed, task.not-claimed,
// task.not-yours, task.invalid-outcome, task.invalid-data, instance.suspended.
func (ts *Tasks) CompleteTask(ctx context.Context, id, user string, groups []string, outcome string, data json.RawMessage) (projections.Task, error) {
	t, err := ts.openTask(ctx, id)
	if err != nil {
		return t, err
	}
	if err := mayComplete(t, user, groups, outcome); err != nil {
		return t, err
	}
	if err := ts.answers(t, data); err != nil {
		return t, err
	}
	now := ts.Now()
	env, err := completion(t, user, outcome, data, now)
	if err != nil {
		return t, err
	}
	var version int64
	s := turn.Signal{Envelope: env, Now: now, Amend: func(c *store.Change) { overTask(c.Rows.TaskEnds, id, version) }}
	s.Decide = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		// The guards hold for the very version of the task that the commit ends (B3).
		now, err := ts.openTask(ctx, id)
		if err == nil {
			err = mayComplete(now, user, groups, outcome)
		}
		if err != nil {
			return nil, err
		}
		version = now.Version
		out, err := turn.Step(def, snap, in)
		if err != nil || out.Disposition == engine.Applied {
			return out, err
		}
		if out.Disposition == engine.Buffered {
			return out, problem.New(problem.Conflict, "instance.suspended", "instance %s is suspended", snap.InstanceID).WithHint("resume it first")
		}
		return out, problem.New(problem.Unavailable, "task.contended", "task %s is being changed", id)
	}
	for range contendedMax {
		if _, err = ts.Pump.Submit(ctx, s); problem.CodeOf(err) != "task.contended" {
			break // else it was answered in the same turn, which is committed now
		}
	}
	if err != nil {
		return t, err
	}
	return ts.Tasks.Task(ctx, id)
}

func mayComplete(t projections.Task, user string, groups []string, outcome string) error {
	if user == "" {
		return problem.New(problem.Invalid, "task.user-missing", "completing task %s needs a user", t.ID)
	}
	if t.Assignee == "" {
		return problem.New(problem.Conflict, "task.not-claimed", "task %s is not claimed", t.ID).WithHint("claim it first")
	}
	if t.Assignee != user {
		return problem.New(problem.Denied, "task.not-yours", "task %s is reserved for %s, not for %s", t.ID, t.Assignee, user)
	}
	if slices.Contains(backend.Names(t.ExcludedUsers), user) {
		return excluded(t, user)
	}
	if t.Role != "" && groups != nil { // what the groups are now counts, not what they were when they claimed it (B3)
		if err := mayDo(t, user, groups); err != nil {
			return err
		}
	}
	if n := utf8.RuneCountInString(outcome); n > humantask.MaxName {
		return problem.New(problem.Invalid, "task.invalid-outcome", "the outcome of task %s has %d characters; at most %d", t.ID, n, humantask.MaxName)
	}
	if outcomes := backend.Names(t.Outcomes); len(outcomes) > 0 && !slices.Contains(outcomes, outcome) {
		return problem.New(problem.Invalid, "task.invalid-outcome", "outcome %q is not one of task %s", outcome, t.ID).
			WithHint("one of %s", strings.Join(outcomes, ", "))
	}
	return nil
}

// answers checks what a person answers against the form. It is the person who
// is told, and may answer again: the workflow sees only what fits.
func (ts *Tasks) answers(t projections.Task, data json.RawMessage) error {
	raw, ok := humantask.FormSchema(t.Form)
	if !ok {
		return nil
	}
	s, err := ts.forms.Compile(raw)
	if err != nil {
		return problem.Wrap(err, problem.Internal, "task.form", "the form of task %s", t.ID)
	}
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	places := s.Check(data)
	if len(places) == 0 {
		return nil
	}
	for i := range places {
		places[i].Pointer = "/data" + places[i].Pointer
	}
	e := problem.New(problem.Invalid, "task.invalid-data", "the answer does not fit the form of task %s", t.ID)
	e.Where = places
	return e
}

// completion is the signal that a person's answer is.
func completion(t projections.Task, user, outcome string, data json.RawMessage, now time.Time) (signal.Envelope, error) {
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	body, err := json.Marshal(map[string]any{"output": map[string]any{
		"outcome": outcome, "data": data, "completedBy": user, "completedAtUtc": now.UTC().Truncate(time.Microsecond), "taskId": t.ID,
	}})
	if err != nil {
		return signal.Envelope{}, problem.Wrap(err, problem.Invalid, "task.invalid-data", "data of task %s", t.ID)
	}
	env := signal.Envelope{
		SignalID: signal.Bounded("task-" + t.ID), InstanceID: t.InstanceID, Type: signal.TaskCompleted, WaitingToken: t.Token,
		OccurredAt: now, Headers: ActorHeader(user), Payload: body,
	}
	_, err = env.Encode() // the same limits as through a queue
	return env, err
}
