package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func moments(t *testing.T, list ...string) []time.Time {
	t.Helper()
	var out []time.Time
	for _, s := range list {
		m, err := time.Parse("2006-01-02 15:04:05", s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func TestTicksCountUnlessTheyAreLongPast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		s             Schedule
		at, now, want string
		missed        int64
	}{
		{"in time", Schedule{Every: "PT1H"}, "2026-01-01 10:00:00", "2026-01-01 10:00:00", "2026-01-01 11:00:00", 0},
		{"a fast clock", Schedule{Every: "PT1H"}, "2026-01-01 10:00:00", "2026-01-01 10:00:59", "2026-01-01 11:00:00", 0},
		{"a slow clock", Schedule{Every: "PT1H"}, "2026-01-01 10:00:00", "2026-01-01 09:00:00", "2026-01-01 11:00:00", 0},
		{"just before the next", Schedule{Every: "PT1H"}, "2026-01-01 10:00:00", "2026-01-01 10:59:59", "2026-01-01 11:00:00", 0},
		{"just after the next", Schedule{Every: "PT1H"}, "2026-01-01 10:00:00", "2026-01-01 11:00:30", "2026-01-01 11:00:00", 0},
		{"one missed", Schedule{Every: "PT1H"}, "2026-01-01 10:00:00", "2026-01-01 11:01:00", "2026-01-01 12:00:00", 1},
		{"two hours down", Schedule{Cron: "*/15 * * * *"}, "2026-01-01 10:00:00", "2026-01-01 12:05:00", "2026-01-01 12:15:00", 8},
		{"years of seconds", Schedule{Every: "PT1S"}, "2024-01-01 00:00:00", "2026-01-01 00:00:00", "2026-01-01 00:00:00", 63158399},
		{"a year of months", Schedule{Every: "P1M"}, "2025-01-15 00:00:00", "2026-01-20 00:00:00", "2026-02-15 00:00:00", 12},
		{"end of month", Schedule{Every: "P1M"}, "2026-01-31 00:00:00", "2026-01-31 00:00:00", "2026-02-28 00:00:00", 0},
		{"weekdays", Schedule{Cron: "30 6 * * MON-FRI"}, "2026-01-02 06:30:00", "2026-01-02 06:30:00", "2026-01-05 06:30:00", 0},
		{"leap day", Schedule{Cron: "0 0 29 2 *"}, "2024-02-29 00:00:00", "2024-02-29 00:00:00", "2028-02-29 00:00:00", 0},
	} {
		s, err := New(c.s)
		if err != nil {
			t.Fatal(err)
		}
		m := moments(t, c.at, c.now, c.want)
		due, missed, err := s.next(m[0], m[1])
		if err != nil || !due.Equal(m[2]) || missed != c.missed {
			t.Errorf("%s: next %s after %d missed, %v; want %s after %d", c.name, due, missed, err, m[2], c.missed)
		}
	}
}

func TestScheduleIsHandedOverBeforeItsStreamIsLong(t *testing.T) {
	t.Parallel()
	p := newTimed(t, "1.0.0", Schedule{Every: "PT1M"})
	due := moments(t, "2026-01-01 10:00:00")[0]
	snap := snapshot.Snapshot{
		InstanceID: ID(p.ref, 0), Version: 1, Definition: p.ref, Status: snapshot.Waiting, Schedule: &snapshot.Schedule{Ticks: MaxGeneration - 1, Due: due},
		Waits: []snapshot.Wait{{Kind: snapshot.WaitTimer, Token: "t", Pointer: "/schedule/every"}},
	}
	out, err := engine.Step(p, snap, engine.Input{Signal: signal.Envelope{Type: signal.TimerDue, WaitingToken: "t"}, Now: due, Clock: due})
	if err != nil || out.Snapshot.Status != snapshot.Completed || len(out.Send) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	next := out.Send[1].Envelope
	if next.InstanceID != "schedule.t.s.1.0.0~1" || !strings.Contains(string(next.Payload), `"schedule":{"generation":1,"dueUtc":"2026-01-01T10:01:00Z"}`) {
		t.Errorf("%s %s", next.InstanceID, next.Payload)
	}
}

// One that waits for the end of each run hands over at that end.
func TestAScheduleByRunsIsHandedOverToo(t *testing.T) {
	t.Parallel()
	p := newTimed(t, "1.0.0", Schedule{After: "PT1M"})
	now := moments(t, "2026-01-01 10:00:00")[0]
	snap := snapshot.Snapshot{
		InstanceID: ID(p.ref, 0), Version: 1, Definition: p.ref, Status: snapshot.Waiting, Schedule: &snapshot.Schedule{Ticks: MaxGeneration - 1},
		Waits: []snapshot.Wait{{Kind: snapshot.WaitTimer, Token: "t", Pointer: "/schedule/after"}},
	}
	out, err := engine.Step(p, snap, engine.Input{Signal: signal.Envelope{Type: signal.TimerDue, WaitingToken: "t"}, Now: now, Clock: now})
	if err != nil || out.Snapshot.Status != snapshot.Waiting || len(out.Snapshot.Waits) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	run := signal.Envelope{Type: signal.SubWorkflowCompleted, WaitingToken: out.Snapshot.Waits[0].Token, Payload: []byte(`{"output":1}`)}
	if out, err = engine.Step(p, out.Snapshot, engine.Input{Signal: run, Now: now, Clock: now}); err != nil || out.Snapshot.Status != snapshot.Completed || len(out.Send) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	next := out.Send[0].Envelope
	if next.InstanceID != "schedule.t.s.1.0.0~1" || !strings.Contains(string(next.Payload), `"schedule":{"generation":1,"dueUtc":"2026-01-01T10:01:00Z"}`) {
		t.Errorf("%s %s", next.InstanceID, next.Payload)
	}
}

func TestScheduleIDsFitAnEnvelope(t *testing.T) {
	t.Parallel()
	long := snapshot.Definition{Name: strings.Repeat("n", 63) + "/" + strings.Repeat("m", 63), Version: "1.0.0"}
	if id := ID(long, 0); len(id) > 128 || id == ID(long, 1) {
		t.Errorf("id %s", id)
	}
}

// The end of a run is told to the schedule that goes on, and not its output, which may be
// more than a message holds.
func TestTheEndOfARunIsPassedOnWithoutItsOutput(t *testing.T) {
	t.Parallel()
	p := newTimed(t, "1.0.0", Schedule{After: "PT1M"})
	snap := snapshot.Snapshot{
		InstanceID: ID(p.ref, 0), Version: 3, Definition: p.ref, Status: snapshot.Cancelled, Schedule: &snapshot.Schedule{Successor: "schedule.t.s.2.0.0"},
	}
	run := signal.Envelope{Type: signal.SubWorkflowCompleted, WaitingToken: "t", Payload: []byte(`{"output":"` + strings.Repeat("x", 2<<20) + `"}`)}
	out, err := engine.Step(p, snap, engine.Input{Signal: run})
	if err != nil || len(out.Send) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if next := out.Send[0].Envelope; next.InstanceID != "schedule.t.s.2.0.0" || next.WaitingToken != "t" || string(next.Payload) != `{"output":null}` {
		t.Errorf("%s %.100s", next.InstanceID, next.Payload)
	}
}

// An event is known by its dedupekey, where it has one, whatever its id.
func TestADedupeKeyBeginsOneInstance(t *testing.T) {
	t.Parallel()
	s, ids := &Schedule{}, map[string]bool{}
	for _, event := range []string{
		`{"id": "1", "source": "shop", "dedupekey": "order-7"}`, `{"id": "2", "source": "till", "dedupekey": "order-7"}`,
		`{"id": "1", "source": "shop"}`, `{"id": "2", "source": "shop"}`,
	} {
		id, _, err := s.EventStart(snapshot.Definition{Name: "t/d"}, []byte(event), "keeper")
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d instances, want 3", len(ids))
	}
}
