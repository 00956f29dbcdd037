package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
)

// shopTables are the application's own, beside those of the engine.
var shopTables = []string{
	"create table SHOP_STOCK (ITEM varchar(40) primary key, LEFT_OVER integer not null check (LEFT_OVER >= 0))",
	"create table SHOP_DONE (NO integer primary key, ORDER_ID varchar(128) not null, WHAT varchar(40) not null)",
	"insert into SHOP_STOCK (ITEM, LEFT_OVER) values ('pen', 10)",
}

// shopStatements are what its workflows may do in their turns.
var shopStatements = map[string]string{
	"take": "update SHOP_STOCK set LEFT_OVER = LEFT_OVER - :qty where ITEM = :item",
	"note": "insert into SHOP_DONE (NO, ORDER_ID, WHAT) values ((select coalesce(max(NO), 0) + 1 from SHOP_DONE), :id, :what)",
	"look": "select LEFT_OVER as LEFT_OVER from SHOP_STOCK where ITEM = :item",
}

// shop is a place with the application's tables.
type shop struct {
	t     *testing.T
	place string
}

func newShop(t *testing.T, place string) *shop {
	t.Helper()
	s := &shop{t, place}
	st, err := testdb.Open(t.Context(), place) // the tables of the engine are there first
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range shopTables {
		s.exec(text)
	}
	return s
}

func (s *shop) exec(text string) {
	s.t.Helper()
	db, err := testdb.SQL(s.place)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) number(query string) (n int) {
	s.t.Helper()
	db, err := testdb.SQL(s.place)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *shop) texts(query string) (list []string) {
	s.t.Helper()
	db, err := testdb.SQL(s.place)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, text)
	}
	return list
}

func (s *shop) left() int { return s.number("select LEFT_OVER from SHOP_STOCK where ITEM = 'pen'") }

// shopSet are the steps of the shop.
func shopSet(t testing.TB) *steps.Set {
	set, err := shopSteps()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func shopSteps() (*steps.Set, error) {
	set := &steps.Set{Limit: time.Minute}
	for name, text := range shopStatements {
		if err := set.Add(name, name+".sql", text); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// stepping starts a node whose turns have steps.
func stepping(t *testing.T, place string, set *steps.Set, effect func(context.Context, json.RawMessage) (any, error), documents ...string) *testNode {
	t.Helper()
	st, err := testdb.OpenWith(t.Context(), place, set)
	if err != nil {
		t.Fatal(err)
	}
	n, err := openOn(t.Context(), st, func(*runtime.Config) {}, effect, documents...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// stepPlaces runs a test on every store that has steps.
func stepPlaces(t *testing.T, test func(t *testing.T, s *shop)) {
	testdb.Each(t, func(t *testing.T, fresh func() string) { test(t, newShop(t, fresh())) })
}

// head begins a document.
func head(name string) string {
	return "document: {dsl: '1.0.3', namespace: t, name: " + name + ", version: '1.0.0'}\ndo:\n"
}

const takeTask = `
  - take:
      call: sql
      with: {statement: take, args: {item: '${ .item }', qty: '${ .qty }'}}
      output: {as: '${ $input + {took: .affected} }'}
  - note:
      call: sql
      with: {statement: note, args: {id: '${ $workflow.id }', what: taken}}
      output: {as: '${ $input + {noted: .affected} }'}
  - look:
      call: sql
      with: {statement: look, args: {item: '${ .item }'}}
      output: {as: '${ $input + {left: .rows[0].LEFT_OVER} }'}
`

// A start with three steps is one commit: rows of the application and the instance.
func TestStepsAreCommittedWithTheirTurn(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		n := stepping(t, s.place, shopSet(t), nil, head("take")+takeTask)
		n.begin(t, "i", "t/take", map[string]any{"item": "pen", "qty": 3})
		if got, want := n.output(t, "i"), `{"item":"pen","left":7,"noted":1,"qty":3,"took":1}`; got != want {
			t.Errorf("output %s, want %s", got, want)
		}
		if s.left() != 7 || s.number("select count(*) from SHOP_DONE") != 1 {
			t.Errorf("%d left, %d notes", s.left(), s.number("select count(*) from SHOP_DONE"))
		}
		entries := must(n.store.Streams.Stream(t.Context(), "i", 0, projections.MaxLimit))
		calls, results := 0, 0
		for _, e := range entries {
			if e.Kind == string(engine.KindCommand) {
				if calls++; e.Processed == nil || !*e.Processed {
					t.Errorf("entry %d is left to be performed: %+v", e.Position, e)
				}
			}
			if e.Type == string(signal.TaskCompleted) {
				results++
			}
		}
		if calls != 3 || results != 3 {
			t.Errorf("%d calls and %d results in the stream: %v", calls, results, normal(entries))
		}
		if got := n.counted(t, "aqueduct_step_seconds"); len(got) != 3 {
			t.Errorf("metrics %v", got)
		}
	})
}

// What fails has done nothing, and its task raises what the database has said.
func TestAFailedStepIsCaught(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		n := stepping(t, s.place, shopSet(t), nil, head("caught")+`
  - first: {call: sql, with: {statement: note, args: {id: a, what: first}}, output: {as: '${ $input }'}}
  - try:
      try:
        - take: {call: sql, with: {statement: take, args: {item: pen, qty: 99}}}
      catch:
        errors: {with: {type: 'https://open-workflow-specification.org/spec/1.0.0/errors/runtime'}}
        as: e
        do:
          - say: {set: {title: '${ $e.title }', detail: '${ $e.detail }', at: '${ $e.instance }'}}
`, head("loose")+`
  - first: {call: sql, with: {statement: note, args: {id: b, what: first}}, output: {as: '${ $input }'}}
  - take: {call: sql, with: {statement: take, args: {item: pen, qty: 99}}}
`, head("wrong")+`
  - take: {call: sql, with: {statement: take, args: {item: pen}}}
`)
		n.begin(t, "i", "t/caught", nil)
		if got := n.output(t, "i"); !strings.Contains(got, "onstraint") || !strings.Contains(got, `"at":"/do/1/try/try/0/take"`) {
			t.Errorf("output %s", got)
		}
		n.begin(t, "j", "t/loose", nil)
		if row := n.until(t, "j", status("faulted")); !strings.Contains(row.ErrorDetail, "onstraint") {
			t.Errorf("fault %+v", row)
		}
		n.begin(t, "k", "t/wrong", nil)
		if row := n.until(t, "k", status("faulted")); !strings.Contains(row.ErrorDetail, "needs the argument qty") {
			t.Errorf("fault %+v", row)
		}
		if s.left() != 10 || s.number("select count(*) from SHOP_DONE") != 2 {
			t.Errorf("%d left, %d notes", s.left(), s.number("select count(*) from SHOP_DONE"))
		}
	})
}

// A step that is on no list begins nothing.
func TestAnUnknownStepIsNotRisked(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		n := stepping(t, s.place, shopSet(t), nil, head("unknown")+`
  - first: {call: sql, with: {statement: note, args: {id: a, what: first}}}
  - second: {call: sql, with: {statement: notes}}
`)
		_, _, err := n.rt.Start(t.Context(), "i", signal.Start{Definition: "t/unknown", Input: json.RawMessage(`{}`)}, nil)
		if problem.CodeOf(err) != "step.unknown" || !strings.Contains(err.Error(), "notes") {
			t.Errorf("start: %v", err)
		}
		if _, err := n.store.Writer.Load(t.Context(), "i"); err == nil || s.number("select count(*) from SHOP_DONE") != 0 {
			t.Errorf("something was begun: %v", err)
		}
	})
}

// A loop of many steps is several turns, and each step is done once.
func TestManyStepsAreSeveralTurns(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		n := stepping(t, s.place, shopSet(t), nil, head("many")+`
  - each:
      for: {each: x, in: '[range(100)]'}
      do:
        - note: {call: sql, with: {statement: note, args: {id: '${ $x | tostring }', what: each}}, output: {as: '${ $input }'}}
  - fork:
      fork:
        branches:
`+branches(60))
		n.begin(t, "i", "t/many", nil)
		n.output(t, "i")
		if all, different := s.number("select count(*) from SHOP_DONE"), s.number("select count(distinct ORDER_ID) from SHOP_DONE"); all != 160 || different != 160 {
			t.Errorf("%d notes of %d steps", all, different)
		}
		going := 0
		for _, e := range must(n.store.Streams.Stream(t.Context(), "i", 0, projections.MaxLimit)) {
			if e.Type == string(signal.InternalContinue) {
				going++
			}
		}
		if going < 3 {
			t.Errorf("the instance went on in %d further turns", going)
		}
	})
}

// What many steps have done is undone in several turns, too: by an error that nobody caught, and
// in a catch.
func TestManyStepsAreCompensatedInSeveralTurns(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		const each = `
          - each:
              for: {each: x, in: '[range(80)]'}
              do:
                - note:
                    call: sql
                    with: {statement: note, args: {id: '${ "NAME" + ($x | tostring) }', what: done}}
                    output: {as: '${ $input }'}
                    metadata: {compensate: {call: sql, with: {statement: note, args: {id: '${ "NAME" + ($x | tostring) }', what: undone}}}}
          - no: {raise: {error: {type: 'x:no', status: 500}}}
`
		n := stepping(t, s.place, shopSet(t), nil, head("caught")+`
  - tried:
      try:`+strings.ReplaceAll(each, "NAME", "c")+`
      catch: {do: [{back: {call: compensate}}]}
`, head("uncaught")+`
  - tried:
      do:`+strings.ReplaceAll(each, "NAME", "u"))
		n.begin(t, "caught", "t/caught", nil)
		n.output(t, "caught")
		n.begin(t, "uncaught", "t/uncaught", nil)
		n.until(t, "uncaught", status("compensated"))
		if all, different := s.number("select count(*) from SHOP_DONE where WHAT = 'undone'"), s.number("select count(distinct ORDER_ID) from SHOP_DONE where WHAT = 'undone'"); all != 160 || different != 160 {
			t.Errorf("%d of %d steps are undone", all, different)
		}
		for _, id := range []string{"caught", "uncaught"} {
			going := 0
			for _, e := range must(n.store.Streams.Stream(t.Context(), id, 0, projections.MaxLimit)) {
				if e.Type == string(signal.InternalContinue) {
					going++
				}
			}
			if going < 4 { // of which two do the steps
				t.Errorf("%s: it went on in %d further turns", id, going)
			}
		}
	})
}

func branches(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "          - b%d: {call: sql, with: {statement: note, args: {id: 'b%d', what: branch}}}\n", i, i)
	}
	return b.String()
}

// Many signals at once, some of them in one turn of no step, and conflicts between two
// nodes: every step is done once.
func TestStepsUnderConflict(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		doc := head("events") + `
  - listen:
      listen: {to: {any: [{with: {type: order}}], until: '${ tostring | contains("last") }'}}
      foreach:
        item: e
        do:
          - note: {call: sql, with: {statement: note, args: {id: '${ $e | tostring }', what: event}}}
`
		a, b := stepping(t, s.place, shopSet(t), nil, doc), stepping(t, s.place, shopSet(t), nil, doc)
		a.begin(t, "i", "t/events", nil)
		const events = 40
		for k := range events {
			n := a
			if k%2 == 1 {
				n = b
			}
			if err := enqueue(t.Context(), n, signal.Envelope{
				SignalID: fmt.Sprintf("e-%d", k), InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: time.Now(),
				Payload: fmt.Appendf(nil, `{"type":"order","data":%d}`, k),
			}); err != nil {
				t.Fatal(err)
			}
		}
		row := a.until(t, "i", func(row projections.Instance) bool {
			return row.Status == "faulted" || s.number("select count(*) from SHOP_DONE") >= events
		})
		if row.Status == "faulted" {
			t.Fatalf("%+v", row)
		}
		if all, different := s.number("select count(*) from SHOP_DONE"), s.number("select count(distinct ORDER_ID) from SHOP_DONE"); all != events || different != events {
			t.Errorf("%d notes of %d events", all, different)
		}
	})
}

// A statement that takes too long is interrupted; SQLite then ends the transaction, and
// the turn is made again without it.
func TestASlowStepIsATimeout(t *testing.T) {
	t.Parallel()
	s := newShop(t, testdb.OnFile(t)())
	set := shopSet(t)
	set.Limit = 3 * time.Second // which no other step takes, on a busy machine neither
	for name, text := range map[string]string{
		"slow":       "insert into SHOP_DONE (ORDER_ID, WHAT) with recursive N(I) as (select 1 union all select I + 1 from N where I < 2000000000) select I, 'slow' from N where I % 1000 = 0",
		"slow-query": "with recursive N(I) as (select 1 union all select I + 1 from N where I < 2000000000) select count(*) from N",
	} {
		if err := set.Add(name, name+".sql", text); err != nil {
			t.Fatal(err)
		}
	}
	doc := func(name string) string {
		return head(name) + `
  - first: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: first}}, output: {as: '${ $input }'}}
  - try:
      try:
        - slow: {call: sql, with: {statement: ` + name + `}}
      catch:
        errors: {with: {status: 408}}
        as: e
        do:
          - say: {set: {detail: '${ $e.detail }'}}
  - last: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: last}}, output: {as: '${ $input }'}}
`
	}
	n := stepping(t, s.place, set, nil, doc("slow"), doc("slow-query"))
	for _, name := range []string{"slow", "slow-query"} {
		n.begin(t, name, "t/"+name, nil)
		if got := n.output(t, name); !strings.Contains(got, "outside of the transaction") {
			t.Errorf("output %s", got)
		}
	}
	if all := s.number("select count(*) from SHOP_DONE"); all != 4 {
		t.Errorf("%d notes, not 4", all)
	}
}

// What is the engine's is not written to by a statement, whatever way it takes.
func TestAStatementKeepsToItsTables(t *testing.T) {
	t.Parallel()
	place := testdb.OnFile(t)()
	s := newShop(t, place)
	set := shopSet(t)
	st, err := testdb.OpenWith(t.Context(), place, set)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	db := st.Store.(*embedded.Store)
	s.exec("create table SHOP_TRAP (A integer)")
	s.exec("create trigger SHOP_T after insert on SHOP_TRAP begin delete from WF_STREAM; end")
	for text, want := range map[string]string{
		"delete from WF_INSTANCES":                             "WF_INSTANCES",
		"update wf_stream set DATA = null":                     "WF_STREAM",
		"insert into SHOP_TRAP (A) values (1)":                 "WF_STREAM",
		"with X as (select 1) delete from WF_STREAM":           "WF_STREAM",
		"replace into WF_META (NAME, VALUE) values (1, 2)":     "WF_META",
		"select * from SHOP_NOWHERE":                           "no such table",
		"insert into sqlite_master (name) values ('x')":        "sqlite_master",
		"insert into SHOP_DONE values (1, 2, 3) returning nix": "no such column",
	} {
		one := &steps.Set{}
		if err := one.Add("one", "one.sql", text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := db.CheckSteps(t.Context(), one); problem.CodeOf(err) != "step.statement" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"commit", "pragma foreign_keys = off", "attach 'x' as y", "drop table SHOP_STOCK", "select 1; select 2", "", "begin", "savepoint x", "vacuum", "select ?", "select 'x"} {
		if err := (&steps.Set{}).Add("one", "one.sql", text); problem.CodeOf(err) != "step.statement" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := db.MakeTables(t.Context(), "create table if not exists SHOP_MORE (A integer); create index if not exists SHOP_I on SHOP_MORE (A)"); err != nil {
		t.Errorf("tables of the application: %v", err)
	}
	for _, text := range []string{"create table SHOP_HALF (A integer); drop table WF_STREAM", "create trigger T after insert on WF_STREAM begin select 1; end", "create table WF_MINE (A)", "commit"} {
		if err := db.MakeTables(t.Context(), text); problem.CodeOf(err) != "step.refused" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s.number("select count(*) from sqlite_schema where NAME = 'SHOP_HALF'") != 0 {
		t.Error("half of a script was committed")
	}
	if err := st.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("{}")}}}); err != nil {
		t.Errorf("the store itself: %v", err)
	}
}
