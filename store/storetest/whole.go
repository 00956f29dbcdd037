package storetest

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Whole is the start of an instance that breaks no invariant: it waits for a
// command, a person, an event and a timer. A test of a store breaks it.
func Whole(id string, now time.Time) (store.Change, error) {
	open := false
	s := &snapshot.Snapshot{
		Incarnation: "INC", Epoch: 2,
		InstanceID: id, Status: snapshot.Waiting, Version: 1, Position: 2, StartedAt: now, UpdatedAt: now,
		Definition: snapshot.Definition{Name: "t/whole", Version: "1"},
		Waits: []snapshot.Wait{
			{Kind: snapshot.WaitCommand, Token: id + "-c", Pointer: "/do/0", Command: 2},
			{Kind: snapshot.WaitTask, Token: id + "-p", Pointer: "/do/1", TaskID: id + "-task"},
			{Kind: snapshot.WaitEvent, Token: id + "-e", Pointer: "/do/2", Event: "go"},
			{Kind: snapshot.WaitTimer, Token: id + "-t", Pointer: "/do/3", Until: now.Add(time.Hour)},
		},
	}
	raw, err := s.Encode()
	return store.Change{
		Snapshot: s, Encoded: raw, Runtime: store.Runtime{ExecutedBy: "n", ExecutedAt: now},
		Rows: projections.Rows{
			Instance: &projections.Instance{ID: id, Definition: "t/whole", DefVersion: "1", Status: string(s.Status), Version: 1, StartedAt: now, UpdatedAt: now},
			Stream: []projections.Entry{
				{InstanceID: id, Position: 1, Kind: "event", Direction: "in", Type: "InstanceStarted", CreatedAt: now},
				{InstanceID: id, Position: 2, Kind: "command", Direction: "out", Type: "call", Data: []byte(`{"target":"f","token":"` + id + `-c","ptr":"/do/0"}`), CreatedAt: now, Processed: &open},
			},
			Tasks: []projections.Task{{
				ID: id + "-task", InstanceID: id, Name: "ask", Status: projections.TaskReady, Token: id + "-p", Version: 1, CreatedAt: now,
				CandidateUsers: "[]", CandidateGroups: "[]", ExcludedUsers: "[]", Outcomes: "[]",
			}},
			TaskEvents: []projections.TaskEvent{{TaskID: id + "-task", InstanceID: id, Event: "created", At: now}},
			Waits:      []projections.Wait{{Token: id + "-e", InstanceID: id, EventType: "go", Spec: "t/whole@1#/do/2", CreatedAt: now}},
		},
		Send: []store.Send{{
			Queue: store.Schedule, Due: now.Add(time.Hour),
			Body: []byte(`{"signalId":"s","workflowInstanceId":"` + id + `","waitingToken":"` + id + `-t","signalType":"TimerDue"}`),
		}},
	}, err
}
