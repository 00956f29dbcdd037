// Package appendjson writes values as encoding/json does, for what is written in
// every turn: more than twice as fast as encoding/json or json/v2. What a type looks
// like is found out once, by the tags of its fields; a test holds it to what
// encoding/json writes.
package appendjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Form is how values of a type are written.
type Form[T any] struct {
	write  writer
	fields *[]field // of a struct
}

// writer appends the value at an address, whose type it is made for.
type writer func(b []byte, at unsafe.Pointer) []byte

// field is one of a struct. Without a name it writes whole members, or none.
type field struct {
	name  string // with quotes and colon
	at    uintptr
	empty func(at unsafe.Pointer) bool // nil = it is written whatever it is
	write writer
}

// Of is the form of a type: a struct, list, map of strings or of JSON, text, whole
// number, truth, time or JSON; and of nothing else.
func Of[T any]() *Form[T] {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct || t == timeType {
		return &Form[T]{write: writerOf(t)}
	}
	fields := fieldsOf(t)
	return &Form[T]{write: object(&fields), fields: &fields}
}

// Append appends a value.
func (f *Form[T]) Append(b []byte, v *T) []byte { return f.write(b, unsafe.Pointer(v)) }

// Members appends the members of an object that is begun.
func (f *Form[T]) Members(b []byte, v *T) []byte { return members(b, *f.fields, unsafe.Pointer(v)) }

// Before has more members written before that of a name.
func (f *Form[T]) Before(name string, more func(b []byte, v *T) []byte) {
	i := f.find(name)
	*f.fields = append((*f.fields)[:i:i], append([]field{hook(more)}, (*f.fields)[i:]...)...)
}

// Instead has the member of a name, if any, written by a function.
func (f *Form[T]) Instead(name string, member func(b []byte, v *T) []byte) {
	(*f.fields)[f.find(name)] = hook(member)
}

func hook[T any](write func(b []byte, v *T) []byte) field {
	return field{write: func(b []byte, at unsafe.Pointer) []byte { return write(b, (*T)(at)) }}
}

func (f *Form[T]) find(name string) int {
	for i, field := range *f.fields {
		if field.name == `"`+name+`":` {
			return i
		}
	}
	panic(fmt.Sprintf("appendjson: %s has no member %q", reflect.TypeFor[T](), name))
}

// Key begins a member.
func Key(b []byte, name string) []byte { return append(appendString(comma(b), name), ':') }

// comma separates a member from the one before.
func comma(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return b
}

func members(b []byte, fields []field, at unsafe.Pointer) []byte {
	for i := range fields {
		f := &fields[i]
		p := unsafe.Add(at, f.at)
		if f.empty != nil && f.empty(p) {
			continue
		}
		if f.name != "" {
			b = append(comma(b), f.name...)
		}
		b = f.write(b, p)
	}
	return b
}

func object(fields *[]field) writer {
	return func(b []byte, at unsafe.Pointer) []byte {
		return append(members(append(b, '{'), *fields, at), '}')
	}
}

func fieldsOf(t reflect.Type) []field {
	list := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		x := t.Field(i)
		name, options, _ := strings.Cut(x.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" || x.Anonymous || !x.IsExported() {
			panic(fmt.Sprintf("appendjson: %s.%s has no name of its own", t, x.Name))
		}
		f := field{name: `"` + name + `":`, at: x.Offset, write: writerOf(x.Type)}
		if options != "" {
			f.empty = emptyOf(x.Type)
		}
		list = append(list, f)
	}
	return list
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

// emptyOf says when a member is left out: by omitempty, or a time by omitzero.
func emptyOf(t reflect.Type) func(at unsafe.Pointer) bool {
	if t == timeType {
		return func(at unsafe.Pointer) bool { return (*time.Time)(at).IsZero() }
	}
	switch t.Kind() {
	case reflect.String:
		return func(at unsafe.Pointer) bool { return *(*string)(at) == "" }
	case reflect.Int:
		return func(at unsafe.Pointer) bool { return *(*int)(at) == 0 }
	case reflect.Int64:
		return func(at unsafe.Pointer) bool { return *(*int64)(at) == 0 }
	case reflect.Bool:
		return func(at unsafe.Pointer) bool { return !*(*bool)(at) }
	case reflect.Slice: // the lengths of all stand at one place
		return func(at unsafe.Pointer) bool { return len(*(*[]byte)(at)) == 0 }
	case reflect.Pointer:
		return func(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }
	case reflect.Map:
		if t.Elem() == rawType {
			return func(at unsafe.Pointer) bool { return len(*(*map[string]json.RawMessage)(at)) == 0 }
		}
		return func(at unsafe.Pointer) bool { return len(*(*map[string]string)(at)) == 0 }
	}
	panic(fmt.Sprintf("appendjson: it is not known when a %s is empty", t))
}

func writerOf(t reflect.Type) writer {
	switch t {
	case timeType:
		return moment
	case rawType:
		return raw
	}
	switch t.Kind() {
	case reflect.String:
		return func(b []byte, at unsafe.Pointer) []byte { return appendString(b, *(*string)(at)) }
	case reflect.Int:
		return func(b []byte, at unsafe.Pointer) []byte { return strconv.AppendInt(b, int64(*(*int)(at)), 10) }
	case reflect.Int64:
		return func(b []byte, at unsafe.Pointer) []byte { return strconv.AppendInt(b, *(*int64)(at), 10) }
	case reflect.Bool:
		return func(b []byte, at unsafe.Pointer) []byte { return strconv.AppendBool(b, *(*bool)(at)) }
	case reflect.Struct:
		fields := fieldsOf(t)
		return object(&fields)
	case reflect.Pointer:
		return pointer(writerOf(t.Elem()))
	case reflect.Slice:
		return list(writerOf(t.Elem()), t.Elem().Size())
	case reflect.Map:
		switch t {
		case reflect.TypeFor[map[string]string]():
			return stringMap
		case reflect.TypeFor[map[string]json.RawMessage]():
			return rawMap
		}
	}
	panic(fmt.Sprintf("appendjson: it is not known how a %s is written", t))
}

func moment(b []byte, at unsafe.Pointer) []byte {
	b = (*time.Time)(at).UTC().AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"')
}

func raw(b []byte, at unsafe.Pointer) []byte {
	if v := *(*json.RawMessage)(at); v != nil {
		return append(b, v...)
	}
	return append(b, "null"...)
}

func pointer(value writer) writer {
	return func(b []byte, at unsafe.Pointer) []byte {
		if p := *(*unsafe.Pointer)(at); p != nil {
			return value(b, p)
		}
		return append(b, "null"...)
	}
}

// list writes a list without elements as one, whether it is nil or not.
func list(element writer, size uintptr) writer {
	return func(b []byte, at unsafe.Pointer) []byte {
		v := *(*[]byte)(at) // for its address and length
		first := unsafe.Pointer(unsafe.SliceData(v))
		b = append(b, '[')
		for i := range len(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = element(b, unsafe.Add(first, uintptr(i)*size))
		}
		return append(b, ']')
	}
}

func stringMap(b []byte, at unsafe.Pointer) []byte {
	m := *(*map[string]string)(at)
	return sorted(b, m, func(b []byte, k string) []byte { return appendString(b, m[k]) })
}

func rawMap(b []byte, at unsafe.Pointer) []byte {
	m := *(*map[string]json.RawMessage)(at)
	return sorted(b, m, func(b []byte, k string) []byte { return append(b, m[k]...) })
}

// sorted writes a map in the order of its keys.
func sorted[V any](b []byte, m map[string]V, value func(b []byte, key string) []byte) []byte {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	b = append(b, '{')
	for _, k := range keys {
		b = value(Key(b, k), k)
	}
	return append(b, '}')
}

// appendString appends s as a JSON string. All that is not plain ASCII goes
// through encoding/json, which knows what to escape.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(s) // a string cannot fail
			return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
