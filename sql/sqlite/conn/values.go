package conn

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"time"
)

// How Go values are stored: an empty text and a zero time are null, a time is
// microseconds since 1970, UTC.

// Text is a text, or null.
func Text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Blob is bytes, or null.
func Blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// Micros is a time, or null.
func Micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Due rounds up, so that a message is never early by a part of a microsecond.
func Due(t time.Time) int64 {
	n := t.UnixMicro()
	if time.UnixMicro(n).Before(t) {
		n++
	}
	return n
}

// FromMicros is the time that a row has.
func FromMicros(v any) time.Time {
	n, ok := v.(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Hash stores lower-case hex in half its size, and anything else as it is.
func Hash(s string) any {
	if b, err := hex.DecodeString(s); err == nil && len(b) > 0 && hex.EncodeToString(b) == s {
		return b
	}
	return Text(s)
}

// Values is a row of the writer's connection, to be scanned as the readers do.
type Values []driver.Value

// Scan implements what sql/rows scans.
func (v Values) Scan(to ...any) error {
	for i := range to {
		if err := to[i].(sql.Scanner).Scan(v[i]); err != nil {
			return err
		}
	}
	return nil
}
