package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
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

func fromHash(v any) string {
	switch v := v.(type) {
	case []byte:
		return hex.EncodeToString(v)
	case string:
		return v
	}
	return ""
}

// values is a row of the writer's connection, to be scanned as the readers do.
type values []driver.Value

func (v values) Scan(to ...any) error {
	for i := range to {
		switch to := to[i].(type) {
		case sql.Scanner:
			if err := to.Scan(v[i]); err != nil {
				return err
			}
		case *string:
			*to, _ = v[i].(string)
		case *int64:
			*to, _ = v[i].(int64)
		case *int:
			n, _ := v[i].(int64)
			*to = int(n)
		}
	}
	return nil
}

// Scanners for database/sql, the other direction of text and micros.

type textInto struct{ to *string }

func (s textInto) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*s.to = ""
	case string:
		*s.to = v
	case []byte:
		*s.to = string(v)
	default:
		return fmt.Errorf("text is a %T", v)
	}
	return nil
}

type timeInto struct{ to *time.Time }

func (s timeInto) Scan(v any) error {
	*s.to = fromMicros(v)
	return nil
}

type bytesInto struct{ to *[]byte }

func (s bytesInto) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*s.to = nil
	case []byte:
		*s.to = append([]byte(nil), v...)
	case string:
		*s.to = []byte(v)
	default:
		return fmt.Errorf("bytes are a %T", v)
	}
	return nil
}

type boolInto struct{ to **bool }

func (s boolInto) Scan(v any) error {
	*s.to = nil
	if n, ok := v.(int64); ok {
		b := n != 0
		*s.to = &b
	}
	return nil
}

type hashInto struct{ to *string }

func (s hashInto) Scan(v any) error {
	*s.to = fromHash(v)
	return nil
}
