package schedule

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What the [engine.Basis] of a turn says that hands a schedule over: the one that
// ends, with the id of the instance that goes on, and that one's first, with the snapshot
// of the other.
const (
	ByHandOver = "hand-over"
	ByHeir     = "heir"
)

// HandOver decides how a newer version of a definition takes its schedule over
// from the schedule instance of the version before: that one ends, and the
// newer version's, if it has one, begins where it was. Both outcomes are for
// one commit, so that at each moment exactly one version ticks and listens.
//
// Old is the definition of snap, or nil when it cannot be compiled any more.
// Begun is nil when the newer version has no schedule; ended is nil when snap
// is, because nothing is to be taken over.
func HandOver(old engine.Definition, snap *snapshot.Snapshot, next engine.Definition, in engine.Input) (ended, begun *engine.Outcome, err error) {
	id, start, ok := Start(next)
	if snap != nil {
		heir := ""
		if ok {
			heir = id
		}
		if ended, err = End(old, *snap, heir, in); err != nil {
			return nil, nil, err
		}
	}
	if !ok {
		return ended, nil, nil
	}
	if snap != nil {
		next = Heir(next, old, snap)
	}
	begun, err = engine.Begin(next, id, start, in)
	return ended, begun, err
}

// End ends a schedule instance, for the one with an id that goes on; "" = none does.
func End(old engine.Definition, left snapshot.Snapshot, successor string, in engine.Input) (*engine.Outcome, error) {
	if successor != "" {
		s := *left.Schedule
		s.Successor, left.Schedule = successor, &s
	}
	return engine.Decide(old, left, in, func(t *engine.Turn) (err error) {
		t.Basis.By = ByHandOver
		if t.Basis.With, err = json.Marshal(successor); err != nil {
			return err
		}
		t.Operated(engine.EntryCancelled)
		t.Cancel()
		return nil
	})
}

// Heir is a definition whose first turn goes on from the schedule instance of the
// version before.
func Heir(next, old engine.Definition, snap *snapshot.Snapshot) engine.Definition {
	return &heir{next, Of(next), Of(old), snap}
}

// heir is a definition whose schedule instance goes on from that of the version
// before.
type heir struct {
	engine.Definition
	*Schedule
	before *Schedule // of snap; nil = not known any more
	snap   *snapshot.Snapshot
}

// BeginSchedule begins where the version before was. A tick that is due already
// is this version's, and so is the next one of a schedule that has not changed;
// a run that was waited for is waited for; what was paused is paused, with the
// events that it has kept.
func (h *heir) BeginSchedule(t *engine.Turn) error {
	left, err := h.snap.Encode()
	if err != nil {
		return err
	}
	t.Basis.By, t.Basis.With = ByHeir, left
	if err := h.goOn(t); err != nil {
		return err
	}
	if h.snap.Status != snapshot.Suspended {
		return nil
	}
	for _, b := range h.snap.Buffer {
		if _, waits := t.Snap.Wait(b.Token); waits || b.Token == "" && h.On != nil {
			t.Snap.Buffer = append(t.Snap.Buffer, b)
		}
	}
	t.Snap.ResumeAs, t.Snap.Status = snapshot.Waiting, snapshot.Suspended
	m := engine.Meta{Actor: t.In.Signal.Headers[signal.HeaderActor]}
	t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.In, Type: engine.EntrySuspended, Data: t.In.Signal.Payload, Meta: m})
	return nil
}

// goOn sets the waits of a schedule that is taken over.
func (h *heir) goOn(t *engine.Turn) error {
	if h.On != nil {
		return h.subscribe(t)
	}
	same := h.before.like(h.Schedule)
	for _, w := range h.snap.Waits {
		switch {
		case w.Kind == snapshot.WaitChild && h.After != "":
			t.Await(w)
			t.Snap.SubFrames = h.snap.SubFrames
			return nil
		case w.Kind == snapshot.WaitTimer && (same || !w.Until.After(t.In.Now)):
			t.Snap.Schedule.Due = w.Until
			h.arm(t)
			return nil
		}
	}
	return h.Schedule.BeginSchedule(t)
}

// like reports whether two schedules tick alike.
func (s *Schedule) like(other *Schedule) bool {
	return s != nil && s.Every == other.Every && s.Cron == other.Cron && s.After == other.After && (s.On == nil) == (other.On == nil)
}
