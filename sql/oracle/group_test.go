package oracle

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// waiting has changes committed that come while the only writer is at work, and returns
// how each ended, and the calls that were made of all.
func waiting(t *testing.T, s *Store, changes ...store.Change) (ends []error, calls int64) {
	t.Helper()
	s.writers <- struct{}{}
	ends = make([]error, len(changes))
	done := make(chan struct{})
	for i := range changes {
		go func() {
			ends[i] = s.Commit(t.Context(), changes[i])
			done <- struct{}{}
		}()
	}
	var w await.Wait
	for s.group.size() < len(changes) && w.Again(time.Millisecond, s.group.size()) {
		continue
	}
	before := s.Counts().Calls
	<-s.writers
	for range changes {
		<-done
	}
	return ends, s.Counts().Calls - before
}

func (g *group) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// starts are so many that have nothing to do with each other.
func starts(name string, n int) (list []store.Change) {
	for i := range n {
		list = append(list, starting(fmt.Sprint(name, "-", i)))
	}
	return list
}

// Changes that wait for a writer take one round trip together.
func TestChangesThatWaitAreWrittenTogether(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n", Writers: 1})
	for n, want := range map[int]int64{1: 1, 2: 1, 3: 2, 4: 1, 9: 3} {
		var calls int64
		for round := range 50 { // a session that has been quiet goes another way
			name := fmt.Sprint(n, "-", round)
			if err := s.Commit(t.Context(), starting(name)); err != nil {
				t.Fatal(err)
			}
			var ends []error
			if ends, calls = waiting(t, s, starts(name, n)...); errors.Join(ends...) != nil {
				t.Fatal(ends)
			}
			for _, c := range starts(name, n) {
				if snap, err := s.Load(t.Context(), c.Snapshot.InstanceID); err != nil || snap.Version != 1 {
					t.Errorf("%s: %v, %v", c.Snapshot.InstanceID, snap.Version, err)
				}
			}
			if calls == want {
				break
			}
		}
		if calls != want {
			t.Errorf("%d changes take %d round trips, %d expected", n, calls, want)
		}
	}
}

// What one of them is refused for concerns no other.
func TestARefusedChangeRefusesNoOther(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n", Writers: 1})
	if err := s.Commit(t.Context(), starting("there")); err != nil {
		t.Fatal(err)
	}
	ends, _ := waiting(t, s, append(starts("i", 3), starting("there"))...)
	if errors.Join(ends[:3]...) != nil || !errors.Is(ends[3], store.ErrDuplicate) {
		t.Errorf("%v", ends)
	}
	next := func(id string, version int64) store.Change {
		c := storetest.Step(&snapshot.Snapshot{InstanceID: id, Status: snapshot.Running, Version: version, Position: 2}, "n")
		c.Rows.Settled = nil
		return c
	}
	ends, _ = waiting(t, s, next("i-0", 1), next("i-1", 7), next("i-2", 1), next("there", 1))
	if errors.Join(ends[0], ends[2], ends[3]) != nil || !errors.Is(ends[1], store.ErrStale) {
		t.Errorf("%v", ends)
	}
	depth, err := s.Parts().Backlog.Queues(t.Context())
	if err != nil || depth[0].Ready != 4 {
		t.Errorf("%+v, %v: a message of each start", depth, err)
	}
}

// A connection that is lost leaves it unknown of all.
func TestAGroupCutInItsCallIsUnknown(t *testing.T) {
	t.Parallel()
	for fault, committed := range map[string]bool{"cut": false, "cut_after": true} {
		t.Run(fault, func(t *testing.T) {
			s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n", Writers: 1})
			if err := s.Commit(t.Context(), starting("first")); err != nil {
				t.Fatal(err)
			}
			spoilNext(t, s, "execute:2:"+fault) // the first begins a transaction
			ends, _ := waiting(t, s, starts("i", 4)...)
			for i, err := range ends {
				if !errors.Is(err, store.ErrUnknown) {
					t.Errorf("change %d ends with %v", i, err)
				}
				if _, err := s.Load(t.Context(), fmt.Sprint("i-", i)); errors.Is(err, store.ErrNotFound) == committed {
					t.Errorf("loading instance %d ends with %v; committed: %t", i, err, committed)
				}
			}
		})
	}
}

// Who does not wait any more is not written.
func TestAChangeThatIsGivenUpIsNotWritten(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n", Writers: 1})
	s.writers <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- s.Commit(ctx, starting("i")) }()
	var w await.Wait
	for s.group.size() < 1 && w.Again(time.Millisecond, "waiting") {
		continue
	}
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) || s.group.size() != 0 {
		t.Errorf("%v, %d wait", err, s.group.size())
	}
	<-s.writers
	if _, err := s.Load(t.Context(), "i"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}
