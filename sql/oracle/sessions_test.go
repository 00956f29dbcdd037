package oracle

import (
	"fmt"
	"sync"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A node whose queues are empty holds a session for the signals and Waiters for each
// other queue, however many receivers it has; one that works holds one more for
// each message. What a rush has left is closed.
func TestFewSessionsWait(t *testing.T) {
	t.Parallel()
	const receivers = 8
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	got, stop := make(chan store.Delivery), make(chan struct{})
	var all sync.WaitGroup
	for q := range queueNames {
		for range receivers {
			all.Go(func() {
				for {
					d, err := s.Receive(t.Context(), q, func(store.Message) {})
					if err != nil {
						return
					}
					got <- d
					<-stop
				}
			})
		}
	}
	until := func(least, most int) {
		t.Helper()
		await.Until(t, fmt.Sprintf("%d to %d sessions", least, most), func() (bool, any) {
			n := s.Sessions()
			return least <= n && n <= most, n
		})
	}
	idle := 1 + 2*Waiters
	until(idle, idle)
	var held []store.Delivery
	for range 5 {
		if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
			t.Fatal(err)
		}
		held = append(held, <-got)
	}
	until(idle+5, idle+5+1) // one for the changes
	for _, d := range held {
		if err := d.Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(err)
		}
	}
	s.pool.trim() // from now on is counted what is used
	s.pool.trim()
	until(idle+1, idle+1)
	t.Cleanup(all.Wait)
	t.Cleanup(func() { close(stop); _ = s.Close() })
}
