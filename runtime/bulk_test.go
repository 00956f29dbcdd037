package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func bulkOf(n *testNode) *service.Bulk {
	return &service.Bulk{
		Bulk: n.store.Bulk, Plans: n.store.Plans, Audit: n.store.Audit, Operator: n.rt.Operator, Migrator: n.rt.Migrator, DeadLetters: n.rt.DeadLetters, Now: time.Now,
	}
}

// plan makes a plan.
func plan(t *testing.T, b *service.Bulk, asked backend.BulkAsked) string {
	t.Helper()
	id, err := b.Plan(audit.Because(t.Context(), "the outage is over"), &asked, "olga")
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Plans.Bulk(t.Context(), id)
	if err != nil || p.Status != backend.BulkPlanned || p.CreatedBy != "olga" {
		t.Fatalf("%+v, %v", p, err)
	}
	return p.ID
}

// run goes on with a plan, and says how it is then.
func run(ctx context.Context, b *service.Bulk, id string, begin bool) (backend.Bulk, error) {
	if err := b.Run(ctx, id, begin, "olga"); err != nil {
		return backend.Bulk{}, err
	}
	return b.Plans.Bulk(ctx, id)
}

// finish runs a plan to its end.
func finish(t *testing.T, b *service.Bulk, id string) {
	t.Helper()
	for begin := true; ; begin = false {
		p, err := run(t.Context(), b, id, begin)
		if err != nil {
			t.Fatal(err)
		}
		if p.Status == backend.BulkDone && !p.EndedAt.IsZero() {
			return
		}
	}
}

// outcomes are what has become of the items of a plan: "ID outcome code", in order.
func outcomes(t *testing.T, n *testNode, id string) string {
	t.Helper()
	page, err := n.store.Plans.BulkItems(t.Context(), backend.BulkItemQuery{ID: id, Limit: projections.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range page.Items {
		all = append(all, strings.TrimSpace(i.Target+" "+i.Outcome+" "+i.Code))
	}
	return strings.Join(all, ", ")
}

// auditedBy counts the rows of an action, by target.
func auditedBy(t *testing.T, n *testNode, action string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for q := (backend.AuditQuery{Action: action, Limit: projections.MaxLimit}); ; {
		page, err := n.store.Audit.Audit(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Items {
			all[a.Target]++
		}
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
}

// outOfOrder is a node whose effect fails until it is mended.
func outOfOrder(t *testing.T, place string) (*testNode, *atomic.Bool) {
	t.Helper()
	fails := &atomic.Bool{}
	fails.Store(true)
	n, err := open(t.Context(), place, nil, func(context.Context, json.RawMessage) (any, error) {
		if fails.Load() {
			return nil, problem.New(problem.Invalid, "no", "no")
		}
		return 1, nil
	}, orderOne)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.close() })
	return n, fails
}

// TestAPlanIsBoundToWhatWasFound: each item is done as an operator would do it to one;
// what has changed since is skipped, though its row says nothing of it, what was refused
// has failed, and what came later is not touched.
func TestAPlanIsBoundToWhatWasFound(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, fails := outOfOrder(t, fresh())
		ctx := t.Context()
		for i := range 5 {
			id := fmt.Sprint("f", i)
			n.begin(t, id, "t/order", map[string]any{"order": id})
		}
		for i := range 5 {
			n.until(t, fmt.Sprint("f", i), status("faulted"))
		}
		b := bulkOf(n)
		id := plan(t, b, backend.BulkAsked{Operation: "retry", Definition: "t/order"})
		n.begin(t, "later", "t/order", map[string]any{"order": "later"})
		n.until(t, "later", status("faulted"))
		fails.Store(false)
		if _, err := n.rt.Operate(ctx, "f1", engine.Retry, nil, "ann"); err != nil {
			t.Fatal(err)
		}
		n.until(t, "f1", func(i projections.Instance) bool { return i.Position == "paid" })
		// It is kept until the instance goes on: the row of the instance stays as it is.
		if did, err := n.rt.Signal(ctx, signal.Envelope{SignalID: "s", InstanceID: "f3", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"paid"}`)}); err != nil || did != engine.Buffered {
			t.Fatal(did, err)
		}

		if p, err := run(ctx, b, id, false); err != nil || p.Status != backend.BulkPlanned {
			t.Fatalf("it runs although nobody has begun it: %+v, %v", p, err)
		}
		finish(t, b, id)
		if got := outcomes(t, n, id); got != "f4 done, f3 skipped bulk.changed, f2 done, f1 skipped bulk.changed, f0 done" {
			t.Error(got)
		}
		for _, of := range []string{"f0", "f2", "f4"} {
			n.until(t, of, func(i projections.Instance) bool { return i.Position == "paid" })
			page, err := n.store.Audit.Audit(ctx, backend.AuditQuery{Action: "retry", Target: of})
			if err != nil || len(page.Items) != 1 || page.Items[0].Reason != "bulk "+id+": the outage is over" || page.Items[0].Claimed != "olga" || page.Items[0].Before == 0 || page.Items[0].After != page.Items[0].Before+1 {
				t.Errorf("%s: %+v, %v", of, page.Items, err)
			}
		}
		for _, of := range []string{"f3", "later"} {
			if row, err := n.store.Instances.Instance(ctx, of); err != nil || row.Status != "faulted" {
				t.Errorf("%s: %+v, %v", of, row, err)
			}
		}

		// What is refused has failed, and the others are done.
		if _, err := n.rt.Operate(ctx, "f0", engine.Suspend, nil, "ann"); err != nil {
			t.Fatal(err)
		}
		suspend := plan(t, b, backend.BulkAsked{Operation: "suspend", Definition: "t/order", Where: `status in ("suspended", "waiting")`})
		finish(t, b, suspend)
		if got := outcomes(t, n, suspend); got != "f4 done, f2 done, f1 done, f0 failed instance.suspended" {
			t.Error(got)
		}
		resume := plan(t, b, backend.BulkAsked{Operation: "resume", Definition: "t/order", Limit: 3})
		finish(t, b, resume)
		if got := outcomes(t, n, resume); got != "f4 done, f2 done, f1 done" {
			t.Error(got)
		}

		// And they go on in another version, but for who is where no way leads.
		if _, _, err := n.cat.Publish(ctx, "two.yaml", []byte(orderTwo)); err != nil {
			t.Fatal(err)
		}
		move := plan(t, b, backend.BulkAsked{Operation: backend.BulkMigrate, Definition: "t/order", Version: "1.0.0", To: "2.0.0", Pointers: map[string]string{"/do/1/paid": "/do/2/paid"}, State: "paid"})
		finish(t, b, move)
		if got := outcomes(t, n, move); got != "f4 done, f2 done, f1 done, f0 done" {
			t.Error(got)
		}
		cancel := plan(t, b, backend.BulkAsked{Operation: "cancel", ErrorCode: "no-such"})
		finish(t, b, cancel)
		all := plan(t, b, backend.BulkAsked{Operation: "cancel", Definition: "t/order", Version: "2.0.0"})
		finish(t, b, all)
		if got := outcomes(t, n, cancel) + outcomes(t, n, all); got != "f4 done, f2 done, f1 done, f0 done" {
			t.Error(got)
		}
		n.until(t, "f4", status("cancelled"))
		if got := auditedBy(t, n, "run-bulk"); len(got) != 6 {
			t.Errorf("%v", got)
		}
	})
}

// amnesic loses outcomes: who writes them ends before.
type amnesic struct {
	backend.BulkPlans
	lost atomic.Int32
}

func (f *amnesic) SettleBulk(ctx context.Context, id string, settled []backend.BulkItem, by ...store.Audit) error {
	if f.lost.Add(-1) >= 0 {
		return errors.New("the process ends")
	}
	return f.BulkPlans.SettleBulk(ctx, id, settled, by...)
}

// TestAPlanIsDoneOnceThroughCrashes: what was done before its outcome was written is
// known to be done, and nothing is done twice, by however many a plan is run.
func TestAPlanIsDoneOnceThroughCrashes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, fails := outOfOrder(t, fresh())
		const count = 60 // more than share a commit
		for i := range count {
			n.begin(t, fmt.Sprint("f", i), "t/order", map[string]any{"order": fmt.Sprint(i)})
		}
		eventually(t, "all are faulted", func() bool {
			page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{Status: "faulted", Limit: projections.MaxLimit})
			return err == nil && len(page.Items) == count
		})
		b := bulkOf(n)
		f := &amnesic{BulkPlans: b.Bulk}
		b.Bulk = f
		retry := plan(t, b, backend.BulkAsked{Operation: "retry", Definition: "t/order"})
		fails.Store(false)
		f.lost.Store(1)
		if _, err := run(t.Context(), b, retry, true); err == nil || !strings.Contains(err.Error(), "the process ends") {
			t.Fatal(err)
		}
		if got := auditedBy(t, n, "retry"); len(got) != 50 {
			t.Fatalf("%d were retried", len(got))
		}
		finish(t, b, retry)
		if got := outcomes(t, n, retry); strings.Count(got, " done") != count {
			t.Error(got)
		}

		// Two at once, each of which may lose what it has done.
		both := func(id string) {
			t.Helper()
			f.lost.Store(1)
			var runners sync.WaitGroup
			for range 2 {
				runners.Go(func() {
					for begin := true; ; begin = false {
						if p, err := run(t.Context(), b, id, begin); err == nil && p.Status == backend.BulkDone {
							return
						}
					}
				})
			}
			runners.Wait()
			if got := outcomes(t, n, id); strings.Count(got, " done") != count {
				t.Error(got)
			}
		}
		dead(t, n, count)
		both(plan(t, b, backend.BulkAsked{Operation: backend.BulkDiscard, ErrorCode: "signal.not-json"}))

		// What was edited is replayed under another name.
		dead(t, n, count)
		for i := range count {
			body := fmt.Sprintf(`{"signalId":"e-%d","workflowInstanceId":"f0","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"id":"e","source":"s","type":"none"}}`, i)
			if _, err := n.rt.DeadLetters.Edit(t.Context(), fmt.Sprint("l", i), backend.DeadLetterChange{Envelope: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		both(plan(t, b, backend.BulkAsked{Operation: backend.BulkReplay, ErrorCode: "signal.not-json"}))
		for action, of := range map[string]map[string]int{"retry": auditedBy(t, n, "retry"), "discard": auditedBy(t, n, "discard")} {
			for target, times := range of {
				if times != 1 {
					t.Errorf("%s of %s has %d rows", action, target, times)
				}
			}
			if len(of) != count {
				t.Errorf("%d have a %s", len(of), action)
			}
		}
	})
}

// Dead letters are sent again in the order in which they came, one after the other.
func TestAPlanReplaysTheOldestFirst(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, _ := outOfOrder(t, fresh())
		b := bulkOf(n)
		const count = 20
		dead(t, n, count)
		id := plan(t, b, backend.BulkAsked{Operation: backend.BulkReplay, ErrorCode: "signal.not-json"})
		finish(t, b, id)
		p, err := n.store.Plans.BulkItems(t.Context(), backend.BulkItemQuery{ID: id, Limit: count})
		if err != nil || len(p.Items) != count {
			t.Fatalf("%+v, %v", p, err)
		}
		for i, item := range p.Items {
			if item.Target != fmt.Sprint("l", i) || i > 0 && item.EndedAt.Before(p.Items[i-1].EndedAt) {
				t.Errorf("%s at %d, sent at %s behind one of %s", item.Target, i, item.EndedAt, p.Items[max(i-1, 0)].EndedAt)
			}
		}
	})
}

// heldUp notes what is replayed, and refuses one letter for now, once.
type heldUp struct {
	backend.DeadLetterStore
	refused bool
	ids     []string
}

func (r *heldUp) Replay(ctx context.Context, id string, edit int64, body []byte, by ...store.Audit) error {
	if id == "l0" && !r.refused {
		r.refused = true
		return problem.New(problem.Unavailable, "store.locked", "somebody has it")
	}
	r.ids = append(r.ids, id)
	return r.DeadLetterStore.Replay(ctx, id, edit, body, by...)
}

// One that cannot be sent for now holds up what came behind it to the same instance, and nobody else.
func TestAPlanHoldsUpOneInstanceAlone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, _ := outOfOrder(t, fresh())
		b := bulkOf(n)
		for i, instance := range []string{"f0", "f1", "f0"} {
			l := &projections.DeadLetter{ID: fmt.Sprint("l", i), InstanceID: instance, Queue: "signal", Reason: "signal.not-json", Envelope: []byte("no JSON"), DiedAt: time.Now()}
			if err := n.store.Writer.Commit(t.Context(), store.Change{DeadLetter: l}); err != nil {
				t.Fatal(err)
			}
		}
		refuses := &heldUp{DeadLetterStore: b.DeadLetters.DeadLetters}
		all := *b.DeadLetters
		all.DeadLetters = refuses
		b.DeadLetters = &all
		id := plan(t, b, backend.BulkAsked{Operation: backend.BulkReplay, ErrorCode: "signal.not-json"})
		finish(t, b, id)
		if got := strings.Join(refuses.ids, " "); got != "l1 l0 l2" {
			t.Errorf("sent as %s", got)
		}
	})
}

// What somebody edits after the plan was made is neither sent nor thrown away by it.
func TestAPlanLeavesWhatIsEditedSince(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, _ := outOfOrder(t, fresh())
		b := bulkOf(n)
		dead(t, n, 3)
		edit := func(id string) {
			t.Helper()
			body := `{"signalId":"e","workflowInstanceId":"f0","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"id":"e","source":"s","type":"none"}}`
			if _, err := n.rt.DeadLetters.Edit(t.Context(), id, backend.DeadLetterChange{Envelope: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		edit("l2") // before: the plan is of the edit
		discard, replay := plan(t, b, backend.BulkAsked{Operation: backend.BulkDiscard, ErrorCode: "signal.not-json"}), plan(t, b, backend.BulkAsked{Operation: backend.BulkReplay, ErrorCode: "signal.not-json"})
		edit("l1")
		for id, want := range map[string]string{discard: "l0 done, l1 skipped bulk.changed, l2 done"} {
			finish(t, b, id)
			if got := outcomes(t, n, id); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		finish(t, b, replay)
		if got := outcomes(t, n, replay); got != "l0 skipped bulk.gone, l1 skipped bulk.changed, l2 skipped bulk.gone" {
			t.Error(got)
		}
	})
}

// dead plants dead letters.
func dead(t *testing.T, n *testNode, count int) {
	t.Helper()
	for i := range count {
		l := &projections.DeadLetter{ID: fmt.Sprint("l", i), Queue: "signal", Reason: "signal.not-json", Envelope: []byte("no JSON"), DiedAt: time.Now()}
		if err := n.store.Writer.Commit(t.Context(), store.Change{DeadLetter: l}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPlanThatIsStoppedGoesOn where it was, by who begins it again.
func TestAPlanThatIsStoppedGoesOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, _ := outOfOrder(t, fresh())
		ctx, b := t.Context(), bulkOf(n)
		dead(t, n, 120)
		id := plan(t, b, backend.BulkAsked{Operation: backend.BulkDiscard, Queue: "signal"})
		if err := b.Stop(ctx, id, "olga"); problem.CodeOf(err) != "bulk.not-running" {
			t.Error(err)
		}
		stops := &stopping{BulkPlans: b.Bulk}
		b.Bulk, stops.stop = stops, func() {
			if err := bulkOf(n).Stop(ctx, id, "ann"); err != nil {
				t.Error(err)
			}
		}
		p, err := run(ctx, b, id, true)
		if err != nil || p.Status != backend.BulkStopped {
			t.Fatalf("%+v, %v", p, err)
		}
		if got := outcomes(t, n, id); strings.Count(got, " done") != 50 {
			t.Error(got)
		}
		if p, err := run(ctx, b, id, false); err != nil || p.Status != backend.BulkStopped {
			t.Errorf("it goes on although it was stopped: %+v, %v", p, err)
		}
		b = bulkOf(n)
		finish(t, b, id)
		if got := outcomes(t, n, id); strings.Count(got, " done") != 120 {
			t.Error(got)
		}
		for _, unknown := range []error{b.Run(ctx, "none", true, ""), b.Stop(ctx, "none", "")} {
			if problem.CodeOf(unknown) != "bulk.unknown" {
				t.Error(unknown)
			}
		}
		if err := n.store.Bulk.MakeBulk(ctx, backend.Bulk{ID: "half", Operation: "retry", Status: backend.BulkPlanning, Version: 1, CreatedAt: time.Now(), UpdatedAt: time.Now(), Asked: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		if err := b.Run(ctx, "half", true, ""); problem.CodeOf(err) != "bulk.not-planned" {
			t.Error(err)
		}
	})
}

// stopping has a plan stopped while its first items are done.
type stopping struct {
	backend.BulkPlans
	once sync.Once
	stop func()
}

func (s *stopping) SettleBulk(ctx context.Context, id string, settled []backend.BulkItem, by ...store.Audit) error {
	s.once.Do(s.stop)
	return s.BulkPlans.SettleBulk(ctx, id, settled, by...)
}

// TestManyRunNow: what waits for a timer, and what waits for the next attempt at a call, go
// on at once, each by its row of the audit; who has nothing to wait for has failed.
func TestManyRunNow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		b := &cashier{asked: map[string][]string{}}
		srv := httptest.NewServer(b)
		t.Cleanup(srv.Close)
		n := start(t, fresh(), nil, cashierDoc, doc("asleep", "  - nap: {wait: PT1H}"), doc("hears", "  - ear: {listen: {to: {one: {with: {type: x}}}}}"))
		for _, id := range []string{"nap-1", "nap-2", "nap-3"} {
			n.begin(t, id, "t/asleep", nil)
		}
		n.begin(t, "pays", "t/cashier", map[string]string{"url": srv.URL, "of": t.Name()[len("TestManyRunNow/"):], "says": "503,200"})
		n.waits(t, "pays")
		n.begin(t, "hears", "t/hears", nil)
		eventually(t, "an attempt that is not the last", func() bool {
			rows, err := n.store.Streams.Stream(t.Context(), "pays", 1, 1)
			return err == nil && len(rows) == 1 && rows[0].Attempts == 1 && rows[0].ClaimedBy == ""
		})
		many := bulkOf(n)
		id := plan(t, many, backend.BulkAsked{Operation: "run-now", Status: "waiting"})
		if _, err := n.rt.Operate(t.Context(), "nap-2", engine.Suspend, nil, "ann"); err != nil {
			t.Fatal(err)
		}
		finish(t, many, id)
		if got := outcomes(t, n, id); got != "hears failed instance.nothing-to-run, pays done, nap-3 done, nap-2 skipped bulk.changed, nap-1 done" {
			t.Error(got)
		}
		for _, id := range []string{"nap-1", "nap-3", "pays"} {
			n.until(t, id, status("completed"))
		}
	})
}

// What keeps a schedule is an instance of the definition, too: a plan of its runs leaves it
// alone, but for a retry; one that names its business key is for it.
func TestAPlanLeavesSchedulesAlone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, strings.Replace(scheduledDoc("naps", "1.0.0", "{every: PT1H}"), "do:\n", "do:\n  - nap: {wait: PT1H}\n", 1))
		n.begin(t, "run", "t/naps", nil)
		const keeps = "schedule.t.naps.1.0.0"
		n.until(t, keeps, status("waiting"))
		many := bulkOf(n)
		for _, c := range []struct{ key, want string }{{"", "run done, " + keeps + " skipped bulk.schedule"}, {"schedule", keeps + " done"}} {
			id := plan(t, many, backend.BulkAsked{Operation: "suspend", Definition: "t/naps", Status: "waiting", BusinessKey: c.key})
			finish(t, many, id)
			if got := outcomes(t, n, id); got != c.want {
				t.Errorf("%q: %s", c.key, got)
			}
			if c.key == "" && n.until(t, keeps, func(projections.Instance) bool { return true }).Status != "waiting" {
				t.Error("the schedule is paused")
			}
		}
	})
}
