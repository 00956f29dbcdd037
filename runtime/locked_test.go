package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Somebody has a row of an instance locked, for as long as it takes: twice as many
// signals for it as the node has consumers hold up no other instance, nor does a call
// of the API wait; they are applied in their order when the lock is gone (issue: a
// signal to another instance took 35 s, then as long as the lock lasted).
func TestALockedInstanceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"its state":         "update WF_RUNTIME_STATES set LAST_EXECUTED_BY = 'dba' where INSTANCE_ID = 'locked'",
		"what people query": "update WF_INSTANCES set STATE = STATE where INSTANCE_ID = 'locked'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := testdb.OnOracle(t)()
			n := start(t, place, nil, circleDoc) // 4 consumers
			send := func(reference string, i int) store.Send {
				s := trigger("t/ring", reference, fmt.Sprintf("e-%d", i), "")
				s.Signal.Type, s.Signal.Data = []string{"ab", "bc", "ca"}[i%3], json.RawMessage(`{}`)
				return store.Send{Queue: store.Signals, Body: must(signal.Envelope{
					SignalID: fmt.Sprintf("s-%d", i), InstanceID: reference, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: must(json.Marshal(s)),
				}.Encode())}
			}
			commit := func(list ...store.Send) {
				t.Helper()
				if err := n.store.Writer.Commit(t.Context(), store.Change{Send: list}); err != nil {
					t.Fatal(err)
				}
			}
			applied := func(reference string, count int) {
				t.Helper()
				n.until(t, reference, func(projections.Instance) bool { return len(n.signals(t, reference)) == count })
			}
			commit(send("locked", 0))
			applied("locked", 1)
			release, err := testdb.Lock(t.Context(), place, lock)
			if err != nil {
				t.Fatal(err)
			}
			const events = 9
			var list []store.Send
			for i := 1; i < events; i++ {
				list = append(list, send("locked", i))
			}
			commit(list...)
			for i := range 5 { // again and again: the signals of the locked one come again, too
				commit(send("free", i))
				applied("free", i+1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s := trigger("t/ring", "locked", fmt.Sprintf("e-%d", events), "")
			s.Signal.Type, s.Signal.Data = "ab", json.RawMessage(`{}`)
			want := events
			switch _, _, err := n.rt.Start(ctx, "locked", s, nil); {
			case err == nil: // it is queued, behind the others
				want++
			case ctx.Err() != nil:
				t.Errorf("a call waits for the lock: %v", err)
			case problem.CodeOf(err) != "store.locked":
				t.Error(err)
			}
			eventually(t, "its messages come again", func() bool { return n.counted(t, "aqueduct_message_retries_total")["signal"] > 20 })
			if got := len(n.signals(t, "locked")); got != 1 {
				t.Errorf("%d signals were applied to a locked instance", got)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			applied("locked", want)
			for i, got := range n.signals(t, "locked") {
				if got != fmt.Sprintf("e-%d", i) {
					t.Errorf("signal %d is %s", i, got)
				}
			}
			n.quiet(t)
		})
	}
}
