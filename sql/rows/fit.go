package rows

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Columns of text have a width, which is a tag of the field that goes there:
// width:"256" are characters, width:"4000B" bytes. It is the same for every store,
// so that what one of them keeps is kept by the others.

// text is a field with a width.
type text struct {
	field int
	name  string // of its column
	max   int
	bytes bool
}

// checker is a struct that says by itself what no store takes.
type checker interface{ Check() error }

// shape is what of a struct has a width, at any depth.
type shape struct {
	texts  []text
	within []part
	checks bool // it is a checker
}

// part is a field that holds one struct or many with a width in them.
type part struct {
	field int
	shape *shape
}

var shapes sync.Map // of *shape by reflect.Type

// Fit says which text of a struct, or of those in it, is longer than its column:
// store.value. A struct within one of its own kind is not looked at. What a struct
// in it says by a method Check, Fit says, too.
func Fit(v any) error {
	at := reflect.Indirect(reflect.ValueOf(v))
	known, ok := shapes.Load(at.Type())
	if !ok {
		known, _ = shapes.LoadOrStore(at.Type(), shapeOf(at.Type(), map[reflect.Type]bool{}))
	}
	return known.(*shape).fit(at)
}

// Widths are the texts of a struct by the names of their columns, as a tag says
// their width.
func Widths(t reflect.Type) map[string]string {
	m := map[string]string{}
	for i := range t.NumField() {
		if tag, ok := t.Field(i).Tag.Lookup("width"); ok {
			m[columnOf(t.Field(i))] = tag
		}
	}
	return m
}

func columnOf(f reflect.StructField) string {
	if name := f.Tag.Get("db"); name != "" {
		return name
	}
	return f.Name
}

// shapeOf finds what of a type has a width; above are those that it is in.
func shapeOf(t reflect.Type, above map[reflect.Type]bool) *shape {
	s := &shape{}
	if above[t] {
		return s
	}
	above[t] = true
	defer delete(above, t)
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if tag, ok := f.Tag.Lookup("width"); ok {
			number, bytes := strings.CutSuffix(tag, "B")
			most, err := strconv.Atoi(number)
			if err != nil || f.Type.Kind() != reflect.String {
				panic("width of " + t.String() + "." + f.Name) // a tag is a constant
			}
			s.texts = append(s.texts, text{field: i, name: columnOf(f), max: most, bytes: bytes})
			continue
		}
		in := f.Type
		if in.Kind() == reflect.Slice || in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if in.Kind() != reflect.Struct {
			continue
		}
		of := shapeOf(in, above)
		of.checks = reflect.PointerTo(in).Implements(reflect.TypeFor[checker]())
		if of.checks || len(of.texts)+len(of.within) > 0 {
			s.within = append(s.within, part{i, of})
		}
	}
	return s
}

func (s *shape) fit(v reflect.Value) error {
	if s.checks {
		if err := v.Addr().Interface().(checker).Check(); err != nil {
			return err
		}
	}
	for i := range s.texts {
		x := &s.texts[i]
		if err := x.fit(v.Field(x.field).String()); err != nil {
			return err
		}
	}
	for _, p := range s.within {
		in := v.Field(p.field)
		switch in.Kind() {
		case reflect.Slice:
			for i := range in.Len() {
				if err := p.shape.fit(in.Index(i)); err != nil {
					return err
				}
			}
			continue
		case reflect.Pointer:
			if in.IsNil() {
				continue
			}
			in = in.Elem()
		}
		if err := p.shape.fit(in); err != nil {
			return err
		}
	}
	return nil
}

// fit counts characters only of a text with more bytes than it may have characters.
func (x *text) fit(s string) error {
	n, unit := len(s), "bytes"
	if n > x.max && !x.bytes {
		n, unit = utf8.RuneCountInString(s), "characters"
	}
	if n <= x.max {
		return nil
	}
	return problem.New(problem.Invalid, "store.value", "%s has %d %s; its column holds %d", x.name, n, unit, x.max).
		WithHint("use a shorter text")
}
