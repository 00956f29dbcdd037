package storetest

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// wholeKey is the key of a command of Whole, as the engine makes them.
func wholeKey(id string, place int) string {
	return fmt.Sprintf("%.16s/1/do/%d/0/0/DIGEST-of-it", id+"-INCARNATION-of-it", place)
}

// Whole is the start of an instance that breaks no invariant: it waits for a
// command, a person, an event, a timer and a child. A test of a store breaks it.
func Whole(id string, now time.Time) (store.Change, error) {
	open := false
	s := &snapshot.Snapshot{
		Incarnation: "INC", Epoch: 2,
		InstanceID: id, Status: snapshot.Waiting, Version: 1, Position: 4, StartedAt: now, UpdatedAt: now,
		Definition: snapshot.Definition{Name: "t/whole", Version: "1"},
		Waits: []snapshot.Wait{
			{Kind: snapshot.WaitCommand, Token: id + "-c", Pointer: "/do/0", Command: 2},
			{Kind: snapshot.WaitTask, Token: id + "-p", Pointer: "/do/1", TaskID: id + "-task"},
			{Kind: snapshot.WaitEvent, Token: id + "-e", Pointer: "/do/2", Event: "go"},
			{Kind: snapshot.WaitTimer, Token: id + "-t", Pointer: "/do/3", Until: now.Add(time.Hour)},
			{Kind: snapshot.WaitChild, Token: id + "-s", Pointer: "/do/4"},
		},
		SubFrames: []snapshot.SubFrame{{InstanceID: id + "-child", Token: id + "-s", Pointer: "/do/4"}},
	}
	raw, err := s.Encode()
	return store.Change{
		Snapshot: s, Encoded: raw, Runtime: store.Runtime{ExecutedBy: "n", ExecutedAt: now},
		Rows: projections.Rows{
			Instance: &projections.Instance{ID: id, Definition: "t/whole", DefVersion: "1", Status: string(s.Status), Version: 1, StartedAt: now, UpdatedAt: now},
			Stream: []projections.Entry{
				{InstanceID: id, Position: 1, Kind: "event", Direction: "in", Type: "InstanceStarted", CreatedAt: now},
				{InstanceID: id, Position: 2, Kind: "command", Direction: "out", Type: "call", Key: wholeKey(id, 0), Data: []byte(`{"target":"f","token":"` + id + `-c","ptr":"/do/0","key":"` + wholeKey(id, 0) + `"}`), CreatedAt: now, Processed: &open},
				{InstanceID: id, Position: 3, Kind: "event", Direction: "out", Type: "ChildStarted", Data: []byte(`{"instanceId":"` + id + `-child"}`), CreatedAt: now},
				{InstanceID: id, Position: 4, Kind: "command", Direction: "out", Type: "call", Key: wholeKey(id, 5), Data: []byte(`{"target":"g","ptr":"/do/5","key":"` + wholeKey(id, 5) + `"}`), CreatedAt: now, Processed: &open},
			},
			Tasks: []projections.Task{{
				ID: id + "-task", InstanceID: id, Name: "ask", Status: projections.TaskReady, Token: id + "-p", Version: 1, CreatedAt: now,
				CandidateUsers: "[]", CandidateGroups: "[]", ExcludedUsers: "[]", Outcomes: "[]",
			}},
			TaskEvents: []projections.TaskEvent{{TaskID: id + "-task", InstanceID: id, Event: "created", At: now}},
			Waits:      []projections.Wait{{Token: id + "-e", InstanceID: id, EventType: "go", Spec: "t/whole@1#/do/2", KeyHash: correlation.KeyHash(""), CreatedAt: now}},
		},
		Send: []store.Send{{
			Queue: store.Schedule, Due: now.Add(time.Hour),
			Body: []byte(`{"signalId":"s","workflowInstanceId":"` + id + `","waitingToken":"` + id + `-t","signalType":"TimerDue"}`),
		}, {
			Queue: store.Signals, Body: []byte(`{"signalId":"k","workflowInstanceId":"` + id + `-child","signalType":"StartRequest"}`),
		}},
	}, err
}

// Broken says, of some invariants, how Whole can be made to break them, in SQL
// that every dialect has.
var Broken = map[string][]string{
	"one-snapshot": {
		"delete from WF_INSTANCES", "delete from WF_RUNTIME_STATES", "update WF_INSTANCES set STATUS = 'running'", "update WF_INSTANCES set STATE_VERSION = 2",
	},
	"stream-gapless": {"delete from WF_STREAM where POSITION = 1", "delete from WF_STREAM"},
	"command-state": {
		"update WF_STREAM set PROCESSED = 1 where POSITION = 2", "update WF_STREAM set PROCESSED = 0 where POSITION = 1",
		"update WF_STREAM set PROCESSED = null where POSITION = 2",
	},
	"task-history": {
		"update WF_TASKS set STATUS = 'completed'", "update WF_TASKS set STATUS = 'reserved'", "update WF_TASKS set ASSIGNEE = 'ann'",
		"delete from WF_TASK_EVENTS", "update WF_TASK_EVENTS set EVENT = 'cancelled'",
	},
	"child-known": {"update WF_INSTANCES set PARENT_ID = INSTANCE_ID"},
	"no-orphans": {
		"delete from WF_RUNTIME_STATES", "delete from WF_RUNTIME_STATES; delete from WF_STREAM; delete from WF_WAITS",
		"delete from WF_RUNTIME_STATES; delete from WF_STREAM; delete from WF_TASKS; delete from WF_TASK_EVENTS", "delete from WF_TASKS",
	},
}

// Strayed says, of Whole as the instance "i", how rows can be made to say other
// than what they repeat, in SQL that every dialect has, and what a check
// says of that in which check.
var Strayed = []struct{ SQL, Check, Says string }{
	{"update WF_INSTANCES set STATUS = 'faulted'", "instances", "the row of instance i says STATUS faulted, its snapshot waiting"},
	{"update WF_INSTANCES set DEFINITION = 'x'", "instances", "says DEFINITION x, its snapshot t/whole"},
	{"update WF_INSTANCES set DEFINITION_VERSION = '2'", "instances", "says DEFINITION_VERSION 2, its snapshot 1"},
	{"update WF_INSTANCES set BUSINESS_KEY = 'x'", "instances", "says BUSINESS_KEY x"},
	{"update WF_INSTANCES set CORRELATION_ID = 'x'", "instances", "says CORRELATION_ID x"},
	{"update WF_INSTANCES set PARENT_ID = 'x'", "instances", "says PARENT_ID x"},
	{"update WF_INSTANCES set ERROR_TYPE = 'x'", "instances", "says ERROR_TYPE x"},
	{"update WF_INSTANCES set ERROR_DETAIL = 'x'", "instances", "says ERROR_DETAIL x"},
	{"update WF_INSTANCES set AHEAD = 3", "instances", "says AHEAD 3, its snapshot 0"},
	{"update WF_INSTANCES set ENDED_ON_UTC = STARTED_ON_UTC", "instances", "ended at"},
	{"update WF_INSTANCES set STATE_VERSION = 2", "instances", "is of version 2 and ended at no time, its snapshot of 1"},
	{"delete from WF_INSTANCES", "instances", "the row of instance i is not there"},
	{"delete from WF_WAITS", "waits", "the wait of instance i by token i-e has no row"},
	{"update WF_WAITS set WAITING_TOKEN = 'x'", "waits", "instance i does not wait by token x"},
	{"update WF_WAITS set KEY_HASH = null", "waits", "the wait of instance i by token i-e is for go of t/whole@1#/do/2"},
}
