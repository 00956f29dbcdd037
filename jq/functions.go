package jq

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

//go:embed prelude.jq
var preludeText string

// native is one of the machine's own functions: its guard sees the input and
// the arguments and pays for what the function does; where it makes much of
// little, what it has made is paid for too.
type native struct {
	there bool
	guard string
	makes bool
}

// natives are the machine's own functions that expressions may call, by name
// and arity. Those with an underscore are called by the prelude and by formats.
var natives = func() map[string]native {
	all := map[string]native{}
	for _, n := range []struct {
		guard string
		makes bool
		names string
	}{
		{"", false, "type/0 infinite/0 nan/0"},
		{"__flat", false, "length/0 utf8bytelength/0 has/1 startswith/1 endswith/1 ltrimstr/1 rtrimstr/1 trimstr/1 _captures/0"},
		{"__flat", true, "keys/0 reverse/0 explode/0 ltrim/0 rtrim/0 trim/0 ascii_downcase/0 ascii_upcase/0"},
		{"__numbers", false, "isfinite/0 isinfinite/0 isnan/0 isnormal/0 floor/0 round/0 nearbyint/0 rint/0 ceil/0 trunc/0 " +
			"significand/0 fabs/0 sqrt/0 cbrt/0 exp/0 exp10/0 exp2/0 expm1/0 frexp/0 modf/0 log/0 log10/0 log1p/0 log2/0 " +
			"logb/0 sin/0 cos/0 tan/0 asin/0 acos/0 atan/0 sinh/0 cosh/0 tanh/0 asinh/0 acosh/0 atanh/0 " +
			"gamma/0 tgamma/0 lgamma/0 erf/0 erfc/0 j0/0 j1/0 y0/0 y1/0 gmtime/0 " +
			"atan2/2 copysign/2 drem/2 fdim/2 fmax/2 fmin/2 fmod/2 hypot/2 nextafter/2 nexttoward/2 remainder/2 ldexp/2 " +
			"scalb/2 scalbln/2 pow/2 fma/3"},
		{"__tree", true, "tojson/0 tostring/0 fromjson/0 toboolean/0 flatten/0 flatten/1 add/0 implode/0 mktime/0 " +
			"error/0 error/1 _tohtml/0 _touri/0 _tourid/0 _tocsv/0 _totsv/0 _tosh/0 _tobase64/0 _tobase64d/0"},
		{"__sorting", true, "sort/0 unique/0 min/0 max/0 bsearch/1"},
		{"__pairs", true, "contains/1 inside/1 indices/1 index/1 rindex/1"},
		{"__join", true, "join/1"},
		{"__split", true, "split/1"},
		{"__transpose", true, "transpose/0"},
		{"__digits", true, "tonumber/0"},
		{"__time", true, "strftime/1 strptime/1"},
		{"__settable", false, "setpath/2"},
	} {
		for f := range strings.FieldsSeq(n.names) {
			all[f] = native{there: true, guard: n.guard, makes: n.makes}
		}
	}
	return all
}()

// known lists what an author may call, as name/arity.
func known(defs map[string]*definition) []string {
	var res []string
	for _, id := range slices.Concat(slices.Collect(maps.Keys(defs)), slices.Collect(maps.Keys(natives))) {
		if !strings.HasPrefix(id, "_") {
			res = append(res, id)
		}
	}
	slices.Sort(res)
	return res
}

// refused are functions of jq that expressions may not call, and why.
var refused = map[string]string{
	"now":               "an expression has no clock; use the time of an event, or $workflow.startedAt",
	"localtime":         "an expression has no time zone of its own; use gmtime",
	"strflocaltime":     "an expression has no time zone of its own; use strftime",
	"env":               "an expression has no environment; pass the value as input",
	"$ENV":              "an expression has no environment; pass the value as input",
	"input":             "an expression has one input: .",
	"inputs":            "an expression has one input: .",
	"debug":             "an expression writes nothing",
	"stderr":            "an expression writes nothing",
	"halt":              "use error to end an expression",
	"halt_error":        "use error to end an expression",
	"jn":                "its time is not bounded",
	"yn":                "its time is not bounded",
	"format":            "write the format as @name",
	"input_filename":    "an expression reads no files",
	"input_line_number": "an expression reads no files",
	"get_search_list":   "an expression has no modules",
	"modulemeta":        "an expression has no modules",
	"builtins":          "see the reference of expressions",
	"$__loc__":          "an expression has no file",
	"$__prog_args":      "an expression has no arguments",
}

// defined is what the names of the prelude's functions begin with in the
// guarded expression, where no name of the author's can hide them.
const defined = "__f_"

// definition is a function of the prelude, after rewriting.
type definition struct {
	def   *gojq.FuncDef
	needs []string // keys of the definitions it calls, itself not counted
	order int
}

func key(name string, arity int) string { return fmt.Sprintf("%s/%d", name, arity) }

// prelude compiles the functions that expressions may call, once.
var prelude = sync.OnceValue(func() map[string]*definition {
	defs := map[string]*definition{}
	q, err := gojq.Parse(preludeText + "\n.")
	if err != nil {
		panic(fmt.Sprintf("jq: prelude: %v", err)) // our own text: a broken build
	}
	for i, fd := range q.FuncDefs {
		id := key(fd.Name, len(fd.Args))
		d := &definition{order: i}
		defs[id] = d // before its body: it may call itself
		r := &rewriter{trusted: true, defs: defs, needs: map[string]bool{}}
		d.def = r.funcDef(fd, nil)
		if r.err != nil {
			panic(fmt.Sprintf("jq: prelude: %s: %v", id, r.err))
		}
		d.def.Name = defined + fd.Name
		delete(r.needs, id)
		for need := range r.needs {
			d.needs = append(d.needs, need)
		}
	}
	return defs
})
