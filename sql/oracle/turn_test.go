package oracle

import (
	"errors"
	"testing"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

const roundTrips = `select S.VALUE from V$MYSTAT S join V$STATNAME N on N.STATISTIC# = S.STATISTIC#
where N.NAME = 'SQL*Net roundtrips to/from client'`

// trips is how many round trips the session has made that works next: by the count of
// the database, and by that of the program. It leaves the session as a turn does, with
// a transaction in which nothing was done.
func trips(t *testing.T, s *Store) (database, program int64) {
	t.Helper()
	session, err := s.pool.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.pool.giveBack(session)
	if err := session.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := session.QueryRowContext(t.Context(), roundTrips).Scan(&rows.Into{To: &n}); err != nil {
		t.Fatal(err)
	}
	program = s.Counts().Calls
	if err := errors.Join(session.Rollback(), session.Begin(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n, program
}

// measuring is what trips itself costs from one query to the next: rollback, begin, query.
const measuring = 3

// A usual turn: the result of a command comes in, the next command goes out,
// the instance's row changes, and a message is sent.
func TestRoundTripsOfATurn(t *testing.T) {
	for name, c := range map[string]struct {
		load bool
		most int64
	}{
		"loaded":         {load: true, most: 3}, // dequeue, load, block; on Oracle a large value takes one more
		"from the cache": {most: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, Options{DSN: fresh(t), Node: "n"})
			n := turns(t, s, c.load)
			t.Logf("report: turn %s: %d round trips, a naive turn makes 9", name, n)
			if n > c.most {
				t.Errorf("a turn takes %d round trips, more than %d", n, c.most)
			}
		})
	}
}

// turns measures the second of two turns on the same session, in the calls
// that this program counts and in those that the database counts.
func turns(t *testing.T, s *Store, loaded bool) int64 {
	t.Helper()
	ctx := t.Context()
	snap := &snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running}
	again := []store.Send{{Queue: store.Signals, Body: []byte(`{"signalId":"s"}`)}}
	step := func() store.Change {
		c := storetest.Step(snap, "n")
		c.Send = again
		c.Rows.Instance = &projections.Instance{ID: "a", Status: "waiting", Version: snap.Version, StartedAt: c.Runtime.ExecutedAt}
		return c
	}
	if err := s.Commit(ctx, step()); err != nil {
		t.Fatal(err)
	}
	var counted int64
	for range 2 {
		before, calls := trips(t, s)
		d, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if loaded {
			if _, err := d.Load(ctx, "a"); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Commit(ctx, step()); err != nil {
			t.Fatal(err)
		}
		database, program := trips(t, s)
		counted = program - calls - measuring
		if got := database - before - measuring; got != counted {
			t.Errorf("the database counts %d round trips, the program %d", got, counted)
		}
	}
	return counted
}

// opened opens a store that is closed with the test.
func opened(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), quick(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
