package jq

import (
	"github.com/itchyny/gojq"
)

// term rewrites a term and what is written behind it: .a[0][]?.
func (r *rewriter) term(t *gojq.Term, s *scope) *gojq.Term {
	cur, suffixes := r.head(t, s), t.SuffixList
	if t.Type == gojq.TermTypeIndex {
		cur = &gojq.Term{Type: gojq.TermTypeIdentity}
		suffixes = append([]*gojq.Suffix{{Index: t.Index}}, suffixes...)
	}
	for i := 0; i < len(suffixes); i++ {
		switch sf := suffixes[i]; {
		case sf.Optional:
			cur = suffixed(cur, sf)
		case sf.Iter:
			// A ? behind it belongs to the [] alone.
			each := &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Iter: true}}}
			if i+1 < len(suffixes) && suffixes[i+1].Optional {
				each = suffixed(each, suffixes[i+1])
				i++
			}
			cur = group(pipe(term(cur), call("__iterate"), term(each)))
		default:
			cur = r.index(cur, sf.Index, s)
		}
	}
	return cur
}

// suffixed returns t with one more suffix, on a copy.
func suffixed(t *gojq.Term, sf *gojq.Suffix) *gojq.Term {
	n := *t
	n.SuffixList = append(append([]*gojq.Suffix(nil), t.SuffixList...), sf)
	return &n
}

func (r *rewriter) index(cur *gojq.Term, x *gojq.Index, s *scope) *gojq.Term {
	switch {
	case x.Name != "" || x.Str != nil && x.Str.Queries == nil:
		return suffixed(cur, &gojq.Suffix{Index: x})
	case x.Str != nil:
		return suffixed(cur, &gojq.Suffix{Index: &gojq.Index{Start: r.text(x.Str, "tostring", s)}})
	}
	cur = group(pipe(term(cur), call("__indexed")))
	n := &gojq.Index{IsSlice: x.IsSlice, Start: r.query(x.Start, s), End: r.query(x.End, s)}
	if !x.IsSlice && !constantIndex(x.Start) {
		n.Start = pipe(n.Start, call("__key"))
	}
	return suffixed(cur, &gojq.Suffix{Index: n})
}

// constantIndex reports whether an index is written out: a text or a number.
func constantIndex(q *gojq.Query) bool {
	t := q.Term
	if t == nil || len(t.SuffixList) > 0 {
		return false
	}
	if t.Type == gojq.TermTypeUnary && len(t.Unary.Term.SuffixList) == 0 {
		t = t.Unary.Term
	}
	return t.Type == gojq.TermTypeNumber && len(t.Number) <= MaxDigits ||
		t == q.Term && t.Type == gojq.TermTypeString && t.Str.Queries == nil
}

// head rewrites a term without what is behind it.
func (r *rewriter) head(t *gojq.Term, s *scope) *gojq.Term {
	n := &gojq.Term{Type: t.Type}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeIndex:
	case gojq.TermTypeNumber:
		if len(t.Number) > MaxDigits {
			r.fail("number of more than %d digits", MaxDigits)
		}
		n.Number = t.Number
	case gojq.TermTypeRecurse:
		return r.prelude("recurse").Term
	case gojq.TermTypeFunc:
		return single(r.function(t.Func, s))
	case gojq.TermTypeObject:
		n.Object = r.object(t.Object, s)
	case gojq.TermTypeArray:
		n.Array = &gojq.Array{Query: r.query(t.Array.Query, s)}
	case gojq.TermTypeUnary:
		u := r.term(t.Unary.Term, s)
		if u.Type != gojq.TermTypeNumber {
			u = group(pipe(term(u), call("__numbers")))
		}
		n.Unary = &gojq.Unary{Op: t.Unary.Op, Term: u}
	case gojq.TermTypeFormat:
		f := r.format(t.Format)
		if t.Str == nil {
			return single(r.converted(f, s))
		}
		return single(r.text(t.Str, f, s))
	case gojq.TermTypeString:
		return single(r.text(t.Str, "tostring", s))
	case gojq.TermTypeBreak:
		n.Break = t.Break
	default:
		r.control(n, t, s)
	}
	return n
}

// single returns a query as a term.
func single(q *gojq.Query) *gojq.Term {
	if q.Term != nil && len(q.FuncDefs) == 0 {
		return q.Term
	}
	return group(q)
}

func (r *rewriter) control(n, t *gojq.Term, s *scope) {
	switch t.Type {
	case gojq.TermTypeQuery:
		n.Query = r.query(t.Query, s)
	case gojq.TermTypeIf:
		n.If = &gojq.If{Cond: r.query(t.If.Cond, s), Then: r.query(t.If.Then, s), Else: r.query(t.If.Else, s)}
		for _, e := range t.If.Elif {
			n.If.Elif = append(n.If.Elif, &gojq.IfElif{Cond: r.query(e.Cond, s), Then: r.query(e.Then, s)})
		}
	case gojq.TermTypeTry:
		n.Try = &gojq.Try{Body: r.query(t.Try.Body, s), Catch: r.query(t.Try.Catch, s)}
	case gojq.TermTypeReduce:
		x := t.Reduce
		ps, inner := r.patterns(x.Patterns, s)
		n.Reduce = &gojq.Reduce{Query: r.query(x.Query, s), Patterns: ps, Start: r.query(x.Start, s), Update: r.query(x.Update, inner)}
	case gojq.TermTypeForeach:
		x := t.Foreach
		ps, inner := r.patterns(x.Patterns, s)
		n.Foreach = &gojq.Foreach{
			Query: r.query(x.Query, s), Patterns: ps, Start: r.query(x.Start, s),
			Update: r.query(x.Update, inner), Extract: r.query(x.Extract, inner),
		}
	case gojq.TermTypeLabel:
		n.Label = &gojq.Label{Ident: t.Label.Ident, Body: r.query(t.Label.Body, s)}
	default:
		r.fail("expression has a part that is not supported")
	}
}

func (r *rewriter) object(o *gojq.Object, s *scope) *gojq.Object {
	n := &gojq.Object{}
	for _, kv := range o.KeyVals {
		c := &gojq.ObjectKeyVal{Key: kv.Key, Val: r.query(kv.Val, s)}
		switch {
		case len(kv.Key) > 0 && kv.Key[0] == '$':
			r.variable(kv.Key, s)
		case kv.KeyString != nil && kv.KeyString.Queries == nil:
			c.KeyString = kv.KeyString
		case kv.KeyString != nil:
			c.KeyString = &gojq.String{Queries: []*gojq.Query{term(group(r.text(kv.KeyString, "tostring", s)))}}
		case kv.KeyQuery != nil:
			c.KeyQuery = r.query(kv.KeyQuery, s)
		}
		n.KeyVals = append(n.KeyVals, c)
	}
	return n
}

// formats gives the function behind a format.
var formats = map[string]string{
	"@text": "tostring", "@json": "tojson", "@html": "_tohtml", "@uri": "_touri", "@urid": "_tourid", "@csv": "_tocsv",
	"@tsv": "_totsv", "@sh": "_tosh", "@base64": "_tobase64", "@base64d": "_tobase64d",
}

func (r *rewriter) format(name string) string {
	f, ok := formats[name]
	if !ok {
		r.fail("format %s is not known", name)
		return "tostring"
	}
	return f
}

// text rewrites a string with expressions in it; f makes text of their values.
func (r *rewriter) text(str *gojq.String, f string, s *scope) *gojq.Query {
	if str.Queries == nil {
		return term(&gojq.Term{Type: gojq.TermTypeString, Str: str})
	}
	const most = 25 // arguments of one __cat
	var parts []*gojq.Query
	for _, q := range str.Queries {
		if q.Term != nil && q.Term.Str != nil && q.Term.Type == gojq.TermTypeString {
			parts = append(parts, term(&gojq.Term{Type: gojq.TermTypeString, Str: q.Term.Str}))
		} else {
			parts = append(parts, pipe(r.query(q, s), r.converted(f, s)))
		}
		if len(parts) == most {
			parts = []*gojq.Query{call("__cat", parts...)}
		}
	}
	return call("__cat", parts...)
}

// converted makes text of a value, by a function of the author's where there
// is one of that name.
func (r *rewriter) converted(f string, s *scope) *gojq.Query {
	if s.has(key(f, 0)) {
		return call(f)
	}
	return natives[key(f, 0)].call(f, nil)
}
