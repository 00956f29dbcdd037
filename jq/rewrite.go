package jq

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/itchyny/gojq"
)

// rewriter checks a parsed expression and makes the guarded one from it. It
// changes nothing of what it is given.
type rewriter struct {
	trusted bool                   // the text is our own prelude
	defs    map[string]*definition // what may be called
	vars    []string               // variables that the author may use
	needs   map[string]bool        // keys of definitions that are called
	uses    map[string]bool        // variables that are used
	err     *problem.Error         // the first that was found
}

// scope is the innermost of the names that the expression itself defines:
// "$x", or "f/1" for a function or a closure.
type scope struct {
	name  string
	outer *scope
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return true
		}
	}
	return false
}

func (r *rewriter) fail(format string, args ...any) *problem.Error {
	e := problem.New(problem.Invalid, "expression.invalid", format, args...)
	if r.err == nil {
		r.err = e
	}
	return e
}

// bind adds a name that the expression defines; names with two underscores
// are the guards'.
func (r *rewriter) bind(s *scope, name string) *scope {
	if !r.trusted && strings.HasPrefix(strings.TrimPrefix(name, "$"), "__") {
		r.fail("the name %s is reserved", name)
	}
	return &scope{name: name, outer: s}
}

func term(t *gojq.Term) *gojq.Query { return &gojq.Query{Term: t} }

func call(name string, args ...*gojq.Query) *gojq.Query {
	return term(&gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}})
}

func pipe(qs ...*gojq.Query) *gojq.Query {
	q := qs[len(qs)-1]
	for i := len(qs) - 2; i >= 0; i-- {
		q = &gojq.Query{Left: qs[i], Op: gojq.OpPipe, Right: q}
	}
	return q
}

func as(value *gojq.Query, name string, body *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: value, Op: gojq.OpPipe, Patterns: []*gojq.Pattern{{Name: name}}, Right: body}
}

func group(q *gojq.Query) *gojq.Term { return &gojq.Term{Type: gojq.TermTypeQuery, Query: q} }

// prelude calls a definition of the prelude.
func (r *rewriter) prelude(name string, args ...*gojq.Query) *gojq.Query {
	r.needs[key(name, len(args))] = true
	return call(defined+name, args...)
}

var operators = map[gojq.Operator]string{
	gojq.OpAdd: "__add", gojq.OpSub: "__subtract", gojq.OpMul: "__multiply", gojq.OpDiv: "__divide", gojq.OpMod: "__modulo",
	gojq.OpEq: "__equal", gojq.OpNe: "__notequal",
	gojq.OpLt: "__less", gojq.OpLe: "__lesseq", gojq.OpGt: "__greater", gojq.OpGe: "__greatereq",
	gojq.OpUpdateAdd: "__add", gojq.OpUpdateSub: "__subtract", gojq.OpUpdateMul: "__multiply",
	gojq.OpUpdateDiv: "__divide", gojq.OpUpdateMod: "__modulo",
}

func (r *rewriter) query(q *gojq.Query, s *scope) *gojq.Query {
	if q == nil {
		return nil
	}
	if q.Meta != nil || len(q.Imports) > 0 {
		r.fail("an expression has no modules")
	}
	var defs []*gojq.FuncDef
	for _, fd := range q.FuncDefs {
		s = r.bind(s, key(fd.Name, len(fd.Args)))
		defs = append(defs, r.funcDef(fd, s))
	}
	n := r.body(q, s)
	if defs == nil {
		return n
	}
	return &gojq.Query{FuncDefs: defs, Term: group(n)}
}

func (r *rewriter) body(q *gojq.Query, s *scope) *gojq.Query {
	if q.Term != nil {
		return term(r.term(q.Term, s))
	}
	switch q.Op {
	case gojq.OpPipe:
		n := &gojq.Query{Op: q.Op, Left: r.query(q.Left, s)}
		if len(q.Patterns) > 0 {
			n.Patterns, s = r.patterns(q.Patterns, s)
		}
		n.Right = r.query(q.Right, s)
		return n
	case gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr:
		return &gojq.Query{Op: q.Op, Left: r.query(q.Left, s), Right: r.query(q.Right, s)}
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAlt,
		gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod:
		return r.update(q.Op, r.query(q.Left, s), r.query(q.Right, s))
	}
	if name, ok := operators[q.Op]; ok {
		return call(name, r.query(q.Left, s), r.query(q.Right, s))
	}
	r.fail("missing expression (write . for the data as it is)")
	return q
}

// update makes an assignment in three steps, for the paths must be known
// before the machine writes anything:
//
//	_paths(l) as $__p | __updatable($__p; x) | (getpath($__p[]) = x)
func (r *rewriter) update(op gojq.Operator, l, right *gojq.Query) *gojq.Query {
	const paths, value = "$__p", "$__x"
	target := r.prelude("getpath", term(&gojq.Term{
		Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: paths}, SuffixList: []*gojq.Suffix{{Iter: true}},
	}))
	list := r.prelude("_paths", l)
	if op == gojq.OpAssign {
		set := &gojq.Query{Op: op, Left: target, Right: call(value)}
		return as(right, value, as(list, paths, pipe(call("__updatable", call(paths), call(value)), set)))
	}
	modify := func(f *gojq.Query) *gojq.Query {
		// An update without a result takes the value away; the guard does it,
		// since the machine would do it in place, in data that is not its own.
		alive := &gojq.Query{Op: gojq.OpComma, Left: term(group(pipe(f, call("__iterate")))), Right: call("__gone")}
		set := &gojq.Query{Op: gojq.OpModify, Left: target, Right: term(group(alive))}
		return as(list, paths, pipe(call("__updatable", call(paths), term(&gojq.Term{Type: gojq.TermTypeNull})),
			term(group(set)), call("__sweep", call(paths))))
	}
	dot := term(&gojq.Term{Type: gojq.TermTypeIdentity})
	switch op {
	case gojq.OpModify:
		return modify(right)
	case gojq.OpUpdateAlt:
		return as(right, value, modify(&gojq.Query{Op: gojq.OpAlt, Left: dot, Right: call(value)}))
	}
	return as(right, value, modify(call(operators[op], dot, call(value))))
}

func (r *rewriter) funcDef(fd *gojq.FuncDef, s *scope) *gojq.FuncDef {
	for _, a := range fd.Args {
		s = r.bind(s, a)
		s = r.bind(s, key(strings.TrimPrefix(a, "$"), 0))
	}
	return &gojq.FuncDef{Name: fd.Name, Args: fd.Args, Body: r.query(fd.Body, s)}
}

func (r *rewriter) patterns(ps []*gojq.Pattern, s *scope) ([]*gojq.Pattern, *scope) {
	var names []string
	for _, p := range ps {
		names = patternNames(names, p)
	}
	inner := s
	for _, n := range names {
		inner = r.bind(inner, n)
	}
	res := make([]*gojq.Pattern, len(ps))
	for i, p := range ps {
		res[i] = r.pattern(p, inner)
	}
	return res, inner
}

func patternNames(names []string, p *gojq.Pattern) []string {
	if p.Name != "" {
		names = append(names, p.Name)
	}
	for _, x := range p.Array {
		names = patternNames(names, x)
	}
	for _, o := range p.Object {
		if strings.HasPrefix(o.Key, "$") {
			names = append(names, o.Key)
		}
		if o.Val != nil {
			names = patternNames(names, o.Val)
		}
	}
	return names
}

func (r *rewriter) pattern(p *gojq.Pattern, s *scope) *gojq.Pattern {
	n := &gojq.Pattern{Name: p.Name}
	for _, x := range p.Array {
		n.Array = append(n.Array, r.pattern(x, s))
	}
	for _, o := range p.Object {
		c := &gojq.PatternObject{Key: o.Key}
		switch {
		case o.KeyString != nil && o.KeyString.Queries == nil:
			c.KeyString = o.KeyString
		case o.KeyString != nil:
			c.KeyQuery = pipe(r.text(o.KeyString, "tostring", s), call("__key"))
		case o.KeyQuery != nil:
			c.KeyQuery = pipe(r.query(o.KeyQuery, s), call("__key"))
		}
		if o.Val != nil {
			c.Val = r.pattern(o.Val, s)
		}
		n.Object = append(n.Object, c)
	}
	return n
}

// function rewrites a call, or the use of a variable.
func (r *rewriter) function(f *gojq.Func, s *scope) *gojq.Query {
	name, id := f.Name, key(f.Name, len(f.Args))
	if strings.HasPrefix(name, "$") {
		r.variable(name, s)
		return call(name)
	}
	args := make([]*gojq.Query, len(f.Args))
	for i, a := range f.Args {
		args[i] = r.query(a, s)
	}
	switch {
	case s.has(id):
		return call(name, args...)
	case r.trusted && strings.HasPrefix(name, "__raw_"):
		return call(strings.TrimPrefix(name, "__raw_"), args...)
	case r.trusted && strings.HasPrefix(name, "__"):
		return call(name, args...)
	case id == "empty/0":
		return call(name)
	case id == "path/1":
		return pipe(call(name, args...), call("__path"))
	case r.defs[id] != nil && !strings.HasPrefix(name, "_"):
		return r.prelude(name, args...)
	}
	r.unknown(name, len(args))
	return call("empty")
}

func (r *rewriter) variable(name string, s *scope) {
	if s.has(name) || r.trusted {
		return
	}
	for _, v := range r.vars {
		if v == name {
			r.uses[name] = true
			return
		}
	}
	e := r.fail("variable %s is not known here", name)
	if why, ok := refused[name]; ok {
		_ = e.WithHint("%s", why)
	} else if near, ok := problem.Nearest(name, r.vars); ok {
		_ = e.WithHint("did you mean %s?", near)
	}
}

func (r *rewriter) unknown(name string, arity int) {
	if why, ok := refused[name]; ok {
		_ = r.fail("function %s is not allowed", name).WithHint("%s", why)
		return
	}
	names := make([]string, 0, len(r.defs))
	for id := range r.defs {
		known, _, _ := strings.Cut(id, "/")
		if known == name && !strings.HasPrefix(name, "_") {
			r.fail("function %s does not take %d arguments", name, arity)
			return
		}
		if !strings.HasPrefix(known, "_") {
			names = append(names, known)
		}
	}
	e := r.fail("function %s is not known", name)
	if near, ok := problem.Nearest(name, names); ok {
		_ = e.WithHint("did you mean %s?", near)
	}
}
