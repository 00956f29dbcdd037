package attribute

import (
	"bytes"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Keys of decimals are in the order of the numbers, and equal for equal ones, however they are written.
func TestKeysKeepTheOrderOfDecimals(t *testing.T) {
	t.Parallel()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	texts := []string{"0", "-0", "0.0", "1", "1.0", "10e-1", "0.1", "-0.1", "-1", "1e99", "-1e99", "1e-99", "-1e-99", "1e100", "-1e100", "9.9e99", "1e-100", "-1e-100", "99999999999999999999999999999999999999"}
	for range 500 {
		n := []byte{"-"[0]}[:r.IntN(2)]
		for range 1 + r.IntN(12) {
			n = append(n, byte('0'+r.IntN(10)))
		}
		text := string(n)
		if i := len(text); r.IntN(2) == 0 {
			text = text + "." + strings.Repeat("0", r.IntN(3)) + text[i-1:]
		}
		texts = append(texts, text)
	}
	type pair struct {
		is  *big.Rat
		key []byte
	}
	var all []pair
	for _, text := range texts {
		is, _ := new(big.Rat).SetString(text)
		canonical, key, err := encode(Decimal, text)
		if err != nil {
			t.Fatal(text, err)
		}
		if again, _ := new(big.Rat).SetString(canonical); again.Cmp(is) != 0 {
			t.Errorf("%s is written as %s", text, canonical)
		}
		all = append(all, pair{is, key})
	}
	for i := range all {
		for j := range all {
			if bytes.Compare(all[i].key, all[j].key) != all[i].is.Cmp(all[j].is) {
				t.Fatalf("%s and %s: their keys have another order (seed %d)", texts[i], texts[j], seed)
			}
		}
	}
}

func TestWhatNoValueCanBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data string
		kind Kind
		code string
	}{
		"a text for a decimal": {`"12"`, Decimal, "attribute.type"},
		"a number for a text":  {`12`, Text, "attribute.type"},
		"an object":            {`{"x":1}`, Text, "attribute.type"},
		"an array":             {`[1]`, Decimal, "attribute.type"},
		"a text for a truth":   {`"true"`, Boolean, "attribute.type"},
		"no moment":            {`"yesterday"`, Time, "attribute.type"},
		"a long text":          {`"` + strings.Repeat("ä", MaxText+1) + `"`, Text, "attribute.too-long"},
		"many digits":          {strings.Repeat("1", MaxDigits+1), Decimal, "attribute.too-long"},
		"a huge number":        {`1e101`, Decimal, "attribute.too-long"},
		"one too large":        {`1.01e100`, Decimal, "attribute.too-long"},
		"twice the largest":    {`-2e100`, Decimal, "attribute.too-long"},
		"one too small":        {`9.9e-101`, Decimal, "attribute.too-long"},
		"a huge exponent":      {`1e9223372036854775807`, Decimal, "attribute.too-long"},
		"a tiny number":        {`1e-101`, Decimal, "attribute.too-long"},
		"a secret":             {`"key [secret]"`, Text, "attribute.secret"},
		"fits":                 {`"` + strings.Repeat("ä", MaxText) + `"`, Text, ""},
		"null":                 {`null`, Decimal, ""},
	} {
		list := []Declared{{Name: "a", Kind: c.kind, Path: []string{"x"}, At: "/document/metadata/searchAttributes/a"}}
		s := &snapshot.Snapshot{Status: snapshot.Waiting, State: snapshot.State{Input: json.RawMessage(`{"x":` + c.data + `}`)}}
		_, err := Of(s, list)
		if problem.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), list[0].At) {
			t.Errorf("%s: %v has no place", name, err)
		}
		s.Status = snapshot.Faulted
		if values, err := Of(s, list); err != nil || c.code != "" && len(values) != 0 {
			t.Errorf("%s, faulted: %v, %v", name, values, err)
		}
	}
}

func TestValuesComeFromWhereTheyAreDeclared(t *testing.T) {
	t.Parallel()
	list := []Declared{
		{Name: "data", Kind: Decimal, Path: []string{"a", "b"}}, {Name: "context", Kind: Text, Root: Context, Path: []string{"who"}},
		{Name: "input", Kind: Boolean, Root: Input, Path: []string{"vip"}}, {Name: "none", Kind: Text, Path: []string{"a", "b", "c"}}, {Name: "other", Kind: Text, Path: []string{"z"}},
	}
	s := &snapshot.Snapshot{Status: snapshot.Waiting, State: snapshot.State{Input: json.RawMessage(`{"vip":true,"a":{"b":1}}`), Context: json.RawMessage(`{"who":"ann"}`), Output: json.RawMessage(`{"a":{"b":3}}`)}}
	say := func() (said string) {
		values, err := Of(s, list)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			said += v.Name + "=" + v.Text + " "
		}
		return said
	}
	if got := say(); got != "data=1 context=ann input=true " {
		t.Error(got)
	}
	s.Branches = []*snapshot.Branch{{Data: json.RawMessage(`{"z":"y","a":{"b":2,"c":[{}]}}`)}}
	if got := say(); got != "data=2 context=ann input=true other=y " {
		t.Error(got)
	}
	s.Status, s.Branches = snapshot.Completed, nil
	if got := say(); got != "data=3 context=ann input=true " {
		t.Error(got)
	}
	for _, data := range []string{"", "7", "[1]", `{"a":[1]}`, `"x"`} {
		s.State.Output = json.RawMessage(data)
		if got := say(); got != "context=ann input=true " {
			t.Error(data, got)
		}
	}
}

func TestFiltersThatAreNone(t *testing.T) {
	t.Parallel()
	for text, column := range map[string]int{
		"": 1, "amount": 7, "amount >": 9, "> 1": 1, "amount = 1 and": 15, "amount = 1 or b = 2": 12, "amount = 1 b = 2": 12, "and = 1": 1,
		"amount == 1": 9, "amount = 'x'": 10, `a = "x`: 5, `a = "\q"`: 5, "a = 1.": 6, "a = 007": 5, "a = .5": 5, "a = 01x": 5, "a = 1x": 6, "a = null": 5, "not = 1": 1, "ä = 1": 1, "a.b = 1": 1,
		"a in 1": 6, "a in ()": 7, "a in (1": 8, "a in (1,)": 9, `a in (1, "x")`: 10, "a in (1 2)": 9, "a startsWith 1": 14, `a startsWith ""`: 14,
		"a > true": 5, "a = 2026-13-01": 5, "a = 2026-01-31T25:00:00Z": 5, "state = 1": 9, `state > "x"`: 9, `state = ""`: 9, `startedAt = "x"`: 13,
		"ä": 1, `a = "ä" or`: 9, "a = 1e200": 5, "a = " + strings.Repeat("1", 39): 5, `a = "` + strings.Repeat("x", 257) + `"`: 5,
		strings.Repeat("a", 65) + " = 1": 1, "a = 1; drop": 6, "a = 1 -- x": 7, "a = 1 and (b = 2)": 11,
		"a = 1" + strings.Repeat(" and a = 1", 16): 1, "a in (1" + strings.Repeat(", 1", 100) + ")": 307,
	} {
		list, err := Where(text)
		e := &problem.Error{}
		if problem.CodeOf(err) != "filter.invalid" {
			t.Errorf("%.60q is a filter: %+v", text, list)
			continue
		}
		if _, ok := err.(*problem.Error); ok {
			e = err.(*problem.Error) //nolint:errorlint // it is not wrapped
		}
		if len(e.Where) != 1 || e.Where[0].Column != column {
			t.Errorf("%.60q: %v, want column %d", text, err, column)
		}
	}
	if _, err := Where(strings.Repeat(" ", MaxWhere+1)); problem.CodeOf(err) != "filter.invalid" {
		t.Error(err)
	}
}

// FuzzWhere: whatever people write is a filter or is refused, and what is one reads the same again.
func FuzzWhere(f *testing.F) {
	for _, s := range []string{`amount > 1000 and state = "Review"`, `a in (1, -2.5e3) and b startsWith "x\u00e4"`, "a != 2026-01-31T12:00:00.5+01:00", `a = "`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Where(text)
		if err != nil {
			return
		}
		for _, c := range list {
			if Named(c.Name) != "" && !c.IsField() {
				t.Errorf("%q names %s", text, c.Name)
			}
			for _, v := range c.Values {
				again, key, err := encode(v.Kind, v.Text)
				if err != nil || again != v.Text || !slices.Equal(key, v.Key) || len(key) > MaxKey {
					t.Errorf("%q: %+v becomes %s, %v", text, v, again, err)
				}
			}
		}
	})
}

// Names are what JSON says they are, however they are written, at every depth.
func TestValuesAreFoundByWhatNamesSay(t *testing.T) {
	t.Parallel()
	s := &snapshot.Snapshot{Status: snapshot.Completed}
	s.State.Output = []byte(`{"skip":{"a":1,"b":[{"a":2}]},"a\u0062":{"c d":"x","n":null,"e":{"f":"y"}},"":{"":"z"},"last":"w"}`)
	list := []Declared{
		{Name: "escaped", Kind: Text, Path: []string{"ab", "c d"}},
		{Name: "null", Kind: Text, Path: []string{"ab", "n"}},
		{Name: "deep", Kind: Text, Path: []string{"ab", "e", "f"}},
		{Name: "under a text", Kind: Text, Path: []string{"last", "x"}},
		{Name: "empty", Kind: Text, Path: []string{"", ""}},
		{Name: "absent", Kind: Text, Path: []string{"b"}},
		{Name: "last", Kind: Text, Path: []string{"last"}},
		{Name: "last again", Kind: Text, Path: []string{"last"}},
	}
	values, err := Of(s, list)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, v := range values {
		got += v.Name + "=" + v.Text + " "
	}
	if got != "escaped=x deep=y empty=z last=w last again=w " {
		t.Error(got)
	}
	for _, broken := range []string{`{"a":`, `{"ab":{"c d"`, `{`, `{"last":"w"`, `{"last":"w",}`} {
		s.State.Output = []byte(broken)
		if _, err := Of(s, list); err == nil {
			t.Errorf("%s is taken", broken)
		}
	}
}
