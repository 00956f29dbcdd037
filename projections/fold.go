package projections

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Fold turns an outcome into rows. prev is the snapshot the turn began with,
// nil for a start; claim names the node that takes a command in the same
// commit, "" for nobody, and says how many attempts begin with that.
func Fold(prev *snapshot.Snapshot, out *engine.Outcome, startKey string, claim func(*engine.Entry) (node string, attempts int)) (Rows, error) {
	next := &out.Snapshot
	rows := Rows{Stream: make([]Entry, 0, len(out.Entries))}
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
	waits(&rows, prev, next)
	return rows, nil
}

// visible reports whether something changed that the instance's row shows. A
// turn that only goes from one command to the next does not: the row says
// where the instance rests, and between two commands it does not.
func visible(prev, next *snapshot.Snapshot) bool {
	if prev.Definition != next.Definition || prev.Status != next.Status || (prev.Error == nil) != (next.Error == nil) || prev.Error != nil && *prev.Error != *next.Error ||
		len(prev.Ahead) != len(next.Ahead) {
		return true
	}
	w, ok := next.Primary()
	return ok && w.Kind != snapshot.WaitCommand && prev.At() != next.At()
}

func instance(s *snapshot.Snapshot, startKey string) *Instance {
	row := &Instance{
		ID: s.InstanceID, Definition: s.Definition.Name, DefVersion: s.Definition.Version,
		BusinessKey: s.Business.Key, StartKey: startKey, Status: string(s.Status), Position: s.At(),
		Correlation: s.Headers[signal.HeaderCorrelation], Version: s.Version, Ahead: len(s.Ahead),
		StartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt,
	}
	if s.Parent != nil {
		row.ParentID = s.Parent.InstanceID
	}
	if s.Error != nil {
		row.ErrorType, row.ErrorDetail = s.Error.Type, clip(s.Error.Title+": "+s.Error.Detail)
	}
	if s.Status.Closed() {
		row.EndedAt, row.Ahead = s.UpdatedAt, 0
	}
	return row
}

// maxDetail bounds the error text of an instance's row, in bytes; the whole
// error is in the stream.
const maxDetail = 1_000

func clip(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, ": "), ": ")
	if len(s) > maxDetail {
		return strings.ToValidUTF8(s[:maxDetail], "")
	}
	return s
}

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
	row.Metadata = metadata(&e.Meta)
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

func task(s *snapshot.Snapshot, c engine.TaskChange, at time.Time) Task {
	t := c.Create
	row := Task{
		ID: c.ID, InstanceID: s.InstanceID, Definition: s.Definition.Name, BusinessKey: s.Business.Key,
		Name: t.Name, Title: t.Title, Status: TaskReady, Assignee: t.Assignee,
		CandidateUsers: List(t.CandidateUsers), CandidateGroups: List(t.CandidateGroups),
		ExcludedUsers: List(t.ExcludedUsers), Outcomes: List(t.Outcomes),
		Priority: t.Priority, Payload: t.Payload, Form: t.Form, Version: 1, CreatedAt: at, DueAt: t.DueAt,
		EscalateTo: List(t.EscalateTo),
	}
	if t.Assignee != "" {
		row.Status = TaskReserved
	}
	for _, w := range s.Waits {
		if w.Kind == snapshot.WaitTask && w.TaskID == c.ID {
			row.Token = w.Token
		}
	}
	return row
}

// List writes names as a JSON array, as a task's columns have them.
func List(names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	b, _ := json.Marshal(names) // strings cannot fail
	return string(b)
}

// waits finds the event waits that came and went. One that moved to another
// version of the definition did both.
func waits(rows *Rows, prev, next *snapshot.Snapshot) {
	had := map[string]string{} // the spec of each token
	if prev != nil {
		for _, w := range prev.Waits {
			if w.Kind == snapshot.WaitEvent {
				had[w.Token] = Spec(prev.Definition, w)
			}
		}
	}
	for _, w := range next.Waits {
		if w.Kind != snapshot.WaitEvent {
			continue
		}
		spec := Spec(next.Definition, w)
		if had[w.Token] == spec {
			delete(had, w.Token)
			continue
		}
		rows.Waits = append(rows.Waits, Wait{
			Token: w.Token, InstanceID: next.InstanceID, EventType: w.Event,
			Spec: spec, KeyHash: KeyHash(engine.Key(w.Key)), CreatedAt: next.UpdatedAt,
		})
	}
	if prev != nil {
		for _, w := range prev.Waits {
			if had[w.Token] != "" {
				rows.WaitsGone = append(rows.WaitsGone, w.Token)
			}
		}
	}
}

// Spec says how the events of a wait are correlated: name@version#pointer, and
// before the pointer, where they are not zero, the arm and the set of bound
// correlations: name@version#2.1/do/0/all.
func Spec(d snapshot.Definition, w snapshot.Wait) string {
	place := ""
	if w.Arm != 0 || w.Bound != 0 {
		place = strconv.Itoa(w.Arm)
	}
	if w.Bound != 0 {
		place += "." + strconv.Itoa(w.Bound)
	}
	return d.Name + "@" + d.Version + "#" + place + w.Pointer
}

// Place is where events of a spec are correlated.
type Place struct {
	Name, Version string // of the definition
	Pointer       string
	Arm, Bound    int
}

// ParseSpec takes a spec apart.
func ParseSpec(spec string) (p Place, ok bool) {
	ref, rest, ok := strings.Cut(spec, "#")
	i, slash := strings.LastIndexByte(ref, '@'), strings.IndexByte(rest, '/')
	if !ok || i < 0 || slash < 0 {
		return Place{}, false
	}
	p = Place{Name: ref[:i], Version: ref[i+1:], Pointer: rest[slash:]}
	arm, bound, _ := strings.Cut(rest[:slash], ".")
	for _, f := range []struct {
		text string
		to   *int
	}{{arm, &p.Arm}, {bound, &p.Bound}} {
		if f.text == "" {
			continue
		}
		var err error
		if *f.to, err = strconv.Atoi(f.text); err != nil || *f.to < 0 {
			return Place{}, false
		}
	}
	return p, true
}

// KeyHash is what WF_WAITS is searched by: the first 128 bits of the key's
// SHA-256, in hex.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
