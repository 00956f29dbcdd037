package projections

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/appendjson"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Fold turns an outcome into rows. prev is the snapshot the turn began with, nil for a start; claim names the node
// that takes a command in the same commit, "" for nobody, and says how many attempts begin with that.
func Fold(prev *snapshot.Snapshot, out *engine.Outcome, startKey string, claim func(*engine.Entry) (node string, attempts int)) (Rows, error) {
	next := &out.Snapshot
	rows := Rows{Stream: make([]Entry, 0, len(out.Entries)), Policy: out.Policy}
	if prev == nil || visible(prev, next) {
		rows.Instance = instance(next, startKey)
	}
	made := map[int64]bool{}
	settled := map[int64]bool{}
	for _, p := range out.Settled {
		settled[p.Position] = true
	}
	for i := range out.Entries {
		e := &out.Entries[i]
		row, err := entry(next, e)
		if err != nil {
			return Rows{}, err
		}
		row.IsInput = prev == nil && e.Type == engine.EntryStarted
		if e.Command != nil {
			made[e.Position] = true
			done := settled[e.Position]
			row.Processed = &done
			if done {
				row.ProcessedAt = e.At
			} else {
				row.ClaimedBy, row.Attempts = claim(e)
			}
		}
		rows.Stream = append(rows.Stream, row)
	}
	for _, p := range out.Settled {
		if !made[p.Position] {
			rows.Settled = append(rows.Settled, p)
		}
	}
	tasks(&rows, next, out.Tasks)
	return rows, nil
}

// visible reports whether something changed that the instance's row shows. A turn that only goes from one command to
// the next does not: the row says where the instance rests, and between two commands it does not. Behind one it may
// rest where it seemed to be before.
func visible(prev, next *snapshot.Snapshot) bool {
	if prev.Definition != next.Definition || prev.Status != next.Status || (prev.Error == nil) != (next.Error == nil) || prev.Error != nil && *prev.Error != *next.Error ||
		len(prev.Ahead) != len(next.Ahead) {
		return true
	}
	w, ok := next.Primary()
	before, _ := prev.Primary()
	return ok && w.Kind != snapshot.WaitCommand && (before.Kind == snapshot.WaitCommand || prev.At() != next.At())
}

// maxDetail bounds the error text of an instance's row, in bytes; the whole error is in the stream.
const maxDetail = 1_000

func clip(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, ": "), ": ")
	if len(s) > maxDetail {
		return strings.ToValidUTF8(s[:maxDetail], "")
	}
	return s
}

// metadata is what an entry's row shows beside its data. Every turn writes some: reflection was a tenth of it.
var metadata = appendjson.Of[engine.Meta]()

const metadataRoom = 256 // bytes that it has, usually

func entry(s *snapshot.Snapshot, e *engine.Entry) (Entry, error) {
	row := Entry{
		InstanceID: s.InstanceID, Position: e.Position, Kind: string(e.Kind), Direction: string(e.Dir), Type: e.Type,
		Data: e.Data, SignalID: e.SignalID, CreatedAt: e.At,
	}
	var err error
	if e.Command != nil {
		row.Key = e.Command.Key
		if row.Data, err = json.Marshal(e.Command); err != nil {
			return Entry{}, fmt.Errorf("projections: command %d of %s: %w", e.Position, s.InstanceID, err)
		}
	}
	if row.Metadata = metadata.Append(make([]byte, 0, metadataRoom), &e.Meta); len(row.Metadata) == len(`{}`) {
		row.Metadata = nil
	}
	return row, nil
}

func tasks(rows *Rows, s *snapshot.Snapshot, changes []engine.TaskChange) {
	at := s.UpdatedAt
	open := map[string]int{} // tasks made in this very turn
	for _, c := range changes {
		if c.Event == engine.TaskEscalated {
			continue // what it does depends on the row: see the runtime
		}
		rows.TaskEvents = append(rows.TaskEvents, TaskEvent{
			TaskID: c.ID, InstanceID: s.InstanceID, Event: string(c.Event), Actor: c.Actor, Data: c.Output, At: at,
		})
		if c.Create != nil {
			open[c.ID] = len(rows.Tasks)
			rows.Tasks = append(rows.Tasks, task(s, c, at))
			continue
		}
		status := map[engine.TaskEvent]string{
			engine.TaskCompleted: TaskCompleted, engine.TaskCancelled: TaskCancelled, engine.TaskExpired: TaskExpired,
		}[c.Event]
		if i, ok := open[c.ID]; ok {
			rows.Tasks[i].Status, rows.Tasks[i].EndedAt = status, at
			continue
		}
		rows.TaskEnds = append(rows.TaskEnds, TaskEnd{ID: c.ID, Status: status, By: c.Actor, At: at, Outcome: c.Outcome, Output: c.Output})
	}
}

// List writes names as a JSON array, as a task's columns have them.
func List(names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	b, _ := json.Marshal(names) // strings cannot fail
	return string(b)
}
