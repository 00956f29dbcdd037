package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// outage leaves in a database that no node has open what an outage leaves; with late one
// dead letter more.
func outage(ts *testscript.TestScript, _ bool, args []string) {
	ctx, c := context.Background(), config.Default()
	c.Store.URL = args[0]
	s, err := openStore(ctx, c.Store, c.Queue, "", 0, slog.New(slog.DiscardHandler))
	ts.Check(err)
	ts.Check(leaveOutage(ctx, s.Parts().Writer, len(args) > 1))
	ts.Check(s.Close())
}

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
