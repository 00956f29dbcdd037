package oraclefacts

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
)

// described: what the check of call: plsql at publication leans on. A real database is
// asked about procedures that stand alone, and about synonyms, besides.
func described(r *rig) {
	made := []string{`create or replace package FACT_SHOP as
  procedure RESERVE(P_ITEM in varchar2, P_QTY number default 1, P_NO out nocopy varchar2, P_LEFT in out number);
  procedure RESERVE(P_ITEM in varchar2);
  procedure PLAIN;
  procedure ODD(P_YES in boolean, P_SMALL in pls_integer, P_ALL in DBMS_SQL.VARCHAR2_TABLE, P_CURSOR out sys_refcursor);
  function TOTAL(P_A in number) return number;
end FACT_SHOP;`}
	dropped := []string{"drop package FACT_SHOP"}
	if oracletest.Real() {
		made = append(made, "create or replace procedure FACT_ALONE(P_A in number) is begin null; end;", "create or replace synonym FACT_AGAIN for FACT_SHOP")
		dropped = append(dropped, "drop procedure FACT_ALONE", "drop synonym FACT_AGAIN")
	}
	for _, text := range made {
		_, err := r.db.Exec(text)
		r.must(err)
	}
	defer func() {
		for _, text := range dropped {
			_, err := r.db.Exec(text)
			r.must(err)
		}
	}()
	want := "RESERVE 1 P_ITEM IN N|RESERVE 2 P_QTY IN Y|RESERVE 3 P_NO OUT N|RESERVE 4 P_LEFT IN/OUT N|RESERVE 1 P_ITEM IN N|PLAIN|" +
		"ODD 1 P_YES IN N|ODD 2 P_SMALL IN N|ODD 3 P_ALL IN N|ODD 4 P_CURSOR OUT N|TOTAL 0 OUT|TOTAL 1 P_A IN N"
	if got := r.arguments("FACT_SHOP"); got != want {
		r.Errorf("the package is\n%s, not\n%s", got, want)
	}
	if !oracletest.Real() {
		return
	}
	if got := r.arguments("FACT_ALONE"); got != " 1 P_A IN N" {
		r.Errorf("a procedure that stands alone is %q", got)
	}
	var table string
	r.must(r.db.QueryRow("select TABLE_NAME from ALL_SYNONYMS where OWNER = SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') and SYNONYM_NAME = 'FACT_AGAIN'").Scan(&table))
	if table != "FACT_SHOP" {
		r.Errorf("the synonym is one of %s", table)
	}
}

// arguments are those of the subprograms of an object, in their order.
func (r *rig) arguments(object string) string {
	rows, err := r.db.Query(`select P.PROCEDURE_NAME, A.ARGUMENT_NAME, A.POSITION, A.IN_OUT, A.DATA_TYPE, A.DEFAULTED
from ALL_PROCEDURES P
left join ALL_ARGUMENTS A on A.OBJECT_ID = P.OBJECT_ID and A.SUBPROGRAM_ID = P.SUBPROGRAM_ID and A.DATA_LEVEL = 0
where P.OWNER = SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') and P.OBJECT_NAME = :1 order by P.SUBPROGRAM_ID, A.POSITION`, object)
	r.must(err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var of, name, mode, data, defaulted sql.NullString
		var position sql.NullInt64
		r.must(rows.Scan(&of, &name, &position, &mode, &data, &defaulted))
		switch {
		case data.String != "" && name.String != "":
			all = append(all, fmt.Sprintf("%s %d %s %s %s", of.String, position.Int64, name.String, mode.String, defaulted.String))
			r.note("%s %s is %s", of.String, name.String, data.String)
		case data.String != "": // of a function
			all = append(all, fmt.Sprintf("%s %d %s", of.String, position.Int64, mode.String))
		case of.String != "":
			all = append(all, of.String)
		}
	}
	r.must(rows.Err())
	return strings.Join(all, "|")
}
