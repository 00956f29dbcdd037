package jq

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/itchyny/gojq"
)

// gone stands for a value that an update takes away, until sweep does.
type gone struct{}

// path checks and pays for one path.
func (k *kit) path(v any, _ []any) any {
	p, ok := v.([]any)
	if !ok {
		return fmt.Errorf("path must be an array: %s", describe(v))
	}
	if len(p) > MaxDepth {
		return k.m.tooLarge("path is longer than %d", MaxDepth)
	}
	if err := k.m.charge(len(p)); err != nil {
		return err
	}
	return p
}

// updatable is __updatable(paths; x): it pays for setting all paths of the
// input, to x where that is known, and returns the input.
//
// The machine copies a container when it first writes into it. When paths come
// in ascending order, as they do from .[] and .., each container is copied
// once; a path out of order pays for all containers on its way again.
func (k *kit) updatable(v any, args []any) any {
	paths, ok := args[0].([]any)
	if !ok {
		return fmt.Errorf("paths must be an array: %s", describe(args[0]))
	}
	var last []any
	nested := 0
	full := true
	for _, x := range paths {
		p, ok := x.([]any)
		if !ok {
			return fmt.Errorf("path must be an array: %s", describe(x))
		}
		if len(p) > MaxDepth {
			return k.m.tooLarge("path is longer than %d", MaxDepth)
		}
		common := 0
		for common < len(p) && common < len(last) && same(p[common], last[common]) {
			common++
		}
		ascending := common < len(p) && (common == len(last) || gojq.Compare(last[common], p[common]) < 0)
		if common == len(last) {
			nested++
		}
		from := common + 1
		if full || !ascending {
			from = 0
		}
		full = !ascending
		last = p
		if err := k.walk(v, p, from); err != nil {
			return err
		}
	}
	if nested > 1 {
		if err := k.extended(args[1], nested); err != nil {
			return err
		}
	}
	return v
}

// extended pays for the copies of a value that n later paths go into.
func (k *kit) extended(x any, n int) error {
	s := size{max: k.m.lim.Bytes}
	if !s.add(x, 0) {
		return k.m.tooLarge("value exceeds %d bytes", k.m.lim.Bytes)
	}
	return k.m.charge(n * (s.nodes/nodesPerStep + 1))
}

// same compares two elements of a path; slices never count as the same.
func same(a, b any) bool {
	switch a.(type) {
	case []any, map[string]any:
		return false
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return gojq.Compare(a, b) == 0
}

// walk pays for the containers that p goes through in v, from the one at
// depth from on, and for arrays that it makes longer.
func (k *kit) walk(v any, p []any, from int) error {
	for depth, e := range p {
		if depth >= from {
			if err := k.m.flat(v); err != nil {
				return err
			}
		}
		var next any
		switch e := e.(type) {
		case string:
			if o, ok := v.(map[string]any); ok {
				next = o[e]
			}
		case int, float64, json.Number:
			if err := k.m.digits(e); err != nil {
				return err
			}
			i, _ := gojq.ToInt(e)
			a, _ := v.([]any)
			switch {
			case i < 0 && i+len(a) >= 0:
				next = a[i+len(a)]
			case i >= 0 && i < len(a):
				next = a[i]
			case i > k.m.lim.Bytes/2:
				return k.m.tooLarge("array of %d elements exceeds %d bytes", i, k.m.lim.Bytes)
			case i >= 0:
				if err := k.m.charge(i / nodesPerStep); err != nil {
					return err
				}
			}
		case map[string]any:
			// A slice: the rest of the path goes on in some part of v.
			if err := k.m.flat(v); err != nil {
				return err
			}
			next = v
		case []any:
			return fmt.Errorf("path must not have an array in it: %s", describe(p))
		}
		v = next
	}
	return nil
}

// reachable is __reachable(path): it pays for reading a path of the input.
func (k *kit) reachable(v any, args []any) any {
	p, ok := args[0].([]any)
	if !ok {
		return fmt.Errorf("path must be an array: %s", describe(args[0]))
	}
	if len(p) > MaxDepth {
		return k.m.tooLarge("path is longer than %d", MaxDepth)
	}
	if err := k.m.charge(len(p)); err != nil {
		return err
	}
	x := v
	for _, e := range p {
		switch e := e.(type) {
		case string:
			o, _ := x.(map[string]any)
			x = o[e]
		case []any:
			return fmt.Errorf("path must not have an array in it: %s", describe(p))
		default:
			if s, ok := x.(string); ok {
				if err := k.m.charge(len(s) / pairsPerStep); err != nil {
					return err
				}
				x = nil // an index of a string is a string; what is behind it is cheap
			}
			if i, ok := gojq.ToInt(number(e)); ok {
				a, _ := x.([]any)
				x = nil
				if i < 0 {
					i += len(a)
				}
				if i >= 0 && i < len(a) {
					x = a[i]
				}
			}
		}
	}
	return v
}

// sweep is __sweep(paths): it takes away what an update has marked as gone.
func (k *kit) sweep(v any, args []any) any {
	paths, _ := args[0].([]any)
	var dead []any
	for _, x := range paths {
		p, _ := x.([]any)
		if _, ok := at(v, p).(gone); ok {
			dead = append(dead, p)
		}
	}
	if len(dead) == 0 {
		return v
	}
	return k.without(v, []any{dead})
}

// at follows a path that may go nowhere.
func at(v any, p []any) any {
	for _, e := range p {
		switch x := v.(type) {
		case map[string]any:
			key, _ := e.(string)
			v = x[key]
		case []any:
			i, ok := gojq.ToInt(number(e))
			if i < 0 {
				i += len(x)
			}
			if !ok || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// without is __without(paths): the input less the values at the paths, as
// delpaths does it, on copies of what changes.
func (k *kit) without(v any, args []any) any {
	paths, ok := args[0].([]any)
	if !ok {
		return fmt.Errorf("delpaths must be given an array: %s", describe(args[0]))
	}
	if len(paths) == 0 {
		return v
	}
	if _, err := k.m.tree(paths, 4); err != nil {
		return err
	}
	ps := make([][]any, len(paths))
	for i, x := range paths {
		if ps[i], ok = x.([]any); !ok {
			return fmt.Errorf("path must be an array: %s", describe(x))
		}
	}
	w, keep, err := k.remove(v, ps)
	if err != nil {
		return err
	}
	if !keep {
		return nil
	}
	return w
}

// remove returns v without what is at the paths; keep is false when that is
// v itself.
func (k *kit) remove(v any, paths [][]any) (res any, keep bool, err error) {
	for _, p := range paths {
		if len(p) == 0 {
			return nil, false, nil
		}
	}
	if err := k.m.flat(v); err != nil {
		return nil, false, err
	}
	switch v := v.(type) {
	case nil, gone:
		return v, true, nil
	case map[string]any:
		res, err = k.removeKeys(v, paths)
	case []any:
		res, err = k.removeItems(v, paths)
	default:
		err = fmt.Errorf("cannot delete %s of: %s", describe(paths[0][0]), describe(v))
	}
	return res, true, err
}

func (k *kit) removeKeys(v map[string]any, paths [][]any) (any, error) {
	below := map[string][][]any{}
	for _, p := range paths {
		key, ok := p[0].(string)
		if !ok {
			return nil, fmt.Errorf("cannot delete %s of: %s", describe(p[0]), describe(v))
		}
		below[key] = append(below[key], p[1:])
	}
	w := maps.Clone(v)
	for _, key := range slices.Sorted(maps.Keys(below)) {
		x, ok := w[key]
		if !ok {
			continue
		}
		y, keep, err := k.remove(x, below[key])
		if err != nil {
			return nil, err
		}
		if w[key] = y; !keep {
			delete(w, key)
		}
	}
	return w, nil
}

func (k *kit) removeItems(v []any, paths [][]any) (any, error) {
	below := map[int][][]any{}
	for _, p := range paths {
		switch e := p[0].(type) {
		case int, float64, json.Number:
			i, _ := gojq.ToInt(number(e))
			if i < 0 {
				i += len(v)
			}
			below[i] = append(below[i], p[1:])
		case map[string]any:
			if err := k.removeSlice(v, e, p[1:], below); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("cannot delete %s of: %s", describe(e), describe(v))
		}
	}
	w := make([]any, 0, len(v))
	for i, x := range v {
		if ps, ok := below[i]; ok {
			y, keep, err := k.remove(x, ps)
			if err != nil {
				return nil, err
			}
			if !keep {
				continue
			}
			x = y
		}
		w = append(w, x)
	}
	return w, nil
}

// removeSlice turns a path through a slice of v into paths through v itself.
func (k *kit) removeSlice(v []any, slice map[string]any, rest []any, below map[int][][]any) error {
	start, end := bound(slice["start"], 0, len(v)), bound(slice["end"], len(v), len(v))
	if len(rest) == 0 {
		if err := k.m.charge(max(0, end-start)); err != nil {
			return err
		}
		for i := start; i < end; i++ {
			below[i] = append(below[i], rest)
		}
		return nil
	}
	i, ok := gojq.ToInt(number(rest[0]))
	if !ok {
		return fmt.Errorf("cannot delete %s of a slice", describe(rest[0]))
	}
	if i < 0 {
		i += end
	} else {
		i += start
	}
	if i >= start && i < end {
		below[i] = append(below[i], rest[1:])
	}
	return nil
}

func bound(v any, absent, n int) int {
	i, ok := gojq.ToInt(number(v))
	if !ok {
		return absent
	}
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}
