// Package examples holds workflows to try, and runs them all in its tests.
package examples

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	checkout "github.com/aqueduct-engine/aqueduct/examples/group-checkout"
	fine "github.com/aqueduct-engine/aqueduct/examples/traffic-fine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// outside is the program services, running.
type outside struct{ url string }

func services(t *testing.T) outside {
	t.Helper()
	program := filepath.Join(t.TempDir(), "services")
	if out, err := exec.Command("go", "build", "-o", program, "./services").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-addr", "127.0.0.1:0")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var line struct{ Address string }
	raw, err := bufio.NewReader(pipe).ReadBytes('\n')
	if err != nil || json.Unmarshal(raw, &line) != nil {
		t.Fatalf("services said %q, %v", raw, err)
	}
	return outside{line.Address}
}

func (o outside) put(t *testing.T, path, body string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPut, o.url+path, strings.NewReader(body)) // a sound URL
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s: %s", path, resp.Status)
	}
}

// count returns effects and attempts of one instance of a node, by path.
func (o outside) count(t *testing.T, n node, id string) string {
	t.Helper()
	s, err := n.Snapshot(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(o.url + "/effects")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	var e struct {
		Keys []struct {
			Key, Path         string
			Attempts, Effects int
		}
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	var lines []string
	for _, k := range e.Keys {
		if strings.HasPrefix(k.Key, s.Incarnation+"/") {
			lines = append(lines, fmt.Sprintf("%s %d/%d", k.Path, k.Effects, k.Attempts))
		}
	}
	return strings.Join(lines, ", ")
}

// node is a node with all examples published.
type node struct {
	*runtime.Runtime
	store *testdb.Database
}

func serve(t *testing.T, place string) node {
	t.Helper()
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	cat := definition.New(st, openworkflow.Parsers(), time.Now)
	files := documents(t)
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := cat.Publish(t.Context(), f, source); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []func() (*workflow.Definition, error){fine.Workflow, checkout.Workflow} {
		def, err := made()
		if err == nil {
			_, err = cat.PublishCode(t.Context(), def)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	performer := activity.New(activity.Config{Policy: activity.Policy{MaxAttempts: 4, Initial: 5 * time.Millisecond}})
	rt, err := runtime.New(t.Context(), runtime.Config{Store: st.Parts, Definitions: cat, Performer: performer, Now: time.Now, BreakAfter: 100})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		performer.Close()
	})
	return node{rt, st}
}

// documents are the definitions of all examples.
func documents(t *testing.T) []string {
	t.Helper()
	workflows, _ := filepath.Glob("*/workflow.yaml")
	lifecycles, _ := filepath.Glob("*/lifecycle.json")
	if len(workflows) < 3 || len(lifecycles) < 1 {
		t.Fatalf("only %v, %v", workflows, lifecycles)
	}
	return append(workflows, lifecycles...)
}

// start begins an example on its own input, with some fields changed.
func (n node) start(t *testing.T, example string, change map[string]any) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(strings.TrimSuffix(example, "-go"), "input.json"))
	if err != nil {
		t.Fatal(err)
	}
	var input map[string]any
	if err := json.Unmarshal(raw, &input); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		input[k] = v
	}
	raw, _ = json.Marshal(input) // was JSON
	id, _, err := n.Start(t.Context(), "", signal.Start{Definition: "examples/" + example, Input: raw}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// until waits for a state of an instance.
func (n node) until(t *testing.T, id string, ok func(snapshot.Snapshot) bool) snapshot.Snapshot {
	t.Helper()
	var w await.Wait
	for {
		s, err := n.Snapshot(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if ok(s) {
			return s
		}
		if s.Status == snapshot.Faulted || !w.Again(2*time.Millisecond, s.Version) {
			t.Fatalf("%s: %s, %+v", id, s.Status, s.Error)
		}
	}
}

func (n node) output(t *testing.T, id string) string {
	t.Helper()
	s := n.until(t, id, func(s snapshot.Snapshot) bool { return s.Status == snapshot.Completed })
	return string(s.State.Output)
}

func waitsFor(kind snapshot.WaitKind) func(snapshot.Snapshot) bool {
	return func(s snapshot.Snapshot) bool {
		w, ok := s.Primary()
		return ok && w.Kind == kind
	}
}

func TestLoanApproval(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		world, n := services(t), serve(t, fresh())
		atOnce := n.start(t, "loan-approval", map[string]any{"services": world.url, "amount": 10})
		if out := n.output(t, atOnce); !strings.Contains(out, `"decidedBy":"score","decision":"approved"`) {
			t.Errorf("excellent score: %s", out)
		}
		world.put(t, "/control/scoring", `{"fail": 2, "status": 503}`)
		failing := n.start(t, "loan-approval", map[string]any{"services": world.url})
		n.officer(t, failing, "rejected")
		if out := n.output(t, failing); !strings.Contains(out, `"decidedBy":"olga","decision":"rejected","score":697`) {
			t.Errorf("failing service: %s", out)
		}
		if got := world.count(t, n, failing); got != "/notifications 1/1, /scoring 1/3" {
			t.Errorf("effects: %s", got)
		}
		world.put(t, "/control/scoring", `{"fail": -1, "status": 404}`)
		unknown := n.start(t, "loan-approval", map[string]any{"services": world.url})
		n.officer(t, unknown, "approved")
		if out := n.output(t, unknown); !strings.Contains(out, `"decision":"approved","score":0`) {
			t.Errorf("service gone: %s", out)
		}
	})
}

// officer claims and completes the only open task of an instance.
func (n node) officer(t *testing.T, id, outcome string) {
	t.Helper()
	s := n.until(t, id, waitsFor(snapshot.WaitTask))
	w, _ := s.Primary()
	if until := w.Until; !until.IsZero() {
		t.Errorf("the task itself has a due time: %s", until)
	}
	if _, err := n.ClaimTask(t.Context(), w.TaskID, "ada", []string{"loan-officers"}); err == nil {
		t.Error("the applicant may decide on herself")
	}
	if _, err := n.ClaimTask(t.Context(), w.TaskID, "olga", []string{"loan-officers"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.CompleteTask(t.Context(), w.TaskID, "olga", nil, outcome, nil); err != nil {
		t.Fatal(err)
	}
}

// inBoth tests an example on both stores, as a document and as a workflow in Go.
func inBoth(t *testing.T, example string, test func(t *testing.T, example string, fresh func() string)) {
	for _, name := range []string{example, example + "-go"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, fresh func() string) { test(t, name, fresh) })
		})
	}
}

func TestTrafficFine(t *testing.T) {
	t.Parallel()
	inBoth(t, "traffic-fine", func(t *testing.T, example string, fresh func() string) {
		world, n := services(t), serve(t, fresh())
		mine := n.start(t, example, map[string]any{"services": world.url})
		other := n.start(t, example, map[string]any{"services": world.url, "policeReport": "PR-1"})
		n.until(t, mine, waitsFor(snapshot.WaitEvent))
		n.until(t, other, waitsFor(snapshot.WaitEvent))
		event, err := os.ReadFile("traffic-fine/event.json")
		if err != nil {
			t.Fatal(err)
		}
		for want := 1; want >= 0; want-- { // the event is published twice
			if got, err := n.PublishEvent(t.Context(), event, nil); err != nil || want == 1 && got != 1 {
				t.Errorf("reached %d, %v", got, err)
			}
			if out := n.output(t, mine); !strings.Contains(out, `"manualCode":"MC-7"`) || !strings.Contains(out, `"fine":{`) {
				t.Errorf("output %s", out)
			}
		}
		if got := world.count(t, n, mine); got != "/fines/issue 1/1, /fines/system-number 1/1" {
			t.Errorf("effects: %s", got)
		}
		if s, err := n.Snapshot(t.Context(), other); err != nil || s.Status != snapshot.Waiting {
			t.Errorf("the other fine: %s, %v", s.Status, err)
		}
	})
}

func TestGroupCheckout(t *testing.T) {
	t.Parallel()
	inBoth(t, "group-checkout", func(t *testing.T, example string, fresh func() string) {
		world, n := services(t), serve(t, fresh())
		world.put(t, "/control/checkout/grace", `{"fail": -1, "status": 402}`)
		world.put(t, "/control/checkout/edsger", `{"fail": 2, "status": 503}`)
		id := n.start(t, example, map[string]any{"services": world.url})
		var out struct {
			Status     string
			CheckedOut []string
			Failed     []struct{ Guest string }
		}
		if err := json.Unmarshal([]byte(n.output(t, id)), &out); err != nil {
			t.Fatal(err)
		}
		if out.Status != "failed" || fmt.Sprint(out.CheckedOut) != "[ada edsger barbara]" || len(out.Failed) != 1 || out.Failed[0].Guest != "grace" {
			t.Errorf("output %+v", out)
		}
		all := n.start(t, example, map[string]any{"services": world.url, "guests": []string{"ada", "barbara"}})
		if got := n.output(t, all); !strings.Contains(got, `"status":"completed"`) {
			t.Errorf("output %s", got)
		}
	})
}

// trigger gives an event to the claim C-1, by its name or code.
func (n node) trigger(t *testing.T, world outside, request, event, actor, data string) (string, error) {
	t.Helper()
	input, _ := json.Marshal(map[string]string{"services": world.url, "policy": "P-77"})
	id, _, _, err := n.StartOrSignal(t.Context(), "", signal.Start{
		Definition: "examples/insurance-claim", BusinessKey: "C-1", StartKey: signal.LifecycleKey, Input: input,
		Signal: &signal.FirstSignal{ID: request, Type: event, Data: json.RawMessage(data), Actor: actor},
	}, nil)
	return id, err
}

func TestInsuranceClaim(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		world, n := services(t), serve(t, fresh())
		if _, err := n.trigger(t, world, "r-0", "accept", "olga", `{}`); problem.CodeOf(err) != "lifecycle.refused" {
			t.Errorf("accepted before it is assessed: %v", err)
		}
		id, err := n.trigger(t, world, "r-1", "assess", "ann", `{"amount": 7000}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.trigger(t, world, "r-2", "accept", "olga", `{}`); problem.CodeOf(err) != "lifecycle.refused" {
			t.Errorf("accepted by one: %v", err)
		}
		for range 2 { // a request may be repeated
			if _, err := n.trigger(t, world, "r-3", "200", "olga", `{"second": "edsger"}`); err != nil {
				t.Error(err)
			}
		}
		n.until(t, id, func(s snapshot.Snapshot) bool {
			w, ok := s.Primary()
			return ok && w.Kind == snapshot.WaitState && w.Pointer == "/states/Accepted"
		})
		if _, err := n.trigger(t, world, "r-4", "settle", "accounts", `{}`); err != nil {
			t.Error(err)
		}
		if out := n.output(t, id); !strings.Contains(out, `"amount":7000,"by":"olga","policy":"P-77"`) {
			t.Errorf("output %s", out)
		}
		n.accounts(t, id)
		if got := world.count(t, n, id); got != "/effects/accounts 1/1, /effects/transfers 1/1" {
			t.Errorf("effects: %s", got)
		}
	})
}

// accounts acknowledges the delivery to the consumer of that name, which is
// pending until then though the instance is completed (D5).
func (n node) accounts(t *testing.T, id string) {
	t.Helper()
	var w await.Wait
	for {
		entries, err := n.store.Streams.Stream(t.Context(), id, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(entries, func(e projections.Entry) bool {
			return e.Kind == "command" && bytes.Contains(e.Metadata, []byte("/policies/0/accounts"))
		})
		if i < 0 || entries[i].DeliveredAt.IsZero() {
			if !w.Again(2*time.Millisecond, len(entries)) {
				t.Fatalf("not delivered: %+v", entries)
			}
			continue
		}
		if *entries[i].Processed {
			t.Error("delivered is not processed")
		}
		for _, want := range []engine.Disposition{engine.Applied, engine.Duplicate} {
			got, err := n.Acknowledge(t.Context(), id, entries[i].Position, ack.Ack{Outcome: ack.Processed})
			if got != want || err != nil {
				t.Errorf("acknowledged: %s, %v; want %s", got, err, want)
			}
		}
		return
	}
}

func TestEveryExampleHasInputAndParagraph(t *testing.T) {
	t.Parallel()
	for _, f := range documents(t) {
		dir := filepath.Dir(f)
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil || len(bytes.Fields(readme)) < 30 {
			t.Errorf("%s has no paragraph: %v", dir, err)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, "input.json")); err != nil || !json.Valid(raw) {
			t.Errorf("%s has no input: %v", dir, err)
		}
	}
}
