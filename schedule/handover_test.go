package schedule

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestANewerVersionGoesOnWhereTheOlderOneWas publishes a version at a moment
// before and one after the tick that is next.
func TestANewerVersionGoesOnWhereTheOlderOneWas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		old, next         Schedule
		due, now, wantDue string
	}{
		{"the same cron", Schedule{Cron: "0 12 * * *"}, Schedule{Cron: "0 12 * * *"}, "2026-01-01 12:00:00", "2026-01-01 11:59:59", "2026-01-01 12:00:00"},
		{"a cron tick that is due", Schedule{Cron: "0 12 * * *"}, Schedule{Cron: "0 12 * * *"}, "2026-01-01 12:00:00", "2026-01-01 12:00:01", "2026-01-01 12:00:00"},
		{"another cron", Schedule{Cron: "0 12 * * *"}, Schedule{Cron: "0 13 * * *"}, "2026-01-01 12:00:00", "2026-01-01 11:59:59", "2026-01-01 13:00:00"},
		{"another cron, a tick that is due", Schedule{Cron: "0 12 * * *"}, Schedule{Cron: "0 13 * * *"}, "2026-01-01 12:00:00", "2026-01-01 12:00:00", "2026-01-01 12:00:00"},
		{"the same interval", Schedule{Every: "PT1H"}, Schedule{Every: "PT1H"}, "2026-01-01 12:00:00", "2026-01-01 11:30:00", "2026-01-01 12:00:00"},
		{"another interval", Schedule{Every: "PT1H"}, Schedule{Every: "PT2H"}, "2026-01-01 12:00:00", "2026-01-01 11:30:00", "2026-01-01 13:30:00"},
		{"an interval for a cron", Schedule{Cron: "0 12 * * *"}, Schedule{Every: "PT2H"}, "2026-01-01 12:00:00", "2026-01-01 11:30:00", "2026-01-01 13:30:00"},
		{"a delay", Schedule{After: "PT1H"}, Schedule{After: "PT1H"}, "2026-01-01 12:00:00", "2026-01-01 11:30:00", "2026-01-01 12:00:00"},
	} {
		m := moments(t, c.due, c.now, c.wantDue)
		old, next := newTimed(t, "1.0.0", c.old), newTimed(t, "1.1.0", c.next)
		w := snapshot.Wait{Kind: snapshot.WaitTimer, Token: "t", Pointer: "/schedule/x", Until: m[0]}
		snap := snapshot.Snapshot{
			InstanceID: ID(old.ref, 0), Version: 3, Status: snapshot.Waiting, Definition: old.ref,
			Schedule: &snapshot.Schedule{Ticks: 2, Due: m[0]}, Waits: []snapshot.Wait{w},
		}
		ended, begun, err := HandOver(old, &snap, next, engine.Input{Now: m[1], Clock: m[1], Incarnation: "inc"})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if s := begun.Snapshot; !s.Schedule.Due.Equal(m[2]) || len(s.Waits) != 1 || !s.Waits[0].Until.Equal(m[2]) || s.Status != snapshot.Waiting {
			t.Errorf("%s: due %s with %+v, want %s", c.name, s.Schedule.Due, s.Waits, m[2])
		}
		if s := ended.Snapshot; s.Status != snapshot.Cancelled || s.Schedule.Successor != begun.Snapshot.InstanceID || s.Version != 4 {
			t.Errorf("%s: ended %+v", c.name, s)
		}
	}
}

// timed is a definition of which only the schedule is asked for.
type timed struct {
	engine.Definition
	*Schedule
	ref snapshot.Definition
}

func (d timed) Ref() snapshot.Definition { return d.ref }

func newTimed(t *testing.T, version string, s Schedule) timed {
	t.Helper()
	checked, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return timed{ref: snapshot.Definition{Name: "t/s", Version: version}, Schedule: checked}
}
