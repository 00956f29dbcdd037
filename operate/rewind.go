package operate

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// Rewind takes an instance back to what it was after an earlier turn. Its output is made by
// [BackTo].
const Rewind engine.Operation = "rewind"

// back says where a Rewind leads. It is kept in the stream, so that the turn can be
// made again.
type back struct {
	To          int64  `json:"to"`                    // position of the stream: the end of a turn
	Version     int64  `json:"version"`               // that the instance has
	Incarnation string `json:"incarnation,omitempty"` // from which keys are made from now on; "" = as before
	State       exact  `json:"state"`                 // the snapshot of then, without its waits
}

// exact is a document byte for byte, in base64: as JSON in JSON it would lose the blanks of
// what the instance was given, by whose digest it is verified. Streams may have rewinds of
// before, whose document is JSON.
type exact []byte

// UnmarshalJSON implements json.Unmarshaler.
func (e *exact) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return jsonv2.Unmarshal(raw, (*[]byte)(e))
	}
	*e = slices.Clone(raw)
	return nil
}

// MaxBack bounds the snapshot to which an instance is taken back, in bytes.
const MaxBack = 1 << 20

// entryRewound is the stream's record that somebody has taken the instance back: {to, newKeys}.
const entryRewound = "Rewound"

// BackTo is the output of a Rewind to a snapshot. Problem: rewind.too-large.
func BackTo(past snapshot.Snapshot, version int64, incarnation string) (json.RawMessage, error) {
	past.Waits, past.SubFrames, past.Effects, past.Compensations, past.Ahead, past.Senders = nil, nil, nil, nil, nil, nil
	past.Status = snapshot.Running // the codec holds the others to their waits
	state, err := past.Encode()
	if err == nil && len(state) > MaxBack {
		err = problem.New(problem.TooLarge, "rewind.too-large", "the snapshot at position %d has %d bytes, more than %d", past.Position, len(state), MaxBack)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(back{To: past.Position, Version: version, Incarnation: incarnation, State: state})
}

// Rewindable refuses an instance that cannot go back to a snapshot of its own. Problems:
// instance.closed, instance.suspended, rewind.position, rewind.other-version,
// rewind.compensates, rewind.child, rewind.lifecycle, rewind.schedule.
func Rewindable(s, past *snapshot.Snapshot) error {
	refused := func(code, detail, hint string) error {
		return problem.New(problem.Conflict, code, "instance %s %s", s.InstanceID, detail).WithHint("%s", hint)
	}
	switch {
	case s.Status.Closed():
		return problem.New(problem.Conflict, "instance.closed", "instance %s is %s", s.InstanceID, s.Status)
	case s.Status == snapshot.Suspended:
		return refused("instance.suspended", "is suspended", "resume it first")
	case past.Position >= s.Position:
		return refused("rewind.position", "stands there", "name the position of an earlier turn: show ID --timeline")
	case past.Definition != s.Definition:
		return refused("rewind.other-version", "ran "+past.Definition.Name+"@"+past.Definition.Version+" then, and not what it runs now", "go back no further than to its migration")
	case s.Schedule != nil:
		return refused("rewind.schedule", "keeps a schedule", "publish another version of its definition")
	case s.State.Name != "":
		return refused("rewind.lifecycle", "is of a lifecycle", "go back by an event of it; a failed hook is retried or skipped")
	case s.Compensating != nil, past.Compensating != nil:
		return refused("rewind.compensates", "compensates what it has done", "let it end, or mend where it is stuck")
	case len(s.SubFrames) > 0:
		return refused("rewind.child", "waits for a sub-workflow", "let it end, or cancel it, and go back no further than to its end")
	case len(past.SubFrames) > 0:
		return refused("rewind.child", "waited for a sub-workflow then", "go back no further than to its end")
	}
	return nil
}

// SameKeys refuses to go back, under the keys of before, past a restore of the database: keys
// have its epoch, and what was asked for before would be asked for under others.
func SameKeys(s, past *snapshot.Snapshot) error {
	if max(s.Epoch, 1) == max(past.Epoch, 1) {
		return nil
	}
	return problem.New(problem.Conflict, "rewind.epoch", "instance %s was there before the database was restored: what it did then would be asked for under other keys", s.InstanceID).
		WithHint("ask the outside what it did, and then for it under new keys; or go back no further than the restore")
}

// rewind has the instance go on from an earlier turn: the task, or the fork, at which it
// stood begins anew, as after a retry. What it has done since stays recorded for
// compensation, and signals that it keeps stay kept.
func rewind(def engine.Definition, t *engine.Turn, output json.RawMessage) error {
	var to back
	if err := jsonv2.Unmarshal(output, &to); err != nil {
		return problem.Wrap(err, problem.Invalid, "signal.invalid", "nothing says where the instance is to go back to")
	}
	past, err := snapshot.Decode(to.State)
	if err != nil {
		return err
	}
	s := t.Snap
	if to.Version != s.Version-1 { // the turn has one of its own
		return problem.New(problem.Conflict, "rewind.stale", "instance %s has gone on since: it had version %d", s.InstanceID, to.Version).WithHint("look again, and repeat it")
	}
	if err := Rewindable(s, &past); err != nil {
		return err
	}
	if to.Incarnation == "" {
		if err := SameKeys(s, &past); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"to": to.To, "newKeys": to.Incarnation != ""})
	if err != nil {
		return err
	}
	t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.In, Type: entryRewound, Data: data, Meta: engine.Meta{Actor: t.In.Signal.Headers[signal.HeaderActor]}})
	if s.Status != snapshot.Faulted { // else they have ended with the fault
		t.TellAll(engine.TaskCancelledEvent)
	}
	t.Withdraw(engine.TaskCancelled, func(snapshot.Wait) bool { return true })
	if to.Incarnation != "" {
		s.Incarnation, s.Effects = to.Incarnation, nil
	}
	s.Status, s.Error, s.ResumeAs = snapshot.Running, nil, ""
	s.Branches, s.State, s.Moved = past.Branches, past.State, past.Moved
	s.LastBranch = max(s.LastBranch, past.LastBranch)
	var kept []snapshot.Buffered // then, also when taken since: it may be taken again, before what has come since
	for _, b := range past.Buffer {
		if b.Token == "" {
			kept = append(kept, b)
		}
	}
	then := kept
	for i := range s.Buffer {
		if b := &s.Buffer[i]; !keeps(then, b) {
			kept = append(kept, *b)
		}
	}
	s.Buffer = kept
	t.Tell(engine.LifecycleEvent{Type: engine.WorkflowResumedEvent})
	return def.Recover(t, engine.Retry, nil)
}

// keeps reports whether a signal is one of those that are kept. Those that waited for the ones
// before them, by their numbers, are kept without an id.
func keeps(all []snapshot.Buffered, b *snapshot.Buffered) bool {
	return slices.ContainsFunc(all, func(kept snapshot.Buffered) bool {
		return kept.SignalID == b.SignalID && (b.SignalID != "" || kept.OccurredAt.Equal(b.OccurredAt) && bytes.Equal(kept.Payload, b.Payload))
	})
}
