package main

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Whoever opens an empty node sees one run, and what it asks.
func TestAFirstLookAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	ann := atConsole(t, base)
	ann.press(http.StatusOK, "/who", url.Values{"user": {"ann"}})
	ann.page("/", "Run a small workflow")
	if page := ann.press(http.StatusOK, "/try", nil, "It runs", "welcome/first-look"); !strings.Contains(page, "<svg") {
		t.Error("it has no picture")
	}
	var task client.Task
	await.Until(t, "a task", func() (bool, any) {
		p, err := c.Tasks(t.Context(), client.TaskQuery{User: "ann"})
		if err == nil && len(p.Items) > 0 {
			task = p.Items[0]
		}
		return task.ID != "", err
	})
	ann.page("/tasks", "Hello, ann. Did you see it run?")
	ann.press(http.StatusOK, "/tasks/"+task.ID+"/claim", nil, "It is yours.", "not yet")
	ann.press(http.StatusOK, "/tasks/"+task.ID+"/complete", url.Values{"outcome": {"yes"}}, "It is done.")
	i, err := c.Instance(t.Context(), task.InstanceID)
	if err != nil || i.Status != "completed" || !strings.Contains(string(i.Output), `"yes"`) {
		t.Errorf("%+v, %v", i, err)
	}
	if page := ann.page("/"); strings.Contains(page, "Run a small workflow") {
		t.Error("it is offered beside work")
	}
	ann.press(http.StatusUnprocessableEntity, "/definitions/welcome/first-look/1.0.0/start", url.Values{"id": {"no-name"}}, "name", "Your name *")
	ann.press(http.StatusOK, "/definitions/welcome/first-look/1.0.0/start", url.Values{"id": {"bob-1"}, "field.name": {"bob"}}, "It has begun.")
}

// An instance is taken back to an earlier turn: it is shown first what that does, and not
// done when the instance has changed since.
func TestAnInstanceIsTakenBackAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	ctx := t.Context()
	if _, _, err := c.Publish(ctx, "ask.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", InstanceID: "r-1"}, 0); err != nil {
		t.Fatal(err)
	}
	tasks, err := c.Tasks(ctx, client.TaskQuery{InstanceID: "r-1"})
	if err != nil || len(tasks.Items) != 1 {
		t.Fatal(tasks, err)
	}
	if _, err := c.Claim(ctx, tasks.Items[0].ID, client.ClaimRequest{User: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Complete(ctx, tasks.Items[0].ID, client.CompleteRequest{User: "ann", Outcome: "yes"}); err != nil {
		t.Fatal(err)
	}
	olga := atConsole(t, base)
	olga.page("/instances/r-1", "Rewind", "See what it would do", "waits for the event paid")
	olga.refused(http.StatusUnprocessableEntity, "/instances/r-1/rewind?to=x", "console.entry", "r-1")
	if page := olga.refused(http.StatusNotFound, "/instances/r-1/rewind?to=99", "r-1"); strings.Contains(page, "Take it back") {
		t.Error("what is refused can be pressed")
	}
	page := olga.page("/instances/r-1/rewind?to=1", "waits for the event paid", "the turn that ends with entry", "Take it back")
	_, version, _ := strings.Cut(page, `name="version" value="`)
	version, _, _ = strings.Cut(version, `"`)
	if _, err := c.Operate(ctx, "r-1", client.OperationRequest{Operation: "suspend"}); err != nil {
		t.Fatal(err)
	}
	seen := url.Values{"version": {version}}
	olga.press(http.StatusConflict, "/instances/r-1/rewind?to=1", seen, "r-1")
	if _, err := c.Operate(ctx, "r-1", client.OperationRequest{Operation: "resume"}); err != nil {
		t.Fatal(err)
	}
	page = olga.page("/instances/r-1/rewind?to=1")
	_, version, _ = strings.Cut(page, `name="version" value="`)
	version, _, _ = strings.Cut(version, `"`)
	olga.press(http.StatusOK, "/instances/r-1/rewind?to=1", url.Values{"version": {version}}, "It was taken back", "Rewound", "waits for a person")
}

// Versions are compared, and instances migrated from one to the other: who cannot go on is
// named first.
func TestInstancesAreMigratedAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	ctx := t.Context()
	other := strings.NewReplacer("version: 1.0.0", "version: 2.0.0", "- ask:", "- inquire:").Replace(asking)
	for _, source := range []string{asking, other} {
		if _, _, err := c.Publish(ctx, "ask.yaml", []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"m-1", "m-2"} {
		if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", Version: "1.0.0", InstanceID: id}, 0); err != nil {
			t.Fatal(err)
		}
	}
	olga := atConsole(t, base)
	at := "/definitions/test/ask/1.0.0/compare/2.0.0"
	olga.page("/definitions/test/ask/1.0.0", "this one", at)
	olga.page(at, "<td>removed", "<td>added", "Migrate 2", "/do/0/ask")
	olga.press(http.StatusUnprocessableEntity, at, url.Values{"pointers": {"[]"}}, "console.json")
	olga.press(http.StatusConflict, at, nil, "/do/0/ask")
	olga.press(http.StatusOK, at, url.Values{"pointers": {`{"/do/0/ask": "/do/0/inquire"}`}}, "2 were migrated, 0 are left", "None is live in the old version")
	for _, id := range []string{"m-1", "m-2"} {
		if i, err := c.Instance(ctx, id); err != nil || i.Version != "2.0.0" {
			t.Errorf("%+v, %v", i, err)
		}
	}
	// Where the tasks have moved, what the page shows is what it sends.
	moved := strings.NewReplacer("version: 1.0.0", "version: 3.0.0", "do:\n", "do:\n  - first: {set: {a: 1}}\n").Replace(asking)
	if _, _, err := c.Publish(ctx, "ask.yaml", []byte(moved)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", Version: "1.0.0", InstanceID: "m-3"}, 0); err != nil {
		t.Fatal(err)
	}
	at = "/definitions/test/ask/1.0.0/compare/3.0.0"
	area := regexp.MustCompile(`(?s)<textarea[^>]* name="pointers"[^>]*>(.*?)</textarea>`).FindStringSubmatch(olga.page(at, "Migrate 1"))
	if area == nil || !strings.Contains(area[1], "/do/1/ask") {
		t.Fatalf("the page does not say what it would send: %q", area)
	}
	olga.press(http.StatusOK, at, url.Values{"pointers": {html.UnescapeString(area[1])}}, "1 were migrated, 0 are left")
}

// A dead letter is edited at the console, what that changes is shown, another who edits
// at the same time is told, and the edit is what is sent.
func TestADeadLetterIsEditedAtTheConsole(t *testing.T) {
	t.Parallel()
	n, c, base := running(t)
	ctx := t.Context()
	if _, _, err := c.Publish(ctx, "ask.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", InstanceID: "e-1"}, 0); err != nil {
		t.Fatal(err)
	}
	foreign := `{"signalId":"s-1","workflowInstanceId":"e-1","runtimeProvider":"old-shop","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"id":"1","source":"x","type":"paid"}}`
	if err := n.store.Parts().Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(foreign)}}}); err != nil {
		t.Fatal(err)
	}
	var id string
	await.Until(t, "a dead letter", func() (bool, any) {
		p, err := c.DeadLetters(ctx, client.DeadLetterQuery{})
		if err == nil && len(p.Items) > 0 {
			id = p.Items[0].ID
		}
		return id != "", err
	})
	olga := atConsole(t, base)
	at := "/dead-letters/" + id
	olga.page("/dead-letters?reason=signal.foreign", `href="/console`+at+`?reason=signal.foreign"`)
	olga.page(at+"?reason=signal.foreign", `action="/console`+at+`/discard?reason=signal.foreign"`)
	olga.page(at, "signal.foreign", "old-shop", "Sent instead")
	edit := url.Values{"after": {"0"}, "body": {strings.Replace(foreign, "old-shop", "aqueduct", 1)}, "why": {"the shop has moved"}}
	olga.press(http.StatusOK, at+"/edit", edit, "It is edit 1 now", "What it changes", "- /runtimeProvider &#34;old-shop&#34;\n+ /runtimeProvider &#34;aqueduct&#34;", "the shop has moved")
	olga.press(http.StatusConflict, at+"/edit", edit, "old-shop")
	olga.press(http.StatusOK, at+"/edit", url.Values{"after": {"1"}, "original": {"yes"}}, "It is edit 2 now")
	edit.Set("after", "2")
	olga.press(http.StatusOK, at+"/edit", edit, "It is edit 3 now")
	olga.press(http.StatusUnprocessableEntity, at+"/replay", nil, "console.form")
	olga.press(http.StatusConflict, at+"/discard", url.Values{"after": {"2"}, "sure": {"yes"}, "why": {"it is old"}}, "dead-letter.edited")
	olga.press(http.StatusConflict, at+"/replay", url.Values{"after": {"2"}}, "dead-letter.edited", `action="/console`+at+`/replay"><input type="hidden" name="after" value="3">`)
	olga.press(http.StatusOK, at+"/replay?reason=signal.foreign", url.Values{"after": {"3"}}, "as edit 3 has it", `name="reason" value="signal.foreign"`)
	await.Until(t, "the signal", func() (bool, any) {
		p, err := c.Stream(ctx, "e-1", 0, 100)
		return err == nil && len(p.Items) > 2, p.Items
	})
}
