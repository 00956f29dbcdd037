package engine

import (
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
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
			InstanceID: ScheduleID(old.ref, 0), Version: 3, Status: snapshot.Waiting, Definition: old.ref,
			Schedule: &snapshot.Schedule{Ticks: 2, Due: m[0]}, Waits: []snapshot.Wait{w},
		}
		ended, begun, err := HandOver(old, &snap, next, Input{Now: m[1], Clock: m[1], Incarnation: "inc"})
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

// TestAnEndedScheduleSendsOn what was on its way to it, once.
func TestAnEndedScheduleSendsOn(t *testing.T) {
	t.Parallel()
	p := newTimed(t, "1.0.0", Schedule{Every: "PT1H"})
	snap := snapshot.Snapshot{
		InstanceID: ScheduleID(p.ref, 0), Version: 4, Status: snapshot.Cancelled, Definition: p.ref, Schedule: &snapshot.Schedule{Successor: "next"},
	}
	for typ, want := range map[signal.Type]int{signal.ExternalSignal: 1, signal.SubWorkflowCompleted: 1, signal.TimerDue: 0} {
		env := signal.Envelope{SignalID: "s", InstanceID: snap.InstanceID, Type: typ, Payload: []byte(`{}`), WaitingToken: "t"}
		out, err := Step(p, snap, Input{Signal: env, Now: time.Unix(1, 0)})
		if err != nil || out.Disposition != Closed || len(out.Send) != want {
			t.Fatalf("%s: %+v, %v", typ, out, err)
		}
		if want > 0 && (out.Send[0].Envelope.InstanceID != "next" || out.Send[0].Envelope.SignalID != "s" || out.Send[0].Envelope.WaitingToken != "t") {
			t.Errorf("%s: sends %+v", typ, out.Send[0])
		}
	}
}

// timed is a definition of which only the schedule is asked for.
type timed struct {
	Definition
	ref      snapshot.Definition
	schedule *Schedule
}

func (d timed) Ref() snapshot.Definition { return d.ref }
func (d timed) Timetable() *Schedule     { return d.schedule }

func newTimed(t *testing.T, version string, s Schedule) timed {
	t.Helper()
	checked, err := NewSchedule(s)
	if err != nil {
		t.Fatal(err)
	}
	return timed{ref: snapshot.Definition{Name: "t/s", Version: version}, schedule: checked}
}
