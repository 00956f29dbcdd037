package rows

import (
	"slices"
	"testing"
	"time"
)

type valued struct {
	Name  string    `db:"NAME"`
	Count int       `db:"COUNT" null:"0"`
	Whole int64     `db:"WHOLE"`
	Body  []byte    `db:"BODY"`
	At    time.Time `db:"AT"`
	Own   bool      `db:"-"`
	Other string    `db:"OTHER"`
}

var plain = Driver{
	Text: func(s string) any { return s }, Bytes: func(b []byte) any { return string(b) }, Time: func(t time.Time) any { return t.Unix() }, None: "none",
}

// TestColumnsAreWrittenFromTheFieldsOfTheirTags: in their order, or in that of names.
func TestColumnsAreWrittenFromTheFieldsOfTheirTags(t *testing.T) {
	t.Parallel()
	c := ColumnsOf[valued]("OTHER")
	if want := []string{"NAME", "COUNT", "WHOLE", "BODY", "AT"}; !slices.Equal(c.Names, want) {
		t.Errorf("columns %v", c.Names)
	}
	v := valued{Name: "a", Whole: 2, Body: []byte("b"), At: time.Unix(3, 0)}
	if got, want := c.Append([]any{"first"}, &v, plain), []any{"first", "a", "none", int64(2), "b", int64(3)}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	v.Count = 7
	got := c.Named([]string{"AT", "SUM", "COUNT"}, &v, plain, map[string]any{"SUM": 9})
	if want := []any{int64(3), 9, int64(7)}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestAKindThatNoColumnTakesIsSaid where the program starts.
func TestAKindThatNoColumnTakesIsSaid(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a channel is a column")
		}
	}()
	ColumnsOf[struct {
		C chan int `db:"C"`
	}]()
}

// BenchmarkColumns writes a row of six fields.
func BenchmarkColumns(b *testing.B) {
	c, v := ColumnsOf[valued](), valued{Name: "a", Whole: 2, Body: []byte("b"), At: time.Unix(3, 0)}
	b.ReportAllocs()
	for b.Loop() {
		c.Append(nil, &v, plain)
	}
}
