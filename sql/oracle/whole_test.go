package oracle

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// starting is a start as the API commits it: state, row, messages to two queues.
func starting(id string) store.Change {
	c := storetest.Step(&snapshot.Snapshot{InstanceID: id, Status: snapshot.Running}, "n")
	c.Rows.Instance = &projections.Instance{ID: id, Definition: "order", DefVersion: "1", Status: "running", Version: 1, StartedAt: c.Runtime.ExecutedAt}
	c.Send = []store.Send{
		{Queue: store.Signals, Body: []byte(`{"signalId":"` + id + `"}`)},
		{Queue: store.Schedule, Body: []byte(`{"signalId":"` + id + `-timer"}`), Due: c.Runtime.ExecutedAt.Add(time.Hour)},
	}
	return c
}

// What needs no message commits in one call: a start, a signal. The first on a
// connection that has been quiet begins with a call of its own, by which it learns
// whether the connection is there.
func TestAChangeIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		apart  bool
		change func(id string) store.Change
		want   int64
	}{
		"a start":                 {false, starting, 1},
		"a signal":                {false, func(id string) store.Change { c := starting(id); return store.Change{Send: c.Send[:1]} }, 1},
		"a start, in calls apart": {true, starting, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, Options{DSN: fresh(t), Node: "n", Apart: k.apart})
			if err := s.Commit(t.Context(), k.change("first")); err != nil {
				t.Fatal(err)
			}
			before, calls := trips(t, s)
			if err := s.Commit(t.Context(), k.change("second")); err != nil {
				t.Fatal(err)
			}
			database, program := trips(t, s)
			program, database = program-calls-measuring, database-before-measuring
			t.Logf("report: %s: %d round trips", name, program)
			if program != k.want || database != k.want {
				t.Errorf("%d calls, %d round trips by the database's count; %d expected", program, database, k.want)
			}
			if err := s.Commit(t.Context(), k.change("second")); k.change("").Snapshot != nil && !errors.Is(err, store.ErrDuplicate) {
				t.Errorf("the same start again: %v", err)
			}
		})
	}
}

// A change that one block does not hold is written in calls of their own.
func TestWhatOneBlockDoesNotHold(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	if err := s.Commit(t.Context(), starting("first")); err != nil {
		t.Fatal(err)
	}
	for sends := 1; sends <= wholeSends+1; sends++ {
		for entries := range 9 {
			c := starting(fmt.Sprint("i-", sends, "-", entries))
			for range sends {
				c.Send = append(c.Send, c.Send[0])
			}
			for i := range entries {
				c.Rows.Stream = append(c.Rows.Stream, projections.Entry{
					InstanceID: c.Snapshot.InstanceID, Position: int64(100 + i), Kind: "event", Direction: "in", Type: "X", CreatedAt: c.Runtime.ExecutedAt,
				})
			}
			if err := s.Commit(t.Context(), c); err != nil {
				t.Fatalf("%d messages, %d entries: %v", sends, entries, err)
			}
		}
	}
}

// The grants of the script are enough for it, and a pool of sessions as well.
func TestARuntimeUserWritesInOneBlock(t *testing.T) {
	t.Parallel()
	o := Options{Pooled: true, Node: "n"}
	o.DSN, o.Schema = freshApart(t)
	s := opened(t, o)
	for _, id := range []string{"first", "second"} {
		if err := s.Commit(t.Context(), starting(id)); err != nil {
			t.Fatal(err)
		}
		d, err := s.Receive(t.Context(), store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Commands, Body: d.Message().Body}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// A connection that is lost in the one call leaves it unknown whether the change was
// committed, and the store says so: it does not repeat it.
func TestAChangeCutInItsCallIsUnknown(t *testing.T) {
	t.Parallel()
	for fault, committed := range map[string]bool{"cut": false, "cut_after": true, "error_after=12609": true, "error_after=25405": true} {
		t.Run(fault, func(t *testing.T) {
			d := standIn(t)
			s := opened(t, Options{DSN: d.DSN(), Node: "n"})
			if err := s.Commit(t.Context(), starting("first")); err != nil {
				t.Fatal(err)
			}
			spoilNext(t, s, "execute:2:"+fault) // the first begins a transaction
			if err := s.Commit(t.Context(), starting("second")); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("the change ends with %v", err)
			}
			if _, err := s.Load(t.Context(), "second"); errors.Is(err, store.ErrNotFound) == committed {
				t.Errorf("loading the instance ends with %v; committed: %t", err, committed)
			}
		})
	}
}

// spoilNext sets a fault for the next calls of the session that works next.
func spoilNext(t *testing.T, s *Store, fault string) {
	t.Helper()
	session, err := s.pool.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.pool.giveBack(session)
	if err := session.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := session.ExecContext(t.Context(), "ALTER SESSION SET ocisim_fault = '"+fault+"'"); err != nil {
		t.Fatal(err)
	}
	if err := session.Commit(); err != nil {
		t.Fatal(err)
	}
}

// That another turn was faster is an answer: the session that heard it is used again.
// Sessions cost the database a process each.
func TestARefusalKeepsTheSession(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	if err := s.Commit(t.Context(), starting("a")); err != nil {
		t.Fatal(err)
	}
	before := s.Sessions()
	for range 3 {
		stale := storetest.Step(&snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running, Version: 7}, "n")
		if err := s.Commit(t.Context(), stale); !errors.Is(err, store.ErrStale) {
			t.Fatal(err)
		}
		if n := s.Sessions(); n != before {
			t.Errorf("%d sessions, %d before", n, before)
		}
	}
	if err := s.Commit(t.Context(), starting("b")); err != nil {
		t.Error(err)
	}
}
