package runtime_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// TestATimerIsNotForgedEarlier has somebody who knows its token say that a timer is
// due, with and without the time at which it is.
func TestATimerIsNotForgedEarlier(t *testing.T) {
	t.Parallel()
	document := doc("hours", "\n  - rest: {wait: PT1H}\n")
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, document)
		n.begin(t, "i", "t/hours", nil)
		s, err := n.store.Writer.Load(t.Context(), "i")
		if err != nil || len(s.Waits) != 1 {
			t.Fatal(s.Waits, err)
		}
		for _, due := range []time.Time{s.Waits[0].Until, {}} {
			env := signal.Envelope{
				SignalID: "forged-" + strconv.FormatInt(due.Unix(), 10), InstanceID: "i", Type: signal.TimerDue, WaitingToken: s.Waits[0].Token,
				OccurredAt: time.Now(), DueAt: due,
			}
			body, err := env.Encode()
			if err == nil {
				err = n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "stale", func() bool {
			entries, err := n.store.Streams.Stream(t.Context(), "i", 1, 0)
			return err == nil && len(entries) == 1 && entries[0].Type == "TimerDue" && string(entries[0].Metadata) == `{"disposition":"stale","version":2,"basis":{"wait":1,"rules":2}}`
		})
		eventually(t, "delay of the other", func() bool {
			queues, err := n.store.Backlog.Queues(t.Context())
			delayed := 0
			for _, q := range queues {
				delayed += q.Delayed
			}
			return err == nil && delayed == 2
		})
		n.until(t, "i", status("waiting"))
	})
}
