package oracle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// What a document calls is held against what the dictionary says of it: a package's
// procedure, also by its owner, by a synonym and by a public one, and one that stands alone.
func TestProceduresAreTypedByTheDictionary(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	set := &steps.Set{}
	if err := set.Allow("SHOP.*", "AGAIN.*", "EVERYWHERE.*", "FAR.*", "GONE.*", "ALONE", "OTHER.ALONE", "ANOTHER", "RESULT"); err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{DSN: d.DSN(), Steps: set})
	owner := s.schema
	if err := set.Allow(owner + ".SHOP.*"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `create or replace package SHOP as
  procedure RESERVE(P_ITEM in varchar2, P_QTY number default 1, P_DAY in date := null, P_NO out nocopy varchar2, P_LEFT in out number);
  procedure RECORD_IT(P_ROW in WF_META%ROWTYPE);
  procedure FLAG(P_YES in boolean);
  procedure LIST(P_ALL in DBMS_SQL.VARCHAR2_TABLE, P_MORE out sys_refcursor);
  procedure TWICE(P_A in number);
  procedure TWICE(P_A in number, P_B in varchar2);
  procedure EITHER(P_A in number);
  procedure EITHER(P_A in varchar2);
  procedure PLAIN;
  function TOTAL(P_A in number) return number;
end SHOP;`); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Postgres(t.Context(), `insert into ocisim.synonym values ('`+owner+`', 'AGAIN', '`+owner+`', 'SHOP', null), ('PUBLIC', 'EVERYWHERE', '`+owner+`', 'AGAIN', null),
	  ('`+owner+`', 'FAR', 'X', 'Y', 'ELSEWHERE'), ('`+owner+`', 'GONE', '`+owner+`', 'GONE', null), ('`+owner+`', 'ANOTHER', 'OTHER', 'ALONE', null);
	  insert into ocisim.standalone values ('OTHER', 'PROCEDURE ALONE ( P_A IN NUMBER )'), ('`+owner+`', 'FUNCTION RESULT ( P_A IN NUMBER ) RETURN NUMBER')`); err != nil {
		t.Fatal(err)
	}
	check := CheckStep(s)
	long := strings.Repeat("N", 300)
	for _, c := range []struct{ name, args, out, want string }{
		{"SHOP.RESERVE", `{"p_item": "pen", "p_left": 1}`, "p_no", ""},
		{owner + ".SHOP.RESERVE", `{"p_item": "pen", "p_left": 1, "p_qty": 2}`, "p_no p_left", ""},
		{"AGAIN.RESERVE", `{"p_item": "pen"}`, "p_no p_left", ""},
		{"EVERYWHERE.RESERVE", `{"p_item": "pen"}`, "p_no p_left", ""},
		{"EVERYWHERE.RESERVE", `{"p_qty": "x"}`, "p_no p_left", "/args step.arguments procedure EVERYWHERE.RESERVE needs the argument p_item"},
		{"SHOP.RESERVE", `{"p_item": "pen", "p_qty": "x"}`, "p_no p_left", `/args/p_qty step.arguments parameter p_qty is of the type NUMBER: "x" is no number`},
		{"SHOP.RESERVE", `{"p_item": "pen", "p_no": 1}`, "p_left", "/args/p_no step.arguments parameter p_no of SHOP.RESERVE is OUT"},
		{"SHOP.RESERV", `{}`, "", "/procedure step.unknown the database has no procedure SHOP.RESERV that a node may execute (did you mean RESERVE? there are RESERVE, RECORD_IT"},
		{"SHOP." + long, `{}`, "", "/procedure step.unknown the database has no procedure SHOP.N"},
		{"GONE.RESERVE", `{}`, "", "/procedure step.unknown"},
		{"FAR.RESERVE", `{}`, "", "/procedure warning.unchecked-step FAR.RESERVE is in another database, ELSEWHERE"},
		{"SHOP.RECORD_IT", `{"p_row": {}}`, "", "is of the type PL/SQL RECORD, which no JSON is bound to"},
		{"SHOP.FLAG", `{"p_yes": true}`, "", "is of the type PL/SQL BOOLEAN"},
		{"SHOP.LIST", `{"p_all": []}`, "p_more", "PL/SQL TABLE"},
		{"SHOP.TWICE", `{"p_a": 1, "p_b": 2}`, "", ""},
		{"SHOP.TWICE", `{"p_c": 1}`, "", "none of the 2 overloads of SHOP.TWICE has these arguments"},
		{"SHOP.EITHER", `{"p_a": 1}`, "", "2 overloads of SHOP.EITHER take these arguments"},
		{"SHOP.PLAIN", `{}`, "", ""},
		{"SHOP.PLAIN", `{"a": 1}`, "", "procedure SHOP.PLAIN has no parameter a"},
		{"SHOP.TOTAL", `{"p_a": 1}`, "", "SHOP.TOTAL is a function"},
		{"RESULT", `{"p_a": 1}`, "", "RESULT is a function"},
		{"OTHER.ALONE", `{"p_a": 1}`, "", ""},
		{"ANOTHER", `{"p_b": 1}`, "", "procedure ANOTHER"},
		{"ALONE", `{"p_a": 1}`, "", "/procedure step.unknown"},
		{"DBMS_LOCK.SLEEP", `{}`, "", "/procedure step.unknown no procedure DBMS_LOCK.SLEEP is listed on this node"},
	} {
		step := definition.Step{Target: "plsql/" + c.name, Out: strings.Fields(c.out)}
		if err := json.Unmarshal([]byte(c.args), &step.Known); err != nil {
			t.Fatal(err)
		}
		for name := range step.Known {
			step.Args = append(step.Args, name)
		}
		wrong, doubtful, err := check(t.Context(), step)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, f := range append(wrong, doubtful...) {
			got = append(got, f.Pointer+" "+f.Code+" "+f.Detail+" ("+f.Hint+")")
		}
		if text := strings.Join(got, "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s %s out %s:\n got %s\nwant %s", c.name, c.args, c.out, text, c.want)
		}
	}
	s.db.Close()
	if _, _, err := check(t.Context(), definition.Step{Target: "plsql/SHOP.PLAIN"}); err == nil {
		t.Error("a dictionary that cannot be read says nothing")
	}
}
