package engine

import (
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// handOver is what a schedule goes on from: the schedule instance of the
// version before.
type handOver struct {
	schedule *Schedule // of snap; nil = not known any more
	snap     *snapshot.Snapshot
}

// HandOver decides how a newer version of a definition takes its schedule over
// from the schedule instance of the version before: that one ends, and the
// newer version's, if it has one, begins where it was. Both outcomes are for
// one commit, so that at each moment exactly one version ticks and listens.
//
// Old is the definition of snap, or nil when it cannot be compiled any more.
// Begun is nil when the newer version has no schedule; ended is nil when snap
// is, because nothing is to be taken over.
func HandOver(old Definition, snap *snapshot.Snapshot, next Definition, in Input) (ended, begun *Outcome, err error) {
	id, start, ok := ScheduleStart(next)
	var from *handOver
	if snap != nil {
		t := newTurn(snap.Clone(), in)
		t.watch(old)
		if ok {
			t.Snap.Schedule.Successor = id
		}
		t.operated(EntryCancelled)
		t.cancel()
		out, err := t.finish()
		if err != nil {
			return nil, nil, err
		}
		ended, from = out, &handOver{schedule: ScheduleOf(old), snap: snap}
	}
	if !ok {
		return ended, nil, nil
	}
	out, err := begin(next, id, start, from, in)
	return ended, out, err
}

// takeOver begins a schedule instance where that of the version before was. A
// tick that is due already is this version's, and so is the next one of a
// schedule that has not changed; a run that was waited for is waited for; what
// was paused is paused, with the events that it has kept.
func (s *Schedule) takeOver(t *Turn, from *handOver) error {
	if err := s.goOn(t, from); err != nil {
		return err
	}
	if from.snap.Status != snapshot.Suspended {
		return nil
	}
	for _, b := range from.snap.Buffer {
		if _, waits := t.Snap.Wait(b.Token); waits || b.Token == "" && s.On != nil {
			t.Snap.Buffer = append(t.Snap.Buffer, b)
		}
	}
	t.Snap.ResumeAs, t.Snap.Status = snapshot.Waiting, snapshot.Suspended
	t.operated(EntrySuspended)
	return nil
}

// goOn sets the waits of a schedule that is taken over.
func (s *Schedule) goOn(t *Turn, from *handOver) error {
	if s.On != nil {
		return s.subscribe(t)
	}
	for _, w := range from.snap.Waits {
		same := from.schedule.like(s)
		switch {
		case w.Kind == snapshot.WaitChild && s.After != "":
			t.Snap.Waits, t.awaits = append(t.Snap.Waits, w), true
			t.Snap.SubFrames = from.snap.SubFrames
			return nil
		case w.Kind == snapshot.WaitTimer && (same || !w.Until.After(t.In.Now)):
			t.Snap.Schedule.Due = w.Until
			s.arm(t)
			return nil
		}
	}
	t.from = nil
	return s.begin(t)
}

// like reports whether two schedules tick alike.
func (s *Schedule) like(other *Schedule) bool {
	return s != nil && s.Every == other.Every && s.Cron == other.Cron && s.After == other.After && (s.On == nil) == (other.On == nil)
}

// passOn sends what a schedule instance gets after its end to the one that goes
// on: an event that was on its way to it, or the end of a run that was waited
// for.
func (t *Turn) passOn() {
	s, env := t.Snap.Schedule, t.In.Signal
	if s == nil || s.Successor == "" || env.Type != signal.ExternalSignal && env.Type != signal.SubWorkflowCompleted {
		return
	}
	env.InstanceID = s.Successor
	env.Sender, env.Sequence = "", 0 // the successor begins to count anew
	t.out.Send = append(t.out.Send, Message{Envelope: env})
}
