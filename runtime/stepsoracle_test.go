package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// A step that waits for a row that another session has locked is broken off after its
// limit, and its turn goes on with that: what the turn has done before stays, once.
func TestAStepThatWaitsIsATimeoutOnOracle(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.OnOracle(t)())
	db, err := testdb.SQL(s.place)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "update SHOP_STOCK set LEFT_OVER = 9 where ITEM = 'pen'"); err != nil {
		t.Fatal(err)
	}
	set := shopSet(t)
	set.Limit = 300 * time.Millisecond
	n := stepping(t, s.place, set, nil, head("waits")+`
  - first: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: first}}, output: {as: '${ $input }'}}
  - try:
      try:
        - take: {call: sql, with: {statement: take, args: {item: pen, qty: 1}}}
      catch:
        errors: {with: {status: 408}}
        as: e
        do:
          - say: {set: {detail: '${ $e.detail }'}}
  - last: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: last}}, output: {as: '${ $input }'}}
`)
	n.begin(t, "i", "t/waits", nil)
	if got := n.output(t, "i"); !strings.Contains(got, "outside of the transaction") {
		t.Errorf("output %s", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.texts("select WHAT from SHOP_DONE order by NO"), " "); got != "first last" || s.left() != 10 {
		t.Errorf("done %q, %d left", got, s.left())
	}
	n.begin(t, "j", "t/waits", nil)
	if n.output(t, "j"); s.left() != 9 {
		t.Errorf("%d left: the session is of no use any more", s.left())
	}
}
