package jq

import (
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Template is a JSON value in which strings may be expressions; it is compiled
// once and safe for use by many goroutines.
type Template struct {
	constant bool
	value    any         // of a constant
	expr     *expression // or an expression
	source   string      // of the expression
	place    string      // of the expression in its document, for errors; "" = unknown
	array    []*Template // or an array with expressions in it
	keys     []string    // or an object with expressions in it
	fields   []*Template
	uses     map[string]bool
}

// Wrapped reports whether s as a whole is "${ … }", and returns what is inside.
func Wrapped(s string) (inner string, ok bool) {
	t := strings.TrimSpace(s)
	if !strings.HasPrefix(t, "${") || !strings.HasSuffix(t, "}") {
		return "", false
	}
	return t[2 : len(t)-1], true
}

// Constant makes a template of a value that stands for itself, whatever
// strings are in it.
func Constant(value any) *Template { return &Template{constant: true, value: value} }

// Expression compiles a field that the language types as an expression: both
// "${ … }" and the bare text are accepted. Its problem is expression.invalid;
// the place in it counts from the beginning of src.
func Expression(src string, vars []string) (*Template, error) {
	text, at := src, ""
	if inner, ok := Wrapped(src); ok {
		text, at = inner, src[:strings.Index(src, "${")+2]
	}
	e, err := compile(text, vars)
	if err != nil {
		return nil, shifted(err, at)
	}
	t := &Template{expr: e, source: strings.TrimSpace(text), uses: map[string]bool{}}
	for _, v := range e.vars {
		t.uses[v] = true
	}
	return t, nil
}

// shifted moves the place of a problem behind the text before the expression.
func shifted(err error, before string) error {
	p, ok := err.(*problem.Error)
	if !ok || len(p.Where) == 0 {
		return err
	}
	w := &p.Where[0]
	tail := before[strings.LastIndexByte(before, '\n')+1:]
	if w.Line == 1 {
		w.Column += len([]rune(tail))
	}
	w.Line += strings.Count(before, "\n")
	return p
}

// New compiles a JSON value: every string in it that is "${ … }" as a whole is
// an expression, every other value stands for itself.
func New(value any, vars []string) (*Template, error) { return build(value, vars, 0) }

func build(value any, vars []string, depth int) (*Template, error) {
	if depth > MaxDepth {
		return nil, problem.New(problem.TooLarge, "expression.invalid", "value is nested deeper than %d", MaxDepth)
	}
	switch v := value.(type) {
	case string:
		if _, ok := Wrapped(v); ok {
			return Expression(v, vars)
		}
	case []any:
		t := &Template{constant: true, value: v, uses: map[string]bool{}}
		for _, x := range v {
			k, err := build(x, vars, depth+1)
			if err != nil {
				return nil, err
			}
			t.array = append(t.array, k)
			t.take(k)
		}
		return t.settled(), nil
	case map[string]any:
		t := &Template{constant: true, value: v, uses: map[string]bool{}}
		for _, key := range sortedKeys(v) {
			k, err := build(v[key], vars, depth+1)
			if err != nil {
				return nil, err
			}
			t.keys, t.fields = append(t.keys, key), append(t.fields, k)
			t.take(k)
		}
		return t.settled(), nil
	}
	return Constant(value), nil
}

func (t *Template) take(part *Template) {
	t.constant = t.constant && part.constant
	for v := range part.uses {
		t.uses[v] = true
	}
}

// settled drops what a constant, or a template that is none, does not need.
func (t *Template) settled() *Template {
	if t.constant {
		return Constant(t.value)
	}
	t.value = nil
	return t
}

// Constant reports whether the template has no expression in it.
func (t *Template) Constant() bool { return t.constant }

// String shows the template as JSON, with its expressions as they were
// written.
func (t *Template) String() string {
	raw, err := Encode(t.shown(), MaxShown)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(raw)
}

// Placed has errors say where an expression stands: place gives the words for a JSON
// pointer below the template. It is called before the template is used.
func (t *Template) Placed(place func(below string) string) { t.placed("", place) }

func (t *Template) placed(below string, place func(below string) string) {
	if t.expr != nil {
		t.place = place(below)
	}
	for i, k := range t.array {
		k.placed(below+"/"+strconv.Itoa(i), place)
	}
	for i, k := range t.fields {
		k.placed(below+"/"+pointerKey.Replace(t.keys[i]), place)
	}
}

var pointerKey = strings.NewReplacer("~", "~0", "/", "~1")

// failed says of an error where the expression stands.
func (t *Template) failed(err error) error {
	if p, ok := err.(*problem.Error); ok && t.place != "" && strings.HasPrefix(p.Code, "expression.") {
		p.Detail += ", in " + t.place
	}
	return err
}

// MaxShown bounds what String shows, in bytes.
const MaxShown = 64 << 10

func (t *Template) shown() any {
	switch {
	case t.constant:
		return t.value
	case t.expr != nil:
		return "${ " + t.source + " }"
	case t.array != nil:
		res := make([]any, len(t.array))
		for i, k := range t.array {
			res[i] = k.shown()
		}
		return res
	}
	res := make(map[string]any, len(t.keys))
	for i, k := range t.fields {
		res[t.keys[i]] = k.shown()
	}
	return res
}

// Uses reports whether an expression in t reads a variable ("$input").
func (t *Template) Uses(name string) bool { return t.uses[name] }

// Eval returns the template's value on data, which it does not change. A nil
// lookup knows no variable. The result may share parts with data, with what
// lookup gives and with the template itself: treat it as read-only.
//
// What an expression makes is bounded by lim.Bytes; what its result has of data
// as it is, at the same place, is not measured again: Encode bounds the whole.
//
// An expression gives its first result, and null when it has none. Problems:
// expression.failed, expression.too-long, expression.too-large, and whatever
// lookup returns.
func (t *Template) Eval(data any, lookup Lookup, lim Limits) (any, error) {
	if t.constant {
		return t.value, nil
	}
	lim = lim.withDefaults()
	v, err := t.eval(data, remember(lookup, len(t.uses)), lim)
	if err != nil {
		return nil, err
	}
	if t.expr == nil || !t.expr.plain {
		s := size{max: lim.Bytes}
		if !s.add(v, data, 0) {
			m := meter{lim: lim}
			if s.deep {
				return nil, m.tooLarge("value is nested deeper than %d", MaxDepth)
			}
			return nil, m.tooLarge("value exceeds %d bytes", lim.Bytes)
		}
	}
	return v, nil
}

// remember asks lookup once for each variable.
func remember(lookup Lookup, n int) Lookup {
	if n == 0 {
		return nil
	}
	seen := make(map[string]any, n)
	return func(name string) (any, error) {
		if v, ok := seen[name]; ok {
			return v, nil
		}
		if lookup == nil {
			return nil, problem.New(problem.Invalid, "expression.failed", "variable %s has no value here", name)
		}
		v, err := lookup(name)
		if err == nil {
			seen[name] = v
		}
		return v, err
	}
}

func (t *Template) eval(data any, lookup Lookup, lim Limits) (any, error) {
	switch {
	case t.constant:
		return t.value, nil
	case t.expr != nil:
		v, err := t.expr.eval(data, lookup, lim)
		if err != nil {
			err = t.failed(err)
		}
		return v, err
	case t.array != nil:
		res := make([]any, len(t.array))
		for i, k := range t.array {
			v, err := k.eval(data, lookup, lim)
			if err != nil {
				return nil, err
			}
			res[i] = v
		}
		return res, nil
	}
	res := make(map[string]any, len(t.keys))
	for i, k := range t.fields {
		v, err := k.eval(data, lookup, lim)
		if err != nil {
			return nil, err
		}
		res[t.keys[i]] = v
	}
	return res, nil
}
