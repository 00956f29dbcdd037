package runtime_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// All sessions end while many signals of one instance are ready: they are applied in
// their order when the database is there again, and hold up nobody else (a black-box
// run found the queue at a standstill: each that was given back, because it was behind
// another that was, became one that others were behind).
func TestBrokenSessionsLeaveTheQueueMoving(t *testing.T) {
	t.Parallel()
	d := oracletest.StandIn(t, testdb.Install)
	n := startSet(t, d.DSN(), func(c *runtime.Config) { patient(c); c.RetryDelay = time.Second }, nil, circleDoc)
	send := func(reference string, i int) store.Send {
		s := trigger("t/ring", reference, fmt.Sprintf("e-%d", i), "")
		s.Signal.Type, s.Signal.Data = []string{"ab", "bc", "ca"}[i%3], json.RawMessage(`{}`)
		payload := must(json.Marshal(s))
		return store.Send{Queue: store.Signals, Body: must(signal.Envelope{
			SignalID: fmt.Sprintf("%s-%d", reference, i), InstanceID: reference, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: payload,
		}.Encode())}
	}
	applied := func(reference string) int64 {
		i, err := n.store.Instances.Instance(t.Context(), reference)
		if err != nil {
			return 0
		}
		return i.Version
	}
	const events = 300
	var list []store.Send
	for i := range events {
		list = append(list, send("many", i))
	}
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: list}); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		await.Until(t, "some are applied", func() (bool, any) {
			v := applied("many")
			return v > 20*i, v
		})
		if _, err := d.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "another instance's signal is sent", func() (bool, any) {
		err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{send("other", 0)}})
		return err == nil, err
	})
	from := time.Now()
	n.until(t, "other", func(projections.Instance) bool { return true })
	t.Logf("the other instance begins after %s, with %d of %d applied", time.Since(from).Round(time.Millisecond), applied("many"), events)
	n.until(t, "many", func(projections.Instance) bool { return applied("many") == events })
	t.Logf("all are applied after %s", time.Since(from).Round(time.Millisecond))
	n.quiet(t)
}
