package projections

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A row has the CRC-32C of what is written once and stays: of an entry all but
// who works on it, of a task what it was made with and how it ended. It is made
// where the row is made, of bytes that are in hand, and checked where the row is
// read. It is against damage, not against an attacker. 0 stands for none: who
// mends a row by hand sets its checksum to null.

var crcTable = crc32.MakeTable(crc32.Castagnoli)

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

// Checksum is that of what a task of an instance was made with.
func (t *Task) Checksum(instanceID string) int64 {
	d := newDigest()
	d.texts(t.ID, instanceID, t.Definition, t.BusinessKey, t.Name, t.Title, t.ExcludedUsers, t.Outcomes, t.EscalateTo, t.Token)
	d.number(int64(t.Priority))
	d.at(t.CreatedAt)
	d.at(t.DueAt)
	return d.sum(t.Payload, t.Form)
}

// End is how the task has ended.
func (t *Task) End() TaskEnd {
	return TaskEnd{ID: t.ID, Status: t.Status, By: t.EndedBy, At: t.EndedAt, Outcome: t.Outcome, Output: t.Output}
}

// EndChecksum is that of how a task was ended when it was made, 0 for one that
// was not.
func (t *Task) EndChecksum() int64 {
	if t.EndedAt.IsZero() {
		return 0
	}
	end := t.End()
	return end.Checksum()
}

// Checksum is that of how a task has ended.
func (e *TaskEnd) Checksum() int64 {
	d := newDigest()
	d.texts(e.ID, e.Status, e.By, e.Outcome)
	d.at(e.At)
	return d.sum(e.Output)
}

// Check compares a task with its checksums.
func (t *Task) Check(sum, end int64) error {
	if (sum == 0 || sum == t.Checksum(t.InstanceID)) && (end == 0 || end == t.EndChecksum()) {
		return nil
	}
	return problem.New(problem.Internal, "task.corrupt", "task %s of instance %s does not have its checksum", t.ID, t.InstanceID).
		WithHint("restore WF_TASKS from a backup; who has found the task to be right sets its CHECKSUM and END_CHECKSUM to null")
}
