package jq

import (
	"encoding/json"
	"math/big"
	"reflect"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// meter counts what one evaluation has spent. It is the context of the jq
// machine, which asks Done before each instruction; the guarded primitives
// pay through charge. Once it has tripped, the machine stops at the next
// instruction, so an expression cannot catch the problem.
type meter struct {
	lim   Limits
	steps int
	err   *problem.Error
	spent chan struct{} // closed for ever
}

func newMeter() *meter {
	m := &meter{spent: make(chan struct{})}
	close(m.spent)
	return m
}

func (m *meter) reset(lim Limits) { m.lim, m.steps, m.err = lim, lim.Steps, nil }

func (m *meter) Done() <-chan struct{} {
	m.steps--
	if m.steps >= 0 && m.err == nil {
		return nil
	}
	if m.err == nil {
		m.tooLong()
	}
	return m.spent
}

func (m *meter) Err() error {
	if m.err == nil {
		return nil
	}
	return m.err
}

func (m *meter) Deadline() (time.Time, bool) { return time.Time{}, false }
func (m *meter) Value(any) any               { return nil }

func (m *meter) tooLong() error {
	if m.err == nil {
		m.err = problem.New(problem.TooLarge, "expression.too-long", "expression takes more than %d steps", m.lim.Steps).
			WithHint("do less in one expression, or on less data")
	}
	return m.err
}

func (m *meter) tooLarge(format string, args ...any) error {
	if m.err == nil {
		m.err = problem.New(problem.TooLarge, "expression.too-large", format, args...)
	}
	return m.err
}

// refund gives back the price of n instructions that are a guard's own.
func (m *meter) refund(n int) { m.steps += n }

// charge pays n steps.
func (m *meter) charge(n int) error {
	if m.err != nil {
		return m.err
	}
	if n < 0 || n > m.steps {
		m.steps = 0
		return m.tooLong()
	}
	m.steps -= n
	return nil
}

// Work that one step pays for.
const (
	bytesPerStep = 128 // of a string copied
	nodesPerStep = 4   // of a tree visited, or of a container copied
	pairsPerStep = 64  // of elements compared with each other
)

// text pays for a string of n bytes that is about to be made.
func (m *meter) text(n int) error {
	if n < 0 || n > m.lim.Bytes {
		return m.tooLarge("string of %d bytes exceeds %d", n, m.lim.Bytes)
	}
	return m.charge(n / bytesPerStep)
}

// flat pays for a visit to v that does not go below its elements.
func (m *meter) flat(v any) error {
	switch v := v.(type) {
	case string:
		return m.charge(len(v) / bytesPerStep)
	case json.Number:
		return m.digits(v)
	case []any:
		return m.charge(len(v) / nodesPerStep)
	case map[string]any:
		return m.charge(len(v))
	}
	return nil
}

// digits refuses numbers whose arithmetic takes more than constant time.
func (m *meter) digits(v any) error {
	switch v := v.(type) {
	case json.Number:
		if len(v) > MaxDigits {
			return m.tooLarge("number of more than %d digits in arithmetic", MaxDigits)
		}
	case *big.Int:
		if v.BitLen() > MaxDigits*4 {
			return m.tooLarge("number of more than %d digits in arithmetic", MaxDigits)
		}
	}
	return nil
}

// tree pays for weight visits to all of v, and returns its size. A part that
// is there twice is counted twice, as it would be written.
func (m *meter) tree(v any, weight int) (size, error) {
	s := size{max: m.lim.Bytes}
	if !s.add(v, nil, 0) {
		if s.deep {
			return s, m.tooLarge("value is nested deeper than %d", MaxDepth)
		}
		return s, m.tooLarge("value exceeds %d bytes", m.lim.Bytes)
	}
	if s.digits > MaxDigits {
		return s, m.tooLarge("number of more than %d digits in arithmetic", MaxDigits)
	}
	return s, m.charge(weight * (s.nodes/nodesPerStep + s.bytes/bytesPerStep))
}

// size is the measure of a tree: about what it takes as JSON.
type size struct {
	max, bytes, nodes, digits int
	deep                      bool
}

// add measures what v has that like, at the same place, has not, and reports
// whether it is within the bounds. Each place of like counts for nothing once
// at most, so a value is never larger than both together, however often it has
// the same part in it.
func (s *size) add(v, like any, depth int) bool {
	s.nodes++
	switch v := v.(type) {
	case string:
		s.bytes += len(v) + 2
	case json.Number:
		s.bytes += len(v)
		s.digits = max(s.digits, len(v))
	case *big.Int:
		n := v.BitLen()/3 + 2
		s.bytes += n
		s.digits = max(s.digits, n)
	case []any:
		l, _ := like.([]any)
		if len(l) > 0 && len(v) == len(l) && &v[0] == &l[0] {
			return true
		}
		s.bytes += 2 + len(v)
		if depth++; depth > MaxDepth {
			s.deep = true
			return false
		}
		for i, x := range v {
			var y any
			if i < len(l) {
				y = l[i]
			}
			if s.bytes > s.max || !s.add(x, y, depth) {
				return false
			}
		}
	case map[string]any:
		l, _ := like.(map[string]any)
		if len(l) > 0 && reflect.ValueOf(v).Pointer() == reflect.ValueOf(l).Pointer() {
			return true
		}
		s.bytes += 2
		if depth++; depth > MaxDepth {
			s.deep = true
			return false
		}
		for k, x := range v {
			s.bytes += len(k) + 4
			if s.bytes > s.max || !s.add(x, l[k], depth) {
				return false
			}
		}
	case nil:
		s.bytes += 4
	default:
		s.bytes += 5
	}
	return s.bytes <= s.max
}
