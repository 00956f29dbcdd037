package jq

import (
	"math"
	"strings"

	"github.com/itchyny/gojq"
)

func describe(v any) string {
	if v == nil {
		return "null"
	}
	return gojq.TypeOf(v) + " (" + gojq.Preview(v) + ")"
}

// instructions is what the guard of an operator adds to the program: they are
// not the author's, and cost nothing.
const instructions = 7

// operands refuses numbers that are too long, and gives back the price of the
// guard itself.
func (m *meter) operands(l, r any) error {
	if err := m.digits(l); err != nil {
		return err
	}
	if err := m.digits(r); err != nil {
		return err
	}
	m.refund(instructions)
	return nil
}

// add pays for the sum, which is as long as both parts.
func (m *meter) add(_ any, args []any) error {
	switch l := args[0].(type) {
	case string:
		if r, ok := args[1].(string); ok {
			return m.text(len(l) + len(r))
		}
	case []any:
		if r, ok := args[1].([]any); ok && len(l) > 0 && len(r) > 0 {
			return m.charge((len(l) + len(r)) / nodesPerStep)
		}
	case map[string]any:
		if r, ok := args[1].(map[string]any); ok && len(l) > 0 && len(r) > 0 {
			return m.charge(len(l) + len(r))
		}
	}
	return m.operands(args[0], args[1])
}

// subtract pays for comparing each of the one with each of the other.
func (m *meter) subtract(_ any, args []any) error {
	if l, ok := args[0].([]any); ok {
		if r, ok := args[1].([]any); ok {
			return m.pairs(l, r)
		}
	}
	return m.operands(args[0], args[1])
}

// multiply pays for a text so many times, and for two objects as one.
func (m *meter) multiply(_ any, args []any) error {
	l, r := args[0], args[1]
	if err := m.operands(l, r); err != nil {
		return err
	}
	if _, ok := l.(string); !ok {
		l, r = r, l
	}
	switch l := l.(type) {
	case string:
		if n, ok := gojq.ToFloat64(r); ok && n > 0 {
			return m.text(len(l) * int(min(n, math.MaxInt32)))
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			if _, err := m.tree(l, 2); err != nil {
				return err
			}
			_, err := m.tree(r, 2)
			return err
		}
	}
	return nil
}

// divide pays for the pieces of a text.
func (m *meter) divide(_ any, args []any) error {
	if s, ok := args[0].(string); ok {
		if sep, ok := args[1].(string); ok {
			return m.charge(len(s)/bytesPerStep + strings.Count(s, sep)/2 + 1)
		}
	}
	return m.operands(args[0], args[1])
}

func (m *meter) modulo(_ any, args []any) error { return m.operands(args[0], args[1]) }

// comparison pays for comparing two values; those of different types are not
// looked into.
func (m *meter) comparison(l, r any) error {
	switch l.(type) {
	case []any:
		if _, ok := r.([]any); !ok {
			return nil
		}
	case map[string]any:
		if _, ok := r.(map[string]any); !ok {
			return nil
		}
	default:
		if err := m.flat(l); err != nil {
			return err
		}
		if s, ok := r.(string); ok {
			return m.charge(len(s) / bytesPerStep)
		}
		return m.digits(r)
	}
	if _, err := m.tree(l, 2); err != nil {
		return err
	}
	_, err := m.tree(r, 2)
	return err
}

// pairs pays for comparing every part of l with every part of r.
func (m *meter) pairs(l, r any) error {
	x, err := m.tree(l, 1)
	if err != nil {
		return err
	}
	y, err := m.tree(r, 1)
	if err != nil {
		return err
	}
	n, k := x.nodes, y.nodes
	if s, ok := l.(string); ok {
		n = len(s)
	}
	if s, ok := r.(string); ok {
		k = len(s)
	}
	return m.charge(int(min(int64(n)*int64(k)/pairsPerStep, math.MaxInt32)))
}
