package runtime_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// answering is the outside of an upgraded node: it answers every call.
type answering struct{}

func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"charged":7}`)),
	}, nil
}

// upgraded starts a node on an open database. The outside answers, unless it is down.
func upgraded(t *testing.T, st *testdb.Database, now func() time.Time, down bool, documents ...string) *testNode {
	t.Helper()
	n := &testNode{store: st, done: make(chan error, 1)}
	n.cat = definition.New(st, openworkflow.Parsers(), now)
	for i, d := range documents {
		if _, _, err := n.cat.Publish(t.Context(), fmt.Sprintf("doc-%d.yaml", i), []byte(d)); err != nil {
			t.Fatal(err)
		}
	}
	c := activity.Config{Transport: answering{}, Policy: activity.Policy{MaxAttempts: 50, Initial: 10 * time.Millisecond}}
	if down {
		c.Transport, c.Policy.Initial = nil, time.Second
	}
	performer := activity.New(c)
	performer.Register(engine.TargetEvent, func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	var err error
	n.rt, err = runtime.New(t.Context(), runtime.Config{Store: st.Parts, Definitions: n.cat, Performer: performer, Now: now, RetryMax: 2, RetryDelay: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.done <- n.rt.Run(ctx) }()
	return n
}

// all lists the instances of a database.
func (n *testNode) all(t *testing.T) map[string]projections.Instance {
	t.Helper()
	page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{Limit: projections.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]projections.Instance{}
	for _, i := range page.Items {
		all[i.ID] = i
	}
	return all
}

// ends brings every instance to its end: people do their tasks, events come, operators
// resume, retry and skip; what waits for a time or for the outside goes on by itself.
func (n *testNode) ends(t *testing.T) {
	t.Helper()
	for id, op := range map[string]engine.Operation{"held": engine.Resume, "faulty": engine.Skip, "failed": engine.Retry} {
		if _, there := n.all(t)[id]; there {
			if _, err := n.rt.Operate(t.Context(), id, op, nil, "ops"); err != nil {
				t.Fatal(id, err)
			}
		}
	}
	for _, id := range []string{"event", "held", "all"} {
		if _, there := n.all(t)[id]; there {
			env := signal.Envelope{SignalID: "paid-" + id, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"paid","data":{"n":5}}`)}
			if err := enqueue(t.Context(), n, env); err != nil {
				t.Fatal(id, err)
			}
		}
	}
	eventually(t, "every instance has ended", func() bool {
		page, err := n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{Status: backend.TaskOpen, Limit: projections.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range page.Items {
			if _, err = n.rt.ClaimTask(t.Context(), k.ID, "ann", nil); err == nil {
				_, err = n.rt.CompleteTask(t.Context(), k.ID, "ann", nil, "", nil)
			}
			if err != nil {
				t.Fatal(k.ID, err)
			}
		}
		for _, i := range n.all(t) {
			if i.Status != "completed" {
				return false
			}
		}
		return true
	})
	for id, want := range map[string]string{"person": `"ann"`, "event": "5", "held": "5", "call": "7", "failed": "7", "parent": `"ann"`} {
		if _, there := n.all(t)[id]; there {
			if got := n.output(t, id); got != want {
				t.Errorf("%s came to %s, want %s", id, got, want)
			}
		}
	}
}

// sound says what a check finds wrong in a place.
func sound(t *testing.T, place string) {
	t.Helper()
	if err := testdb.Verify(t.Context(), place); err != nil {
		t.Error(err)
	}
	if err := testdb.Check(t.Context(), place); err != nil {
		t.Error(err)
	}
}

// The files of testdata/upgrade were left by the program of each former version, which
// was killed: instances that wait for a person, an event, a time, a call that fails, all
// of these side by side, and for a child, where the version had such; that are suspended
// and faulted; a dead letter. A file of a new version is made the same way, before the
// script of the next is written.
const upgradeFiles = "testdata/upgrade/%d.db.gz"

// upgradeMade is when the newest was, and upgradeLater a moment after every timer.
var upgradeMade = time.Date(2026, 11, 28, 20, 45, 0, 0, time.UTC)

const upgradeLater = 10 * time.Hour

// TestInstancesOutliveEachUpgrade: whatever version a database has, its instances come
// to their ends on the newest.
func TestInstancesOutliveEachUpgrade(t *testing.T) {
	t.Parallel()
	newest := 0
	for v := 1; ; v++ {
		packed, err := os.Open(fmt.Sprintf(upgradeFiles, v))
		if err != nil {
			newest = v
			break
		}
		t.Run(fmt.Sprintf("sqlite, version %d", v), func(t *testing.T) {
			t.Parallel()
			place := filepath.Join(t.TempDir(), "a.db")
			unpack(t, packed, place)
			begun := time.Now()
			now := func() time.Time { return upgradeMade.Add(upgradeLater + time.Since(begun)) }
			if have, _, err := testdb.FileVersions(place); err != nil || have != v {
				t.Fatalf("the file has version %d: %v", have, err)
			}
			st, err := testdb.At(embedded.Open(t.Context(), sqlite.Options{Path: place, Node: "new", Now: now}))
			if err != nil {
				t.Fatal(err)
			}
			n := upgraded(t, st, now, false)
			if len(n.all(t)) < 8 {
				t.Errorf("only %d instances", len(n.all(t)))
			}
			n.ends(t)
			dead, err := st.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Reason: "event.undelivered"})
			if err != nil || len(dead.Items) != 1 {
				t.Fatalf("%+v, %v", dead, err)
			}
			if _, err := n.rt.Replay(t.Context(), dead.Items[0].ID); err != nil {
				t.Error(err)
			}
			n.settled(t)
			if err := n.close(); err != nil {
				t.Error(err)
			}
			sound(t, place)
		})
	}
	_, known, err := testdb.FileVersions(filepath.Join(t.TempDir(), "new.db"))
	if err != nil {
		t.Fatal(err)
	}
	if newest != known {
		t.Errorf("testdata/upgrade has versions up to %d, the schema has %d: make a file of version %d", newest-1, known, known-1)
	}
	for v := range oracletest.Former {
		t.Run(fmt.Sprintf("oracle, version %d", v), func(t *testing.T) {
			t.Parallel()
			upgradeOracle(t, v)
		})
	}
}

func unpack(t *testing.T, packed *os.File, place string) {
	t.Helper()
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(place, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// upgradeDocs are as those of the files; the timer is due soon.
var upgradeDocs = []string{
	doc("person", "  - approve: {call: humanTask, with: {title: Approve, candidateUsers: [ann]}, output: {as: .completedBy}}"),
	doc("event", "  - paid: {listen: {to: {one: {with: {type: paid}}}}, output: {as: '.[0].n'}}"),
	doc("timer", "  - pause: {wait: PT2S}\n  - after: {set: '${ {done: true} }'}"),
	doc("call", "  - charge: {call: http, with: {method: post, endpoint: 'http://127.0.0.1:9/charge', body: {n: 7}}, output: {as: .charged}}"),
	doc("parent", "  - sub: {run: {workflow: {namespace: t, name: person, version: '1.0.0', input: {from: parent}}}}"),
	doc("faulty", "  - breaks: {raise: {error: {type: 'https://example.com/e', status: 500, title: broken}}}"),
}

// upgradeOracle leaves instances on a schema that is made one of a former version, on
// which no node of this program runs, and has them go on when it is upgraded.
func upgradeOracle(t *testing.T, version int) {
	place := testdb.OnOracle(t)()
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	n := upgraded(t, st, time.Now, true, upgradeDocs...)
	for _, id := range []string{"person", "event", "timer", "call", "parent", "faulty"} {
		n.begin(t, id, "t/"+id, nil)
	}
	n.begin(t, "held", "t/event", nil)
	if _, err := n.rt.Operate(t.Context(), "held", engine.Suspend, nil, "ops"); err != nil {
		t.Fatal(err)
	}
	n.die(t, "no envelope")
	n.deadLetters(t, 1)
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	if err := testdb.FormerOracle(t.Context(), place, version); err != nil {
		t.Fatal(err)
	}
	if _, err := testdb.Open(t.Context(), place); problem.CodeOf(err) != "store.schema" {
		t.Fatalf("a node on version %d: %v", version, err)
	}
	if err := testdb.Install(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if st, err = testdb.Open(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	n = upgraded(t, st, time.Now, false)
	n.ends(t)
	dead := n.deadLetters(t, 1)[0]
	if err := n.rt.Discard(t.Context(), dead.ID); err != nil {
		t.Error(err)
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
	sound(t, place)
}
