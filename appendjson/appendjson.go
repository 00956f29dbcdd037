// Package appendjson writes JSON by hand, for what is written in every turn: more
// than twice as fast as encoding/json or json/v2.
package appendjson

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"time"
)

// Object appends the members of a JSON object to B. The caller opens and closes it.
type Object struct{ B []byte }

// Key begins a member.
func (o *Object) Key(name string) {
	if c := o.B[len(o.B)-1]; c != '{' {
		o.B = append(o.B, ',')
	}
	o.B = append(o.B, '"')
	o.B = append(o.B, name...)
	o.B = append(o.B, '"', ':')
}

// Str appends a string.
func (o *Object) Str(name, v string) {
	o.Key(name)
	o.B = String(o.B, v)
}

// Opt appends a string unless it is empty; so do the other methods of that name.
func (o *Object) Opt(name, v string) {
	if v != "" {
		o.Str(name, v)
	}
}

// Num appends a number.
func (o *Object) Num(name string, v int64) {
	o.Key(name)
	o.B = strconv.AppendInt(o.B, v, 10)
}

// OptNum appends a number that is not 0.
func (o *Object) OptNum(name string, v int64) {
	if v != 0 {
		o.Num(name, v)
	}
}

// Time appends a time.
func (o *Object) Time(name string, v time.Time) {
	o.Key(name)
	o.B = append(o.B, '"')
	o.B = v.UTC().AppendFormat(o.B, time.RFC3339Nano)
	o.B = append(o.B, '"')
}

// OptTime appends a time that is not zero.
func (o *Object) OptTime(name string, v time.Time) {
	if !v.IsZero() {
		o.Time(name, v)
	}
}

// OptRaw appends JSON.
func (o *Object) OptRaw(name string, v json.RawMessage) {
	if len(v) > 0 {
		o.Key(name)
		o.B = append(o.B, v...)
	}
}

// OptRaws appends a list of JSON.
func (o *Object) OptRaws(name string, v []json.RawMessage) {
	if len(v) == 0 {
		return
	}
	o.List(name, len(v), func(i int) {
		if v[i] == nil {
			o.B = append(o.B, "null"...)
			return
		}
		o.B = append(o.B, v[i]...)
	})
}

// Open begins a nested object.
func (o *Object) Open(name string) {
	o.Key(name)
	o.B = append(o.B, '{')
}

// Close ends an object.
func (o *Object) Close() { o.B = append(o.B, '}') }

// List appends an array of n elements that each writes.
func (o *Object) List(name string, n int, each func(i int)) {
	o.Key(name)
	o.B = append(o.B, '[')
	for i := range n {
		if i > 0 {
			o.B = append(o.B, ',')
		}
		each(i)
	}
	o.B = append(o.B, ']')
}

// Objects is List with elements that are objects.
func (o *Object) Objects(name string, n int, each func(i int)) {
	if n == 0 {
		return
	}
	o.List(name, n, func(i int) {
		o.B = append(o.B, '{')
		each(i)
		o.B = append(o.B, '}')
	})
}

// OptMap appends an object of strings, in the order of their names.
func (o *Object) OptMap(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	o.Open(name)
	for _, k := range sortedKeys(m) {
		o.member(k)
		o.B = String(o.B, m[k])
	}
	o.Close()
}

// OptRawMap appends an object of JSON, in the order of names.
func (o *Object) OptRawMap(name string, m map[string]json.RawMessage) {
	if len(m) == 0 {
		return
	}
	o.Open(name)
	for _, k := range sortedKeys(m) {
		o.member(k)
		o.B = append(o.B, m[k]...)
	}
	o.Close()
}

// member is Key for a name that is not ours.
func (o *Object) member(name string) {
	if c := o.B[len(o.B)-1]; c != '{' {
		o.B = append(o.B, ',')
	}
	o.B = append(String(o.B, name), ':')
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// String appends s as a JSON string. All that is not plain ASCII goes
// through encoding/json, which knows what to escape.
func String(b []byte, s string) []byte {
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

// New begins an object that has about so many bytes.
func New(size int) *Object { return &Object{append(make([]byte, 0, size), '{')} }

// OptTexts appends a list of strings.
func (o *Object) OptTexts(name string, v []string) {
	if len(v) > 0 {
		o.List(name, len(v), func(i int) { o.B = String(o.B, v[i]) })
	}
}

// End returns an object that New has begun, nil when it has no member.
func (o *Object) End() []byte {
	if len(o.B) == 1 {
		return nil
	}
	o.Close()
	return o.B
}
