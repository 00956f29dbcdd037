package oracle

import (
	"fmt"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A step of the application meets a table without room, an index that must be rebuilt, a
// database of theirs that does not answer: its message comes again later, and the queue
// goes on with the next.
func TestAStepThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	for i, code := range []int{1653, 1536, 1502, 1555, 1652, 12541, 12154, 1013} {
		d := stepFails(t, s, fmt.Sprintf("execute:1:error=%d", code))
		if p := s.Pauses()[0]; p.Failures != 0 || p.Count != 0 {
			t.Errorf("%d: the queue pauses: %+v", code, p)
		}
		if err := d.Release(t.Context(), nil); err != nil {
			t.Fatal(code, err)
		}
		next, err := s.Receive(t.Context(), store.Signals, nil)
		if err != nil || string(next.Message().Body) != "next" {
			t.Fatal(code, next, err)
		}
		if err := next.Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(code, err)
		}
		depth, err := s.Parts().Backlog.Queues(t.Context())
		if err != nil || depth[0].Delayed != i+1 || depth[0].Ready != 0 || depth[0].Leased != 0 {
			t.Errorf("%d: %+v, %v", code, depth, err)
		}
	}
}

// Where the database does not take it again either, the queue pauses, and the message
// has its place.
func TestAStepThatFailsWithItsDatabasePausesTheQueue(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	d := stepFails(t, s, "execute:1:error=1653,aqenq:0:error=1653")
	err := d.Release(t.Context(), nil)
	if p := s.Pauses()[0]; problem.CodeOf(err) != "store.paused" || p.Failures != 1 || p.Reason != "ORA-01653" {
		t.Errorf("%v, %+v", err, p)
	}
	release(t.Context(), d, err)
	for _, want := range []string{"step", "next"} {
		d, err := s.Receive(t.Context(), store.Signals, nil)
		if err != nil || string(d.Message().Body) != want {
			t.Fatal(want, d, err)
		}
		if err := d.Commit(t.Context(), store.Change{}); err != nil {
			t.Error(want, err)
		}
	}
}

// stepFails sends two messages and takes the first, whose step meets a fault.
func stepFails(t *testing.T, s *Store, fault string) store.Delivery {
	t.Helper()
	ctx := t.Context()
	for _, body := range []string{"step", "next"} {
		if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(body)}}}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := s.Receive(ctx, store.Signals, nil)
	if err != nil || string(d.Message().Body) != "step" {
		t.Fatal(d, err)
	}
	err = d.Commit(ctx, store.Change{Inside: func(store.Perform) (store.Change, error) {
		session := d.(*delivery).session
		if _, err := session.ExecContext(ctx, "alter session set ocisim_fault = '"+fault+"'"); err != nil {
			t.Error(err)
		}
		_, err := session.ExecContext(ctx, "update WF_META set NAME = NAME")
		if err != nil && (stepSession{Session: session}).Failure(err) != nil {
			t.Errorf("%s is an error of the task", fault)
		}
		return store.Change{}, err
	}})
	if problem.KindOf(err) != problem.Unavailable {
		t.Fatal(fault, err)
	}
	return d
}
