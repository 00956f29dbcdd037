package tracing

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
)

// place is where something is in a trace, as a traceparent says it.
type place struct {
	trace   [16]byte
	span    [8]byte
	sampled bool
}

// parse reads a traceparent of W3C trace context; ok is false for one that is none.
// What a later version adds behind the flags is passed over, as the standard asks.
func parse(text string) (p place, ok bool) {
	const length = 55
	if len(text) < length || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" || !lower(text[:length]) {
		return place{}, false
	}
	if len(text) > length && (text[:2] == "00" || text[length] != '-') {
		return place{}, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], text[:2]}, {p.trace[:], text[3:35]}, {p.span[:], text[36:52]}, {flags[:], text[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return place{}, false
		}
	}
	p.sampled = flags[0]&1 != 0
	return p, p.trace != [16]byte{} && p.span != [8]byte{}
}

func lower(text string) bool {
	for i := range len(text) {
		if 'A' <= text[i] && text[i] <= 'Z' {
			return false
		}
	}
	return true
}

// String is the traceparent.
func (p place) String() string {
	flags := "-00"
	if p.sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(p.trace[:]) + "-" + hex.EncodeToString(p.span[:]) + flags
}

// derived is an id made of what it is for: the same on every node, and after a crash.
// A text cannot say what another and its neighbour do.
func derived(key []byte, of ...string) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(key)
	for _, text := range of {
		h.Write(strconv.AppendInt(nil, int64(len(text)), 10))
		h.Write([]byte{' '})
		h.Write([]byte(text))
	}
	h.Sum(sum[:0])
	return sum
}

// spanIn is the id of a span in a trace.
func spanIn(trace [16]byte, of ...string) (id [8]byte) {
	sum := derived(trace[:], of...)
	copy(id[:], sum[:])
	return id
}

// chosen says whether a trace is among so many of them, from 0 to 1: by its id, so that
// whoever samples by it with the same ratio chooses the same.
func chosen(trace [16]byte, ratio float64) bool {
	if ratio >= 1 {
		return true
	}
	return binary.BigEndian.Uint64(trace[8:])>>1 < uint64(ratio*math.MaxInt64)
}
