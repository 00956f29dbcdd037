package jq

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/nearest"
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

// arithmetic and comparisons name the guards of the operators. The first pay,
// and leave the work to the machine's own operator; a comparison is made where
// it is paid for.
var (
	arithmetic = map[gojq.Operator]string{
		gojq.OpAdd: "__add", gojq.OpSub: "__subtract", gojq.OpMul: "__multiply", gojq.OpDiv: "__divide", gojq.OpMod: "__modulo",
	}
	comparisons = map[gojq.Operator]string{
		gojq.OpEq: "__equal", gojq.OpNe: "__notequal",
		gojq.OpLt: "__less", gojq.OpLe: "__lesseq", gojq.OpGt: "__greater", gojq.OpGe: "__greatereq",
	}
	updates = map[gojq.Operator]gojq.Operator{
		gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul,
		gojq.OpUpdateDiv: gojq.OpDiv, gojq.OpUpdateMod: gojq.OpMod, gojq.OpUpdateAlt: gojq.OpAlt,
	}
)

// registers are the arguments that the last guard has seen and paid for. What
// is called next takes them from there.
var registers = []string{"__a", "__b", "__c"}

// operate has the guard see both sides, and then the machine do the work.
func operate(op gojq.Operator, l, right *gojq.Query) *gojq.Query {
	return pipe(call(arithmetic[op], l, right), &gojq.Query{Op: op, Left: call(registers[0]), Right: call(registers[1])})
}

// native calls one of the machine's own functions behind its guard.
func (n native) call(name string, args []*gojq.Query) *gojq.Query {
	if n.guard == "" {
		return call(name, args...)
	}
	taken := make([]*gojq.Query, len(args))
	for i := range args {
		taken[i] = call(registers[i])
	}
	q := pipe(call(n.guard, args...), call(name, taken...))
	if n.makes {
		q = pipe(q, call("__made"))
	}
	return q
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
		return r.update(q, s)
	}
	if name, ok := comparisons[q.Op]; ok {
		return call(name, r.query(q.Left, s), r.query(q.Right, s))
	}
	if arithmetic[q.Op] != "" {
		return operate(q.Op, r.query(q.Left, s), r.query(q.Right, s))
	}
	r.fail("missing expression (write . for the data as it is)")
	return q
}

// update makes an assignment, which the prelude pays for path by path. A path
// that is written out is paid for at once, and set as the machine does it.
func (r *rewriter) update(q *gojq.Query, s *scope) *gojq.Query {
	l, right := r.query(q.Left, s), r.query(q.Right, s)
	if path := constantPath(q.Left); q.Op == gojq.OpAssign && path != nil {
		for i := 1; i < len(path); i++ {
			path[0] = &gojq.Query{Op: gojq.OpComma, Left: path[0], Right: path[i]}
		}
		list := term(&gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: path[0]}})
		return pipe(call("__settable", list), &gojq.Query{Op: q.Op, Left: q.Left, Right: right})
	}
	switch q.Op {
	case gojq.OpAssign:
		return r.prelude("_assign", l, right)
	case gojq.OpModify:
		return r.prelude("_update", l, right)
	}
	const value = "$__x"
	dot := term(&gojq.Term{Type: gojq.TermTypeIdentity})
	change := &gojq.Query{Op: gojq.OpAlt, Left: dot, Right: call(value)}
	if op := updates[q.Op]; op != gojq.OpAlt {
		change = operate(op, dot, call(value))
	}
	return as(right, value, r.prelude("_update", l, change))
}

// constantPath gives the steps of a path that is written out, .a[0]["c"][1:];
// nil of any other. What is one must be so for the machine too (toIndices),
// which sets it without a look at what is there.
func constantPath(q *gojq.Query) []*gojq.Query {
	t := q.Term
	if t == nil {
		return nil
	}
	var steps []*gojq.Query
	suffixes := t.SuffixList
	switch t.Type {
	case gojq.TermTypeIndex:
		suffixes = append([]*gojq.Suffix{{Index: t.Index}}, suffixes...)
	case gojq.TermTypeQuery:
		steps = constantPath(t.Query)
	}
	if t.Type != gojq.TermTypeIndex && steps == nil {
		return nil
	}
	for _, sf := range suffixes {
		step := constantStep(sf.Index)
		if step == nil {
			return nil
		}
		steps = append(steps, step)
	}
	return steps
}

func constantStep(x *gojq.Index) *gojq.Query {
	switch {
	case x == nil || x.Str != nil && x.Str.Queries != nil:
		return nil
	case x.Name != "":
		return term(&gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: x.Name}})
	case x.Str != nil:
		return term(&gojq.Term{Type: gojq.TermTypeString, Str: x.Str})
	case !x.IsSlice && constantIndex(x.Start):
		return x.Start
	case !x.IsSlice || x.Start != nil && !constantIndex(x.Start) || x.End != nil && !constantIndex(x.End):
		return nil
	}
	bound := func(name string, q *gojq.Query) *gojq.ObjectKeyVal {
		if q == nil {
			q = term(&gojq.Term{Type: gojq.TermTypeNull})
		}
		return &gojq.ObjectKeyVal{Key: name, Val: q}
	}
	slice := &gojq.Object{KeyVals: []*gojq.ObjectKeyVal{bound("start", x.Start), bound("end", x.End)}}
	return term(&gojq.Term{Type: gojq.TermTypeObject, Object: slice})
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
	case !r.trusted && strings.HasPrefix(name, "_"):
	case r.defs[id] != nil:
		return r.prelude(name, args...)
	case natives[id].there:
		return natives[id].call(name, args)
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
	} else if near, ok := nearest.Name(name, r.vars); ok {
		_ = e.WithHint("did you mean %s?", near)
	}
}

func (r *rewriter) unknown(name string, arity int) {
	if why, ok := refused[name]; ok {
		_ = r.fail("function %s is not allowed", name).WithHint("%s", why)
		return
	}
	var names []string
	for _, id := range known(r.defs) {
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
	if near, ok := nearest.Name(name, names); ok {
		_ = e.WithHint("did you mean %s?", near)
	}
}
