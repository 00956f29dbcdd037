package signal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A node ends each envelope with a checksum of it, so that damage on the way, in a queue or a dead letter, is known:
// `,"checksum":"0123abcd"}`. It is CRC-32C, against damage and not against an attacker, of the envelope without it.
// One that an application has written has none, or has it elsewhere when it was formatted anew, and is accepted.
const (
	checksumKey  = "checksum"
	checksumHead = `,"` + checksumKey + `":"`
	checksumTail = `"}`
	sealBytes    = len(checksumHead) + 8 + len(checksumTail)
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// seal ends an encoded envelope with its checksum.
func seal(b []byte) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(b, crcTable))
	b = append(b[:len(b)-1], checksumHead...)
	return append(hex.AppendEncode(b, sum[:]), checksumTail...)
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
		return problem.New(problem.Invalid, "signal.corrupt", "the envelope does not have its checksum").
			WithHint("it was damaged, or changed by hand: who changed it on purpose takes its key \"checksum\" out and sends it")
	}
	return nil
}
