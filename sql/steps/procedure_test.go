package steps

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func signatureOf(text string) (s Signature) {
	for p := range strings.SplitSeq(text, ",") {
		f := strings.Fields(p)
		if len(f) > 2 {
			typ, optional := strings.CutSuffix(strings.Join(f[2:], " "), " =")
			s.Params = append(s.Params, Parameter{Name: f[0], Mode: f[1], Type: typ, Optional: optional})
		}
	}
	return s
}

// What the database says of a procedure is held against a call: names, directions, types
// and the values that are known.
func TestCallsOfProceduresAreTyped(t *testing.T) {
	t.Parallel()
	const reserve = "P_ITEM IN VARCHAR2, P_QTY IN NUMBER, P_DAY IN DATE =, P_SMALL IN PLS_INTEGER =, P_RAW IN RAW =, P_NO OUT VARCHAR2, P_BOTH IN/OUT NUMBER ="
	long := strings.Repeat("n", 300)
	for _, c := range []struct {
		overloads []string
		args      string // JSON; values that begin with $ are not known
		out       string
		want      string // "" = nothing
	}{
		{[]string{reserve}, `{"p_item": "pen", "P_QTY": 3}`, "p_no", ""},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": "$", "p_both": 1, "p_day": "24-NOV-26", "p_small": null, "p_raw": "0aF"}`, "p_no p_both", ""},
		{[]string{reserve}, `{"p_item": {"a": 1}, "p_qty": "3,5"}`, "p_no p_both", ""},
		{[]string{reserve}, `{"p_item": "pen"}`, "p_no", "/args procedure P.X needs the argument p_qty"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 3}`, "", "/out procedure P.X has the out-parameter p_no, which the call does not name (write out: [p_no])"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 3, "p_no": "x"}`, "", "/args/p_no parameter p_no of P.X is OUT: it takes no value (name it in out)"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 3}`, "p_no p_item", "/out/1 parameter p_item of P.X is IN: nothing comes out of it"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 3, "p_itm": 1}`, "p_no", "/args/p_itm procedure P.X has no parameter p_itm (did you mean p_item?"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 3, "` + long + `": 1}`, "p_no", "has no parameter " + long[:80] + "… ("},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 3, "P_Item": 1}`, "p_no", "P_Item is p_item once more"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": "three"}`, "p_no", `/args/p_qty parameter p_qty is of the type NUMBER: "three" is no number`},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": [3]}`, "p_no", "it takes a number, and not an array"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 1e200}`, "p_no", "1e200 is too large"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 1, "p_small": 3000000000}`, "p_no", "3000000000 has more than 32 bits"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 1, "p_day": 20261124}`, "p_no", "p_day is of the type DATE: it takes a text, and not a number"},
		{[]string{reserve}, `{"p_item": "pen", "p_qty": 1, "p_raw": "0x1"}`, "p_no", "are no hexadecimal digits"},
		{[]string{"P_REC IN PL/SQL RECORD"}, `{"p_rec": "$"}`, "", "/args/p_rec parameter p_rec is of the type PL/SQL RECORD, which no JSON is bound to"},
		{[]string{"P_OK OUT PL/SQL BOOLEAN"}, ``, "p_ok", "/out/0 parameter p_ok is of the type PL/SQL BOOLEAN, which"},
		{[]string{"P_LIST IN PL/SQL TABLE =, P_A IN TIMESTAMP(6) WITH TIME ZONE ="}, `{"p_a": "x"}`, "", ""},
		{[]string{""}, ``, "", ""},
		{[]string{""}, `{"a": 1}`, "", "has no parameter a (there are none)"},
		{[]string{"function"}, ``, "", "/procedure P.X is a function"},
		// An expression gives the arguments: what comes out is known.
		{[]string{reserve}, "open", "p_no", ""},
		{[]string{reserve}, "open", "", "/out procedure P.X has the out-parameter p_no"},
		// Overloads are told apart by the names.
		{[]string{"A IN NUMBER", "A IN NUMBER, B IN NUMBER"}, `{"a": 1, "b": 2}`, "", ""},
		{[]string{"A IN NUMBER", "A IN NUMBER, B IN NUMBER"}, `{"a": "x", "b": 2}`, "", `/args/a parameter a is of the type NUMBER: "x" is no number`},
		{[]string{"A IN NUMBER", "A IN NUMBER, B IN NUMBER"}, `{"c": 1}`, "", "/procedure none of the 2 overloads of P.X has these arguments (there are (a IN NUMBER), (a IN NUMBER, b IN NUMBER))"},
		{[]string{"A IN NUMBER", "A IN VARCHAR2"}, `{"a": 1}`, "", "/procedure 2 overloads of P.X take these arguments (they differ only in types or defaults"},
		{[]string{"A IN NUMBER", "A IN NUMBER, B IN NUMBER ="}, `{"a": 1}`, "", "2 overloads of P.X take these arguments"},
		{[]string{"A IN NUMBER", "A IN VARCHAR2"}, `open`, "", ""},
		{[]string{"A IN NUMBER", "function"}, `{"a": 1}`, "", ""},
	} {
		use := Use{Target: "plsql/P.X", Open: c.args == "open", Out: strings.Fields(c.out), Known: map[string]json.RawMessage{}}
		if !use.Open && c.args != "" {
			given := map[string]json.RawMessage{}
			if err := json.Unmarshal([]byte(c.args), &given); err != nil {
				t.Fatal(err)
			}
			for name, raw := range given {
				use.Args = append(use.Args, name)
				if string(raw) != `"$"` {
					use.Known[name] = raw
				}
			}
			slices.Sort(use.Args)
			slices.Reverse(use.Args)
		}
		var list []Signature
		for _, o := range c.overloads {
			s := signatureOf(o)
			s.Function = o == "function"
			list = append(list, s)
		}
		found := use.Fits(list)
		if got := strings.ReplaceAll(shown(found), " step.arguments", ""); len(found) > 1 || (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q with %s, out %s:\n got %s\nwant %s", c.overloads, c.args, c.out, got, c.want)
		}
	}
}
