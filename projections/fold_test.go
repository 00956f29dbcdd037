package projections_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

var at = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

func state(version int64, status snapshot.Status, waits ...snapshot.Wait) snapshot.Snapshot {
	return snapshot.Snapshot{
		InstanceID: "i", Definition: snapshot.Definition{Name: "n/d", Version: "1.0.0", Digest: "x"},
		Business: snapshot.BusinessReference{Key: "b"}, Status: status, Version: version, StartedAt: at, UpdatedAt: at.Add(time.Minute), Waits: waits,
	}
}

func fold(t *testing.T, prev *snapshot.Snapshot, out *engine.Outcome) projections.Rows {
	t.Helper()
	claim := func(e *engine.Entry) (string, int) {
		if e.Command.Target == "mine" {
			return "node", 1
		}
		return "", 0
	}
	rows, err := projections.Fold(prev, out, "key", claim)
	if err != nil {
		t.Fatal(err)
	}
	again, err := projections.Fold(prev, out, "key", claim)
	if err != nil || !reflect.DeepEqual(rows, again) {
		t.Errorf("the same outcome folds differently: %v", err)
	}
	return rows
}

func TestStartFoldsToItsRows(t *testing.T) {
	t.Parallel()
	next := state(1, snapshot.Waiting, snapshot.Wait{Kind: snapshot.WaitEvent, Token: "tok", Pointer: "/do/0/paid", Event: "paid", Key: map[string]string{"o": "7"}})
	rows := fold(t, nil, &engine.Outcome{Snapshot: next, Entries: []engine.Entry{
		{Position: 1, Kind: engine.KindEvent, Dir: engine.In, Type: engine.EntryStarted, Data: json.RawMessage(`{"a":1}`), At: at},
	}})
	i := rows.Instance
	if i == nil || i.Status != "waiting" || i.Position != "paid" || i.StartKey != "key" || i.BusinessKey != "b" || !i.EndedAt.IsZero() {
		t.Errorf("instance %+v", i)
	}
	if !rows.Stream[0].IsInput || rows.Stream[0].Processed != nil {
		t.Errorf("stream %+v", rows.Stream[0])
	}
}

func TestRowIsWrittenWhenTheInstanceRestsElsewhere(t *testing.T) {
	t.Parallel()
	command := func(ptr string) snapshot.Wait {
		return snapshot.Wait{Kind: snapshot.WaitCommand, Token: ptr, Pointer: ptr}
	}
	task := snapshot.Wait{Kind: snapshot.WaitTask, Token: "t", Pointer: "/do/2/ask"}
	between := func(s snapshot.Snapshot) snapshot.Snapshot {
		s.State.Name = "Open->Paid"
		return s
	}
	faulted := state(3, snapshot.Faulted)
	faulted.Error = &snapshot.Error{Type: "x", Title: "T", Detail: strings.Repeat("ü", 2000), Instance: "/do/1/b"}
	other := faulted
	other.Error = &snapshot.Error{Type: "y", Instance: "/do/2/c"}
	behind := state(2, snapshot.Waiting, task)
	behind.Ahead = []snapshot.Buffered{{Sender: "crm", Sequence: 2}, {Sender: "crm", Sequence: 3}}
	ended := state(3, snapshot.Completed)
	ended.Ahead = behind.Ahead
	for _, c := range []struct {
		name       string
		prev, next snapshot.Snapshot
		written    bool
	}{
		{"from call to call", state(1, snapshot.Waiting, command("/do/0/a")), state(2, snapshot.Waiting, command("/do/1/b")), false},
		{"from call to person", state(1, snapshot.Waiting, command("/do/0/a")), state(2, snapshot.Waiting, task), true},
		{"between two states, from call to person", between(state(1, snapshot.Waiting, command("/states/Open/a"))), between(state(2, snapshot.Waiting, task)), true},
		{"from an attempt to the pause behind it", state(1, snapshot.Waiting, command("/do/0/a")), state(2, snapshot.Waiting, snapshot.Wait{Kind: snapshot.WaitRetry, Token: "r", Pointer: "/do/0/a"}), true},
		{"still with the person", state(1, snapshot.Waiting, task), state(2, snapshot.Waiting, task), false},
		{"to the end", state(1, snapshot.Waiting, task), state(2, snapshot.Completed), true},
		{"to a fault", state(1, snapshot.Waiting, task), faulted, true},
		{"from fault to fault", faulted, other, true},
		{"nothing new about the fault", faulted, faulted, false},
		{"to a gap", state(1, snapshot.Waiting, task), behind, true},
		{"from a gap", behind, state(3, snapshot.Waiting, task), true},
		{"to the end with a gap", behind, ended, true},
	} {
		rows := fold(t, &c.prev, &engine.Outcome{Snapshot: c.next})
		if (rows.Instance != nil) != c.written {
			t.Errorf("%s: written %t", c.name, rows.Instance != nil)
		}
		if i := rows.Instance; i != nil && i.EndedAt.IsZero() && i.Ahead != len(c.next.Ahead) || i != nil && !i.EndedAt.IsZero() && i.Ahead != 0 {
			t.Errorf("%s: %d signals ahead", c.name, i.Ahead)
		}
		if i := rows.Instance; i != nil && (len(i.ErrorDetail) > 1_000 || c.next.Status == snapshot.Completed == i.EndedAt.IsZero()) {
			t.Errorf("%s: %+v", c.name, i)
		}
	}
}

func TestCommandsAreClaimedOrSettledAtOnce(t *testing.T) {
	t.Parallel()
	command := func(position int64, target string) engine.Entry {
		return engine.Entry{Position: position, Kind: engine.KindCommand, Dir: engine.Out, Type: engine.EntryCall, Command: &engine.Command{Target: target, Token: "t"}, At: at}
	}
	prev := state(1, snapshot.Waiting)
	rows := fold(t, &prev, &engine.Outcome{
		Snapshot: state(2, snapshot.Waiting), Settled: []engine.Settled{{Position: 3, Unknown: true}, {Position: 6}},
		Entries: []engine.Entry{command(4, "mine"), command(5, "other"), command(6, "mine")},
	})
	var got []string
	for _, e := range rows.Stream {
		done := "open"
		if *e.Processed {
			done = "done"
		}
		got = append(got, done+":"+e.ClaimedBy)
	}
	if s := strings.Join(got, " "); s != "open:node open: done:" {
		t.Errorf("commands %s", s)
	}
	if !reflect.DeepEqual(rows.Settled, []engine.Settled{{Position: 3, Unknown: true}}) {
		t.Errorf("settled %v: one made in this turn is settled in its own row", rows.Settled)
	}
}

func TestTasksComeAndGo(t *testing.T) {
	t.Parallel()
	prev := state(1, snapshot.Waiting)
	next := state(2, snapshot.Waiting, snapshot.Wait{Kind: snapshot.WaitTask, Token: "tok", TaskID: "a"})
	rows := fold(t, &prev, &engine.Outcome{Snapshot: next, Tasks: []engine.TaskChange{
		{ID: "a", Event: engine.TaskCreated, Create: &engine.Task{Title: "A", CandidateUsers: []string{"ann"}}},
		{ID: "b", Event: engine.TaskCreated, Create: &engine.Task{Title: "B", Assignee: "bob"}},
		{ID: "b", Event: engine.TaskCancelled},
		{ID: "c", Event: engine.TaskCompleted, Actor: "cid", Outcome: "yes", Output: json.RawMessage(`1`)},
	}})
	if len(rows.Tasks) != 2 || rows.Tasks[0].Status != projections.TaskReady || rows.Tasks[0].Token != "tok" ||
		rows.Tasks[0].CandidateUsers != `["ann"]` || rows.Tasks[0].CandidateGroups != "[]" || rows.Tasks[1].Status != projections.TaskCancelled {
		t.Errorf("tasks %+v", rows.Tasks)
	}
	if len(rows.TaskEnds) != 1 || rows.TaskEnds[0].Status != projections.TaskCompleted || rows.TaskEnds[0].By != "cid" {
		t.Errorf("ends %+v", rows.TaskEnds)
	}
	if len(rows.TaskEvents) != 4 {
		t.Errorf("events %+v", rows.TaskEvents)
	}
}

// Under another version of the definition the row of the instance says which version
// that is.
func TestMigrationMovesTheRow(t *testing.T) {
	t.Parallel()
	prev := snapshot.Snapshot{
		InstanceID: "i", Definition: snapshot.Definition{Name: "d", Version: "1"}, Status: snapshot.Waiting, Version: 4,
		Waits: []snapshot.Wait{{Kind: snapshot.WaitEvent, Token: "t", Pointer: "/do/0/a", Event: "e"}},
	}
	next := prev.Clone()
	next.Definition.Version, next.Version, next.Waits[0].Pointer = "2", 5, "/do/1/a"
	rows, err := projections.Fold(&prev, &engine.Outcome{Snapshot: next}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if rows.Instance == nil || rows.Instance.DefVersion != "2" || rows.Instance.Version != 5 {
		t.Errorf("%+v", rows.Instance)
	}
}
