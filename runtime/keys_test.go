package runtime_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// TestKeysOfMessagesAreExact: a key that differs in case, or by a letter that
// folds to another, is another key: what was checked is what is done.
func TestKeysOfMessagesAreExact(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, doc("keys", `
  - approve: {call: humanTask, with: {candidateUsers: [eve], outcomes: [approve, reject]}}
  - hear: {listen: {to: {one: {with: {type: go}}}}}
`), doc("evil", "\n  - a: {set: {b: 1}}\n"))
		queued := func(e signal.Envelope) {
			t.Helper()
			e.OccurredAt = time.Now()
			body, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
				t.Fatal(err)
			}
		}
		queued(signal.Envelope{SignalID: "i", InstanceID: "i", Type: signal.StartRequest, Payload: json.RawMessage(
			`{"definition":"t/keys","DEFINITION":"t/evil","businessKey":"a","BusinessKey":"b","bu\u017finessKey":"c","version":"1.0.0","Version":"9.9.9"}`)})
		row := n.until(t, "i", status("waiting"))
		if row.Definition != "t/keys" || row.BusinessKey != "a" {
			t.Errorf("began %+v", row)
		}
		page, err := n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{InstanceID: "i"})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("tasks %v, %v", page, err)
		}
		id := page.Items[0].ID
		if _, err := n.rt.ClaimTask(t.Context(), id, "eve", nil); err != nil {
			t.Fatal(err)
		}
		snap, err := n.store.Writer.Load(t.Context(), "i")
		if err != nil {
			t.Fatal(err)
		}
		queued(signal.Envelope{
			SignalID: "answer", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: snap.Waits[0].Token, Headers: map[string]string{signal.HeaderActor: "eve"},
			Payload: json.RawMessage(`{"output":{"outcome":"reject","OUTCOME":"approve","completedBy":"eve","completed\u0042y":"eve","CompletedBy":"olga"},"Output":{"outcome":"approve"}}`),
		})
		eventually(t, "a dead letter", func() bool { // completed\u0042y is completedBy: it stands twice
			page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
			return err == nil && len(page.Items) == 1 && page.Items[0].Reason == "signal.duplicate-key"
		})
		queued(signal.Envelope{
			SignalID: "answer", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: snap.Waits[0].Token, Headers: map[string]string{signal.HeaderActor: "eve"},
			Payload: json.RawMessage(`{"output":{"outcome":"reject","OUTCOME":"approve","completedBy":"eve","CompletedBy":"olga"},"Output":{"outcome":"approve"}}`),
		})
		n.until(t, "i", func(row projections.Instance) bool { return row.Position == "hear" })
		if task, err := n.store.Tasks.Task(t.Context(), id); err != nil || task.Outcome != "reject" || task.EndedBy != "eve" {
			t.Errorf("answered %+v, %v", task, err)
		}
		for _, event := range []string{
			`{"specversion":"1.0","id":"1","source":"s","type":"stop","Type":"go"}`,
			`{"specversion":"1.0","id":"2","source":"s","type":"stop","type":"go"}`,
		} {
			if count, _ := n.rt.PublishEvent(t.Context(), json.RawMessage(event), nil); count != 0 {
				t.Errorf("%s reaches %d", event, count)
			}
		}
		if _, err := n.rt.PublishEvent(t.Context(), json.RawMessage(`{"specversion":"1.0","id":"3","source":"s","type":"go","TYPE":"stop"}`), nil); err != nil {
			t.Error(err)
		}
		n.until(t, "i", status(string(snapshot.Completed)))
	})
}
