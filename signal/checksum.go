package signal

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A node ends each envelope with a checksum of it, so that damage on the way, in
// a queue or a dead letter, is known: `,"checksum":"0123abcd"}`. It is CRC-32C,
// against damage and not against an attacker, of the envelope without it. One
// that an application has written has none, or has it elsewhere when it was
// formatted anew, and is accepted.
const (
	checksumKey  = "checksum"
	checksumHead = `,"` + checksumKey + `":"`
	checksumTail = `"}`
	sealBytes    = len(checksumHead) + 8 + len(checksumTail)
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// seal ends an encoded envelope with its checksum.
func seal(b []byte) []byte {
	sum := crc32.Checksum(b, crcTable)
	return fmt.Appendf(b[:len(b)-1], "%s%08x%s", checksumHead, sum, checksumTail)
}

// intact says whether an envelope that has a checksum is as it was written.
func intact(raw []byte) error {
	at := len(raw) - sealBytes
	if at < 1 || !bytes.HasPrefix(raw[at:], []byte(checksumHead)) || !bytes.HasSuffix(raw, []byte(checksumTail)) {
		return nil
	}
	want, err := strconv.ParseUint(string(raw[at+len(checksumHead):len(raw)-len(checksumTail)]), 16, 32)
	got := crc32.Update(crc32.Checksum(raw[:at], crcTable), crcTable, []byte{'}'})
	if err != nil || uint32(want) != got {
		return problem.New(problem.Invalid, "signal.corrupt", "the envelope does not have its checksum")
	}
	return nil
}
