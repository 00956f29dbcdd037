package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
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
	set.Limit = 4 * time.Second // which no other step takes, on a busy machine neither
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

// shopPackage is of the application.
var shopPackage = []string{
	"create or replace package SHOP as\n  procedure RESERVE(P_ITEM in varchar2, P_ID in varchar2, P_WHAT out varchar2);\n" +
		"  procedure REFUSE(P_WHY in varchar2);\n  procedure LEAVE;\nend SHOP;",
	"create or replace package body SHOP as\n  procedure RESERVE(P_ITEM in varchar2, P_ID in varchar2, P_WHAT out varchar2) is\n  begin\n" +
		"    update SHOP_STOCK set LEFT_OVER = LEFT_OVER - 1 where ITEM = P_ITEM;\n    insert into SHOP_DONE (NO, ORDER_ID, WHAT) values (1, P_ID, 'reserved');\n    P_WHAT := 'r-1';\n  end;\n" +
		"  procedure REFUSE(P_WHY in varchar2) is\n  begin\n    update SHOP_STOCK set LEFT_OVER = 0 where ITEM = 'pen';\n    raise_application_error(-20123, P_WHY);\n  end;\n" +
		"  procedure LEAVE is\n  begin\n    update SHOP_STOCK set LEFT_OVER = 0 where ITEM = 'pen';\n    DBMS_TRANSACTION.COMMIT;\n  end;\nend SHOP;",
}

const shopProcedures = `
  - reserve: {call: plsql, with: {procedure: shop.reserve, args: {p_item: pen, p_id: '${ $workflow.id }'}, out: [p_what]}}
  - try:
      try:
        - refuse: {call: plsql, with: {procedure: SHOP.REFUSE, args: {p_why: not today}}}
      catch:
        errors: {with: {title: ORA-20123}}
        as: e
        do:
          - say: {set: {what: '${ .p_what }', why: '${ $e.detail }'}}
  - again:
      try:
        - leave: {call: plsql, with: {procedure: SHOP.LEAVE}}
      catch:
        errors: {with: {title: ORA-00034}}
        do:
          - left: {set: '${ . + {left: false} }'}
`

// A listed procedure runs in the turn's transaction; its out-parameters are the output,
// its errors those of the task, and it cannot commit.
func TestProceduresAreStepsOnOracle(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.OnOracle(t)())
	for _, text := range shopPackage {
		s.exec(text)
	}
	set := shopSet(t)
	if err := set.Allow("SHOP.*"); err != nil {
		t.Fatal(err)
	}
	n := stepping(t, s.place, set, nil, head("calls")+shopProcedures, head("other")+"  - x: {call: plsql, with: {procedure: DBMS_LOCK.SLEEP, args: {seconds: 1}}}\n")
	n.begin(t, "i", "t/calls", nil)
	if got, want := n.output(t, "i"), `{"left":false,"what":"r-1","why":"not today"}`; got != want {
		t.Errorf("output %s, want %s", got, want)
	}
	if got := strings.Join(s.texts("select ORDER_ID from SHOP_DONE"), " "); got != "i" || s.left() != 9 {
		t.Errorf("done %q, %d left", got, s.left())
	}
	_, _, err := n.rt.Start(t.Context(), "j", signal.Start{Definition: "t/other", Input: json.RawMessage(`{}`)}, nil)
	if problem.CodeOf(err) != "step.unknown" {
		t.Errorf("a procedure that is on no list: %v", err)
	}
}

// Where the database does not show that it keeps a procedure from committing, none is
// called.
func TestProceduresAreRefusedWithoutTheGuardOnOracle(t *testing.T) {
	t.Parallel()
	d := oracletest.StandIn(t, testdb.Install)
	s := newShop(t, d.DSN())
	for _, text := range shopPackage {
		s.exec(text)
	}
	if _, err := d.Postgres(t.Context(), "insert into ocisim.parameter (name, value) values ('ocisim_no_guard', 'yes')"); err != nil {
		t.Fatal(err)
	}
	set := shopSet(t)
	if err := set.Allow("SHOP.RESERVE"); err != nil {
		t.Fatal(err)
	}
	n := stepping(t, s.place, set, nil, head("calls")+shopProcedures)
	_, _, err := n.rt.Start(t.Context(), "i", signal.Start{Definition: "t/calls", Input: json.RawMessage(`{}`)}, nil)
	if problem.CodeOf(err) != "step.refused" || s.left() != 10 {
		t.Errorf("%v, %d left", err, s.left())
	}
}

// Turns whose steps lock rows in opposite order: the database ends a deadlock, and the
// turn that met it is made again. Each step is done once.
func TestADeadlockOfStepsIsMadeAgainOnOracle(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.OnOracle(t)())
	s.exec("insert into SHOP_STOCK (ITEM, LEFT_OVER) values ('ink', 10)")
	set := shopSet(t)
	set.Limit = time.Minute
	var calls, locked atomic.Int64
	set.Register("both", func(ctx context.Context, tx steps.Tx, args json.RawMessage) (any, error) {
		var in struct{ First, Then string }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		calls.Add(1)
		if _, err := tx.Run(ctx, shopStatements["take"], map[string]any{"item": in.First, "qty": 1}); err != nil {
			return nil, err
		}
		locked.Add(1)
		var w await.Wait
		for locked.Load() < 2 && w.Again(time.Millisecond, locked.Load()) {
			continue // until the other has its first row, too
		}
		return tx.Run(ctx, shopStatements["take"], map[string]any{"item": in.Then, "qty": 1})
	})
	n := stepping(t, s.place, set, nil, head("both")+"  - x: {call: go, with: {function: both, args: '${ . }'}}\n")
	var wg sync.WaitGroup
	for i, in := range []string{`{"first": "pen", "then": "ink"}`, `{"first": "ink", "then": "pen"}`} {
		wg.Go(func() {
			if _, _, err := n.rt.Start(t.Context(), fmt.Sprint("i-", i), signal.Start{Definition: "t/both", Input: json.RawMessage(in)}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 2 {
		n.until(t, fmt.Sprint("i-", i), status("completed"))
	}
	if pen, ink := s.left(), s.number("select LEFT_OVER from SHOP_STOCK where ITEM = 'ink'"); pen != 8 || ink != 8 {
		t.Errorf("%d pens, %d inks", pen, ink)
	}
	if calls.Load() < 3 {
		t.Errorf("%d calls: there was no deadlock", calls.Load())
	}
}
