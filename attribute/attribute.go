// Package attribute is what instances are found by beside their keys: values of
// their data that a definition has declared, each of one type, as rows that every
// database compares in the same order, and the filters that people write.
//
// The values of an instance are a function of its snapshot: [Of]. A value has a key
// of bytes whose order is that of the values of its type, so that no store compares
// decimals, texts or moments in a way of its own. [Where] reads filters. The package
// is pure; its limits are the constants Max.
package attribute

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Kind is the type of an attribute.
type Kind string

// The kinds, as documents name them.
const (
	Text    Kind = "text"
	Decimal Kind = "decimal"
	Boolean Kind = "boolean"
	Time    Kind = "time"
)

// Kinds are all of them.
var Kinds = []Kind{Text, Decimal, Boolean, Time}

// Limits.
const (
	Max         = 16  // attributes of a definition
	MaxName     = 64  // bytes of a name
	MaxText     = 256 // characters of a text
	MaxDigits   = 38  // of a decimal, without zeros at its ends
	MaxExponent = 100 // a decimal is at most 10 to this, and no smaller than 10 to minus this
)

// masked stands in what a server has answered for what it quoted of a secret.
const masked = "[secret]"

// Root is where a path begins.
type Root string

// The roots, as paths name them.
const (
	Data    Root = ""                // the data of the first line of execution; the output of a completed instance
	Context Root = "$context"        //
	Input   Root = "$workflow.input" // of the instance
)

// Declared is an attribute of a definition.
type Declared struct {
	Name string
	Kind Kind
	Root Root
	Path []string // names of members, from the root on
	At   string   // JSON pointer of the declaration
}

// Searchable is a definition whose instances have attributes.
type Searchable interface{ SearchAttributes() []Declared }

// Path is how the author has written the place of the value.
func (d *Declared) path() string { return string(d.Root) + "." + strings.Join(d.Path, ".") }

// Value is what an instance has of an attribute.
type Value struct {
	Name string
	Kind Kind
	Text string // the canonical form, as people read it
	Key  []byte // in the order of the values of its kind
}

// Of are the values that an instance has, in the order of their declarations. What
// is absent or null has none. What is of another type than is declared, or too long,
// or has been masked, is an error of the author's: attribute.type,
// attribute.too-long, attribute.secret. An instance that is faulted has no value
// for it: else it could not say that it is.
func Of(s *snapshot.Snapshot, list []Declared) ([]Value, error) {
	raws, err := texts(s, list)
	if err != nil {
		return nil, err
	}
	var values []Value
	for i, raw := range raws {
		if raw == nil {
			continue
		}
		v, err := list[i].value(raw)
		switch {
		case err != nil && faulted(s):
		case err != nil:
			return nil, err
		default:
			values = append(values, v)
		}
	}
	return values, nil
}

// Changes are what is to be written when an instance goes from one snapshot of a
// definition to the next: values, of which those without a key are gone. The errors are
// those of [Of].
func Changes(prev, next *snapshot.Snapshot, list []Declared) ([]Value, error) {
	if len(list) == 0 || same(prev, next, list) {
		return nil, nil
	}
	if faulted(prev) || faulted(next) { // which have no value for what is wrong
		had, err := Of(prev, list)
		if err != nil {
			return nil, err
		}
		has, err := Of(next, list)
		return Differences(had, has), err
	}
	before, err := texts(prev, list)
	if err != nil {
		return nil, err
	}
	after, err := texts(next, list)
	if err != nil {
		return nil, err
	}
	var changes []Value
	for i := range list {
		d := &list[i]
		switch {
		case bytes.Equal(before[i], after[i]):
		case after[i] == nil:
			changes = append(changes, Value{Name: d.Name, Kind: d.Kind})
		default:
			v, err := d.value(after[i])
			if err != nil {
				return nil, err
			}
			changes = append(changes, v)
		}
	}
	return changes, nil
}

// Differences are what is to be written where there were values, and are others now, as
// of [Changes].
func Differences(had, has []Value) []Value {
	named := func(list []Value, name string) int {
		return slices.IndexFunc(list, func(v Value) bool { return v.Name == name })
	}
	var changes []Value
	for _, v := range has {
		if i := named(had, v.Name); i < 0 || !bytes.Equal(had[i].Key, v.Key) {
			changes = append(changes, v)
		}
	}
	for _, h := range had {
		if named(has, h.Name) < 0 {
			changes = append(changes, Value{Name: h.Name, Kind: h.Kind})
		}
	}
	return changes
}

// texts are the values as the data have them; nil = absent or null.
func texts(s *snapshot.Snapshot, list []Declared) ([]jsontext.Value, error) {
	found := make([]jsontext.Value, len(list))
	var wanted [Max]int
	for _, root := range []Root{Data, Context, Input} {
		of := wanted[:0]
		for i := range list {
			if list[i].Root == root {
				of = append(of, i)
			}
		}
		if len(of) == 0 {
			continue
		}
		if err := find(rootOf(s, root), list, of, 0, found); err != nil {
			return nil, problem.Wrap(err, problem.Internal, "attribute.data", "the data of instance %s are no JSON", s.InstanceID)
		}
	}
	return found, nil
}

// same says that two snapshots of a definition have the same values, without looking
// for them: nothing that they are in has changed.
func same(a, b *snapshot.Snapshot, list []Declared) bool {
	if a.Status != b.Status && (faulted(a) || faulted(b)) {
		return false
	}
	for _, root := range []Root{Data, Context, Input} {
		used := false
		for i := range list {
			used = used || list[i].Root == root
		}
		if used && !bytes.Equal(rootOf(a, root), rootOf(b, root)) {
			return false
		}
	}
	return true
}

func faulted(s *snapshot.Snapshot) bool {
	return s.Status == snapshot.Faulted || s.Status == snapshot.Suspended && s.ResumeAs == snapshot.Faulted || (s.Status == snapshot.Cancelled || s.Status == snapshot.Compensated) && s.Error != nil
}

func rootOf(s *snapshot.Snapshot, root Root) []byte {
	switch {
	case root == Context:
		return s.State.Context
	case root == Data && s.Status == snapshot.Completed:
		return s.State.Output
	case root == Data && len(s.Branches) > 0 && s.Branches[0].Data != nil:
		return s.Branches[0].Data
	}
	return s.State.Input
}

// decoders are used again: each has a buffer.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// find looks in a value for those of a list of attributes whose paths lead to it with
// their first names, so many as depth says.
func find(raw []byte, list []Declared, of []int, depth int, found []jsontext.Value) error {
	if len(raw) == 0 || jsontext.Value(raw).Kind() != '{' {
		return nil
	}
	dec, _ := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(dec)
	dec.Reset(bytes.NewBuffer(raw)) // which it reads where it lies
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var wanted [Max]int
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if name = name[1 : len(name)-1]; bytes.IndexByte(name, '\\') >= 0 {
			if name, err = jsontext.AppendUnquote(nil, raw[dec.InputOffset()-int64(len(name))-2:dec.InputOffset()]); err != nil {
				return err
			}
		}
		here := wanted[:0]
		for _, i := range of {
			if list[i].Path[depth] == string(name) {
				here = append(here, i)
			}
		}
		if len(here) == 0 {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		v = raw[dec.InputOffset()-int64(len(v)) : dec.InputOffset()]
		deeper := here[:0]
		for _, i := range here {
			switch {
			case len(list[i].Path) > depth+1:
				deeper = append(deeper, i)
			case v.Kind() != 'n':
				found[i] = v
			}
		}
		if len(deeper) > 0 {
			if err := find(v, list, deeper, depth+1, found); err != nil {
				return err
			}
		}
	}
	_, err := dec.ReadToken()
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

var kinds = map[jsontext.Kind]string{'{': "an object", '[': "an array", '"': "a text", '0': "a number", 't': "true", 'f': "false"}

// value reads what is at the path of an attribute.
func (d *Declared) value(raw jsontext.Value) (Value, error) {
	v := Value{Name: d.Name, Kind: d.Kind}
	text := string(raw)
	if raw.Kind() == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return v, d.wrong("attribute.type", "it is no text: %v", err)
		}
		text = string(unquoted)
	}
	var err error
	switch {
	case raw.Kind() == '"' && strings.Contains(text, masked):
		return v, d.wrong("attribute.secret", "it has been made of a secret, which is not to be found")
	case raw.Kind() == '"' && (d.Kind == Text || d.Kind == Time), raw.Kind() == '0' && d.Kind == Decimal, (raw.Kind() == 't' || raw.Kind() == 'f') && d.Kind == Boolean:
		v.Text, v.Key, err = encode(d.Kind, text)
	default:
		return v, d.wrong("attribute.type", "it is %s, and the attribute is declared as %s", kinds[raw.Kind()], d.Kind)
	}
	if err != nil {
		return v, d.wrong(problem.CodeOf(err), "%s", detail(err))
	}
	return v, nil
}

// detail is what an error of this package says.
func detail(err error) string {
	var e *problem.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}

// wrong is an error that names the attribute, and where it is declared.
func (d *Declared) wrong(code, format string, args ...any) error {
	said := fmt.Sprintf(format, args...)
	e := problem.New(problem.Invalid, code, "the value of the search attribute %s at %s: %s", d.Name, d.path(), said).
		WithHint("publish a version whose data fit the attribute, or that declares it otherwise, and move the instance to it")
	e.Where = []problem.Place{{Pointer: d.At, Code: code, Detail: said}}
	return e
}
