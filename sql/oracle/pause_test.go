package oracle

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// While the tablespace is full the receivers of a queue take a message now and then,
// so that the database does not give it up (issue: 60 to 80 rollbacks a second, and
// a healthy timer was a dead letter after 130 s). When there is space again all
// goes on.
func TestAQueuePausesWhileTheDatabaseTakesNothing(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	full := ""
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		full += ",execute:" + n + ":error=1653"
	}
	fault := func(spec string) {
		if err := d.Fault(context.WithoutCancel(t.Context()), "%", spec); err != nil {
			t.Error(err)
		}
	}
	fault(full[1:])
	var tries, done atomic.Int64
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				m, err := s.Receive(ctx, store.Signals, func(store.Message) {})
				if err != nil {
					continue
				}
				tries.Add(1)
				if m.Commit(ctx, store.Change{DeadLetter: &projections.DeadLetter{Reason: "r"}}) == nil {
					done.Add(1)
				}
			}
		})
	}
	await.Until(t, "three pauses", func() (bool, any) {
		fault(full[1:])
		s.pauses[store.Signals].mu.Lock()
		defer s.pauses[store.Signals].mu.Unlock()
		n := s.pauses[store.Signals].failures
		return n >= 4, n
	})
	if n := tries.Load(); n > 12 || done.Load() > 0 {
		t.Errorf("%d messages were taken, %d committed", n, done.Load())
	}
	fault("")
	await.Until(t, "the commit", func() (bool, any) { return done.Load() == 1, tries.Load() })
	stop()
	all.Wait()
	if p := s.pauses[store.Signals]; p.failures != 0 || time.Now().Before(p.next) {
		t.Errorf("%+v", p)
	}
}

// A message that the database would give up soon is another for it: the same for us,
// with nothing behind it, and not an attempt more.
func TestAMessageRolledBackOftenBeginsAnew(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	counted := func(sql string) string {
		t.Helper()
		text, err := d.Postgres(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first, err := s.Receive(t.Context(), store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.(*delivery).end() // rolled back
	counted(fmt.Sprintf("insert into ocisim.aq_attempt select msgid, %d, now() from ocisim.aq_msg on conflict (msgid) do update set n = excluded.n", rollbacksMax))
	second, err := s.Receive(t.Context(), store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.Message(); got.ID != first.Message().ID || got.Attempts != 0 || string(got.Body) != "a" {
		t.Errorf("%+v, and it was %+v", got, first.Message())
	}
	const behind = "select count(*) from ocisim.aq_attempt a join ocisim.aq_msg m on m.msgid = a.msgid where a.n > 1"
	if n := strings.TrimSpace(counted(behind)); n != "0" {
		t.Errorf("%s messages have rollbacks behind them", n)
	}
	if err := second.Commit(t.Context(), store.Change{}); err != nil || messages(t, s) != 0 {
		t.Errorf("%d messages are left, %v", messages(t, s), err)
	}
}
