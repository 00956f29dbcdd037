package rows

import (
	"reflect"
	"slices"
	"time"
)

// Columns writes a struct T into the columns that the db tags of its fields name, in
// their order: a field is added to a table by adding it to the struct. A number with
// the tag null:"0" is null when it is 0.
type Columns[T any] struct{ anyColumns }

// anyColumns are Columns of whatever type: the compiler makes the code of a generic type anew
// for each.
type anyColumns struct {
	Names  []string
	fields []column
}

type column struct {
	field int
	none  bool // 0 is null
}

// Driver says how a database takes values.
type Driver struct {
	Text  func(string) any
	Bytes func([]byte) any
	Time  func(time.Time) any
	None  any // a number that is null
}

var (
	times = reflect.TypeFor[time.Time]()
	bytes = reflect.TypeFor[[]byte]()
)

// ColumnsOf finds the columns of a struct. Except are those that are written another
// way. A field of a kind that no column takes is a panic: tags are constants.
func ColumnsOf[T any](except ...string) *Columns[T] {
	return &Columns[T]{columnsOf(reflect.TypeFor[T](), except)}
}

func columnsOf(t reflect.Type, except []string) (c anyColumns) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("db")
		if name == "" || name == "-" || slices.Contains(except, name) {
			continue
		}
		switch f.Type.Kind() {
		case reflect.String, reflect.Int, reflect.Int64:
		default:
			if f.Type != times && f.Type != bytes {
				panic("no column takes " + t.String() + "." + f.Name)
			}
		}
		c.Names = append(c.Names, name)
		c.fields = append(c.fields, column{i, f.Tag.Get("null") == "0"})
	}
	return c
}

// Append appends the values of a row, in the order of the names.
func (c *Columns[T]) Append(to []any, row *T, d Driver) []any { return c.append(to, row, d) }

func (c *anyColumns) append(to []any, row any, d Driver) []any {
	v := reflect.ValueOf(row).Elem()
	for _, f := range c.fields {
		to = append(to, f.value(v, d))
	}
	return to
}

// Named is the value of a row for each name; those of other names are in others.
func (c *Columns[T]) Named(names []string, row *T, d Driver, others map[string]any) []any {
	return c.named(names, row, d, others)
}

func (c *anyColumns) named(names []string, row any, d Driver, others map[string]any) []any {
	v, to := reflect.ValueOf(row).Elem(), make([]any, len(names))
	for i, name := range names {
		if at := slices.Index(c.Names, name); at >= 0 {
			to[i] = c.fields[at].value(v, d)
		} else {
			to[i] = others[name]
		}
	}
	return to
}

func (c column) value(of reflect.Value, d Driver) any {
	v := of.Field(c.field)
	switch v.Kind() {
	case reflect.String:
		return d.Text(v.String())
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n != 0 || !c.none {
			return n
		}
		return d.None
	case reflect.Slice:
		return d.Bytes(v.Bytes())
	}
	return d.Time(*v.Addr().Interface().(*time.Time))
}
