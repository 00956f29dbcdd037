package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// outage leaves in a database that no node has open what an outage leaves, and holds the
// replay of the 120th; with late one dead letter more, and nothing is held.
func outage(ts *testscript.TestScript, _ bool, args []string) {
	ctx, c := context.Background(), config.Default()
	c.Store.URL = args[0]
	s, err := openStore(ctx, c.Store, c.Queue, "", 0, slog.New(slog.DiscardHandler))
	ts.Check(err)
	late := len(args) > 1
	ts.Check(leaveOutage(ctx, s.Parts().Writer, late))
	ts.Check(s.Close())
	db, err := testdb.SQL(strings.TrimPrefix(args[0], "sqlite://"))
	ts.Check(err)
	defer db.Close()
	statement := holdOne
	if late {
		statement = "drop trigger HELD"
	}
	_, err = db.ExecContext(ctx, statement)
	ts.Check(err)
}

// holdOne keeps the replay of one dead letter of the first kind from its end for longer than
// midway needs to kill the node.
const holdOne = `create trigger HELD before delete on WF_DEAD_LETTERS when old.DEAD_LETTER_ID = 'l-120' begin
  select count(*) from (with recursive C(N) as (select 1 union all select N + 1 from C where N < 10000000000) select N from C);
end`

// leaveOutage leaves 500 dead letters of five kinds. Of each start of shop/order the
// business key is its number. With late it leaves one more instead, l-999, of the first
// kind.
func leaveOutage(ctx context.Context, w store.Writer, late bool) error {
	died := time.Now().Add(-2 * time.Hour)
	n := 0
	dead := func(count int, reason, detail string, envelope func(i int) ([]byte, error)) error {
		for i := range count {
			body, err := envelope(i)
			if err != nil {
				return err
			}
			if err := w.Commit(ctx, store.Change{DeadLetter: &projections.DeadLetter{
				ID: fmt.Sprintf("l-%03d", n), Queue: string(store.Signals), Reason: reason, Detail: detail, Envelope: body,
				Attempts: 5, Node: "n0", DiedAt: died.Add(time.Duration(n) * time.Second),
			}}); err != nil {
				return err
			}
			n++
		}
		return nil
	}
	text := func(format string) func(int) ([]byte, error) {
		return func(i int) ([]byte, error) { return fmt.Appendf(nil, format, i), nil }
	}
	if late {
		n = 999
		return dead(1, "definition.unknown", "definition shop/order is not published", func(int) ([]byte, error) { return []byte("late"), nil })
	}
	return errors.Join(
		dead(250, "definition.unknown", "definition shop/order is not published", func(i int) ([]byte, error) {
			body, err := json.Marshal(signal.Start{Definition: "shop/order", BusinessKey: fmt.Sprint("order-", i), StartKey: fmt.Sprint(i)})
			if err != nil {
				return nil, err
			}
			env := signal.Envelope{SignalID: fmt.Sprint("start-", i), InstanceID: fmt.Sprint("i-", i), RuntimeProvider: signal.Provider, Type: signal.StartRequest, OccurredAt: died, Payload: body}
			return env.Encode()
		}),
		dead(100, "signal.not-json", "this is no envelope", text("garbage %d")),
		dead(60, "signal.foreign", "the runtime provider is old-shop", text(`{"n":%d}`)),
		dead(50, "signal.foreign", "the runtime provider is new-shop", text(`{"n":%d}`)),
		dead(40, "instance.unknown", "instance x does not exist", text(`{"n":%d}`)))
}

// midway kills a node when it has done a part of a plan, whose id is in a file.
func midway(ts *testscript.TestScript, _ bool, args []string) {
	id := strings.TrimSpace(ts.ReadFile(args[1]))
	var w await.Wait
	for {
		answer, err := http.Get(ts.Getenv("AQUEDUCT_SERVER") + "/v1/bulk/" + id)
		ts.Check(err)
		var p client.BulkPlan
		ts.Check(json.NewDecoder(answer.Body).Decode(&p))
		answer.Body.Close()
		switch {
		case p.Open == 0:
			ts.Fatalf("plan %s is over already", id)
		case p.Done > 0:
			_ = end(ts, args[:1], os.Kill)
			return
		case !w.Again(time.Millisecond, p.Status):
			ts.Fatalf("plan %s does not begin: %s", id, p.Status)
		}
	}
}

// TestARunThatSomebodyStopsIsNotDone: what is open is said, and the command fails.
func TestARunThatSomebodyStopsIsNotDone(t *testing.T) {
	t.Parallel()
	asked := 0
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := []string{"running", "stopped"}[min(asked, 1)]
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"p","operation":"retry","status":%q,"asked":{"operation":"retry"},"planned":5,"done":2,"open":3}`, status)
	}))
	defer node.Close()
	var out, complaints bytes.Buffer
	code := Run(t.Context(), []string{"--server", node.URL, "bulk", "run", "p"}, nil, &out, &complaints)
	if code != exitConflict || asked != 2 || !strings.Contains(complaints.String(), "3 of its 5 items are open [bulk.stopped]") {
		t.Errorf("%d after %d requests: %s%s", code, asked, &out, &complaints)
	}
}

// TestARunThatIsInterruptedStopsItsPlan: ^C, or SIGTERM, has nobody go on with it, and says what is open.
func TestARunThatIsInterruptedStopsItsPlan(t *testing.T) {
	t.Parallel()
	for _, by := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		runs, stopped := make(chan struct{}, 1), false
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			if strings.HasSuffix(r.URL.Path, "/run") {
				runs <- struct{}{}
				<-r.Context().Done() // a step that is under way
				return
			}
			stopped = r.Method == http.MethodPost && r.URL.Path == "/v1/bulk/p/stop"
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":"p","operation":"retry","status":"stopped","asked":{"operation":"retry"},"planned":5,"done":2,"open":3}`)
		}))
		var complaints bytes.Buffer
		command := exec.CommandContext(t.Context(), "engine-node", "--server", node.URL, "bulk", "run", "p")
		command.Stderr = &complaints
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		select {
		case <-runs:
			if err := command.Process.Signal(by); err != nil {
				t.Error(err)
			}
			<-ended // its status says how
		case err := <-ended:
			t.Errorf("it has run nothing: %v", err)
		}
		node.Close()
		if code := command.ProcessState.ExitCode(); code != exitConflict || !stopped || !strings.Contains(complaints.String(), "3 of its 5 items are open [bulk.stopped]") {
			t.Errorf("%s: %d, stopped %t: %s", by, code, stopped, &complaints)
		}
	}
}

// TestMuchIsDiscardedForAReason: who is known says why they discard many, as they do of one:
// when it is planned, and of a plan that has no reason when it is run.
func TestMuchIsDiscardedForAReason(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Store.URL = "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	n, err := wire(t.Context(), c, "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	if err := leaveOutage(t.Context(), n.store.Parts().Writer, false); err != nil {
		t.Fatal(err)
	}
	known := principal.Principal{Name: "olga", Kind: principal.Token, Via: principal.API, Roles: []string{"operator"}}
	ask := func(who principal.Principal, path, body, reason string) (p client.BulkPlan, refused string) {
		t.Helper()
		r := httptest.NewRequest("POST", "http://127.0.0.1"+path, strings.NewReader(body)).WithContext(principal.With(t.Context(), who))
		r.Header.Set("Content-Type", "application/json")
		if reason != "" {
			r.Header.Set("X-Aqueduct-Reason", reason)
		}
		w := httptest.NewRecorder()
		n.handler.ServeHTTP(w, r)
		var told struct {
			Code string `json:"code"`
		}
		var answer any = &p
		if w.Code >= 300 {
			answer = &told
		}
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatal(w.Code, w.Body)
		}
		return p, told.Code
	}
	discard := `{"operation":"discard","errorCode":"signal.not-json","limit":3}`
	if _, refused := ask(known, "/v1/bulk", discard, ""); refused != "dead-letter.reason" {
		t.Error("planned: " + refused)
	}
	if _, refused := ask(known, "/v1/bulk", strings.Replace(discard, "discard", "replay", 1), ""); refused != "" {
		t.Error("a replay: " + refused)
	}
	p, _ := ask(known, "/v1/bulk", discard, "CHG-17")
	if p, refused := ask(known, "/v1/bulk/"+p.ID+"/run", `{"begin":true}`, ""); refused != "" || p.Done != 3 { // the plan has one
		t.Errorf("run: %q %+v", refused, p)
	}
	p, refused := ask(principal.Principal{Kind: principal.Node}, "/v1/bulk", discard, "") // of a program, which needs none
	if refused != "" {
		t.Fatal(refused)
	}
	for _, begin := range []string{`{"begin":true}`, `{}`} {
		if p, refused := ask(known, "/v1/bulk/"+p.ID+"/run", begin, ""); begin != "{}" && refused != "dead-letter.reason" || p.Done != 0 {
			t.Errorf("run %s: %q %+v", begin, refused, p)
		}
	}
	if p, refused = ask(known, "/v1/bulk/"+p.ID+"/run", `{"begin":true}`, "CHG-18"); refused != "" || p.Done != 3 {
		t.Errorf("run for a reason: %q %+v", refused, p)
	}
}
