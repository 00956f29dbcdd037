package jq

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Decode reads one JSON value; numbers become json.Number, so none loses a
// digit. Empty raw is null. Of two members with one key the last counts, and what
// is no UTF-8 becomes U+FFFD. The texts of the value are parts of one copy of raw.
func Decode(raw json.RawMessage) (any, error) {
	d := decoder{text: string(raw)}
	if d.space(); d.at == len(d.text) {
		return nil, nil
	}
	if v, ok := d.value(0); ok {
		if d.space(); d.at == len(d.text) {
			return v, nil
		}
	}
	return decodeStrict(raw)
}

// decodeStrict says what is wrong with raw.
func decodeStrict(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "expression.data", "data is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, problem.New(problem.Invalid, "expression.data", "data has more behind its JSON value")
	}
	return v, nil
}

// decoder reads what is almost always JSON: encoding/json, which looks at each byte
// three times, is asked about what it does not take. Decoding was a third of a step
// beside 100 KB of data.
type decoder struct {
	text   string
	at     int
	keys   []string // of the objects around at, so that each map is made once, at its size
	values []any    // of the objects and arrays around at
}

// maxNesting is how deep encoding/json reads.
const maxNesting = 10_000

func (d *decoder) space() {
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// take reports whether b comes next, and goes behind it.
func (d *decoder) take(b byte) bool {
	if d.at < len(d.text) && d.text[d.at] == b {
		d.at++
		return true
	}
	return false
}

// value reads a value within depth objects and arrays, and is false where it finds none.
func (d *decoder) value(depth int) (any, bool) {
	if d.at == len(d.text) {
		return nil, false
	}
	switch d.text[d.at] {
	case '{':
		return d.object(depth + 1)
	case '[':
		return d.array(depth + 1)
	case '"':
		s, ok := d.string()
		return s, ok
	case 'n':
		return nil, d.literal("null")
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	default:
		n, ok := d.number()
		return n, ok
	}
}

func (d *decoder) literal(name string) bool {
	found := strings.HasPrefix(d.text[d.at:], name)
	d.at += len(name)
	return found
}

// items reads a list's items, each by one, up to its end.
func (d *decoder) items(end byte, one func() bool) bool {
	d.at++
	if d.space(); d.take(end) {
		return true
	}
	for {
		d.space()
		if !one() {
			return false
		}
		if d.space(); d.take(end) {
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

func (d *decoder) array(depth int) (any, bool) {
	base := len(d.values)
	ok := depth <= maxNesting && d.items(']', func() bool {
		v, ok := d.value(depth)
		d.values = append(d.values, v)
		return ok
	})
	a := make([]any, len(d.values)-base)
	copy(a, d.values[base:])
	d.values = d.values[:base]
	return a, ok
}

func (d *decoder) object(depth int) (any, bool) {
	base, names := len(d.values), len(d.keys)
	ok := depth <= maxNesting && d.items('}', func() bool {
		key, ok := d.string()
		if !ok {
			return false
		}
		if d.space(); !d.take(':') {
			return false
		}
		d.space()
		v, ok := d.value(depth)
		d.keys, d.values = append(d.keys, key), append(d.values, v)
		return ok
	})
	o := make(map[string]any, len(d.keys)-names)
	for i, key := range d.keys[names:] {
		o[key] = d.values[base+i]
	}
	d.keys, d.values = d.keys[:names], d.values[:base]
	return o, ok
}

// string reads a text.
func (d *decoder) string() (string, bool) {
	if !d.take('"') {
		return "", false
	}
	from, plain, escaped := d.at, true, false
	for ; d.at < len(d.text); d.at++ {
		switch b := d.text[d.at]; {
		case b == '"':
			d.at++
			switch s := d.text[from : d.at-1]; {
			case escaped:
				return unescape(d.text[from-1 : d.at])
			case plain || utf8.ValidString(s):
				return s, true
			default:
				return unescape(d.text[from-1 : d.at])
			}
		case b == '\\':
			d.at++
			escaped = true
		case b < ' ':
			return "", false
		case b >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", false
}

// unescape reads a text with escapes, and its quotes: those of one letter here, what has
// others, or is no UTF-8, by encoding/json.
func unescape(quoted string) (string, bool) {
	s := quoted[1 : len(quoted)-1]
	b := make([]byte, 0, len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			break
		}
		escape := strings.IndexByte(`"\/bfnrt`, s[i+1])
		if escape < 0 {
			err := json.Unmarshal([]byte(quoted), &s)
			return s, err == nil
		}
		b = append(append(b, s[:i]...), "\"\\/\b\f\n\r\t"[escape])
		s = s[i+2:]
	}
	b = append(b, s...)
	if !utf8.Valid(b) {
		err := json.Unmarshal([]byte(quoted), &s)
		return s, err == nil
	}
	return string(b), true
}

// number reads a number as RFC 8259 has it.
func (d *decoder) number() (json.Number, bool) {
	from := d.at
	d.take('-')
	ok := d.take('0') || d.digits()
	if d.take('.') {
		ok = d.digits() && ok
	}
	if d.take('e') || d.take('E') {
		_ = d.take('+') || d.take('-')
		ok = d.digits() && ok
	}
	return json.Number(d.text[from:d.at]), ok
}

func (d *decoder) digits() bool {
	from := d.at
	for d.at < len(d.text) && '0' <= d.text[d.at] && d.text[d.at] <= '9' {
		d.at++
	}
	return d.at > from
}
