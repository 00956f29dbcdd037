package projections

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A row has the CRC-32C of what a statement writes of it: of an entry all but who works on it, of a task one for each
// statement that writes some of it. It is checked where the row is read, against damage and not against an attacker.
// 0 stands for none: who mends a row by hand sets its checksums to null.

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC-32C of a snapshot, or of another document that is whole.
func Sum(b []byte) int64 { return int64(crc32.Checksum(b, crcTable)) }

// Digest gathers what a checksum is of, each part behind its length.
type Digest struct{ head []byte }

const digestRoom = 256 // bytes that the short parts of a row have, usually

var digests = sync.Pool{New: func() any { return &Digest{head: make([]byte, 0, digestRoom)} }}

// NewDigest begins one.
func NewDigest() *Digest {
	d := digests.Get().(*Digest)
	d.head = d.head[:0]
	return d
}

// Number notes a number.
func (d *Digest) Number(n int64) { d.head = binary.AppendVarint(d.head, n) }

// Texts notes texts, each behind its length.
func (d *Digest) Texts(list ...string) {
	for _, s := range list {
		d.Number(int64(len(s)))
		d.head = append(d.head, s...)
	}
}

// At notes a moment as a store keeps it.
func (d *Digest) At(t time.Time) {
	if t.IsZero() {
		d.Number(0)
		return
	}
	d.Number(t.UnixMicro())
}

// Sum ends the digest with the long parts. The digest is not used after it.
func (d *Digest) Sum(parts ...[]byte) int64 {
	for _, p := range parts {
		d.Number(int64(len(p)))
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
	d := NewDigest()
	d.Number(e.Position)
	d.Texts(instanceID, e.Kind, e.Direction, e.Type, e.SignalID)
	d.At(e.CreatedAt)
	return d.Sum(data, e.Metadata)
}

// Check compares an entry with its checksum. Data are what the row holds.
func (e *Entry) Check(data []byte, sum int64) error {
	if sum == 0 || sum == e.Checksum(e.InstanceID, data) {
		return nil
	}
	return problem.New(problem.Internal, "stream.corrupt", "entry %d of instance %s does not have its checksum", e.Position, e.InstanceID).
		WithHint("restore WF_STREAM from a backup; who has found the entry to be right sets its CHECKSUM to null")
}
