package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// running is a wired node at work, its client, and its address.
func running(t *testing.T) (*node, *client.Client, string) {
	t.Helper()
	return runningOn(t, filepath.Join(t.TempDir(), "a.db"))
}

// runningOn is one on a file.
func runningOn(t *testing.T, file string) (*node, *client.Client, string) {
	t.Helper()
	c := config.Default()
	c.Store.URL = "sqlite://" + file
	n, err := wire(t.Context(), c, "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.runtime.Run(ctx) }()
	server := httptest.NewServer(n.handler)
	t.Cleanup(func() {
		server.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		n.close()
	})
	cl, err := client.New(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	cl.Actor = "ann"
	return n, cl, server.URL
}

func refused(t *testing.T, err error, code string, kind problem.Kind) {
	t.Helper()
	if problem.CodeOf(err) != code || problem.KindOf(err) != kind {
		t.Errorf("got %v, want %s (%s)", err, code, kind)
	}
}

const asking = `document: {dsl: '1.0.3', namespace: test, name: ask, version: 1.0.0, title: Ask}
do:
  - ask:
      call: humanTask
      with: {title: Approve, candidateUsers: [ann], outcomes: [yes, no]}
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
`

// TestEveryOperation goes through the API as a program does.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	_, c, url := running(t)
	ctx := t.Context()

	d, created, err := c.Publish(ctx, "ask.yaml", []byte(asking))
	if err != nil || !created || d.Name != "test/ask" || d.Title != "Ask" || len(d.Digest) != 64 {
		t.Fatalf("%+v %t %v", d, created, err)
	}
	source, err := c.Source(ctx, "test/ask", "1.0.0")
	if err != nil || string(source) != asking {
		t.Errorf("%q %v", source, err)
	}
	_, err = c.Source(ctx, "test/ask", "9")
	refused(t, err, "definition.unknown", problem.NotFound)
	if p, err := c.Definitions(ctx, client.List{Limit: 1}); err != nil || len(p.Items) != 1 || p.Next != "test/ask@1.0.0" {
		t.Errorf("%+v %v", p, err)
	}

	i, created, err := c.Start(ctx, client.StartRequest{
		Definition: "test/ask", BusinessKey: "k", KeyParts: map[string]string{"part": "1"}, StartKey: "s", Input: json.RawMessage(`{"n":1.50}`),
	}, 0)
	if err != nil || !created || i.Status != "waiting" || i.State != "ask" || len(i.Waits) != 1 || string(i.Input) != `{"n":1.50}` {
		t.Fatalf("%+v %t %v", i, created, err)
	}
	if again, created, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", BusinessKey: "k", StartKey: "s"}, 50*time.Millisecond); err != nil || created || again.ID != i.ID {
		t.Errorf("%+v %t %v", again, created, err)
	}
	if p, err := c.Instances(ctx, client.InstanceQuery{Definition: "test/ask", Status: "waiting", BusinessKey: "k"}); err != nil || len(p.Items) != 1 || p.Items[0].ID != i.ID {
		t.Errorf("%+v %v", p, err)
	}

	id := tasksOf(t, c, i.ID)
	_, err = c.Signal(ctx, i.ID, client.SignalRequest{Type: "paid", Data: json.RawMessage(`2`), SignalID: "s-1"}) // before its wait: kept
	if err != nil {
		t.Fatal(err)
	}
	done, err := c.Complete(ctx, id, client.CompleteRequest{User: "ann", Outcome: "yes"})
	if err != nil || done.Status != "completed" || done.CompletedBy != "ann" || len(done.Events) < 3 {
		t.Fatalf("%+v %v", done, err)
	}
	end, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", BusinessKey: "k", StartKey: "s"}, time.Minute)
	if err != nil || end.Status != "completed" || string(end.Output) != "[2]" || end.EndedAt.IsZero() {
		t.Fatalf("%+v %v", end, err)
	}
	all, err := stream(ctx, c, i.ID)
	if entries := all.Items; err != nil || len(entries) < 4 || entries[0].Type != "InstanceStarted" || entries[0].Actor != "ann" || all.Next != "" {
		t.Errorf("%+v %v", all, err)
	}
	_, err = c.Operate(ctx, i.ID, client.OperationRequest{Operation: "cancel"})
	refused(t, err, "instance.closed", problem.Conflict)
	if n, err := c.Event(ctx, []byte(`{"specversion":"1.0","id":"1","source":"s","type":"paid"}`)); n != 0 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if q, err := c.Queues(ctx); err != nil || len(q) != 3 {
		t.Errorf("%+v %v", q, err)
	}
	tokensStay(t, url, i.ID)
}

// tasksOf claims, releases and claims the task of an instance.
func tasksOf(t *testing.T, c *client.Client, instance string) string {
	t.Helper()
	ctx := t.Context()
	p, err := c.Tasks(ctx, client.TaskQuery{InstanceID: instance, User: "ann", Groups: []string{"a", "b"}})
	if err != nil || len(p.Items) != 1 || p.Items[0].Title != "Approve" {
		t.Fatalf("%+v %v", p, err)
	}
	id := p.Items[0].ID
	_, err = c.Claim(ctx, id, client.ClaimRequest{User: "bob"})
	refused(t, err, "task.denied", problem.Denied)
	if _, err = c.Claim(ctx, id, client.ClaimRequest{User: "ann"}); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Release(ctx, id, client.ReleaseRequest{User: "ann"}); err != nil || r.Status != "ready" || r.Assignee != "" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err = c.Claim(ctx, id, client.ClaimRequest{User: "ann"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Complete(ctx, id, client.CompleteRequest{User: "ann", Outcome: "perhaps"})
	refused(t, err, "task.invalid-outcome", problem.Invalid)
	if d, err := c.Task(ctx, id); err != nil || d.Assignee != "ann" {
		t.Errorf("%+v %v", d, err)
	}
	_, err = c.Task(ctx, "none")
	refused(t, err, "task.unknown", problem.NotFound)
	return id
}

// tokensStay looks for the word in everything an instance shows.
func tokensStay(t *testing.T, url, id string) {
	t.Helper()
	for _, path := range []string{"/v1/instances/" + id, "/v1/instances/" + id + "/stream", "/v1/tasks", "/v1/instances"} {
		if body := fetch(t, url+path); strings.Contains(strings.ToLower(body), "token") {
			t.Errorf("%s shows a token: %s", path, body)
		}
	}
	for path, want := range map[string]string{
		"/healthz": "live", "/readyz": "ready", "/openapi.json": `"openapi":"3.1.0"`, "/v1/definitions/test/ask": `"version":"1.0.0"`,
		"/v1/definitions/test/ask/1.0.0": `"kind":"openworkflow"`,
		"/metrics":                       `aqueduct_http_requests_total{class="2xx",route="GET /v1/instances/{id}"}`,
	} {
		if body := fetch(t, url+path); !strings.Contains(body, want) {
			t.Errorf("%s has no %s: %s", path, want, body)
		}
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: %d %v %s", url, res.StatusCode, err, b)
	}
	return string(b)
}

func TestDeadLettersTravelByteForByte(t *testing.T) {
	t.Parallel()
	n, c, _ := running(t)
	ctx := t.Context()
	body := []byte("no envelope \xff")
	if err := n.store.Parts().Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
		t.Fatal(err)
	}
	var id string
	for w := new(await.Wait); id == ""; {
		p, err := c.DeadLetters(ctx, client.DeadLetterQuery{Queue: "signal", Reason: "signal.not-utf8"})
		if err != nil || !w.Again(time.Millisecond, len(p.Items)) {
			t.Fatalf("%+v %v", p, err)
		}
		if len(p.Items) == 1 {
			id = p.Items[0].ID
		}
	}
	if d, err := c.DeadLetter(ctx, id); err != nil || string(d.Envelope) != string(body) || d.Text != "" || d.Node != "n1" {
		t.Errorf("%+v %v", d, err)
	}
	if err := c.Discard(ctx, id); err != nil {
		t.Error(err)
	}
	refused(t, c.Discard(ctx, id), "dead-letter.unknown", problem.NotFound)
	_, replayed := c.Replay(ctx, id)
	refused(t, replayed, "dead-letter.unknown", problem.NotFound)
	_, err := c.DeadLetter(ctx, id)
	refused(t, err, "dead-letter.unknown", problem.NotFound)
}

// TestManyStartsWithOneKeyAreOne starts the same thing from many sides.
func TestManyStartsWithOneKeyAreOne(t *testing.T) {
	t.Parallel()
	_, c, _ := running(t)
	if _, _, err := c.Publish(t.Context(), "ask.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	const callers = 16
	type result struct {
		id      string
		created bool
		err     error
	}
	results := make(chan result, callers)
	for range callers {
		go func() {
			i, created, err := c.Start(t.Context(), client.StartRequest{Definition: "test/ask", StartKey: "one"}, 0)
			results <- result{i.ID, created, err}
		}()
	}
	ids, made := map[string]bool{}, 0
	for range callers {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		}
		ids[r.id] = true
		if r.created {
			made++
		}
	}
	if len(ids) != 1 || made != 1 {
		t.Errorf("%d instances, %d created", len(ids), made)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &page{now: func() time.Time { return now }}
	got := ""
	for _, d := range []time.Duration{0, time.Second, 90 * time.Second, 3 * time.Minute, 25 * time.Hour, -71*time.Hour - 59*time.Minute} {
		got += fmt.Sprintln(p.ago(now.Add(-d)))
	}
	if want := "0 s ago\n1 s ago\n90 s ago\n3 min ago\n25 h ago\nin 3 d\n"; got != want || p.ago(time.Time{}) != "" {
		t.Errorf("got\n%s", got)
	}
}
