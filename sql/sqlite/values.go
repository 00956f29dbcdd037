package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"time"
)

// How Go values are stored: an empty text and a zero time are null, a time is
// microseconds since 1970, UTC.

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// due rounds up, so that a message is never early by a part of a microsecond.
func due(t time.Time) int64 {
	n := t.UnixMicro()
	if time.UnixMicro(n).Before(t) {
		n++
	}
	return n
}

func fromMicros(v any) time.Time {
	n, ok := v.(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// hash stores lower-case hex in half its size, and anything else as it is.
func hash(s string) any {
	if b, err := hex.DecodeString(s); err == nil && len(b) > 0 && hex.EncodeToString(b) == s {
		return b
	}
	return text(s)
}

// values is a row of the writer's connection, to be scanned as the readers do.
type values []driver.Value

func (v values) Scan(to ...any) error {
	for i := range to {
		if err := to[i].(sql.Scanner).Scan(v[i]); err != nil {
			return err
		}
	}
	return nil
}
