package jq

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"
)

// number turns what JSON calls a number into what arithmetic works on: an
// int, a float64 or a *big.Int, as gojq does it.
func number(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if i, err := n.Int64(); err == nil {
		return int(i)
	}
	if strings.ContainsAny(string(n), ".eE") {
		if f, err := n.Float64(); err == nil {
			return f
		}
	}
	if b, ok := new(big.Int).SetString(string(n), 10); ok {
		return b
	}
	if strings.HasPrefix(string(n), "-") {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

func describe(v any) string {
	if v == nil {
		return "null"
	}
	return gojq.TypeOf(v) + " (" + gojq.Preview(v) + ")"
}

// arithmetic applies the function for the wider of the two types; ok is false
// when one of them is no number.
func arithmetic(l, r any, ints func(l, r int) any, floats func(l, r float64) any, bigs func(l, r *big.Int) any) (any, bool) {
	l, r = number(l), number(r)
	li, lInt := l.(int)
	ri, rInt := r.(int)
	if lInt && rInt {
		return ints(li, ri), true
	}
	if !isNumber(l) || !isNumber(r) {
		return nil, false
	}
	_, lf := l.(float64)
	_, rf := r.(float64)
	if lf || rf {
		x, _ := gojq.ToFloat64(l)
		y, _ := gojq.ToFloat64(r)
		return floats(x, y), true
	}
	return bigs(toBig(l), toBig(r)), true
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, float64, *big.Int, json.Number:
		return true
	}
	return false
}

func toBig(v any) *big.Int {
	if i, ok := v.(int); ok {
		return big.NewInt(int64(i))
	}
	return v.(*big.Int)
}

func (m *meter) add(l, r any) any {
	switch {
	case l == nil:
		return r
	case r == nil:
		return l
	}
	switch l := l.(type) {
	case string:
		if r, ok := r.(string); ok {
			if err := m.text(len(l) + len(r)); err != nil {
				return err
			}
			return l + r
		}
	case []any:
		if r, ok := r.([]any); ok {
			return m.addArrays(l, r)
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			if err := m.charge(len(l) + len(r)); err != nil {
				return err
			}
			w := make(map[string]any, len(l)+len(r))
			maps.Copy(w, l)
			maps.Copy(w, r)
			return w
		}
	}
	return m.numbers("add", l, r,
		func(l, r int) any {
			if v := l + r; (v >= l) == (r >= 0) {
				return v
			}
			return new(big.Int).Add(big.NewInt(int64(l)), big.NewInt(int64(r)))
		},
		func(l, r float64) any { return l + r },
		func(l, r *big.Int) any { return new(big.Int).Add(l, r) })
}

func (m *meter) addArrays(l, r []any) any {
	if len(l) == 0 {
		return r
	}
	if len(r) == 0 {
		return l
	}
	if err := m.charge((len(l) + len(r)) / nodesPerStep); err != nil {
		return err
	}
	w := make([]any, 0, len(l)+len(r))
	return append(append(w, l...), r...)
}

// numbers is the part of an operator that is about numbers.
func (m *meter) numbers(name string, l, r any, ints func(l, r int) any, floats func(l, r float64) any, bigs func(l, r *big.Int) any) any {
	if err := m.digits(l); err != nil {
		return err
	}
	if err := m.digits(r); err != nil {
		return err
	}
	v, ok := arithmetic(l, r, ints, floats, bigs)
	if !ok {
		return fmt.Errorf("cannot %s: %s and %s", name, describe(l), describe(r))
	}
	if err := m.digits(v); err != nil {
		return err
	}
	return v
}

func (m *meter) subtract(l, r any) any {
	if l, ok := l.([]any); ok {
		if r, ok := r.([]any); ok {
			if err := m.pairs(l, r); err != nil {
				return err
			}
			w := make([]any, 0, len(l))
		next:
			for _, x := range l {
				for _, y := range r {
					if gojq.Compare(x, y) == 0 {
						continue next
					}
				}
				w = append(w, x)
			}
			return w
		}
	}
	return m.numbers("subtract", l, r,
		func(l, r int) any {
			if v := l - r; (v <= l) == (r >= 0) {
				return v
			}
			return new(big.Int).Sub(big.NewInt(int64(l)), big.NewInt(int64(r)))
		},
		func(l, r float64) any { return l - r },
		func(l, r *big.Int) any { return new(big.Int).Sub(l, r) })
}

func (m *meter) multiply(l, r any) any {
	if _, ok := l.(string); !ok {
		if s, ok := r.(string); ok {
			return m.repeat(s, l, l, r)
		}
	}
	switch l := l.(type) {
	case string:
		return m.repeat(l, r, l, r)
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			if _, err := m.tree(l, 2); err != nil {
				return err
			}
			if _, err := m.tree(r, 2); err != nil {
				return err
			}
			return merge(l, r)
		}
	}
	return m.numbers("multiply", l, r,
		func(l, r int) any {
			if r == -1 {
				return normal(new(big.Int).Neg(big.NewInt(int64(l))))
			}
			if v := l * r; r == 0 || v/r == l {
				return v
			}
			return new(big.Int).Mul(big.NewInt(int64(l)), big.NewInt(int64(r)))
		},
		func(l, r float64) any { return l * r },
		func(l, r *big.Int) any { return new(big.Int).Mul(l, r) })
}

func merge(l, r map[string]any) any {
	w := make(map[string]any, len(l)+len(r))
	maps.Copy(w, l)
	for k, v := range r {
		if x, ok := w[k].(map[string]any); ok {
			if y, ok := v.(map[string]any); ok {
				v = merge(x, y)
			}
		}
		w[k] = v
	}
	return w
}

func (m *meter) repeat(s string, n, l, r any) any {
	if err := m.digits(n); err != nil {
		return err
	}
	f, ok := gojq.ToFloat64(n)
	if !ok {
		return fmt.Errorf("cannot multiply: %s and %s", describe(l), describe(r))
	}
	if f < 0 || math.IsNaN(f) {
		return nil
	}
	c := int(min(f, math.MaxInt32))
	if err := m.text(len(s) * c); err != nil {
		return err
	}
	return strings.Repeat(s, c)
}

func (m *meter) divide(l, r any) any {
	if s, ok := l.(string); ok {
		if sep, ok := r.(string); ok {
			return m.split(s, sep)
		}
	}
	zero := false
	v := m.numbers("divide", l, r,
		func(l, r int) any {
			switch {
			case r == 0:
				zero = true
				return nil
			case r == -1:
				return normal(new(big.Int).Neg(big.NewInt(int64(l))))
			case l%r == 0:
				return l / r
			}
			return float64(l) / float64(r)
		},
		func(l, r float64) any {
			zero = r == 0
			return l / r
		},
		func(l, r *big.Int) any {
			if zero = r.Sign() == 0; zero {
				return nil
			}
			if d, rest := new(big.Int).DivMod(l, r, new(big.Int)); rest.Sign() == 0 {
				return d
			}
			x, _ := gojq.ToFloat64(l)
			y, _ := gojq.ToFloat64(r)
			return x / y
		})
	if zero {
		return fmt.Errorf("cannot divide %s by: %s", describe(l), describe(r))
	}
	return v
}

// normal returns a number as an int where it is one.
func normal(b *big.Int) any {
	if b.IsInt64() {
		return int(b.Int64())
	}
	return b
}

func (m *meter) modulo(l, r any) any {
	zero := false
	v := m.numbers("modulo", l, r,
		func(l, r int) any {
			if zero = r == 0; zero || r == -1 {
				return 0
			}
			return l % r
		},
		func(l, r float64) any {
			if math.IsNaN(l) || math.IsNaN(r) {
				return math.NaN()
			}
			x, _ := gojq.ToInt(l)
			y, _ := gojq.ToInt(r)
			if zero = y == 0; zero || y == -1 {
				return 0
			}
			return x % y
		},
		func(l, r *big.Int) any {
			if zero = r.Sign() == 0; zero {
				return nil
			}
			return new(big.Int).Rem(l, r)
		})
	if zero {
		return fmt.Errorf("cannot modulo %s by: %s", describe(l), describe(r))
	}
	return v
}

// compare pays for a comparison and makes it.
func (m *meter) compare(l, r any) (int, error) {
	for _, v := range [2]any{l, r} {
		var err error
		switch v := v.(type) {
		case []any, map[string]any:
			_, err = m.tree(v, 2)
		default:
			err = m.flat(v)
		}
		if err != nil {
			return 0, err
		}
	}
	return gojq.Compare(l, r), nil
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

func (m *meter) split(s, sep string) any {
	n := strings.Count(s, sep) + 1
	if err := m.charge(len(s)/bytesPerStep + n/2); err != nil {
		return err
	}
	w := make([]any, 0, n)
	if s == "" {
		return w
	}
	for _, part := range strings.Split(s, sep) {
		w = append(w, part)
	}
	return w
}
