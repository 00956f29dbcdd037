package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// countedRows counts what the API reads of instances.
type countedRows struct {
	backend.InstanceReader
	backend.StreamReader
	instances, pending atomic.Int64
}

func (a *countedRows) Instance(ctx context.Context, id string) (projections.Instance, error) {
	a.instances.Add(1)
	return a.InstanceReader.Instance(ctx, id)
}

func (a *countedRows) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	a.pending.Add(1)
	return a.StreamReader.Pending(ctx, id, limit)
}

// countedSnapshots counts those that the API has read.
type countedSnapshots struct {
	api.Operator
	read atomic.Int64
}

func (s *countedSnapshots) Snapshot(ctx context.Context, id string) (snapshot.Snapshot, error) {
	s.read.Add(1)
	return s.Operator.Snapshot(ctx, id)
}

// counted is the API of a node, which counts what it reads.
func counted(t *testing.T, n *node) (*client.Client, *countedRows, *countedSnapshots) {
	t.Helper()
	parts := n.store.Parts()
	a, s := &countedRows{InstanceReader: parts.Instances, StreamReader: parts.Streams}, &countedSnapshots{Operator: n.runtime}
	read := rows(parts)
	read.Instances, read.Streams = a, a
	h, err := api.New(api.Config{
		Starter: n.runtime, Signaller: n.runtime, Tasks: n.runtime, Commenter: n.runtime, Operator: s, Acknowledger: n.runtime, DeadLetters: n.runtime,
		Dispatcher: n.runtime, Publisher: n.catalogue, Migrator: n.runtime, Definitions: n.store, Reader: read,
		Ready: parts.Prober.Probe, Now: parts.Clock.Now,
		Tokens: access.NewTokens(parts.Tokens, parts.Clock.Now, n.log), Auditor: &audit.Log{Writer: parts.Writer, Now: parts.Clock.Now}, Activities: &service.Activities{Activities: parts.Activities, Clock: parts.Clock}, Past: n.past, Bulk: &service.Bulk{},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cl, err := client.New(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return cl, a, s
}

const parking = `document: {dsl: '1.0.3', namespace: test, name: park, version: 1.0.0}
do:
  - called: {call: http, with: {method: get, endpoint: 'http://127.0.0.1:1/'}}
`

const going = `document: {dsl: '1.0.3', namespace: test, name: go, version: 1.0.0}
do:
  - made: {set: {n: '${ .n }'}}
  - goes: {listen: {to: {one: {with: {type: go}}}}}
  - slept: {wait: PT0.05S}
`

// TestStartIsAnsweredFromMemory: what a start answers is what a look at the instance shows,
// and nothing is read for it.
func TestStartIsAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	n, _, _ := running(t)
	c, read, snaps := counted(t, n)
	for _, d := range []string{parking, going, asking} {
		if _, _, err := c.Publish(t.Context(), "d.yaml", []byte(d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []client.StartRequest{
		{Definition: "test/go", Input: json.RawMessage(`{"n":1.50}`)},
		{Definition: "test/ask", InstanceID: "i-1", BusinessKey: "b", StartKey: "s", KeyParts: map[string]string{"p": "1"}},
		{Definition: "test/ask", BusinessKey: "b", StartKey: "other"},
		{Definition: "test/park"},
	} {
		got, created, err := c.Start(t.Context(), r, 0)
		if err != nil || !created {
			t.Fatalf("%s: %t %v", r.Definition, created, err)
		}
		if i, p, s := read.instances.Load(), read.pending.Load(), snaps.read.Load(); i+p+s != 0 {
			t.Errorf("%s: %d rows, %d lists of commands and %d snapshots were read for the answer", r.Definition, i, p, s)
		}
		if r.Definition == "test/park" { // the call goes on meanwhile
			if len(got.Commands) != 1 || got.Commands[0].ClaimedBy != "n1" || got.Commands[0].Key == "" || got.Commands[0].Target == "" || len(got.Waits) != 1 {
				t.Errorf("%+v", got)
			}
			continue
		}
		shown, err := c.Instance(t.Context(), got.ID)
		if err != nil || !reflect.DeepEqual(got, shown) {
			t.Errorf("%s: answered\n%+v\nshown %v\n%+v", r.Definition, got, err, shown)
		}
		read.instances.Store(0)
		read.pending.Store(0)
		snaps.read.Store(0)
	}
}

// TestWaitIsToldByTheCommit: who waits for an instance that this node brings to its end is
// told of it, and its row is looked at meanwhile by nobody else.
func TestWaitIsToldByTheCommit(t *testing.T) {
	t.Parallel()
	n, _, _ := running(t)
	c, _, snaps := counted(t, n)
	if _, _, err := c.Publish(t.Context(), "d.yaml", []byte(going)); err != nil {
		t.Fatal(err)
	}
	read := int64(0)
	for k := range 50 { // on a busy machine a look at the row may see the end before the commit has told of it
		snaps.read.Store(0)
		toldOnce(t, c, fmt.Sprint("k", k))
		if read = snaps.read.Load(); read <= 1 { // of the caller who found it
			return
		}
	}
	t.Errorf("%d snapshots were read", read)
}

// toldOnce has two callers wait for one instance, and both told of its end alike.
func toldOnce(t *testing.T, c *client.Client, key string) {
	t.Helper()
	type end struct {
		d   client.InstanceDetail
		err error
	}
	ends := make(chan end, 2)
	go func() {
		d, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/go", StartKey: key, Input: json.RawMessage(`{"n":1}`)}, time.Minute)
		ends <- end{d, err}
	}()
	var id string
	await.Until(t, "the instance waits", func() (bool, any) {
		p, err := c.Instances(t.Context(), client.InstanceQuery{Definition: "test/go", Status: "waiting"})
		if len(p.Items) == 1 {
			id = p.Items[0].ID
		}
		return id != "", err
	})
	go func() { // another caller, whose start finds it
		d, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/go", StartKey: key}, time.Minute)
		ends <- end{d, err}
	}()
	if _, err := c.Signal(t.Context(), id, client.SignalRequest{Type: "go"}); err != nil {
		t.Fatal(err)
	}
	shown := client.InstanceDetail{}
	for range 2 {
		e := <-ends
		if e.err != nil || e.d.Status != "completed" || e.d.EndedAt.IsZero() || e.d.ID != id {
			t.Fatalf("%+v %v", e.d, e.err)
		}
		if shown.ID != "" && !reflect.DeepEqual(e.d, shown) {
			t.Errorf("one was told\n%+v\nthe other\n%+v", e.d, shown)
		}
		shown = e.d
	}
}

// TestWaitSeesAnotherNodesCommit: an instance that another node brings to its end is seen by
// the look at its row.
func TestWaitSeesAnotherNodesCommit(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Store.URL = "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	idle, err := wire(t.Context(), c, "idle", slog.New(slog.DiscardHandler)) // it never works
	if err != nil {
		t.Fatal(err)
	}
	defer idle.close()
	cl, _, _ := counted(t, idle)
	if _, _, err := cl.Publish(t.Context(), "d.yaml", []byte(going)); err != nil {
		t.Fatal(err)
	}
	works, err := wire(t.Context(), c, "works", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer works.close()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- works.runtime.Run(ctx) }()
	defer func() { stop(); <-done }()
	d, created, err := cl.Start(t.Context(), client.StartRequest{
		Definition: "test/go", Input: json.RawMessage(`{"n":1}`), Signal: &client.SignalRequest{Type: "go"},
	}, time.Minute)
	if err != nil || !created || d.Status != "completed" {
		t.Fatalf("%+v %t %v", d, created, err)
	}
}
