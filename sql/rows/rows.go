// Package rows is what both stores do to show rows of a database: it builds
// bounded selects, scans each column into the field whose db tag is its name,
// and verifies what has a checksum.
package rows

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"time"

	"github.com/jmoiron/sqlx/reflectx"
)

// fields finds the fields of a struct, those of embedded ones too, by their db
// tags, once for each type.
var fields = reflectx.NewMapper("db")

// Scanner is what *sql.Rows and *sql.Row have in common.
type Scanner interface{ Scan(to ...any) error }

// Row scans rows with the same columns into structs T. It is for one goroutine.
type Row[T any] struct{ row }

// row is a Row of whatever type: the compiler makes the code of a generic function
// anew for each.
type row struct {
	paths [][]int
	cells []Into
	to    []any // the cells
}

// For prepares a Row for columns. A column without a field is an error.
func For[T any](columns []string) (*Row[T], error) {
	r, err := rowOf(reflect.TypeFor[T](), columns)
	return &Row[T]{r}, err
}

func rowOf(t reflect.Type, columns []string) (row, error) {
	r := row{paths: fields.TraversalsByName(t, columns), cells: make([]Into, len(columns)), to: make([]any, len(columns))}
	for i, path := range r.paths {
		if len(path) == 0 {
			return row{}, fmt.Errorf("column %s goes to no field of %s", columns[i], t)
		}
		r.to[i] = &r.cells[i]
	}
	return r, nil
}

// Scan reads the row that from is at.
func (r *Row[T]) Scan(from Scanner, item *T) error { return r.scan(from, item) }

func (r *row) scan(from Scanner, item any) error {
	v := reflect.ValueOf(item).Elem()
	for i, path := range r.paths {
		r.cells[i].To = reflectx.FieldByIndexes(v, path).Addr().Interface()
	}
	return from.Scan(r.to...)
}

// verifier is a row with checksums; what is read is verified.
type verifier interface{ Verify() error }

// Each gives every row that a query found to take, verified or with what ails
// it, until it returns false or an error, and closes them.
func Each[T any](found *sql.Rows, take func(item *T, damage error) (more bool, err error)) error {
	return each(found, reflect.TypeFor[T](), func(item any, damage error) (bool, error) { return take(item.(*T), damage) })
}

func each(found *sql.Rows, t reflect.Type, take func(item any, damage error) (more bool, err error)) error {
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		return err
	}
	row, err := rowOf(t, columns)
	if err != nil {
		return err
	}
	for found.Next() {
		item := reflect.New(t).Interface()
		if err := row.scan(found, item); err != nil {
			return err
		}
		var damage error
		if v, ok := item.(verifier); ok {
			damage = v.Verify()
		}
		if more, err := take(item, damage); err != nil || !more {
			return err
		}
	}
	return found.Err()
}

// Fill runs the select, and puts what it finds into the slice that list points to, which it
// makes anew, up to the row with which their bodies have most bytes, by the method Weight of a
// row. One that is damaged is an error. The code is one for all types.
func (s *Select) Fill(ctx context.Context, db *sql.DB, list any, most int) error {
	found, err := db.QueryContext(ctx, s.Text(), s.Args...)
	if err != nil {
		return err
	}
	items, bytes := reflect.ValueOf(list).Elem(), 0
	items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	return each(found, items.Type().Elem(), func(item any, damage error) (bool, error) {
		items.Set(reflect.Append(items, reflect.ValueOf(item).Elem()))
		if w, ok := item.(interface{ Weight() int }); ok {
			bytes += w.Weight()
		}
		return bytes < most, damage
	})
}

// One is the first of what a reading has found, or the error, or none.
func One[T any](items []T, err, none error) (one T, _ error) {
	if err == nil && len(items) == 0 {
		err = none
	}
	if err != nil {
		return one, err
	}
	return items[0], nil
}

// Items are what rows show.
func Items[R, T any](list []R, item func(R) T) []T {
	items := make([]T, len(list))
	for i, r := range list {
		items[i] = item(r)
	}
	return items
}

// Into scans a column into what To points to, null as zero. A time is a
// time.Time or microseconds since 1970, UTC; a truth is a number.
type Into struct{ To any }

// Scan implements sql.Scanner.
func (s *Into) Scan(v any) error {
	if v == nil {
		reflect.ValueOf(s.To).Elem().SetZero()
		return nil
	}
	switch to := s.To.(type) {
	case *string:
		return scanText(to, v)
	case *[]byte:
		return scanBytes(to, v)
	case *time.Time:
		return scanTime(to, v)
	}
	n, err := number(v)
	if err != nil {
		return err
	}
	switch to := s.To.(type) {
	case *int64:
		*to = n
	case *int:
		*to = int(n)
	case *bool:
		*to = n != 0
	case **bool:
		yes := n != 0
		*to = &yes
	default:
		return fmt.Errorf("no column is a %T", s.To)
	}
	return nil
}

func scanText(to *string, v any) error {
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

// scanBytes copies: the driver's are valid until the next row.
func scanBytes(to *[]byte, v any) error {
	switch v := v.(type) {
	case []byte:
		*to = append([]byte(nil), v...)
	case string:
		*to = append([]byte(nil), v...)
	default:
		return fmt.Errorf("bytes are a %T", v)
	}
	return nil
}

func scanTime(to *time.Time, v any) error {
	switch v := v.(type) {
	case int64:
		*to = time.UnixMicro(v).UTC()
	case time.Time:
		if *to = v.UTC(); v.IsZero() {
			*to = time.Time{}
		}
	default:
		return fmt.Errorf("a time is a %T", v)
	}
	return nil
}

func number(v any) (n int64, err error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		return int64(v), nil
	case bool:
		if v {
			n = 1
		}
		return n, nil
	case []byte, string, fmt.Stringer:
		_, err = fmt.Sscan(fmt.Sprintf("%s", v), &n)
		return n, err
	}
	text := reflect.ValueOf(v) // a driver's own kind of text
	if text.Kind() != reflect.String {
		return 0, fmt.Errorf("a number is a %T", v)
	}
	if text.String() == "" {
		return 0, nil
	}
	_, err = fmt.Sscan(text.String(), &n)
	return n, err
}
