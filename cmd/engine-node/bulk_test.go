package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// outage leaves in a database what an outage leaves: 500 dead letters of five kinds. Of
// each start of shop/order the business key is its number. With late it leaves one more,
// l-999, of the first kind.
func outage(ts *testscript.TestScript, _ bool, args []string) {
	ctx, c := context.Background(), config.Default()
	c.Store.URL = args[0]
	s, err := openStore(ctx, c.Store, c.Queue, "", 0, slog.New(slog.DiscardHandler))
	ts.Check(err)
	died := time.Now().Add(-2 * time.Hour)
	n := 0
	dead := func(count int, reason, detail string, envelope func(i int) []byte) {
		for i := range count {
			ts.Check(s.Parts().Writer.Commit(ctx, store.Change{DeadLetter: &projections.DeadLetter{
				ID: fmt.Sprintf("l-%03d", n), Queue: string(store.Signals), Reason: reason, Detail: detail, Envelope: envelope(i),
				Attempts: 5, Node: "n0", DiedAt: died.Add(time.Duration(n) * time.Second),
			}}))
			n++
		}
	}
	if len(args) > 1 {
		n = 999
		dead(1, "definition.unknown", "definition shop/order is not published", func(int) []byte { return []byte("late") })
		ts.Check(s.Close())
		return
	}
	text := func(format string) func(int) []byte {
		return func(i int) []byte { return fmt.Appendf(nil, format, i) }
	}
	dead(250, "definition.unknown", "definition shop/order is not published", func(i int) []byte {
		body, err := json.Marshal(signal.Start{Definition: "shop/order", BusinessKey: fmt.Sprint("order-", i), StartKey: fmt.Sprint(i)})
		ts.Check(err)
		env := signal.Envelope{SignalID: fmt.Sprint("start-", i), InstanceID: fmt.Sprint("i-", i), RuntimeProvider: signal.Provider, Type: signal.StartRequest, OccurredAt: died, Payload: body}
		encoded, err := env.Encode()
		ts.Check(err)
		return encoded
	})
	dead(100, "signal.not-json", "this is no envelope", text("garbage %d"))
	dead(60, "signal.foreign", "the runtime provider is old-shop", text(`{"n":%d}`))
	dead(50, "signal.foreign", "the runtime provider is new-shop", text(`{"n":%d}`))
	dead(40, "instance.unknown", "instance x does not exist", text(`{"n":%d}`))
	ts.Check(s.Close())
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
