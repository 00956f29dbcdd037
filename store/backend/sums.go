package backend

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// TaskSums are the checksums of a task: together they are of all of its columns.
type TaskSums struct {
	Made       int64 `db:"CHECKSUM"`              // what it was made with
	Assigned   int64 `db:"ASSIGNED_CHECKSUM"`     // who has it, and its version then
	Candidates int64 `db:"CANDIDATES_CHECKSUM"`   // who may have it
	Ended      int64 `db:"END_CHECKSUM" null:"0"` // how it has ended
}

// assignedSum is the checksum of who has an open task of a version.
func assignedSum(id, status, assignee, role string, version int64) int64 {
	d := projections.NewDigest()
	d.Texts(id, status, assignee, role)
	d.Number(version)
	return d.Sum()
}

// candidatesSum is the checksum of who may have a task.
func candidatesSum(id, users, groups string, escalated time.Time) int64 {
	d := projections.NewDigest()
	d.Texts(id, users, groups)
	d.At(escalated)
	return d.Sum()
}

// SumsOf are those of a task of an instance, as it is.
func SumsOf(t *projections.Task, instanceID string) TaskSums {
	d := projections.NewDigest()
	d.Texts(t.ID, instanceID, t.Definition, t.BusinessKey, t.Name, t.Title, t.ExcludedUsers, t.Outcomes, t.EscalateTo, t.Token)
	d.Number(int64(t.Priority))
	d.At(t.CreatedAt)
	d.At(t.DueAt)
	sums := TaskSums{Made: d.Sum(t.Payload, t.Form), Candidates: candidatesSum(t.ID, t.CandidateUsers, t.CandidateGroups, t.EscalatedAt)}
	status, version := t.Status, t.Version
	end := projections.TaskEnd{ID: t.ID, Status: t.Status, By: t.EndedBy, At: t.EndedAt, Outcome: t.Outcome, Output: t.Output}
	open := status == projections.TaskReady || status == projections.TaskReserved
	if !open || !end.At.IsZero() || end.By+end.Outcome != "" || len(end.Output) > 0 {
		sums.Ended = EndSum(&end)
	}
	if !open { // what ended it knew neither who had it nor of which version it was
		if status, version = projections.TaskReady, version-1; t.Assignee != "" {
			status = projections.TaskReserved
		}
	}
	sums.Assigned = assignedSum(t.ID, status, t.Assignee, t.Role, version)
	return sums
}

// EndSum is the checksum of how a task has ended.
func EndSum(e *projections.TaskEnd) int64 {
	d := projections.NewDigest()
	d.Texts(e.ID, e.Status, e.By, e.Outcome)
	d.At(e.At)
	return d.Sum(e.Output)
}

// CheckTask compares a task with its checksums: of its end, too, if of its assignment.
func CheckTask(t *projections.Task, have TaskSums) error {
	want := SumsOf(t, t.InstanceID)
	same := func(have, want int64) bool { return have == 0 || have == want }
	if same(have.Made, want.Made) && same(have.Assigned, want.Assigned) && same(have.Candidates, want.Candidates) &&
		(have.Ended == want.Ended || have.Ended == 0 && have.Assigned == 0) {
		return nil
	}
	return problem.New(problem.Internal, "task.corrupt", "task %s of instance %s does not have its checksum", t.ID, t.InstanceID).
		WithHint("restore WF_TASKS from a backup; who has found the task to be right sets its four checksums to null")
}

// EditSum is the checksum of who has a task once it is edited.
func EditSum(e *store.TaskEdit) int64 {
	return assignedSum(e.ID, e.Status, e.Assignee, e.Role, e.Version+1)
}

// EscalationSum is the checksum of who may have a task once it is escalated.
func EscalationSum(id string, x *store.Escalation) int64 {
	return candidatesSum(id, x.CandidateUsers, x.CandidateGroups, x.At)
}

// EventSum is the checksum of the event of a task.
func EventSum(e *projections.TaskEvent) int64 {
	d := projections.NewDigest()
	d.Texts(e.TaskID, e.InstanceID, e.Event, e.Actor)
	d.At(e.At)
	return d.Sum(e.Data)
}

// CheckEvent compares an event of a task with its checksum.
func CheckEvent(e *projections.TaskEvent, sum int64) error {
	if sum == 0 || sum == EventSum(e) {
		return nil
	}
	return problem.New(problem.Internal, "task.corrupt", "event %s of task %s does not have its checksum", e.Event, e.TaskID).
		WithHint("restore WF_TASK_EVENTS from a backup; who has found the event to be right sets its CHECKSUM to null")
}
