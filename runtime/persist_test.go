package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/store"
)

// persistDocument waits for a timer twice: the turn of the first sends the second.
var persistDocument = doc("persist", `
  - first: {wait: PT0.001S}
  - second: {wait: PT0.001S}
`)

// maxRetries is what the queues allow (sql/oracle/schema/20_queues.sql), and
// faultMax how long a fault lasts before somebody mends it.
const (
	maxRetries = 10_000
	faultMax   = 72 * time.Hour
)

// A fault of the database that lasts for three days costs next to nothing: the
// queue pauses, for a minute in the end, one delivery finds out whether it is over,
// nothing is rolled back so often that it counts, and nothing becomes a dead letter.
// When it is over, everything goes on. The full tablespace lasts for three hours
// here, the others for a quarter of one, and what they roll back is counted as if
// they had gone on so for three days; with AQUEDUCT_FAULTS=all each goes on so long.
func TestAPersistentFaultDestroysNothing(t *testing.T) {
	t.Parallel()
	chain := "ORA-00604: error occurred at recursive SQL level 1\nORA-01653: unable to extend table"
	full := []persistent{
		{name: "1653 for long", where: "update", text: "ORA-01653: injected", last: 3 * time.Hour, reason: "ORA-01653"},
		{name: "604 for 1653", where: "update", text: chain, reason: "ORA-01653"},
	}
	calls := []persistent{{name: "cut", where: "execute", text: ":0:cut"}, {name: "any 12535", where: "any", text: ":0:error=12535"}}
	calls = append(calls, updates("aq_msg", "1653 12535 29275")...)
	for _, where := range []string{"aqdeq", "aqenq", "execute", "commit"} {
		for _, code := range []string{"1653", "12535", "29275"} {
			calls = append(calls, persistent{name: where + " " + code, where: where, text: ":0:error=" + code, apart: where == "aqenq" || where == "commit"})
		}
	}
	for i, list := range [][]persistent{
		calls, append(full, updates("", "1555 30036 4068 3113 942 29275 1000 1502")...),
		updates("", "4020 4021 4030 4031 4036 6508 12526 12527 12535 16000 25402 604 932 1691"),
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			d := oracletest.StandIn(t, testdb.Install)
			// What is sent for later comes at once: to wait for it in the database would
			// stop the clock of the test.
			atOnce := persistent{d: d}
			atOnce.sql(t, `create function app.at_once() returns trigger language plpgsql as $$ begin new.visible_at := clock_timestamp(); return new; end $$;
				create trigger at_once before insert on ocisim.aq_msg for each row execute function app.at_once()`)
			for _, f := range list {
				f.d = d
				t.Run(f.name, f.test)
			}
		})
	}
}

// updates are faults of the update of a snapshot, or of what puts a message on a queue.
func updates(of, codes string) (list []persistent) {
	for code := range strings.FieldsSeq(codes) {
		n, err := strconv.Atoi(code)
		if err != nil {
			panic(err)
		}
		list = append(list, persistent{name: of + " " + code, where: "update" + of, text: fmt.Sprintf("ORA-%05d: injected", n)})
	}
	return list
}

// persistent is a fault, and the database that has it.
type persistent struct {
	name   string
	where  string // update: of snapshots; updateaq_msg: of queues; else the kind of call
	text   string
	reason string        // that is told; "" = any
	apart  bool          // enqueue and commit are calls
	last   time.Duration // 0 = a quarter of an hour
	d      *ocisim.Database
}

func (f *persistent) sql(t *testing.T, text string) string {
	t.Helper()
	out, err := f.d.Postgres(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (f *persistent) begin(t *testing.T) {
	t.Helper()
	if strings.HasPrefix(f.where, "update") {
		on := "before update on app.wf_runtime_states"
		if f.where == "updateaq_msg" {
			on = "before insert on ocisim.aq_msg"
		}
		f.sql(t, `create or replace function app.broken() returns trigger language plpgsql as $$ begin raise exception '`+f.text+`'; end $$;
			create or replace trigger broken `+on+` for each row execute function app.broken()`)
		return
	}
	if err := f.d.Fault(t.Context(), "runtime.test%", f.where+f.text); err != nil {
		t.Fatal(err)
	}
}

// end ends the fault; to drop the trigger would wait for transactions.
func (f *persistent) end(t *testing.T) {
	t.Helper()
	if strings.HasPrefix(f.where, "update") {
		f.sql(t, `create or replace function app.broken() returns trigger language plpgsql as $$ begin return new; end $$`)
		return
	}
	if err := f.d.Fault(t.Context(), "runtime.test%", ""); err != nil {
		t.Fatal(err)
	}
}

func (f *persistent) test(t *testing.T) {
	if f.last == 0 {
		f.last = time.Hour / 4
	}
	if os.Getenv("AQUEDUCT_FAULTS") == "all" {
		f.last = faultMax
	}
	log := &logged{}
	synctest.Test(t, func(t *testing.T) { f.persist(t, log) })
	if t.Failed() {
		t.Log(log.String())
	}
}

func (f *persistent) persist(t *testing.T, log *logged) {
	f.sql(t, "delete from ocisim.aq_attempt")
	n, w := persistNode(t, f.d, f.apart, log)
	if _, _, err := n.rt.Start(t.Context(), strings.ReplaceAll(t.Name(), "/", "."), signal.Start{Definition: "t/persist", Input: json.RawMessage(`{}`)}, nil); err != nil {
		t.Error(err, n.store.Close())
		return
	}
	f.begin(t)
	run, stop := context.WithCancel(t.Context())
	n.stop = stop
	defer func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}()
	go func() { n.done <- n.rt.Run(run) }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for range f.last / (10 * time.Second) {
		<-tick.C
		w.note(0)
	}
	w.check(t, f.last, f.reason)
	rollbacks, err := strconv.Atoi(f.sql(t, "select coalesce(max(n), 0) from ocisim.aq_attempt"))
	const beginning = 8 // before the pauses are a minute
	if long := max(rollbacks-beginning, 0) * int(faultMax/f.last); err != nil || long >= maxRetries/10 {
		t.Errorf("RETRY_COUNT is %d after %v, %v", rollbacks, f.last, err)
	}
	t.Logf("RETRY_COUNT %d", rollbacks)
	if n := f.sql(t, "select count(*) from app.wf_dead_letters"); n != "0" {
		t.Errorf("%s dead letters", n)
	}
	f.end(t)
	<-w.done // no time limit: the clock stands while a receiver waits in the database
	if p := w.pauses()[1]; !p.Since.IsZero() {
		t.Errorf("the queue still says %+v", p)
	}
}

// wallClock is the time outside of the test's own, by which the database delays
// messages.
func wallClock() time.Time {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		panic(err)
	}
	return time.Unix(tv.Unix())
}

// persistNode is a node that receives timers only: a receiver that waits in the
// database stops the clock of the test.
func persistNode(t *testing.T, d *ocisim.Database, apart bool, out *logged) (*testNode, *watched) {
	t.Helper()
	ctx := t.Context()
	log := slog.New(slog.NewTextHandler(out, nil))
	o, err := oracle.Open(ctx, oracle.Options{DSN: d.DSN(), Consumers: 4, Apart: apart, Wait: time.Second, Heartbeat: time.Hour, DeadAfter: 4 * time.Hour, Log: log, Now: wallClock})
	n := &testNode{done: make(chan error, 1)}
	if n.store, err = testdb.At(o, err); err != nil {
		t.Fatal(err)
	}
	n.cat = definition.New(n.store, openworkflow.Parsers(), time.Now)
	if _, _, err := n.cat.Publish(ctx, "p.yaml", []byte(persistDocument)); err != nil {
		t.Fatal(err)
	}
	w := &watched{Receiver: n.store.Queue, pauses: o.Pauses, done: make(chan struct{})}
	parts := n.store.Parts
	parts.Queue = w
	parts.Notices = nil // to wait for one in the database would stop the clock, too
	n.rt, err = runtime.New(ctx, runtime.Config{
		Store: parts, Definitions: n.cat, Performer: activity.New(activity.Config{}), Log: log,
		SignalConsumers: 1, ScheduleConsumers: 4, CommandConsumers: 1, StraysEvery: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, w
}

// watched is the schedule queue of a node, and what is seen of it.
type watched struct {
	store.Receiver
	pauses  func() []oracle.Pause
	commits atomic.Int64
	done    chan struct{} // closed when both timers have fired

	mu   sync.Mutex
	held int
	most int         // deliveries at once, while the queue paused
	next []time.Time // that were announced
}

func (w *watched) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	if q != store.Schedule {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	d, err := w.Receiver.Receive(ctx, q, arrived)
	if err != nil {
		return nil, err
	}
	w.note(1)
	return &watchedDelivery{Delivery: d, w: w}, nil
}

// note counts the deliveries that the node has.
func (w *watched) note(n int) {
	p := w.pauses()[1]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += n
	if !p.Since.IsZero() {
		w.most = max(w.most, w.held)
		if len(w.next) == 0 || p.Next.After(w.next[len(w.next)-1]) {
			w.next = append(w.next, p.Next)
		}
	}
}

type watchedDelivery struct {
	store.Delivery
	w *watched
}

func (d *watchedDelivery) Commit(ctx context.Context, c store.Change) error {
	err := d.Delivery.Commit(ctx, c)
	switch {
	case err == nil:
		d.w.note(-1)
		if d.w.commits.Add(1) == 2 {
			close(d.w.done)
		}
	case errors.Is(err, store.ErrLost), errors.Is(err, store.ErrUnknown):
		d.w.note(-1)
	default:
		d.w.note(0)
	}
	return err
}

func (d *watchedDelivery) Release(ctx context.Context, cause error) error {
	d.w.note(-1) // when it is over, another may have the message before this one is told
	err := d.Delivery.Release(ctx, cause)
	if err != nil && !errors.Is(err, store.ErrLost) {
		d.w.note(1)
	}
	return err
}

// check says whether the queue paused as it should.
func (w *watched) check(t *testing.T, last time.Duration, reason string) {
	t.Helper()
	p := w.pauses()[1]
	w.mu.Lock()
	defer w.mu.Unlock()
	gaps := make([]time.Duration, 0, len(w.next))
	for i := 1; i < len(w.next); i++ {
		gaps = append(gaps, w.next[i].Sub(w.next[i-1]))
	}
	t.Logf("%d tries, %d at once, pauses %v", len(w.next), w.most, gaps[:min(12, len(gaps))])
	if w.most > 1 {
		t.Errorf("%d deliveries at once while the queue paused", w.most)
	}
	if n := int(last / time.Minute); len(gaps) < n*8/10 || len(gaps) > n*3/2+8 || slices.Max(gaps) < 48*time.Second || slices.Max(gaps) > 75*time.Second {
		t.Errorf("%d pauses, the longest %v", len(gaps), slices.Max(append(gaps, 0)))
	}
	if p.Since.IsZero() || p.Count != 1 || reason != "" && p.Reason != reason {
		t.Errorf("the queue says %+v", p)
	}
}
