package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"
)

// kit is the set of guarded primitives of one machine.
type kit struct {
	m        *meter
	patterns map[string]*pattern
}

// options gives the compiler the primitives that the rewriter calls.
func (k *kit) options() []gojq.CompilerOption {
	m := k.m
	op := func(name string, f func(l, r any) any) gojq.CompilerOption {
		return gojq.WithFunction(name, 2, 2, func(_ any, args []any) any { return f(args[0], args[1]) })
	}
	cmp := func(name string, f func(c int) bool) gojq.CompilerOption {
		return op(name, func(l, r any) any {
			c, err := m.compare(l, r)
			if err != nil {
				return err
			}
			return f(c)
		})
	}
	return []gojq.CompilerOption{
		op("__add", m.add), op("__subtract", m.subtract), op("__multiply", m.multiply),
		op("__divide", m.divide), op("__modulo", m.modulo),
		cmp("__equal", func(c int) bool { return c == 0 }), cmp("__notequal", func(c int) bool { return c != 0 }),
		cmp("__less", func(c int) bool { return c < 0 }), cmp("__lesseq", func(c int) bool { return c <= 0 }),
		cmp("__greater", func(c int) bool { return c > 0 }), cmp("__greatereq", func(c int) bool { return c >= 0 }),
		gojq.WithFunction("__cat", 1, 30, k.cat),
		gojq.WithFunction("__iterate", 0, 0, k.iterate), gojq.WithFunction("__indexed", 0, 0, k.indexed),
		gojq.WithFunction("__key", 0, 0, k.key), gojq.WithFunction("__path", 0, 0, k.path),
		gojq.WithFunction("__gone", 0, 0, func(any, []any) any { return gone{} }),
		gojq.WithFunction("__updatable", 2, 2, k.updatable), gojq.WithFunction("__sweep", 1, 1, k.sweep),
		gojq.WithFunction("__without", 1, 1, k.without), gojq.WithFunction("__reachable", 1, 1, k.reachable),
		gojq.WithFunction("__made", 0, 0, k.made),
		gojq.WithFunction("__flat", 0, 1, k.flat), gojq.WithFunction("__numbers", 0, 3, k.numbers),
		gojq.WithFunction("__tree", 0, 1, k.tree), gojq.WithFunction("__trees", 2, 2, k.trees),
		gojq.WithFunction("__sorting", 0, 1, k.sorting), gojq.WithFunction("__pairs", 1, 1, k.pairs),
		gojq.WithFunction("__join", 1, 1, k.join), gojq.WithFunction("__split", 1, 1, k.split),
		gojq.WithFunction("__transpose", 0, 0, k.transpose), gojq.WithFunction("__time", 1, 1, k.time), gojq.WithFunction("__digits", 0, 0, k.digits),
		gojq.WithFunction("__match", 3, 3, k.match), gojq.WithFunction("__pieces", 1, 1, k.pieces),
		gojq.WithFunction("__weave", 2, 2, k.weave),
	}
}

// pass is what a guard returns: the input, or what stops the expression.
func pass(v any, err error) any {
	if err != nil {
		return err
	}
	return v
}

// cat joins the parts of an interpolated string.
func (k *kit) cat(_ any, args []any) any {
	n := 0
	for _, a := range args {
		s, ok := a.(string)
		if !ok {
			return fmt.Errorf("string has a part that is none: %s", describe(a))
		}
		n += len(s)
	}
	if err := k.m.text(n); err != nil {
		return err
	}
	var b strings.Builder
	b.Grow(n)
	for _, a := range args {
		b.WriteString(a.(string))
	}
	return b.String()
}

// iterate pays for .[] before it unfolds its input.
func (k *kit) iterate(v any, _ []any) any { return pass(v, k.m.flat(v)) }

// indexed pays for an index or a slice, which counts the characters of a string.
func (k *kit) indexed(v any, _ []any) any {
	if s, ok := v.(string); ok {
		return pass(v, k.m.charge(len(s)/pairsPerStep))
	}
	return v
}

// key refuses an index that stands for a search.
func (k *kit) key(v any, _ []any) any {
	if _, ok := v.([]any); ok {
		return errors.New("cannot index by an array (use indices)")
	}
	return pass(v, k.m.digits(v))
}

// made pays for what a native function has made.
func (k *kit) made(v any, _ []any) any {
	switch v := v.(type) {
	case string:
		return pass(v, k.m.text(len(v)))
	case *big.Int:
		return pass(v, k.m.digits(v))
	case []any:
		return pass(v, k.m.charge(len(v)))
	}
	return v
}

func (k *kit) flat(v any, args []any) any {
	err := k.m.flat(v)
	for _, a := range args {
		if err == nil {
			err = k.m.flat(a)
		}
	}
	return pass(v, err)
}

func (k *kit) numbers(v any, args []any) any {
	err := k.m.digits(v)
	for _, a := range args {
		if err == nil {
			err = k.m.digits(a)
		}
	}
	return pass(v, err)
}

func (k *kit) tree(v any, args []any) any {
	weight := 2
	if s, ok := v.(string); ok && len(s) > 64 {
		weight = 64 // fromjson and tonumber make much of a short text
	}
	_, err := k.m.tree(v, weight)
	for _, a := range args {
		if err == nil {
			_, err = k.m.tree(a, weight)
		}
	}
	return pass(v, err)
}

// trees pays for the input and one more value, with a given weight.
func (k *kit) trees(v any, args []any) any {
	weight, _ := gojq.ToInt(args[1])
	if _, err := k.m.tree(v, 1); err != nil {
		return err
	}
	_, err := k.m.tree(args[0], weight)
	return pass(v, err)
}

func (k *kit) sorting(v any, args []any) any {
	_, err := k.m.tree(v, 8)
	for _, a := range args {
		if err == nil {
			_, err = k.m.tree(a, 20)
		}
	}
	return pass(v, err)
}

func (k *kit) pairs(v any, args []any) any { return pass(v, k.m.pairs(v, args[0])) }

// join pays for the whole text, which the separator multiplies.
func (k *kit) join(v any, args []any) any {
	s, err := k.m.tree(v, 2)
	if err != nil {
		return err
	}
	n := 0
	switch v := v.(type) {
	case []any:
		n = len(v)
	case map[string]any:
		n = len(v)
	}
	if sep, ok := args[0].(string); ok && n > 0 {
		return pass(v, k.m.text(s.bytes+(n-1)*len(sep)))
	}
	return v
}

func (k *kit) split(v any, args []any) any {
	s, ok := v.(string)
	sep, ok2 := args[0].(string)
	if !ok || !ok2 {
		return fmt.Errorf("split(%s) cannot be applied to: %s", describe(args[0]), describe(v))
	}
	return pass(v, k.m.charge(len(s)/bytesPerStep+strings.Count(s, sep)))
}

// transpose pays for the rectangle that it fills up with null.
func (k *kit) transpose(v any, _ []any) any {
	rows, _ := v.([]any)
	width := 0
	for _, r := range rows {
		if r, ok := r.([]any); ok {
			width = max(width, len(r))
		}
	}
	if n := len(rows) * width; n > k.m.lim.Bytes/2 {
		return k.m.tooLarge("transpose of %d elements exceeds %d bytes", n, k.m.lim.Bytes)
	}
	return pass(v, k.m.charge(len(rows)+len(rows)*width))
}

// digits refuses text that would become a number with too many digits.
func (k *kit) digits(v any, _ []any) any {
	if s, ok := v.(string); ok {
		return pass(v, k.m.digits(json.Number(s)))
	}
	return v
}

// maxTimeFormat bounds the format of a time: one directive of it can make a
// kilobyte.
const maxTimeFormat = 200

// time refuses the zone by name, which would depend on the machine.
func (k *kit) time(v any, args []any) any {
	if f, ok := args[0].(string); ok {
		if len(f) > maxTimeFormat {
			return fmt.Errorf("time format of %d bytes exceeds %d", len(f), maxTimeFormat)
		}
		if strings.Contains(strings.ReplaceAll(f, "%%", ""), "%Z") {
			return errors.New("a time zone has no name here (use %z)")
		}
		if err := k.m.charge(8 * len(f)); err != nil {
			return err
		}
	}
	return k.flat(v, args)
}
