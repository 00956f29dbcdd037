package jq

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Truthy is jq's notion of true: everything but null and false.
func Truthy(v any) bool { return v != nil && v != false }

// Encode returns v's canonical JSON: keys in order, no HTML escaping. It stops
// with expression.too-large when the result would exceed max bytes (0 = DefaultBytes).
func Encode(v any, max int) (json.RawMessage, error) {
	if max <= 0 {
		max = DefaultBytes
	}
	e := encoder{max: max}
	e.value(v, 0)
	if len(e.buf) > e.max && e.err == nil {
		e.err = problem.New(problem.TooLarge, "expression.too-large", "value exceeds %d bytes", max)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.buf, nil
}

type encoder struct {
	buf []byte
	max int
	err *problem.Error
}

func (e *encoder) stop() bool { return e.err != nil || len(e.buf) > e.max }

func (e *encoder) value(v any, depth int) {
	if depth > MaxDepth {
		e.err = problem.New(problem.TooLarge, "expression.too-large", "value is nested deeper than %d", MaxDepth)
		return
	}
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case string:
		e.text(v)
	case json.Number:
		e.number(v)
	case int:
		e.buf = strconv.AppendInt(e.buf, int64(v), 10)
	case int64:
		e.buf = strconv.AppendInt(e.buf, v, 10)
	case float64:
		e.float(v)
	case *big.Int:
		e.buf = v.Append(e.buf, 10)
	case []any:
		e.array(v, depth+1)
	case map[string]any:
		e.object(v, depth+1)
	default:
		e.err = problem.New(problem.Internal, "expression.value", "value of type %T is not JSON", v)
	}
}

func (e *encoder) array(v []any, depth int) {
	e.buf = append(e.buf, '[')
	for i, x := range v {
		if e.stop() {
			return
		}
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.value(x, depth)
	}
	e.buf = append(e.buf, ']')
}

func (e *encoder) object(v map[string]any, depth int) {
	e.buf = append(e.buf, '{')
	var few [16]string // most objects are small
	keys := few[:0]
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		if e.stop() {
			return
		}
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.text(k)
		e.buf = append(e.buf, ':')
		e.value(v[k], depth)
	}
	e.buf = append(e.buf, '}')
}

// number writes the digits as they came. Text that is not a JSON number can
// come only from a caller that made a json.Number itself.
func (e *encoder) number(v json.Number) {
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') || !json.Valid([]byte(v)) {
		e.err = problem.New(problem.Internal, "expression.value", "number %.40q is not JSON", string(v))
		return
	}
	e.buf = append(e.buf, v...)
}

// float writes as jq does: not-a-number is null and infinities are the
// largest number, for JSON has neither.
func (e *encoder) float(f float64) {
	if math.IsNaN(f) {
		e.buf = append(e.buf, "null"...)
		return
	}
	f = min(max(f, -math.MaxFloat64), math.MaxFloat64)
	format := byte('f')
	if x := math.Abs(f); x != 0 && x < 1e-6 || x >= 1e21 {
		format = 'e'
	}
	e.buf = strconv.AppendFloat(e.buf, f, format, -1, 64)
	if n := len(e.buf); format == 'e' && n >= 4 && e.buf[n-4] == 'e' && e.buf[n-3] == '-' && e.buf[n-2] == '0' {
		e.buf[n-2] = e.buf[n-1]
		e.buf = e.buf[:n-1]
	}
}

func (e *encoder) text(s string) {
	if len(s) > e.max {
		e.err = problem.New(problem.TooLarge, "expression.too-large", "value exceeds %d bytes", e.max)
		return
	}
	const hex = "0123456789abcdef"
	e.buf = append(e.buf, '"')
	for i := 0; i < len(s); {
		plain := i
		for i < len(s) && s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' {
			i++
		}
		e.buf = append(e.buf, s[plain:i]...)
		if i == len(s) {
			break
		}
		b := s[i]
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			e.buf = utf8.AppendRune(e.buf, r)
			i += n
			continue
		}
		i++
		switch {
		case b == '"' || b == '\\':
			e.buf = append(e.buf, '\\', b)
		case b == '\n':
			e.buf = append(e.buf, '\\', 'n')
		case b == '\t':
			e.buf = append(e.buf, '\\', 't')
		case b == '\r':
			e.buf = append(e.buf, '\\', 'r')
		case b < ' ' || b == 0x7f:
			e.buf = append(e.buf, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
	}
	e.buf = append(e.buf, '"')
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
