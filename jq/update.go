package jq

import (
	"fmt"

	"github.com/itchyny/gojq"
)

// path checks and pays for one path.
func (k *kit) path(v any, _ []any) any {
	p, ok := v.([]any)
	if !ok {
		return fmt.Errorf("path must be an array: %s", describe(v))
	}
	if err := k.m.length(p); err != nil {
		return err
	}
	return p
}

func (m *meter) length(p []any) error {
	if len(p) > MaxDepth {
		return m.tooLarge("path is longer than %d", MaxDepth)
	}
	return m.charge(len(p))
}

// updating is what one update has paid for so far. The machine copies a
// container when it first writes into it, and then goes on writing in its copy.
// So a path pays for the containers on its way that the path before it has not
// gone through, and that is all as long as the paths are alike.
//
// Where they are mixed (of different lengths, or with slices), a path can go
// into a value that the update itself has made: then these are paid for as a
// whole. A path that is not behind those before it can lead to a copy, on
// which the machine begins to copy anew: then it pays for its whole way.
type updating struct {
	last   []any
	paths  int
	mixed  bool
	behind bool  // each path is not behind the one before it
	value  any   // of an assignment, the same at each path
	made   []any // values of an update that are containers, until they are paid for
}

// loop is what guarding one path adds to the program.
const loop = 30

func (k *kit) updating(_ any, args []any) any {
	u := &updating{}
	if len(args) > 0 {
		u.value = args[0]
	}
	return u
}

// payable is __payable(state; path): the path, when setting it in the input is paid for.
func (k *kit) payable(v any, args []any) any {
	u, p := args[0].(*updating), args[1].([]any)
	if err := k.m.length(p); err != nil {
		return err
	}
	common := 0
	for common < len(p) && common < len(u.last) && plainStep(p[common]) && plainStep(u.last[common]) && p[common] == u.last[common] {
		common++
	}
	if u.paths > 0 && !u.behind {
		u.behind = common == len(p) || common < len(u.last) && gojq.Compare(u.last[common], p[common]) > 0
	}
	mixed := u.mixed || u.paths > 0 && len(p) != len(u.last)
	for _, e := range p {
		mixed = mixed || !plainStep(e)
	}
	u.paths++
	if err := k.mixed(u, mixed); err != nil {
		return err
	}
	from := common + 1
	if u.paths == 1 || u.mixed && u.behind {
		from = 0
	}
	u.last = p
	if err := k.m.walk(v, p, from); err != nil {
		return err
	}
	k.m.refund(loop)
	return p
}

// plainStep is a name or a place from the beginning: two of them are the same
// place only when they are equal.
func plainStep(e any) bool {
	switch e := e.(type) {
	case string:
		return true
	case int:
		return e >= 0
	}
	return false
}

// mixed pays for the values that later paths can go into.
func (k *kit) mixed(u *updating, mixed bool) error {
	if !mixed {
		return nil
	}
	if !u.mixed {
		u.mixed = true
		for _, v := range u.made {
			if _, err := k.m.tree(v, 1); err != nil {
				return err
			}
		}
		u.made = nil
		for range u.paths - 1 {
			if _, err := k.m.tree(u.value, 1); err != nil {
				return err
			}
		}
	}
	_, err := k.m.tree(u.value, 1)
	return err
}

// paid is __paid(state): the input, a value that an update is about to set.
func (k *kit) paid(v any, args []any) any {
	u := args[0].(*updating)
	switch v.(type) {
	case []any, map[string]any:
		if !u.mixed {
			u.made = append(u.made, v)
		} else if _, err := k.m.tree(v, 1); err != nil {
			return err
		}
	}
	return v
}

// settable pays for setting one path of the input.
func (m *meter) settable(v any, args []any) error {
	p, ok := args[0].([]any)
	if !ok {
		return nil
	}
	if err := m.length(p); err != nil {
		return err
	}
	return m.walk(v, p, 0)
}

// walk pays for the containers that p goes through in v, from the one at
// depth from on, and for arrays that it makes longer.
func (m *meter) walk(v any, p []any, from int) error {
	for depth, e := range p {
		_, slice := e.(map[string]any)
		if depth >= from || slice {
			if err := m.flat(v); err != nil {
				return err
			}
		}
		if i, ok := gojq.ToInt(e); ok {
			if err := m.digits(e); err != nil {
				return err
			}
			if i > m.lim.Bytes/2 {
				return m.tooLarge("array of %d elements exceeds %d bytes", i, m.lim.Bytes)
			}
			if a, _ := v.([]any); i >= len(a) {
				if err := m.charge(i / nodesPerStep); err != nil {
					return err
				}
			}
		}
		v = child(v, e)
	}
	return nil
}

// child is what a path goes to from v; a slice goes to some part of v.
func child(v, e any) any {
	switch e := e.(type) {
	case string:
		o, _ := v.(map[string]any)
		return o[e]
	case map[string]any:
		return v
	}
	a, _ := v.([]any)
	i, ok := gojq.ToInt(e)
	if i < 0 {
		i += len(a)
	}
	if !ok || i < 0 || i >= len(a) {
		return nil
	}
	return a[i]
}

// reachable pays for reading a path of the input.
func (m *meter) reachable(v any, args []any) error {
	p, ok := args[0].([]any)
	if !ok {
		return nil
	}
	if err := m.length(p); err != nil {
		return err
	}
	for i, e := range p {
		if err := m.key(e, nil); err != nil {
			return err
		}
		if s, ok := v.(string); ok {
			if err := m.charge(len(s) / pairsPerStep * (len(p) - i)); err != nil {
				return err
			}
		}
		v = child(v, e)
	}
	return nil
}

// disposable is __disposable(paths): a copy of the input that the machine may
// clear up in place where the paths lead. It goes through all that it is given,
// so what is not on a path is held back from it, for __whole to put there again.
func (k *kit) disposable(v any, args []any) any {
	paths, _ := args[0].([]any)
	if len(paths) == 0 {
		return v
	}
	if _, err := k.m.tree(paths, 4); err != nil {
		return err
	}
	root := hold(v)
	for _, p := range paths {
		p, ok := p.([]any)
		open, err := k.m.open(&root, p)
		if err != nil {
			return err
		}
		if !ok || !open {
			return k.own(v, nil)
		}
	}
	return root
}

// held is a container that the machine does not see: it lies behind the end of
// an empty array.
type held struct{ v any }

func hold(v any) any {
	switch v.(type) {
	case []any, map[string]any:
		return []any{held{v}}[:0]
	}
	return v
}

// heldIn gives the container that v stands for.
func heldIn(v any) (any, bool) {
	if a, ok := v.([]any); ok && len(a) == 0 && cap(a) == 1 {
		h, ok := a[:1][0].(held)
		return h.v, ok
	}
	return nil, false
}

// open copies the containers that a path leads through, each with what is in
// it held back. It reports false of a path that is not one of names and places
// that are there.
func (m *meter) open(at *any, p []any) (bool, error) {
	v := *at
	put := func(x any) { *at = x }
	for _, e := range p {
		if x, ok := heldIn(v); ok {
			if err := m.flat(x); err != nil {
				return false, err
			}
			v = opened(x)
			put(v)
		}
		switch e := e.(type) {
		case string:
			o, ok := v.(map[string]any)
			if !ok {
				return false, nil
			}
			if v, ok = o[e]; !ok {
				return true, nil
			}
			put = func(x any) { o[e] = x }
		case int:
			a, ok := v.([]any)
			if !ok || e < 0 {
				return false, nil
			}
			if e >= len(a) {
				return true, nil
			}
			v = a[e]
			put = func(x any) { a[e] = x }
		default:
			return false, nil
		}
	}
	return true, nil
}

func opened(v any) any {
	switch v := v.(type) {
	case []any:
		w := make([]any, len(v))
		for i, x := range v {
			w[i] = hold(x)
		}
		return w
	case map[string]any:
		w := make(map[string]any, len(v))
		for name, x := range v {
			w[name] = hold(x)
		}
		return w
	}
	return v
}

// whole puts back what was held. The input is a copy that nobody else has.
func (k *kit) whole(v any, _ []any) any {
	if x, ok := heldIn(v); ok {
		return x
	}
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			v[i] = k.whole(x, nil)
		}
	case map[string]any:
		for name, x := range v {
			v[name] = k.whole(x, nil)
		}
	}
	return v
}

// own gives the input as a copy that nobody else has, and pays for it.
func (k *kit) own(v any, _ []any) any {
	w, err := k.m.clone(v, 0)
	if err != nil {
		return err
	}
	return w
}

func (m *meter) clone(v any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, m.tooLarge("value is nested deeper than %d", MaxDepth)
	}
	switch v := v.(type) {
	case []any:
		if err := m.charge(1 + len(v)); err != nil {
			return nil, err
		}
		w := make([]any, len(v))
		for i, x := range v {
			y, err := m.clone(x, depth+1)
			if err != nil {
				return nil, err
			}
			w[i] = y
		}
		return w, nil
	case map[string]any:
		if err := m.charge(1 + len(v)); err != nil {
			return nil, err
		}
		w := make(map[string]any, len(v))
		for name, x := range v {
			y, err := m.clone(x, depth+1)
			if err != nil {
				return nil, err
			}
			w[name] = y
		}
		return w, nil
	}
	return v, nil
}
