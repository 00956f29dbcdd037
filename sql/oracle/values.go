package oracle

import (
	"database/sql"
	"fmt"
	"reflect"
	"time"
)

// How Go values are bound: an empty text, a zero time and no bytes are null,
// for the database knows no empty text. A null has the type of its column all
// the same, so that a statement has one cursor.

// within is a text for a column of so many bytes, or null when it is longer:
// for columns that repeat what the document says.
func within(s string, bytes int) string {
	if len(s) > bytes {
		return ""
	}
	return s
}

func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// some is a number, null when it is 0.
func some(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: n != 0} }

// flag is a truth that may be unknown.
func flag(b *bool) sql.NullInt64 {
	n := sql.NullInt64{Valid: b != nil}
	if b != nil && *b {
		n.Int64 = 1
	}
	return n
}

// into scans a column into a field, null as zero.
type into struct{ to any }

func (s into) Scan(v any) error {
	if v == nil {
		reflect.ValueOf(s.to).Elem().SetZero()
		return nil
	}
	switch to := s.to.(type) {
	case *string:
		return scanString(to, v)
	case *[]byte:
		return scanBytes(to, v)
	case *time.Time:
		t, ok := v.(time.Time)
		if !ok {
			return fmt.Errorf("a time is a %T", v)
		}
		*to = time.Time{}
		if !t.IsZero() {
			*to = t.UTC()
		}
		return nil
	case **bool:
		var n int64
		if err := scanNumber(&n, v); err != nil {
			return err
		}
		yes := n != 0
		*to = &yes
		return nil
	case *bool:
		var n int64
		err := scanNumber(&n, v)
		*to = n != 0
		return err
	case *int64:
		return scanNumber(to, v)
	case *int:
		var n int64
		err := scanNumber(&n, v)
		*to = int(n)
		return err
	}
	return fmt.Errorf("no column is a %T", s.to)
}

func scanString(to *string, v any) error {
	switch v := v.(type) {
	case string:
		*to = v
	case []byte:
		*to = string(v)
	default:
		return fmt.Errorf("a text is a %T", v)
	}
	return nil
}

func scanBytes(to *[]byte, v any) error {
	switch v := v.(type) {
	case []byte:
		*to = nil
		if len(v) > 0 {
			*to = append([]byte(nil), v...)
		}
	case string:
		*to = nil
		if v != "" {
			*to = []byte(v)
		}
	default:
		return fmt.Errorf("bytes are a %T", v)
	}
	return nil
}

func scanNumber(to *int64, v any) error {
	switch v := v.(type) {
	case int64:
		*to = v
		return nil
	case float64:
		*to = int64(v)
		return nil
	case string:
		_, err := fmt.Sscan(v, to)
		return err
	case fmt.Stringer:
		_, err := fmt.Sscan(v.String(), to)
		return err
	}
	rv := reflect.ValueOf(v) // the driver's own kind of text
	if rv.Kind() == reflect.String {
		if rv.String() == "" {
			*to = 0
			return nil
		}
		_, err := fmt.Sscan(rv.String(), to)
		return err
	}
	return fmt.Errorf("a number is a %T", v)
}
