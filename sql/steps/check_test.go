package steps

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

func shown(found []problem.Place) string {
	var all []string
	for _, f := range found {
		all = append(all, f.Pointer+" "+f.Code+" "+f.Detail+" ("+f.Hint+")")
	}
	return strings.Join(all, "\n")
}

// A call of what nobody has listed, or with other arguments than a statement has
// parameters, is found by its text.
func TestCallsAreCheckedAgainstTheList(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300)
	set := &Set{}
	if err := set.Add("take", "take.sql", "update T set N = N - :qty where ITEM = :item and ':no' <> ITEM"); err != nil {
		t.Fatal(err)
	}
	if err := set.Allow("SHOP.*", "HR.PAY.*"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		use  Use
		want string
	}{
		{Use{Target: "sql/take", Args: []string{"item", "qty"}}, ""},
		{Use{Target: "sql/take", Open: true}, ""},
		{Use{Target: "sql/take", Args: []string{"qty"}}, "/args step.arguments statement take needs the argument item (there are qty, item)"},
		{Use{Target: "sql/take", Args: []string{"item", "qyt", "qty"}}, "/args/qyt step.arguments statement take has no parameter qyt (did you mean qty? there are qty, item)"},
		{Use{Target: "sql/take", Args: []string{"item", "qty", `'"~/ü`}}, `/args/'"~0~1ü step.arguments statement take has no parameter '"~/ü (there are qty, item)`},
		{Use{Target: "sql/taek"}, "/statement step.unknown no statement taek is listed on this node (did you mean take? there are take; put it into a file taek.sql of the folder that steps.sql names)"},
		{Use{Target: "sql/" + long}, "/statement step.unknown no statement " + long[:80] + "… is listed on this node (there are take; put it into a file " + long[:80] + "….sql of the folder that steps.sql names)"},
		{Use{Target: "go/take"}, "/function step.unknown no Go function take is listed on this node (there are none; the program that embeds the node registers it)"},
		{Use{Target: "plsql/SHOP.RESERVE", Args: []string{"any"}}, ""},
		{Use{Target: "plsql/SHOPS.RESERVE"}, "/procedure step.unknown no procedure SHOPS.RESERVE is listed on this node (there are SHOP.*, HR.PAY.*; list it in steps.plsql)"},
		{Use{Target: "plsql/SHOP.STOCK.DROP_ALL"}, "/procedure step.unknown no procedure SHOP.STOCK.DROP_ALL is listed on this node (there are SHOP.*, HR.PAY.*; list it in steps.plsql)"},
		{Use{Target: "plsql/HR.PAY.RAISE"}, ""},
	} {
		if got := shown(set.Check(c.use)); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.use, got, c.want)
		}
	}
	if !set.Lists("sql/any") || set.Lists("go/any") || set.Lists("other/any") {
		t.Error("what kinds are listed")
	}
}
