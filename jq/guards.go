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
	args     [3]any // that the last guard has paid for
}

// options gives the compiler the guards that the rewriter calls.
func (k *kit) options() []gojq.CompilerOption {
	m := k.m
	cmp := func(name string, f func(c int) bool) gojq.CompilerOption {
		return gojq.WithFunction(name, 2, 2, func(_ any, args []any) any {
			if err := m.comparison(args[0], args[1]); err != nil {
				return err
			}
			return f(gojq.Compare(args[0], args[1]))
		})
	}
	res := []gojq.CompilerOption{
		cmp("__equal", func(c int) bool { return c == 0 }), cmp("__notequal", func(c int) bool { return c != 0 }),
		cmp("__less", func(c int) bool { return c < 0 }), cmp("__lesseq", func(c int) bool { return c <= 0 }),
		cmp("__greater", func(c int) bool { return c > 0 }), cmp("__greatereq", func(c int) bool { return c >= 0 }),
		gojq.WithFunction("__cat", 1, 30, k.cat),
		gojq.WithFunction("__path", 0, 0, k.path), gojq.WithFunction("__made", 0, 0, k.made),
		gojq.WithFunction("__updating", 0, 1, k.updating), gojq.WithFunction("__payable", 2, 2, k.payable),
		gojq.WithFunction("__paid", 1, 1, k.paid), gojq.WithFunction("__own", 0, 0, k.own),
		gojq.WithFunction("__disposable", 1, 1, k.disposable), gojq.WithFunction("__whole", 0, 0, k.whole),
		gojq.WithFunction("__match", 3, 3, k.match), gojq.WithFunction("__pieces", 1, 1, k.pieces),
		gojq.WithFunction("__weave", 2, 2, k.weave),
	}
	for i, name := range registers {
		res = append(res, gojq.WithFunction(name, 0, 0, func(any, []any) any { return k.args[i] }))
	}
	for name, pay := range map[string]func(v any, args []any) error{
		"__add": m.add, "__subtract": m.subtract, "__multiply": m.multiply, "__divide": m.divide, "__modulo": m.modulo,
		"__iterate": m.flats, "__indexed": m.indexed, "__key": m.key,
		"__flat": m.flats, "__numbers": m.numbers, "__tree": m.trees, "__keyed": m.keyed, "__sorting": m.sorting,
		"__pairs": m.search, "__join": m.join, "__split": m.split, "__transpose": m.transpose, "__time": m.time,
		"__digits": m.digitsOfText, "__reachable": m.reachable, "__settable": m.settable,
	} {
		res = append(res, gojq.WithFunction(name, 0, 3, func(v any, args []any) any {
			if err := pay(v, args); err != nil {
				return err
			}
			copy(k.args[:], args)
			return v
		}))
	}
	return res
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

// made pays for what a function has made of less.
func (k *kit) made(v any, _ []any) any {
	var err error
	switch v := v.(type) {
	case string:
		err = k.m.text(len(v))
	case *big.Int:
		err = k.m.digits(v)
	case []any:
		err = k.m.charge(len(v))
	}
	if err != nil {
		return err
	}
	return v
}

// flats pays for a visit to the input and to the arguments.
func (m *meter) flats(v any, args []any) error {
	for _, a := range args {
		if err := m.flat(a); err != nil {
			return err
		}
	}
	return m.flat(v)
}

// indexed pays for an index or a slice, which counts the characters of a string.
func (m *meter) indexed(v any, _ []any) error {
	if s, ok := v.(string); ok {
		return m.charge(len(s) / pairsPerStep)
	}
	return nil
}

// key refuses an index that stands for a search.
func (m *meter) key(v any, _ []any) error {
	if _, ok := v.([]any); ok {
		return errors.New("cannot index by an array (use indices)")
	}
	return m.digits(v)
}

// numbers refuses those whose arithmetic takes more than constant time.
func (m *meter) numbers(v any, args []any) error {
	for _, a := range args {
		if err := m.digits(a); err != nil {
			return err
		}
	}
	if len(args) > 1 {
		return nil // a function of several numbers does not look at the input
	}
	return m.digits(v)
}

func (m *meter) trees(v any, args []any) error {
	weight := 2
	if s, ok := v.(string); ok && len(s) > 64 {
		weight = 64 // fromjson and tonumber make much of a short text
	}
	for _, a := range args {
		if _, err := m.tree(a, weight); err != nil {
			return err
		}
	}
	_, err := m.tree(v, weight)
	return err
}

// keyed pays for ordering the input by keys of its items.
func (m *meter) keyed(v any, args []any) error {
	if _, err := m.tree(v, 1); err != nil {
		return err
	}
	_, err := m.tree(args[0], 8)
	return err
}

func (m *meter) sorting(v any, args []any) error {
	for _, a := range args {
		if _, err := m.tree(a, 20); err != nil {
			return err
		}
	}
	_, err := m.tree(v, 8)
	return err
}

func (m *meter) search(v any, args []any) error { return m.pairs(v, args[0]) }

// join pays for the whole text, which the separator multiplies.
func (m *meter) join(v any, args []any) error {
	s, err := m.tree(v, 2)
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
		return m.text(s.bytes + (n-1)*len(sep))
	}
	return nil
}

func (m *meter) split(v any, args []any) error {
	s, ok := v.(string)
	sep, ok2 := args[0].(string)
	if !ok || !ok2 {
		return nil
	}
	return m.charge(len(s)/bytesPerStep + strings.Count(s, sep))
}

// transpose pays for the rectangle that it fills up with null.
func (m *meter) transpose(v any, _ []any) error {
	rows, _ := v.([]any)
	width := 0
	for _, r := range rows {
		if r, ok := r.([]any); ok {
			width = max(width, len(r))
		}
	}
	if n := len(rows) * width; n > m.lim.Bytes/2 {
		return m.tooLarge("transpose of %d elements exceeds %d bytes", n, m.lim.Bytes)
	}
	return m.charge(len(rows) + len(rows)*width)
}

// digitsOfText refuses text that would become a number with too many digits.
func (m *meter) digitsOfText(v any, _ []any) error {
	if s, ok := v.(string); ok {
		v = json.Number(s)
	}
	return m.digits(v)
}

// maxTimeFormat bounds the format of a time: one directive of it can make a
// kilobyte.
const maxTimeFormat = 200

// time refuses the zone by name, which would depend on the machine.
func (m *meter) time(v any, args []any) error {
	f, ok := args[0].(string)
	if !ok {
		return nil
	}
	if len(f) > maxTimeFormat {
		return fmt.Errorf("time format of %d bytes exceeds %d", len(f), maxTimeFormat)
	}
	if strings.Contains(strings.ReplaceAll(f, "%%", ""), "%Z") {
		return errors.New("a time zone has no name here (use %z)")
	}
	if err := m.charge(8 * len(f)); err != nil {
		return err
	}
	return m.flat(v)
}
