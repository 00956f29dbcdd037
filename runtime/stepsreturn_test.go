package runtime_test

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// returning is a statement in the words of a store.
func returning(place, statement, columns, names string) string {
	if strings.HasPrefix(place, "user=") {
		return statement + " returning " + columns + " into " + names
	}
	list := strings.Split(columns, ", ")
	for i, name := range strings.Split(names, ", ") {
		list[i] += " as " + name[1:]
	}
	return statement + " returning " + strings.Join(list, ", ")
}

const returnTasks = `
  - take:
      call: sql
      with: {statement: took, args: {item: pen, qty: 3}}
      output: {as: '${ $input + {took: .rows[0] | {item: .what, left: (.now_left | tonumber), blank}, of: .affected} }'}
  - none:
      call: sql
      with: {statement: took, args: {item: '"quill" \u00fc''; --', qty: 1}}
      output: {as: '${ $input + {none: .} }'}
  - many:
      try:
        - all: {call: sql, with: {statement: all, args: {}}, output: {as: '${ $input + {all: .} }'}}
      catch:
        as: e
        do:
          - say: {set: '${ . + {all: $e.title} }'}
`

// What RETURNING gives is the row of the output, on both stores. Oracle has a place for
// one row: of several, none is changed.
func TestReturnedRowsAreOutput(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		s.exec("insert into SHOP_STOCK (ITEM, LEFT_OVER) values ('ink', 10)")
		set := shopSet(t)
		for name, text := range map[string]string{
			"took": returning(s.place, "update SHOP_STOCK set LEFT_OVER = LEFT_OVER - :qty where ITEM = :item", "LEFT_OVER, ITEM, null", ":now_left, :what, :blank"),
			"all":  returning(s.place, "update SHOP_STOCK set LEFT_OVER = LEFT_OVER - 1", "ITEM", ":what"),
		} {
			if err := set.Add(name, name+".sql", text); err != nil {
				t.Fatal(err)
			}
		}
		n := stepping(t, s.place, set, nil, head("gives")+returnTasks)
		n.begin(t, "i", "t/gives", nil)
		all, left := `"Several rows"`, 7
		if !strings.HasPrefix(s.place, "user=") {
			all, left = `{"affected":2,"rows":[{"what":"ink"},{"what":"pen"}]}`, 6
		}
		want := `{"all":` + all + `,"none":{"affected":0,"rows":[]},"of":1,"took":{"blank":null,"item":"pen","left":7}}`
		if got := strings.Replace(n.output(t, "i"), `{"what":"pen"},{"what":"ink"}`, `{"what":"ink"},{"what":"pen"}`, 1); got != want {
			t.Errorf("output %s, want %s", got, want)
		}
		if s.left() != left {
			t.Errorf("%d left, want %d", s.left(), left)
		}
	})
}

// RETURNING in the words of the other store is refused before a node works.
func TestReturningIsThatOfTheStore(t *testing.T) {
	t.Parallel()
	set := &steps.Set{}
	if err := set.Add("into", "into.sql", "update T set A = :a returning A into :x"); err != nil {
		t.Fatal(err)
	}
	file, err := embedded.Open(t.Context(), sqlite.Options{Path: t.TempDir() + "/a.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.CheckSteps(t.Context(), set); problem.CodeOf(err) != "step.statement" || !strings.Contains(err.Error(), "into.sql has RETURNING ... INTO") {
		t.Errorf("the embedded store: %v", err)
	}
	if err := oracle.CheckSteps(set); err != nil {
		t.Errorf("Oracle: %v", err)
	}
	if err := set.Add("rows", "rows.sql", "update T set A = :a returning A"); err != nil {
		t.Fatal(err)
	}
	if err := oracle.CheckSteps(set); problem.CodeOf(err) != "step.statement" || !strings.Contains(err.Error(), "rows.sql has RETURNING without INTO") {
		t.Errorf("Oracle: %v", err)
	}
}
