package jq

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/itchyny/gojq"
)

// idle bounds the machines that one expression keeps for its next evaluations.
const idle = 4

// expression is one compiled expression.
type expression struct {
	query *gojq.Query // guarded
	vars  []string    // that it uses, in order
	path  []string    // of a plain path; the machine is not needed then
	root  string      // of a plain path: "" for the data, or a variable
	plain bool
	free  chan *machine
}

// machine is an expression compiled for one evaluation at a time: the guards
// in its code pay to its own meter.
type machine struct {
	kit  *kit
	code *gojq.Code
}

func compile(src string, vars []string) (*expression, error) {
	if len(src) > MaxSourceBytes {
		return nil, problem.New(problem.TooLarge, "expression.invalid", "expression of %d bytes exceeds %d", len(src), MaxSourceBytes)
	}
	if !utf8.ValidString(src) {
		return nil, problem.New(problem.Invalid, "expression.invalid", "expression is not UTF-8")
	}
	q, err := gojq.Parse(src)
	if err != nil {
		return nil, syntaxProblem(src, err)
	}
	if q.Term == nil && q.Op == 0 {
		return nil, problem.New(problem.Invalid, "expression.invalid", "missing expression (write . for the data as it is)")
	}
	r := &rewriter{defs: prelude(), vars: vars, needs: map[string]bool{}, uses: map[string]bool{}}
	body := r.query(q, nil)
	if r.err != nil {
		return nil, r.err
	}
	e := &expression{vars: slices.Sorted(maps.Keys(r.uses)), free: make(chan *machine, idle)}
	if e.root, e.path, e.plain = plainPath(q); e.plain {
		return e, nil
	}
	e.query = &gojq.Query{FuncDefs: definitions(r.needs), Term: group(body)}
	m, err := e.machine()
	if err != nil {
		return nil, problem.New(problem.Invalid, "expression.invalid", "%s", err)
	}
	e.put(m)
	return e, nil
}

// syntaxProblem says where src cannot be read; the place counts from the
// beginning of src.
func syntaxProblem(src string, err error) error {
	var pe *gojq.ParseError
	if !errors.As(err, &pe) {
		return problem.Wrap(err, problem.Invalid, "expression.invalid", "expression cannot be read")
	}
	at := min(max(pe.Offset-len(pe.Token), 0), len(src))
	before := src[:at]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	p := problem.New(problem.Invalid, "expression.invalid", "%s at offset %d", pe, at)
	p.Where = []problem.Place{{Line: line, Column: column}}
	return p
}

// plainPath recognises ., .a.b and $x.a.b, which are evaluated directly.
func plainPath(q *gojq.Query) (root string, path []string, ok bool) {
	t := q.Term
	if t == nil || len(q.FuncDefs) > 0 {
		return "", nil, false
	}
	switch {
	case t.Type == gojq.TermTypeIdentity:
	case t.Type == gojq.TermTypeIndex && t.Index.Name != "":
		path = append(path, t.Index.Name)
	case t.Type == gojq.TermTypeFunc && t.Func.Name[0] == '$':
		root = t.Func.Name
	default:
		return "", nil, false
	}
	for _, s := range t.SuffixList {
		if s.Index == nil || s.Index.Name == "" {
			return "", nil, false
		}
		path = append(path, s.Index.Name)
	}
	return root, path, true
}

// definitions gives what the needed functions are, and what those need, in
// the order of the prelude.
func definitions(needs map[string]bool) []*gojq.FuncDef {
	all := prelude()
	seen := map[string]bool{}
	var found []*definition
	var visit func(id string)
	visit = func(id string) {
		if seen[id] {
			return
		}
		seen[id] = true
		found = append(found, all[id])
		for _, n := range all[id].needs {
			visit(n)
		}
	}
	for id := range needs {
		visit(id)
	}
	slices.SortFunc(found, func(a, b *definition) int { return a.order - b.order })
	res := make([]*gojq.FuncDef, len(found))
	for i, d := range found {
		res[i] = d.def
	}
	return res
}

func (e *expression) machine() (m *machine, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("expression cannot be compiled: %v", p)
		}
	}()
	m = &machine{kit: &kit{m: newMeter(), patterns: map[string]*pattern{}}}
	m.code, err = gojq.Compile(e.query, append(m.kit.options(), gojq.WithVariables(e.vars))...)
	return m, err
}

func (e *expression) put(m *machine) {
	select {
	case e.free <- m:
	default:
	}
}

// eval returns the first result of e on data; an expression without a result
// gives null.
func (e *expression) eval(data any, lookup Lookup, lim Limits) (any, error) {
	if e.plain {
		return e.follow(data, lookup)
	}
	values := make([]any, len(e.vars))
	for i, name := range e.vars {
		v, err := lookup(name)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	var m *machine
	select {
	case m = <-e.free:
	default:
		var err error
		if m, err = e.machine(); err != nil {
			return nil, problem.Wrap(err, problem.Internal, "expression.failed", "expression")
		}
	}
	v, err := m.run(data, values, lim)
	e.put(m)
	return v, err
}

// run evaluates once. A panic of the machine, which data of a foreign type can
// cause, is a failure of the expression.
func (m *machine) run(data any, values []any, lim Limits) (v any, err error) {
	meter := m.kit.m
	meter.reset(lim)
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, problem.New(problem.Invalid, "expression.failed", "expression failed: %.200s", fmt.Sprint(p))
		}
		if meter.err != nil {
			v, err = nil, meter.err
		}
		clear(m.kit.args[:])
	}()
	v, ok := m.code.RunWithContext(meter, data, values...).Next()
	if !ok {
		return nil, nil
	}
	if e, ok := v.(error); ok {
		return nil, problem.New(problem.Invalid, "expression.failed", "%s", clip(e.Error()))
	}
	return v, nil
}

// maxDetail bounds the message of a failure, which can quote data.
const maxDetail = 500

func clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + " ..."
}

func (e *expression) follow(data any, lookup Lookup) (any, error) {
	v := data
	if e.root != "" {
		var err error
		if v, err = lookup(e.root); err != nil {
			return nil, err
		}
	}
	for _, k := range e.path {
		switch o := v.(type) {
		case nil:
			return nil, nil
		case map[string]any:
			v = o[k]
		default:
			return nil, problem.New(problem.Invalid, "expression.failed", "expected an object but got: %s", foreign(v))
		}
	}
	return v, nil
}

// foreign describes a value that may be of a type that jq does not know.
func foreign(v any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("%T", v)
		}
	}()
	return describe(v)
}
