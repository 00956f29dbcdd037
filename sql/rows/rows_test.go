package rows

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// column is what a driver gives.
type columns []any

func (c columns) Scan(to ...any) error {
	for i := range to {
		if err := to[i].(sql.Scanner).Scan(c[i]); err != nil {
			return err
		}
	}
	return nil
}

type number2 string // a driver's kind of text

type inner struct {
	Text string `db:"TEXT"`
	At   time.Time
}

type sample struct {
	Count int    `db:"COUNT"`
	Raw   []byte `db:"RAW"`
	inner
	Big  int64     `db:"BIG"`
	Yes  bool      `db:"YES"`
	Some *bool     `db:"SOME"`
	When time.Time `db:"WHEN"`
	Odd  float32   `db:"ODD"`
	Not  int       `db:"-"`
}

func TestColumnsGoToTheFieldsOfTheirTags(t *testing.T) {
	t.Parallel()
	row, err := For[sample]([]string{"WHEN", "TEXT", "RAW", "COUNT", "SOME", "YES", "BIG"})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	buffer := []byte("bytes")
	got := sample{Count: 9, Some: &yes}
	if err := row.Scan(columns{at.UnixMicro(), []byte("text"), buffer, number2("7"), int64(1), 1.0, "12"}, &got); err != nil {
		t.Fatal(err)
	}
	copy(buffer, "XXXXX") // the driver's, for the next row
	want := sample{When: at, inner: inner{Text: "text"}, Raw: []byte("bytes"), Count: 7, Some: &yes, Yes: true, Big: 12}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := row.Scan(columns{at.In(time.FixedZone("", 3600)), nil, nil, nil, nil, nil, nil}, &got); err != nil {
		t.Fatal(err)
	}
	if want := (sample{When: at}); !reflect.DeepEqual(got, want) {
		t.Errorf("nulls are %+v", got)
	}
}

func TestWhatGoesNowhereIsSaid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"NONE", "Not", "-"} {
		if _, err := For[sample]([]string{"COUNT", name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for column, value := range map[string]any{"TEXT": 1, "RAW": 1.5, "COUNT": "x", "WHEN": "today", "BIG": struct{}{}, "ODD": int64(1)} {
		row, err := For[sample]([]string{column})
		if err != nil {
			t.Fatal(err)
		}
		if err := row.Scan(columns{value}, new(sample)); err == nil {
			t.Errorf("%s takes %v", column, value)
		}
	}
}

func TestASelectNumbersItsBinds(t *testing.T) {
	t.Parallel()
	d := Dialect{Bind: func(n int) string { return ":" + string(rune('0'+n)) }, Limit: "fetch first ? rows only"}
	s := d.Select("select X from T where Y = :1", 5)
	s.and = true
	s.Where("(A > ? or A = ? and B > ?)", 1, 1, "b")
	s.Equals("C", "")
	s.Equals("D", "d")
	s.Order("A", 11)
	if got, want := s.Text(), "select X from T where Y = :1 and (A > :2 or A = :3 and B > :4) and D = :5\norder by A fetch first :6 rows only"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := []any{5, 1, 1, "b", "d", 11}; !reflect.DeepEqual(s.Args, want) {
		t.Errorf("args %v", s.Args)
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	var bad *problem.Error
	if _, _, err := Mark("x.1"); !errors.As(err, &bad) || bad.Code != "page.invalid" {
		t.Errorf("%v", err)
	}
	if n, rest, err := Mark("12.i.9"); n != 12 || rest != "i.9" || err != nil {
		t.Errorf("%d %q %v", n, rest, err)
	}
}
