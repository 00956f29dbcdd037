package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// TestExaminationFindsWhatTheAPIFinds: a row that Load refuses is an error of
// doctor, too.
func TestExaminationFindsWhatTheAPIFinds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	if err := s.Commit(t.Context(), crumb("whole")); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), crumb("broken")); err != nil {
		t.Fatal(err)
	}
	if f := look(t, path)["checksums"]; f.Severity != survey.Good {
		t.Errorf("%+v", f)
	}
	c := must(conn.Open(path, "", sqlite.Statements))
	defer c.Close()
	if err := c.Script("update WF_STATES set STATE_JSON = replace(STATE_JSON, 'broken', 'brokem') where INSTANCE_ID = 'broken'"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Load(t.Context(), "broken")
	wantCode(t, err, "snapshot.corrupt")
	if f := look(t, path)["checksums"]; f.Severity != survey.Wrong || !strings.Contains(f.Found, "1 of 2 snapshots are damaged: instance broken") {
		t.Errorf("%+v", f)
	}
}

// The same of entries, tasks, messages and definitions. A quick check reads
// none of them.
func TestExaminationReadsEveryRow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	c := crumb("i")
	c.Rows.Instance = &projections.Instance{ID: "i", Version: 1, Status: string(c.Snapshot.Status)}
	c.Rows.Stream = []projections.Entry{{InstanceID: "i", Position: 1, Kind: "event", Type: "Said", Data: []byte(`{"a":"whole"}`)}}
	c.Rows.Tasks = []projections.Task{{ID: "t", InstanceID: "i", Title: "whole", Status: projections.TaskReady, Version: 1}}
	c.Rows.TaskEvents = []projections.TaskEvent{{TaskID: "t", InstanceID: "i", Event: "created", Actor: "whole"}}
	body := must(signal.Envelope{SignalID: "s", InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal,
		OccurredAt: time.Now(), Payload: []byte(`{"type":"whole"}`)}.Encode())
	c.Send = []store.Send{{Queue: store.Signals, Body: body}, {Queue: store.Signals, Body: []byte("of an application")}}
	ok(t, s.Commit(t.Context(), c))
	if _, err := s.PutDefinitions(t.Context(), []definition.Record{definition.Record{Name: "a/b", Version: "1", Digest: "whole", Source: []byte("whole")}}); err != nil {
		t.Fatal(err)
	}
	for check, f := range look(t, path) {
		if f.Severity != survey.Good && check != "disk-free" {
			t.Errorf("before the damage: %+v", f)
		}
	}
	script(t, path, `update WF_STREAM set DATA = cast(replace(DATA, 'whole', 'whale') as blob); update WF_TASKS set ASSIGNEE = 'whale', STATUS = 'reserved';
update WF_TASK_EVENTS set ACTOR = 'whale';
update WF_MESSAGES set PAYLOAD = cast(replace(PAYLOAD, 'whole', 'whale') as blob); update WF_DEFINITIONS set SOURCE = cast('whale' as blob)`)
	found := look(t, path)
	for check, says := range map[string]string{
		"streams": "1 of 1 streams are damaged: entry 1 of instance i", "tasks": "1 of 1 tasks are damaged: task t of instance i",
		"task-events": "1 of 1 task-events are damaged: event created of task t",
		"messages":    "1 of 2 messages are damaged: message ", "definitions": "1 of 1 definitions are damaged: definition a/b@1",
	} {
		if f := found[check]; f.Severity != survey.Wrong || !strings.Contains(f.Found, says) {
			t.Errorf("%s: %+v", check, f)
		}
	}
	for _, f := range Check(t.Context(), CheckOptions{Path: path, Quick: true}) {
		if f.Severity == survey.Wrong {
			t.Errorf("quick: %+v", f)
		}
	}
}

// What repeats a snapshot is compared with it.
func TestExaminationComparesWhatIsDerived(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	ok(t, s.Commit(t.Context(), must(storetest.Whole("i", time.Now()))))
	for check, f := range look(t, path) {
		if f.Severity != survey.Good && check != "disk-free" {
			t.Errorf("before: %+v", f)
		}
	}
	ok(t, s.Close())
	whole := must(os.ReadFile(path))
	strayed := append(slices.Clone(storetest.Strayed), []struct{ SQL, Check, Says string }{
		{"update WF_INSTANCES set STARTED_ON_UTC = null", "instances", "says STARTED_ON_UTC no time"},
		{"update WF_WAIT_SPECS set SPEC = 'x'", "waits", "is for go of x, its snapshot's is for go of t/whole@1#/do/2"},
		{"update WF_STATES set STATE_VERSION = 0", "checksums", "instance i version 0: the snapshot is of i version 1"},
	}...)
	for _, c := range strayed {
		ok(t, os.WriteFile(path, whole, 0o600))
		ok(t, os.RemoveAll(path+"-wal"))
		script(t, path, c.SQL)
		found := look(t, path)
		if f := found[c.Check]; f.Severity != survey.Wrong || !strings.Contains(f.Found, c.Says) {
			t.Errorf("%s: %+v", c.SQL, f)
		}
		delete(found, c.Check)
		for check, f := range found {
			if f.Severity != survey.Good && check != "disk-free" {
				t.Errorf("%s: beside it %+v", c.SQL, f)
			}
		}
	}
}

// TestTheViewShowsWhatAnInstanceKnows: its data, its context, and the variables it is in.
func TestTheViewShowsWhatAnInstanceKnows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	if err := s.Commit(t.Context(), storetest.Knowing()); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), crumb("none")); err != nil {
		t.Fatal(err)
	}
	db := must(conn.Pool(path, "_query_only=1"))
	defer db.Close()
	var got [3]string
	if err := db.QueryRow(storetest.KnownSQL).Scan(&got[0], &got[1], &got[2]); err != nil {
		t.Fatal(err)
	}
	if err := storetest.CheckKnown(got); err != nil {
		t.Error(err)
	}
	var n int
	if err := db.QueryRow("select count(*) from WF_V_STATES where DATA_JSON is null and VARIABLES_JSON is null").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d instances that know nothing, %v", n, err)
	}
}
