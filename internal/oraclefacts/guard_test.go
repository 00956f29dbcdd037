package oraclefacts

import (
	"slices"

	"github.com/aqueduct-engine/aqueduct/aq"
)

// commitGuard: what call: plsql leans on. Each way of ending the transaction out of a
// procedure is refused while the guard is on, and the work before the call stays; with
// the guard off the client commits as ever.
func commitGuard(r *rig) {
	for _, text := range []string{
		"create table FACT_GUARD (A NUMBER)",
		"create or replace procedure FACT_COMMITS is begin insert into FACT_GUARD values (2); commit; end;",
		"create or replace procedure FACT_ROLLS_BACK is begin rollback; end;",
		"create or replace procedure FACT_DEFINES is begin execute immediate 'create table FACT_GUARD_2 (A NUMBER)'; end;",
		"create or replace procedure FACT_GOES_BACK is begin savepoint X; insert into FACT_GUARD values (3); rollback to X; end;",
		"create or replace procedure FACT_APART is pragma autonomous_transaction; begin commit; end;",
	} {
		_, err := r.db.Exec(text)
		r.must(err)
	}
	defer func() {
		for _, text := range []string{
			"drop table FACT_GUARD", "drop procedure FACT_COMMITS", "drop procedure FACT_ROLLS_BACK", "drop procedure FACT_DEFINES",
			"drop procedure FACT_GOES_BACK", "drop procedure FACT_APART",
		} {
			_, err := r.db.Exec(text)
			r.must(err)
		}
	}()
	s := r.session("Q")
	s.exec("insert into FACT_GUARD values (1)")
	s.exec("alter session disable commit in procedure")
	for _, call := range []string{"FACT_COMMITS", "FACT_ROLLS_BACK", "FACT_DEFINES", "DBMS_TRANSACTION.COMMIT"} {
		if _, err := s.tx.Exec("begin " + call + "; end;"); !slices.Contains(aq.Codes(err), 34) {
			r.Errorf("%s under the guard: %v", call, err)
		}
	}
	for _, call := range []string{"FACT_GOES_BACK", "FACT_APART"} { // neither ends the turn's
		_, err := s.tx.Exec("begin " + call + "; end;")
		r.note("%s under the guard: codes %v", call, aq.Codes(err))
	}
	s.exec("alter session enable commit in procedure")
	s.rollback()
	var n int
	r.must(r.db.QueryRow("select count(*) from FACT_GUARD").Scan(&n))
	if n != 0 {
		r.Errorf("%d rows were committed under the guard", n)
	}
	s.exec("insert into FACT_GUARD values (1)")
	s.exec("begin commit write wait; end;")
	r.must(r.db.QueryRow("select count(*) from FACT_GUARD").Scan(&n))
	if n != 1 {
		r.Errorf("%d rows are committed when the guard is off", n)
	}
}
