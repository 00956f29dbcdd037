package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// lateStream has a command from a moment on, as a commit that was lost on its way has made it.
type lateStream struct {
	mu      sync.Mutex
	from    time.Time
	away    time.Time // until when the database does not answer
	row     projections.Entry
	changes []store.Change
	looks   int
	found   int // of them
}

// seen is how often it was looked at and what was changed.
func (s *lateStream) seen() (looks, found int, changes []store.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.found, s.changes
}

func (s *lateStream) Stream(context.Context, string, int64, int) ([]projections.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks++; time.Now().Before(s.away) {
		return nil, errors.New("away")
	}
	if time.Now().Before(s.from) {
		return nil, store.ErrNotFound
	}
	s.found++
	return []projections.Entry{s.row}, nil
}

func (*lateStream) Recorded(context.Context, string, string) (bool, error) { return false, nil }

func (s *lateStream) Commit(_ context.Context, c store.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes, s.row.ClaimedBy = append(s.changes, c), c.Claims[0].Owner
	return nil
}

func (*lateStream) Load(context.Context, string) (snapshot.Snapshot, error) {
	return snapshot.Snapshot{}, store.ErrNotFound
}

// A database that hung makes a commit long after its node has heard that the line was cut: nobody else performs
// what that has claimed in the name of a live node.
func TestACommandOfACommitThatIsMadeLateIsAnnouncedAgain(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{20 * time.Second, 10 * time.Minute, 20 * time.Hour} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, j, end := lost(t, after)
				<-time.After(after - time.Second)
				if running, waiting := d.Admission.Load(); running+waiting != 0 {
					t.Errorf("%d places are kept while nothing is known", running+waiting)
				}
				<-time.After(after/4 + time.Minute)
				looks, _, changes := s.seen()
				if len(changes) != 1 || len(changes[0].Send) != 1 || changes[0].Send[0].Queue != store.Commands {
					t.Fatalf("%d looks, changes: %+v", looks, changes)
				}
				if c := changes[0].Claims[0]; c.Expect != "n" || c.Owner != "" || c.Attempts != 0 || c.Unknown || c.Position != j.position {
					t.Errorf("given back by %+v", c)
				}
				end()
				synctest.Wait()
				if len(d.performing.jobs) != 0 || looks > 200 {
					t.Errorf("%d jobs are left, after %d looks", len(d.performing.jobs), looks)
				}
			})
		})
	}
}

// While the database is away nothing is known: when it is back the node looks at once.
func TestACommandIsFoundWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d, _, end := lost(t, 0)
		s.mu.Lock()
		s.away = time.Now().Add(2 * time.Hour)
		s.mu.Unlock()
		<-time.After(2*time.Hour + 5*time.Second)
		if looks, found, _ := s.seen(); found == 0 {
			t.Errorf("%d looks, and it is not found", looks)
		}
		end()
		synctest.Wait()
		if len(d.performing.jobs) != 0 {
			t.Errorf("%d jobs are left", len(d.performing.jobs))
		}
	})
}

// What another commit of this node has claimed since, on its way to be launched, is not taken from it; and what no
// commit makes is looked for no more after a day.
func TestWhatIsPerformedIsNotAnnouncedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d, j, end := lost(t, time.Minute)
		for found := 0; found == 0; _, found, _ = s.seen() { // until the first look that finds it claimed
			<-time.After(100 * time.Millisecond)
		}
		d.performing.track(newJob(j.Instance, j.position, engine.Command{Key: "k"}))
		<-time.After(time.Hour)
		if _, _, changes := s.seen(); len(changes) != 0 {
			t.Errorf("%+v", changes)
		}
		end()
	})
	synctest.Test(t, func(t *testing.T) {
		s, _, _, end := lost(t, 100*time.Hour)
		<-time.After(30 * time.Hour)
		before, _, _ := s.seen()
		<-time.After(100 * time.Hour)
		if looks, _, changes := s.seen(); looks != before || before > 200 || len(changes) != 0 {
			t.Errorf("%d looks, then %d, changes %+v", before, looks-before, changes)
		}
		end()
	})
}

// lost is a dispatcher that does not know whether it has claimed a command: it has after a while.
func lost(t *testing.T, after time.Duration) (*lateStream, *Dispatcher, *Job, context.CancelFunc) {
	t.Helper()
	s := &lateStream{from: time.Now().Add(after)}
	d := New(Config{
		Writer: s, Streams: s, Node: "n", Now: time.Now, Log: slog.New(slog.DiscardHandler), Activities: 4, PerHost: 4, Waiting: 4, WaitingBytes: 1 << 20,
		GiveUpAfter: time.Hour,
	})
	work, end := context.WithCancel(t.Context())
	d.Accept(work)
	c := engine.Command{Key: "k", Target: engine.TargetEvent, Input: json.RawMessage(`{}`)}
	j, ok := d.Reserve("i", 7, c, time.Now())
	if !ok || !j.Counted {
		t.Fatal("there is no place")
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	s.row = projections.Entry{InstanceID: "i", Position: 7, Data: data, Processed: new(bool), ClaimedBy: "n", Attempts: 1}
	d.Resolve(j)
	return s, d, j, end
}
