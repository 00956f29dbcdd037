package oracle

import (
	"database/sql"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
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

// What is inserted of a row whole. The statements are written from the same fields.
var (
	values = rows.Driver{
		Text: func(s string) any { return s }, Bytes: func(b []byte) any { return b }, Time: func(t time.Time) any { return stamp(t) }, None: some(0),
	}
	instanceColumns = rows.ColumnsOf[projections.Instance]()
	taskColumns     = rows.ColumnsOf[projections.Task]()
	auditColumns    = rows.ColumnsOf[store.Audit]()
	tokenColumns    = rows.ColumnsOf[backend.Token]()
)

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
