package schedule

import (
	"encoding/json"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// entryMissed is the stream's record of ticks that do not count any more, with
// {count, after, next}.
const entryMissed = "TicksMissed"

func errNone(t *engine.Turn) error {
	return fmt.Errorf("schedule: %s has no schedule", t.Snap.Definition.Name)
}

// BeginSchedule begins a schedule instance.
func (s *Schedule) BeginSchedule(t *engine.Turn) error {
	switch {
	case s == nil:
		return errNone(t)
	case !t.Snap.Schedule.Due.IsZero(): // a successor
	case s.After != "":
		return s.later(t)
	case s.On != nil:
		return s.subscribe(t)
	default:
		due, err := s.tick(t.In.Now)
		if err != nil {
			return err
		}
		t.Snap.Schedule.Due = due
	}
	s.arm(t)
	return nil
}

// arm waits for the next tick.
func (s *Schedule) arm(t *engine.Turn) {
	kind := "every"
	switch {
	case s.Cron != "":
		kind = "cron"
	case s.After != "":
		kind = "after"
	}
	t.Await(snapshot.Wait{Kind: snapshot.WaitTimer, Pointer: schedulePointer + kind, Until: t.Snap.Schedule.Due})
}

// later waits for the delay after the end of a run.
func (s *Schedule) later(t *engine.Turn) error {
	due, err := duration.After(t.In.Now, s.After)
	if err != nil {
		return err
	}
	t.Snap.Schedule.Due = due
	return s.rearm(t)
}

// rearm waits for the next tick, here or in a fresh instance.
func (s *Schedule) rearm(t *engine.Turn) error {
	if t.Snap.Schedule.Ticks >= MaxGeneration {
		return succeed(t)
	}
	s.arm(t)
	return nil
}

// subscribe waits for the events that begin instances. These waits are never
// consumed: an event that they take begins an instance, see EventStart.
func (s *Schedule) subscribe(t *engine.Turn) error {
	waits, err := s.On.Subscriptions(t.In.Limits)
	for _, w := range waits {
		t.Await(w)
	}
	return err
}

// ResumeSchedule goes on with a schedule: at a tick, at the end of the run before, or at
// an event.
func (s *Schedule) ResumeSchedule(t *engine.Turn, w snapshot.Wait, res engine.Result) error {
	switch {
	case s == nil:
		return errNone(t)
	case w.Kind == snapshot.WaitEvent:
		return s.onEvent(t, w, res.Output)
	case w.Kind == snapshot.WaitChild:
		return s.later(t)
	case w.Kind != snapshot.WaitTimer:
		return fmt.Errorf("schedule: %s: a schedule does not wait for %s", t.Snap.InstanceID, w.Kind)
	}
	now, ref := t.Snap.Schedule, t.Snap.Definition
	at := now.Due
	now.Ticks++
	after := s.After != ""
	run := signal.Start{Definition: ref.Name, Version: ref.Version, Input: json.RawMessage("null")}
	err := t.Spawn(run, after, 0, snapshot.Wait{Pointer: w.Pointer})
	if err != nil || after {
		return err
	}
	t.Basis.Clock = t.In.Clock
	due, missed, err := s.next(at, t.In.Clock)
	if err != nil {
		return err
	}
	now.Due, now.Missed = due, now.Missed+missed
	if missed > 0 {
		data, _ := json.Marshal(map[string]any{"count": missed, "after": at, "next": due}) // plain data
		t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryMissed, Data: data, Meta: engine.Meta{Pointer: w.Pointer}})
	}
	return s.rearm(t)
}

// onEvent begins an instance for an event that was kept while the schedule was
// suspended, and listens on.
func (s *Schedule) onEvent(t *engine.Turn, w snapshot.Wait, event json.RawMessage) error {
	id, start, err := s.EventStart(t.Snap.Definition, event, t.Snap.InstanceID)
	if err != nil {
		return err
	}
	if err := t.Start(id, start); err != nil {
		return err
	}
	w.Token = ""
	t.Await(w)
	return nil
}

// succeed hands the schedule over to a fresh instance, so that no stream grows
// for ever.
func succeed(t *engine.Turn) error {
	s, ref := t.Snap.Schedule, t.Snap.Definition
	s.Successor = ID(ref, s.Generation+1)
	if err := t.Start(s.Successor, Successor(ref, s)); err != nil {
		return err
	}
	t.Complete(json.RawMessage("null"))
	return nil
}
