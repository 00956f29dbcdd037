package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// copier fills a D with the fields of an S that have the same names: a field that is added
// to both is shown, or taken, without a word here.
type copier[D, S any] struct {
	steps  []copied
	unused []string // fields of S that go nowhere
}

type copied struct {
	to, from int
	put      func(to, from reflect.Value)
}

// copies prepares a copier. Named gives the fields of D whose name in S is another; own are
// those of D that a caller sets. That D has a field without a source, or of a type that its
// source does not become, is a mistake in the program, found when it starts.
func copies[D, S any](named map[string]string, own ...string) *copier[D, S] {
	to, from := reflect.TypeFor[D](), reflect.TypeFor[S]()
	c, used := &copier[D, S]{}, map[string]bool{}
	for i := range to.NumField() {
		f := to.Field(i)
		if slices.Contains(own, f.Name) {
			continue
		}
		name := f.Name
		if other := named[name]; other != "" {
			name = other
		}
		source, ok := from.FieldByName(name)
		if !ok {
			panic(fmt.Sprintf("api: %s.%s has no source in %s", to, f.Name, from))
		}
		used[name] = true
		c.steps = append(c.steps, copied{i, source.Index[0], becomes(f.Type, source.Type)})
	}
	for i := range from.NumField() {
		if name := from.Field(i).Name; !used[name] {
			c.unused = append(c.unused, name)
		}
	}
	return c
}

// becomes says how a document has a value of a row: times are UTC, names are a list, and
// bytes are JSON.
func becomes(to, from reflect.Type) func(to, from reflect.Value) {
	switch {
	case from == reflect.TypeFor[time.Time]() && to == from:
		return func(to, from reflect.Value) { to.Set(reflect.ValueOf(utc(from.Interface().(time.Time)))) }
	case to == from:
		return reflect.Value.Set
	case from.Kind() == reflect.String && to == reflect.TypeFor[[]string]():
		return func(to, from reflect.Value) { to.Set(reflect.ValueOf(list(from.String()))) }
	case from == reflect.TypeFor[[]byte]() && to == reflect.TypeFor[json.RawMessage]():
		return func(to, from reflect.Value) { to.Set(reflect.ValueOf(document(from.Bytes()))) }
	}
	panic(fmt.Sprintf("api: a %s becomes no %s", from, to))
}

func (c *copier[D, S]) of(s S) (d D) {
	to, from := reflect.ValueOf(&d).Elem(), reflect.ValueOf(&s).Elem()
	for _, x := range c.steps {
		x.put(to.Field(x.to), from.Field(x.from))
	}
	return d
}
