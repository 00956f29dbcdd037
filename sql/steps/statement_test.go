package steps

import (
	"fmt"
	"strings"
	"testing"
)

// What RETURNING sets is no argument of a call, and is told from what only looks so.
func TestWhatAStatementReturns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"insert into T (A) values (:a) returning ID into :id":                               "[a] [id] true",
		"update T set A = :a where B = :b returning A, upper(B) INTO :x, :y":                "[a b] [x y] true",
		"delete from T where A = :a return A into :x":                                       "[a] [x] false",
		"update T set A = :a returning A as A":                                              "[a] [] true",
		"insert into T select * from S where A = :a":                                        "[a] [] false",
		"update T set A = JSON_VALUE(:a, '$.x' returning number) where B = :b":              "[a b] [] false",
		"select JSON_VALUE(A, '$.x' returning number) as X from T where A = :a":             "[a] [] false",
		"insert into T (A) values (:a) /* returning A into :x */ -- returning A into :y":    "[a] [] false",
		"insert into T (A) values ('returning (' || :a) returning A into :x":                "[a] [x] true",
		`insert into "RETURNING" (A) values (:a)`:                                           "[a] [] false",
		"insert into T (A) values (:a) returning A into :x log errors into E ('n' || :tag)": "[a tag] [x] true",
		"update T set A = :a returning A into :A":                                           "its parameter A comes out of it and stands in it once more",
		"update T set A = 1 returning A, B into :x, :X":                                     "its parameter X comes out of it",
	} {
		st, wrong, _ := parse(text)
		got := fmt.Sprint(st.Params, st.Out, st.Gives)
		if wrong != "" {
			got = wrong
		}
		if got = strings.ReplaceAll(got, "][", "] ["); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// Comments before the first word change nothing of what a statement is.
func TestAStatementThatAsksHasRows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"select 1": true, " \n-- Finds the price\nselect PRICE from SHOP": true, "/* insert */ with x as (select 1) select * from x": true,
		"(select 1)": true, "SELECT\t1": true, "insert into X select 1": false, "-- select\nupdate X set Y = 1": false, "": false,
	} {
		if got := Asks(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
