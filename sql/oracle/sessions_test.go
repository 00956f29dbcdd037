package oracle

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
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

// What a rush needed, and nobody uses, is closed, the sessions for reading too: a node
// keeps what docs/oracle.md says, by the count of the database.
func TestARushLeavesNoSessions(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n", Idle: time.Second})
	var all sync.WaitGroup
	for q := range queueNames {
		for range Waiters {
			all.Go(func() {
				for {
					if _, err := s.Receive(t.Context(), q, func(store.Message) {}); err != nil {
						return
					}
				}
			})
		}
	}
	all.Go(func() {
		for {
			if _, err := s.Parts().Notices.Next(t.Context(), time.Minute); errors.Is(err, store.ErrClosed) {
				return
			}
		}
	})
	until := func(what string, ok func(int) bool) {
		t.Helper()
		await.Until(t, what, func() (bool, any) {
			text, err := d.Sessions(t.Context())
			n, bad := strconv.Atoi(text)
			return err == nil && bad == nil && ok(n), text
		})
	}
	const wait, change, read = 1 + 2*Waiters + 1, 1, 2
	var readers []*sql.Conn
	for range DefaultReaders {
		c, err := s.db.Conn(t.Context())
		must(t, err)
		readers = append(readers, c)
	}
	var changes []*aq.Session
	for range 3 {
		session, err := s.pool.take(t.Context())
		must(t, err)
		changes = append(changes, session)
	}
	rush := wait + len(changes) + len(readers)
	until(fmt.Sprintf("%d sessions in the rush", rush), func(n int) bool { return n >= rush })
	for _, c := range readers {
		must(t, c.Close())
	}
	for _, session := range changes {
		s.pool.giveBack(session)
	}
	until("what a node with nothing to do keeps", func(n int) bool { return n <= wait+change+read })
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = s.Close() })
}
