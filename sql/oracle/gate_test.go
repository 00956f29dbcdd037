package oracle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// While the tablespace is full the receivers of a queue take a message now and then,
// so that the database does not give it up (issue: 60 to 80 rollbacks a second, and
// a healthy timer was a dead letter after 130 s). When there is space again all
// goes on, a message that was taken before the fault as one that nobody has.
func TestAQueuePausesWhileTheDatabaseTakesNothing(t *testing.T) {
	t.Parallel()
	t.Run("nothing taken", func(t *testing.T) { t.Parallel(); pausesWhileNothingIsTaken(t, false) })
	t.Run("taken before", func(t *testing.T) { t.Parallel(); pausesWhileNothingIsTaken(t, true) })
}

func pausesWhileNothingIsTaken(t *testing.T, taken bool) {
	d := standIn(t)
	fault := func(spec string) {
		if err := d.Fault(context.WithoutCancel(t.Context()), "%", spec); err != nil {
			t.Error(err)
		}
	}
	fault("none:0:error=1653") // who has faults looks for others within a transaction
	s := opened(t, Options{DSN: d.DSN(), Node: "n"})
	if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	var first store.Delivery
	if taken {
		var err error
		if first, err = s.Receive(t.Context(), store.Signals, nil); err != nil {
			t.Fatal(err)
		}
	}
	fault("execute:0:error=1653")
	var tries, done atomic.Int64
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	try := func(m store.Delivery) {
		tries.Add(1)
		err := m.Commit(ctx, store.Change{DeadLetter: &projections.DeadLetter{Reason: "r"}})
		if err == nil {
			done.Add(1)
		} else if !errors.Is(err, store.ErrLost) {
			release(ctx, m, err)
		}
	}
	if first != nil {
		all.Go(func() { try(first) })
	}
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if m, err := s.Receive(ctx, store.Signals, func(store.Message) {}); err == nil {
					try(m)
				}
			}
		})
	}
	var tried, most int64
	await.Until(t, "three pauses", func() (bool, any) {
		n := tries.Load()
		p := s.Pauses()[0]
		tried, most = n, int64(p.Failures)+8
		return p.Failures >= 4 && p.Reason == "ORA-01653" && p.Class == aq.Paused, p
	})
	if tried > most || done.Load() > 0 {
		t.Errorf("%d messages were taken, more than %d, %d committed", tried, most, done.Load())
	}
	fault("")
	await.Until(t, "the commit", func() (bool, any) { return done.Load() == 1, tries.Load() })
	stop()
	all.Wait()
	if p := s.Pauses()[0]; p.Failures != 0 || !p.Since.IsZero() || p.Count != 1 {
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
