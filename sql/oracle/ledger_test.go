package oracle

import (
	"testing"
	"time"
)

// What is entered is noted, whatever was entered and left before it.
func TestTheLedgerNotesEveryEntry(t *testing.T) {
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	rows := func() (n int) {
		t.Helper()
		if err := s.db.QueryRow("select count(*) from WF_INFLIGHT").Scan(into{&n}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 200 { // it comes at every moment of the writing
		first := s.ledger.enter("m")
		second := s.ledger.enter("m")
		<-first
		s.ledger.leave("m")
		select {
		case <-second:
		case <-time.After(5 * time.Second):
			t.Fatal("the second is not noted")
		}
		s.ledger.leave("m")
		s.ledger.leave("m") // once too often
	}
	kept := s.ledger.enter("m")
	<-kept
	for range 100 {
		if rows() == 1 {
			break
		}
		pause(t.Context(), 10*time.Millisecond)
	}
	if n := rows(); n != 1 {
		t.Fatalf("%d rows are noted", n)
	}
	s.ledger.leave("m")
	for rows() != 0 && t.Context().Err() == nil {
		pause(t.Context(), 10*time.Millisecond)
	}
}
