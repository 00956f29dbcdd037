package oraclefacts

import "database/sql"

// returns: what call: sql leans on for RETURNING.
func returns(r *rig) {
	_, err := r.db.Exec("create table FACT_RETURNS (A NUMBER, B VARCHAR2(40))")
	r.must(err)
	defer func() {
		_, err := r.db.Exec("drop table FACT_RETURNS")
		r.must(err)
	}()
	for _, b := range []string{"one", "two", "three"} {
		_, err := r.db.Exec("insert into FACT_RETURNS (A, B) values (:1, :2)", 7, b)
		r.must(err)
	}
	s := r.session("Q")
	for _, c := range []struct {
		where string
		rows  int64
		a, b  string
	}{{"B = 'one'", 1, "8", ""}, {"B = 'none'", 0, "", ""}, {"B <> 'one'", 2, "", ""}} {
		var a, b string
		done, err := s.tx.Exec("update FACT_RETURNS set A = A + :n, B = null where "+c.where+" returning A, B into :a, :b",
			sql.Named("n", 1), sql.Named("a", sql.Out{Dest: &a}), sql.Named("b", sql.Out{Dest: &b}))
		if err != nil {
			r.Errorf("%s: %v", c.where, err)
			continue
		}
		n, err := done.RowsAffected()
		r.must(err)
		if n != c.rows || n < 2 && (a != c.a || b != c.b) {
			r.Errorf("%s: %d rows, %q and %q", c.where, n, a, b)
		}
	}
	s.rollback()
}
