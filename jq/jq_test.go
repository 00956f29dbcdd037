package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/itchyny/gojq"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := Decode(json.RawMessage(text))
	if err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return v
}

// eval returns the canonical result, or the code of the problem.
func eval(t testing.TB, src, data string, lookup Lookup, vars ...string) string {
	t.Helper()
	tmpl, err := Expression(src, vars)
	if err != nil {
		return problem.CodeOf(err)
	}
	v, err := tmpl.Eval(decode(t, data), lookup, Limits{})
	if err != nil {
		return problem.CodeOf(err)
	}
	raw, err := Encode(v, 0)
	if err != nil {
		return problem.CodeOf(err)
	}
	return string(raw)
}

// TestFractionsOfASecond: our timestamps have them, and jq's own functions do
// not take them.
func TestFractionsOfASecond(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2015-03-05T23:51:47Z"`:             "1425599507",
		`"2015-03-05T23:51:47.000000Z"`:      "1425599507",
		`"2015-03-05T23:51:47.25Z"`:          "1425599507.25",
		`"2015-03-06T00:51:47.123456+01:00"`: "1425599507.123456",
		`"1969-12-31T23:59:59.5Z"`:           "-0.5",
		`"2026-01-02T03:04:05.123456789Z"`:   "1767323045.1234567",
		`"2015-03-05T23:51:47.Z"`:            "",
		`"2015-03-05T23:51:47.5"`:            "",
		`"yesterday"`:                        "",
		`17`:                                 "",
	} {
		for _, name := range []string{"fromdate", "fromdateiso8601"} {
			e, err := Expression(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			v, err := e.Eval(decode(t, text), nil, Limits{})
			if (err != nil) != (want == "") {
				t.Errorf("%s of %s: %v, %v", name, text, v, err)
				continue
			}
			if got, _ := Encode(v, 0); err == nil && string(got) != want {
				t.Errorf("%s of %s: %s, want %s", name, text, got, want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"now":                     "function now is not allowed (an expression has no clock",
		"$ENV.HOME":               "variable $ENV is not known here (an expression has no environment",
		"env":                     "function env is not allowed",
		"input":                   "function input is not allowed",
		"[inputs]":                "function inputs is not allowed",
		"debug":                   "function debug is not allowed",
		"halt":                    "function halt is not allowed",
		"localtime":               "function localtime is not allowed",
		"$inptu.a":                "variable $inptu is not known here (did you mean $input?)",
		"lenght":                  "function lenght is not known (did you mean length?)",
		"map":                     "function map does not take 0 arguments",
		"__tree":                  "function __tree is not known",
		"_paths(.)":               "function _paths is not known",
		"_match(1;2;3)":           "function _match is not known",
		"def __add(a;b): 1; 1":    "the name __add/2 is reserved",
		". as $__p | 1":           "the name $__p is reserved",
		"@base32":                 "format @base32 is not known",
		"import \"a\" as a; 1":    "an expression has no modules",
		".a.":                     "unexpected EOF at offset 3",
		".a | foo bar":            "unexpected token \"bar\" at offset 9",
		"":                        "missing expression",
		"${}":                     "missing expression",
		"break $x":                "label not defined",
		strings.Repeat("(", 9000): "unexpected EOF",
		strings.Repeat(" ", MaxSourceBytes+1) + "1": "exceeds 16384",
		strings.Repeat("9", 2000):                   "number of more than 1000 digits",
	} {
		_, err := Expression(src, []string{"$input", "$context"})
		if problem.CodeOf(err) != "expression.invalid" || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.60s:\n got %v\nwant %s", src, err, want)
		}
	}
}

// bombs grow or run without end. Each must stop within the bounds.
var bombs = []struct{ src, data string }{
	{`"x" * 2000000000`, `null`},
	{`2000000000 * "x"`, `null`},
	{`[range(1000)|"x"*1000000]`, `null`},
	{`setpath([500000000];1)`, `null`},
	{`setpath([200000,200000,200000,200000];1)`, `null`},
	{`.[500000000] = 1`, `null`},
	{`.[500000000] |= 1`, `null`},
	{`reduce range(100) as $i (.; .[100000][$i] = 1)`, `null`},
	{`reduce range(1000) as $i (null; setpath([$i,100000]; 1)) | length`, `null`},
	{`reduce range(40) as $i ("x"; . + .)`, `null`},
	{`reduce range(40) as $i ("x"; "\(.)\(.)")`, `null`},
	{`reduce range(40) as $i ([1]; . + .) | length`, `null`},
	{`reduce range(40) as $i (1; [., .])`, `null`},
	{`reduce range(40) as $i (1; [., .]) | tojson`, `null`},
	{`reduce range(40) as $i (1; [., .]) | flatten`, `null`},
	{`reduce range(40) as $i (1; [., .]) | . == .`, `null`},
	{`reduce range(40) as $i (1; [., .]) | [..]`, `null`},
	{`reduce range(40) as $i (1; [., .]) | error`, `null`},
	{`reduce range(40) as $i (1; [., .]) | try error catch 1`, `null`},
	{`reduce range(40) as $i (1; {a: ., b: .}) | [paths]`, `null`},
	{`reduce range(40) as $i (1; {a: ., b: .}) | walk(.)`, `null`},
	{`reduce range(40) as $i (1; {a: ., b: .}) | del(..)`, `null`},
	{`reduce range(40) as $i (1; [., .]) | join(",")`, `null`},
	{`reduce range(40) as $i (1; [., .]) | @sh`, `null`},
	{`reduce range(20) as $i ("\\"; @json)`, `null`},
	{`reduce range(40) as $i ("\\"; tojson)`, `null`},
	{`reduce range(1000) as $i ("a"; @html "<\(.)\(.)>")`, `null`},
	{`[limit(1000000000; repeat(1))]`, `null`},
	{`[range(1000000000)]`, `null`},
	{`last(range(1000000000))`, `null`},
	{`def f: f; f`, `null`},
	{`def f: 1 + f; f`, `null`},
	{`def f: f, f; f`, `null`},
	{`def f: [f]; f`, `null`},
	{`def f(x): f(x | x); f(.)`, `null`},
	{`repeat(.) | empty`, `null`},
	{`[recurse(.)]`, `1`},
	{`until(false; .)`, `null`},
	{`[path(recurse(.a))]`, `null`},
	{`path(recurse(.a; true)) | empty`, `null`},
	{`(recurse(.a) | select(. != null)) = 1`, `null`},
	{`(recurse(.[0]) | select(. != null)) |= 1`, `null`},
	{`(recurse(.a)) |= null`, `null`},
	{`"x" * 1000000 as $x | (range(100000) as $i | .a, .z, .a.b.c[0]) = {b: {c: [range(100000)]}}`, `null`},
	{`{b: {c: [range(100000)]}} as $x | (range(100000) as $i | .a, .z, .a.b.c[0]) |= $x`, `null`},
	{`[range(100000) | {}] | (range(100000) as $i | .[0].a, .[0]) |= {}`, `null`},
	{`reduce range(40) as $i (1; [., .]) | .[] |= empty`, `null`},
	{`[1] | .[] |= (reduce range(40) as $i (1; [., .]) | if . == 1 then empty else . end)`, `null`},
	{`[1, 2] | .[] |= if . == 1 then reduce range(40) as $i (1; [., .]) else empty end`, `null`},
	{`def f: .a | f; path(f)`, `null`},
	{`[join("x" * 1000; "y")]`, `null`},
	{`[range(10000)] | join("x" * 100000)`, `null`},
	{`"a" * 1000000 | [match("a"; "g")] | length`, `null`},
	{`"a" * 1000000 | gsub("a"; "bbbbbbbbbbbbbbbb")`, `null`},
	{`"a" * 1000000 | test("((((a{10}){10}){10})*)*$")`, `null`},
	{`[range(100000) | "a" | test("(a+)+$")] | length`, `null`},
	{`range(1000000) | "a" | test("a{1000}" * 90) | empty`, `null`},
	{`"a" | test("a" * 2000)`, `null`},
	{`"a" * 500000 | indices("a" * 250000)`, `null`},
	{`"a" * 1000000 | explode | [.,.,.,.,.,.,.,.,.,.,.,.] | map(implode)`, `null`},
	{`[range(100000)] | . - .`, `null`},
	{`[range(30000)] as $a | $a | contains($a)`, `null`},
	{`[[range(100000)], (range(100000) | [])] | transpose`, `null`},
	{`[range(300000)] as $a | [range(100000) | first($a[])]`, `null`},
	{`[range(100000)] as $a | [range(100000) | $a == $a]`, `null`},
	{`[range(100000)] as $a | [range(100000) | $a | sort | length]`, `null`},
	{`"a" * 1000000 | . as $s | [range(100000) | $s[1:2]]`, `null`},
	{`"a" * 1000000 | . as $s | [range(100000) | $s | length]`, `null`},
	{`"a" * 1000000 | . as $s | [range(100000) | $s | getpath([3])]`, `null`},
	{`"a" * 1000000 | . as $s | [range(100000) | $s | .[5]]`, `null`},
	{`[range(100000)] | reduce range(100000) as $i (.; .[$i] = 0)`, `null`},
	{`[range(100000) | {}] | (range(100000) as $i | .[0], .[0].a) |= {}`, `null`},
	{`[[range(100000)]] | (.[] | (range(10000) as $i | .[0], .[0])) |= .`, `null`},
	{`[[range(1000)] as $a | range(1000) | $a] | .[][0] = 1 | [., ., .]`, `null`},
	{`reduce range(1000) as $i (2; . * .)`, `null`},
	{`reduce range(1000000) as $i (1; . * 10)`, `null`},
	{`"9" * 1000000 | tonumber + 1`, `null`},
	{`("[" * 5000) + ("]" * 5000) | fromjson`, `null`},
	{`"[" + ("[]," * 300000) + "[]]" | . as $s | [range(1000) | $s | fromjson]`, `null`},
	{`reduce range(100000) as $i (0; [.])`, `null`},
	{`reduce range(100000) as $i (0; [.]) | tojson`, `null`},
	{`[range(20)] | [combinations(20)]`, `null`},
	{`[range(10)] | [combinations(10)] | length`, `null`},
	{`try ("x" * 2000000000) catch "caught"`, `null`},
	{`("x" * 2000000000)? // "other"`, `null`},
	{`[range(1000000) | try ("x" * 2000000000) catch .]`, `null`},
	{`[splits("a"; null)] | length | [range(.*1e9)]`, `"aaaa"`},
	{`{} | reduce range(100000) as $i (.; .["k\($i)"] = $i)`, `null`},
	{`reduce range(100000) as $i ({}; . + {"k\($i)": $i})`, `null`},
	{`reduce range(100000) as $i (""; . + "0123456789")`, `null`},
	{`[range(200000)] | to_entries | from_entries`, `null`},
	{`"%1000000000Y" * 16 | . as $f | [range(100000) | 0 | strftime($f)]`, `null`},
	{`[.[] as [$a] ?// $a | repeat($a)]`, `[1]`},
	{`label $x | foreach repeat(1) as $i (0; . + 1; empty)`, `null`},
	{`limit(1000000000; repeat(1)) | empty`, `null`},
	{`[.. , ..] | tostream | [tostream] | empty, (repeat(1) | empty)`, `null`},
	{`input_line_number? // [range(1e9)]`, `null`},
}

// An evaluation is of one goroutine, and is measured by what its thread takes of a
// processor: on a busy machine it waits for one.
func TestRunaways(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i, b := range bombs {
		if slow > 1 && i%4 != 0 {
			continue // some are enough to find a race
		}
		tmpl, err := Expression(b.src, nil)
		if err != nil {
			if b.src[0] == 'i' || strings.HasPrefix(b.src, "[join(") {
				continue
			}
			t.Errorf("%s: %v", b.src, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		begin := threadTime()
		_, err = tmpl.Eval(decode(t, b.data), nil, Limits{})
		took := threadTime() - begin
		runtime.ReadMemStats(&after)
		mb := (after.TotalAlloc - before.TotalAlloc) >> 20
		code := problem.CodeOf(err)
		if code != "expression.too-long" && code != "expression.too-large" {
			t.Errorf("%s: %v", b.src, err)
		}
		if took > 2*slow*time.Second || mb > 300*slow {
			t.Errorf("%s: took %v and %d MB", b.src, took, mb)
		}
		if testing.Verbose() {
			t.Logf("%8s %4d MB %s %s", took.Round(time.Millisecond), mb, code, b.src)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	lookup := func(name string) (any, error) {
		calls[name]++
		switch name {
		case "$input":
			return map[string]any{"n": json.Number("1.10")}, nil
		case "$bad":
			return nil, errors.New("no value")
		}
		return json.Number("2"), nil
	}
	vars := []string{"$input", "$b", "$bad", "$unused"}
	tmpl, err := New(decode(t, `{"a": "${ $input.n }", "b": ["${ $b + $input.n }", "${ $b }", "$b", "x ${ $b }"], "c": {"d": 1}}`), vars)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tmpl.Eval(nil, lookup, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := Encode(v, 0)
	if got, want := string(raw), `{"a":1.10,"b":[3.1,2,"$b","x ${ $b }"],"c":{"d":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if calls["$input"] != 1 || calls["$b"] != 1 || calls["$unused"] != 0 {
		t.Errorf("lookups: %v", calls)
	}
	if !tmpl.Uses("$b") || tmpl.Uses("$unused") || tmpl.Constant() {
		t.Error("Uses or Constant is wrong")
	}
	for src, want := range map[string]string{"$bad": "no value", "$bad + 1": "no value"} {
		tmpl, _ := Expression(src, vars)
		if _, err := tmpl.Eval(nil, lookup, Limits{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", src, err)
		}
		if _, err := tmpl.Eval(nil, nil, Limits{}); problem.CodeOf(err) != "expression.failed" {
			t.Errorf("%s without lookup: %v", src, err)
		}
	}
	if _, err := New("${ $nope }", vars); problem.CodeOf(err) != "expression.invalid" {
		t.Errorf("unknown variable: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	_, err := Expression("\n ${ .a |\n  ] }", nil)
	var p *problem.Error
	if !errors.As(err, &p) || len(p.Where) != 1 || p.Where[0].Line != 3 || p.Where[0].Column != 3 {
		t.Errorf("got %+v", p)
	}
}

func TestDataIsNotChanged(t *testing.T) {
	t.Parallel()
	const text = `{"a":{"b":[1,2,{"c":3}]},"d":[[1],[2]]}`
	data := decode(t, text)
	for _, src := range []string{
		`.a.b[2].c = 4`, `.a.b |= map(. )`, `del(.a.b[0])`, `.d[] |= empty`, `.. |= .`, `del(..)`, `.d |= sort`, `map_values(empty)`,
		`.a.b[0:2] = []`, `delpaths([["d",0],["a"]])`, `{x: {y: 1}} | del(.x.y)`, `walk(.)`, `to_entries`, `.a += {"z": 1}`, `[.d[] | add]`,
	} {
		tmpl, err := Expression(src, nil)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		var first string
		var wg sync.WaitGroup
		results := make([]string, 8)
		for i := range results {
			wg.Go(func() {
				v, err := tmpl.Eval(data, nil, Limits{})
				if err != nil {
					results[i] = err.Error()
					return
				}
				raw, _ := Encode(v, 0)
				results[i] = string(raw)
			})
		}
		wg.Wait()
		first = results[0]
		for _, r := range results {
			if r != first {
				t.Errorf("%s: %s, then %s", src, first, r)
			}
		}
		if raw, _ := Encode(data, 0); string(raw) != text {
			t.Fatalf("%s has changed its input to %s", src, raw)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	v := decode(t, `{"z":1.0,"a":"<&> ü","n":123456789012345678901234567890,"e":1e3,"l":[true,false,null,{}]}`)
	raw, err := Encode(v, 0)
	if want := `{"a":"<&> ü","e":1e3,"l":[true,false,null,{}],"n":123456789012345678901234567890,"z":1.0}`; err != nil || string(raw) != want {
		t.Errorf("got %s, %v", raw, err)
	}
	for _, c := range []struct {
		v    any
		code string
	}{
		{strings.Repeat("x", 100), "expression.too-large"},
		{[]any{strings.Repeat("x", 40), strings.Repeat("x", 40)}, "expression.too-large"},
		{json.Number("]"), "expression.value"},
		{json.Number("1 2"), "expression.value"},
		{struct{}{}, "expression.value"},
	} {
		if _, err := Encode(c.v, 64); problem.CodeOf(err) != c.code {
			t.Errorf("%v: %v", c.v, err)
		}
	}
	for text, want := range map[string]string{"1e-7": "1e-7", "1e21 + 1": "1e+21", "nan": "null", "infinite": "1.7976931348623157e+308", "1.5": "1.5", "100000000000000000000": "100000000000000000000", `"a\u0001\u007f\"\\"`: `"a\u0001\u007f\"\\"`} {
		if got := eval(t, text, "null", nil); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"{", "1 2", "tru"} {
		if _, err := Decode(json.RawMessage(bad)); problem.CodeOf(err) != "expression.data" {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if v, err := Decode(nil); v != nil || err != nil {
		t.Errorf("empty: %v, %v", v, err)
	}
}

func FuzzCompileEval(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c[0], c[1])
	}
	for _, b := range bombs {
		f.Add(b.src, b.data)
	}
	f.Fuzz(func(t *testing.T, src, data string) {
		watchdog := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("hangs: %q on %q", src, data)) })
		defer watchdog.Stop()
		tmpl, err := Expression(src, []string{"$input"})
		if err != nil {
			if problem.CodeOf(err) != "expression.invalid" {
				t.Fatalf("%v", err)
			}
			return
		}
		v, err := Decode(json.RawMessage(data))
		if err != nil {
			return
		}
		lim := Limits{Steps: 20_000, Bytes: 64 << 10}
		lookup := func(string) (any, error) { return v, nil }
		runtime.LockOSThread()
		begin := threadTime()
		res, err := tmpl.Eval(v, lookup, lim)
		took := threadTime() - begin
		runtime.UnlockOSThread()
		if took > 2*time.Second {
			t.Fatalf("took %v", took)
		}
		again, err2 := tmpl.Eval(v, lookup, lim)
		if (err == nil) != (err2 == nil) || problem.CodeOf(err) != problem.CodeOf(err2) {
			t.Fatalf("%v, then %v", err, err2)
		}
		if err != nil {
			return
		}
		a, err := Encode(res, 8*lim.Bytes)
		if err != nil && problem.CodeOf(err) != "expression.too-large" {
			t.Fatal(err)
		}
		b, _ := Encode(again, 8*lim.Bytes)
		if string(a) != string(b) {
			t.Fatalf("%s, then %s", a, b)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	data := decode(b, `{"a":{"b":1},"amount":150,"x":"y","items":[{"n":"a","p":3},{"n":"b","p":4}]}`)
	for _, src := range []string{`.a.b`, `$input.a`, `.amount > 100`, `{a: .x}`, `.x + "z"`, `"Order \(.x)"`, `[.items[] | select(.p > 3) | .n]`, `.items | map(.p) | add`} {
		tmpl, err := Expression(src, []string{"$input"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tmpl.Eval(data, func(string) (any, error) { return data, nil }, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, src := range []string{`.a.b`, `.amount > 100`, `[.items[] | select(.p > 3) | .n]`, `with_entries(.value |= gsub("a"; "b"))`} {
		b.Run(src, func(b *testing.B) {
			for b.Loop() {
				if _, err := Expression(src, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAnUpdateOfManyFitsTheBudget: what an update pays for is what it does,
// not what guards it.
func TestAnUpdateOfManyFitsTheBudget(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`[range(20000)] | .[] |= . + 1 | length`,
		`[range(20000)] | map(. + 1) | length`,
		`[range(15000)] | map_values(. + 1) | length`,
	} {
		if got := eval(t, src, "null", nil); got != "20000" && got != "15000" {
			t.Errorf("%s: %s", src, got)
		}
	}
}

// TestAResultIsMeasuredBesideItsData: what is there as it was counts for
// nothing, once for each place, and what is new counts as it would be written.
func TestAResultIsMeasuredBesideItsData(t *testing.T) {
	t.Parallel()
	data := map[string]any{"a": []any{strings.Repeat("x", 900)}, "b": map[string]any{"c": strings.Repeat("y", 900)}}
	for src, want := range map[string]string{
		`. + {x: 1}`:         "",
		`.b.d = 1`:           "",
		`.a[1] = 1`:          "",
		`. + {x: .a}`:        "",
		`. + {x: .a, y: .a}`: "expression.too-large",
		`[., .]`:             "expression.too-large",
		`{a, b, c: {a, b}}`:  "expression.too-large",
		`reduce range(40) as $i (.; .a = [.a, .a])`:        "expression.too-large",
		`reduce range(40) as $i (.; {a: [.a, .a], b: .b})`: "expression.too-large",
		`. + {x: ("z" * 1390)}`:                            "expression.too-large",
		`reduce range(300) as $i (.; {a: .})`:              "expression.too-large",
	} {
		tmpl, err := Expression(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Eval(data, nil, Limits{Bytes: 1400}); (err == nil) != (want == "") || err != nil && problem.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// BenchmarkAgainstGojq compares with gojq as it is, on 100 KB of data.
func BenchmarkAgainstGojq(b *testing.B) {
	items := make([]any, 1000)
	for i := range items {
		items[i] = map[string]any{"id": i, "name": strings.Repeat("n", 40), "price": json.Number("12.50"), "tags": []any{"a", "b", true, nil}}
	}
	data := any(map[string]any{"a": map[string]any{"b": 1, "c": "x"}, "items": items})
	if raw, err := Encode(data, 0); err != nil || len(raw) < 90_000 || len(raw) > 130_000 {
		b.Fatalf("%d bytes, %v", len(raw), err)
	}
	for _, src := range []string{
		`. + {x: 1}`, `.a.b |= . + 1`, `.a.b = 2`, `.items[0].id += 1`, `[.items[] | select(.id > 900) | .name]`, `.items | map(.id) | add`,
		`del(.a)`, `.items[].id |= . + 1`,
	} {
		tmpl, err := Expression(src, nil)
		if err != nil {
			b.Fatal(err)
		}
		q, err := gojq.Parse(src)
		if err != nil {
			b.Fatal(err)
		}
		code, err := gojq.Compile(q)
		if err != nil {
			b.Fatal(err)
		}
		var took [2]float64
		b.Run(src+"/gojq", func(b *testing.B) {
			for b.Loop() {
				if v, _ := code.Run(data).Next(); v == nil {
					b.Fatal("no result")
				}
			}
			took[0] = float64(b.Elapsed()) / float64(b.N)
		})
		b.Run(src+"/jq", func(b *testing.B) {
			for b.Loop() {
				if v, err := tmpl.Eval(data, nil, Limits{}); v == nil || err != nil {
					b.Fatal(v, err)
				}
			}
			took[1] = float64(b.Elapsed()) / float64(b.N)
			b.ReportMetric(took[1]/took[0], "ratio")
		})
	}
}
