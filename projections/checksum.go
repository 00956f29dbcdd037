package projections

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A row has the CRC-32C of what a statement writes of it: of an entry all but who
// works on it, of a task one for each statement that writes some of it. It is
// checked where the row is read, against damage and not against an attacker. 0
// stands for none: who mends a row by hand sets its checksums to null.

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC-32C of a snapshot, or of another document that is whole.
func Sum(b []byte) int64 { return int64(crc32.Checksum(b, crcTable)) }

// digest gathers what a checksum is of, each part behind its length.
type digest struct{ head []byte }

const digestRoom = 256 // bytes that the short parts of a row have, usually

var digests = sync.Pool{New: func() any { return &digest{head: make([]byte, 0, digestRoom)} }}

func newDigest() *digest {
	d := digests.Get().(*digest)
	d.head = d.head[:0]
	return d
}

func (d *digest) number(n int64) { d.head = binary.AppendVarint(d.head, n) }

func (d *digest) texts(list ...string) {
	for _, s := range list {
		d.number(int64(len(s)))
		d.head = append(d.head, s...)
	}
}

// at notes a moment as a store keeps it.
func (d *digest) at(t time.Time) {
	if t.IsZero() {
		d.number(0)
		return
	}
	d.number(t.UnixMicro())
}

// sum ends the digest with the long parts. The digest is not used after it.
func (d *digest) sum(parts ...[]byte) int64 {
	for _, p := range parts {
		d.number(int64(len(p)))
	}
	crc := crc32.Checksum(d.head, crcTable)
	for _, p := range parts {
		crc = crc32.Update(crc, crcTable, p)
	}
	digests.Put(d)
	return int64(crc)
}

// Checksum is that of the entry of an instance. Data are what the row holds.
func (e *Entry) Checksum(instanceID string, data []byte) int64 {
	d := newDigest()
	d.number(e.Position)
	d.texts(instanceID, e.Kind, e.Direction, e.Type, e.SignalID)
	d.at(e.CreatedAt)
	return d.sum(data, e.Metadata)
}

// Check compares an entry with its checksum. Data are what the row holds.
func (e *Entry) Check(data []byte, sum int64) error {
	if sum == 0 || sum == e.Checksum(e.InstanceID, data) {
		return nil
	}
	return problem.New(problem.Internal, "stream.corrupt", "entry %d of instance %s does not have its checksum", e.Position, e.InstanceID).
		WithHint("restore WF_STREAM from a backup; who has found the entry to be right sets its CHECKSUM to null")
}

// TaskSums are the checksums of a task: together they are of all of its columns.
type TaskSums struct {
	Made       int64 `db:"CHECKSUM"`            // what it was made with
	Assigned   int64 `db:"ASSIGNED_CHECKSUM"`   // who has it, and its version then
	Candidates int64 `db:"CANDIDATES_CHECKSUM"` // who may have it
	Ended      int64 `db:"END_CHECKSUM"`        // how it has ended
}

// Sums are those of a task of an instance, as it is.
func (t *Task) Sums(instanceID string) TaskSums {
	d := newDigest()
	d.texts(t.ID, instanceID, t.Definition, t.BusinessKey, t.Name, t.Title, t.ExcludedUsers, t.Outcomes, t.EscalateTo, t.Token)
	d.number(int64(t.Priority))
	d.at(t.CreatedAt)
	d.at(t.DueAt)
	sums := TaskSums{Made: d.sum(t.Payload, t.Form), Candidates: CandidatesSum(t.ID, t.CandidateUsers, t.CandidateGroups, t.EscalatedAt)}
	status, version := t.Status, t.Version
	end := TaskEnd{ID: t.ID, Status: t.Status, By: t.EndedBy, At: t.EndedAt, Outcome: t.Outcome, Output: t.Output}
	open := status == TaskReady || status == TaskReserved
	if !open || !end.At.IsZero() || end.By+end.Outcome != "" || len(end.Output) > 0 {
		sums.Ended = end.Checksum()
	}
	if !open { // what ended it knew neither who had it nor of which version it was
		if status, version = TaskReady, version-1; t.Assignee != "" {
			status = TaskReserved
		}
	}
	sums.Assigned = AssignedSum(t.ID, status, t.Assignee, t.Role, version)
	return sums
}

// AssignedSum is the checksum of who has an open task of a version.
func AssignedSum(id, status, assignee, role string, version int64) int64 {
	d := newDigest()
	d.texts(id, status, assignee, role)
	d.number(version)
	return d.sum()
}

// CandidatesSum is the checksum of who may have a task.
func CandidatesSum(id, users, groups string, escalated time.Time) int64 {
	d := newDigest()
	d.texts(id, users, groups)
	d.at(escalated)
	return d.sum()
}

// Checksum is that of how a task has ended.
func (e *TaskEnd) Checksum() int64 {
	d := newDigest()
	d.texts(e.ID, e.Status, e.By, e.Outcome)
	d.at(e.At)
	return d.sum(e.Output)
}

// Check compares a task with its checksums: of its end, too, if of its assignment.
func (t *Task) Check(have TaskSums) error {
	want := t.Sums(t.InstanceID)
	same := func(have, want int64) bool { return have == 0 || have == want }
	if same(have.Made, want.Made) && same(have.Assigned, want.Assigned) && same(have.Candidates, want.Candidates) &&
		(have.Ended == want.Ended || have.Ended == 0 && have.Assigned == 0) {
		return nil
	}
	return problem.New(problem.Internal, "task.corrupt", "task %s of instance %s does not have its checksum", t.ID, t.InstanceID).
		WithHint("restore WF_TASKS from a backup; who has found the task to be right sets its four checksums to null")
}

// Checksum is that of the event of a task.
func (e *TaskEvent) Checksum() int64 {
	d := newDigest()
	d.texts(e.TaskID, e.InstanceID, e.Event, e.Actor)
	d.at(e.At)
	return d.sum(e.Data)
}

// Check compares an event of a task with its checksum.
func (e *TaskEvent) Check(sum int64) error {
	if sum == 0 || sum == e.Checksum() {
		return nil
	}
	return problem.New(problem.Internal, "task.corrupt", "event %s of task %s does not have its checksum", e.Event, e.TaskID).
		WithHint("restore WF_TASK_EVENTS from a backup; who has found the event to be right sets its CHECKSUM to null")
}
