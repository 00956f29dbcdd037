package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// hourly is an effect that asks for an hour at its first attempt.
func hourly(c *consumer) activity.Func {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		out, err := c.take(ctx, input)
		if a := activity.Info(ctx); a.Number == 1 && a.Target != engine.TargetEvent {
			return nil, activity.RetryAfter(errors.New("away"), time.Hour)
		}
		return out, err
	}
}

// waits waits until a command has failed once, and is nobody's.
func (n *testNode) waits(t *testing.T, id string) {
	t.Helper()
	eventually(t, "first attempt", func() bool {
		row := n.row(t, id)
		return row.Attempts == 1 && row.ClaimedBy == "" && !row.NextAttemptAt.IsZero()
	})
}

// settle ends the command of an instance.
func (n *testNode) settle(t *testing.T, id string, want engine.Disposition, a ack.Ack) {
	t.Helper()
	if got, err := n.rt.SettleCommand(t.Context(), id, 2, a); got != want || err != nil {
		t.Errorf("%s: %q, %v, want %q", a.Outcome, got, err, want)
	}
}

// types are the entries of an instance by their types.
func (n *testNode) types(t *testing.T, id string) map[string]int {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]int{}
	for _, e := range rows {
		key := e.Type
		if strings.Contains(string(e.Metadata), `"disposition":`) {
			key += " late" // stale, or the instance has ended
		}
		types[key]++
	}
	return types
}

func TestACommandIsCompletedOverANodesAttempt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place, begun, release := fresh(), make(chan struct{}, 10), make(chan struct{})
		slow := func(ctx context.Context, _ json.RawMessage) (any, error) {
			if activity.Info(ctx).Target == engine.TargetEvent {
				return nil, nil
			}
			begun <- struct{}{}
			<-release // whatever becomes of ctx: an effect that does not hear of it
			return "of the node", nil
		}
		n := start(t, place, slow, plainDoc)
		n.begin(t, "done", "t/plain", nil)
		n.begin(t, "failed", "t/plain", nil)
		<-begun
		<-begun
		if _, err := n.rt.ClaimCommand(t.Context(), "done", 2, "ann", time.Minute); problem.CodeOf(err) != "command.taken" {
			t.Errorf("claim over a node: %v", err)
		}
		if _, err := n.rt.RetryCommand(t.Context(), "done", 2, "ann"); problem.CodeOf(err) != "command.taken" {
			t.Errorf("retry over a node: %v", err)
		}
		n.settle(t, "done", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`"of ann"`), Actor: "ann"})
		n.settle(t, "failed", engine.Applied, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Title: "Never"}, Actor: "ann"})
		if got := n.output(t, "done"); got != `"of ann"` {
			t.Errorf("output %s", got)
		}
		n.until(t, "failed", status("faulted"))
		close(release)
		n.rested(t)
		n.settle(t, "done", engine.Duplicate, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`1`), Actor: "bob"})
		n.settle(t, "done", engine.Duplicate, ack.Ack{Outcome: ack.Failed, Actor: "bob"})
		want := map[string]int{"InstanceStarted": 1, "Call": 1, "CommandCompleted": 1, "TaskCompleted": 1, "InstanceCompleted": 1, "CommandRepeated": 1}
		if got := n.types(t, "done"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
		audit, err := n.store.Audit.Audit(t.Context(), backend.AuditQuery{InstanceID: "done"})
		if err != nil || len(audit.Items) != 1 || audit.Items[0].Action != "complete-command" || audit.Items[0].Claimed != "ann" || audit.Items[0].After == 0 {
			t.Errorf("%+v, %v", audit.Items, err)
		}
		for code, at := range map[string]int64{"command.unknown": 1, "instance.unknown": 2} {
			id := map[string]string{"command.unknown": "done", "instance.unknown": "nobody"}[code]
			if _, err := n.rt.ClaimCommand(t.Context(), id, at, "ann", time.Minute); problem.CodeOf(err) != code {
				t.Errorf("%s: %v", code, err)
			}
		}
		if _, err := n.rt.ClaimCommand(t.Context(), "done", 2, "ann", time.Minute); problem.CodeOf(err) != "command.settled" {
			t.Errorf("claim of what is settled: %v", err)
		}
	})
}

// A node performs, another one is told the end.
func TestACommandIsCompletedOnAnotherNode(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place, begun, release := fresh(), make(chan struct{}, 1), make(chan struct{})
		n := start(t, place, func(ctx context.Context, _ json.RawMessage) (any, error) {
			begun <- struct{}{}
			<-release
			return "of the node", nil
		}, plainDoc)
		other := start(t, place, nil, plainDoc)
		n.begin(t, "i", "t/plain", nil)
		<-begun
		other.settle(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`"of ann"`), Actor: "ann"})
		close(release)
		n.rested(t)
		if got := n.output(t, "i"); got != `"of ann"` {
			t.Errorf("output %s", got)
		}
		if types := n.types(t, "i"); types["TaskCompleted"] != 1 || types["InstanceCompleted"] != 1 {
			t.Errorf("%v", types)
		}
	})
}

// One outcome: whoever comes first ends the command, and what the other says is stale.
func TestCompleteRacesTheNodesResult(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var gates sync.Map
		n := start(t, fresh(), func(ctx context.Context, _ json.RawMessage) (any, error) {
			gate, _ := gates.LoadOrStore(activity.Info(ctx).Instance, make(chan struct{}))
			<-gate.(chan struct{})
			return "node", nil
		}, plainDoc)
		for i := range 20 {
			id := fmt.Sprint("i-", i)
			gate, _ := gates.LoadOrStore(id, make(chan struct{}))
			n.begin(t, id, "t/plain", nil)
			var wg sync.WaitGroup
			wg.Go(func() { close(gate.(chan struct{})) })
			said := make([]engine.Disposition, 3)
			for k := range said {
				wg.Go(func() {
					var err error
					said[k], err = n.rt.SettleCommand(t.Context(), id, 2, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(fmt.Sprint(k)), Actor: fmt.Sprint("a", k)})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			output := n.output(t, id)
			first := slices.Index(said, engine.Applied)
			if first < 0 && output != `"node"` || first >= 0 && (output != fmt.Sprint(first) || slices.Contains(said[first+1:], engine.Applied)) {
				t.Errorf("%s: output %s, said %v", id, output, said)
			}
			if types := n.types(t, id); types["TaskCompleted"] != 1 || types["InstanceCompleted"] != 1 || types["CommandCompleted"] > 1 {
				t.Errorf("%s: %v", id, types)
			}
		}
		n.settled(t)
	})
}

// What somebody has said of a command of a suspended instance is kept until that goes on: nobody performs
// the command meanwhile, when the lease of who has said it ends or an operator asks.
func TestWhatIsAnsweredIsNotPerformed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), hourly(c), plainDoc)
		n.begin(t, "i", "t/plain", nil)
		n.waits(t, "i")
		if _, err := n.rt.ClaimCommand(t.Context(), "i", 2, "ann", 15*time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := n.rt.Operate(t.Context(), "i", engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		n.settle(t, "i", engine.Buffered, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`5`), Actor: "ann"})
		_, err := n.rt.RetryCommand(t.Context(), "i", 2, "olga")
		code(t, err, "command.settled")
		_, err = n.rt.ClaimCommand(t.Context(), "i", 2, "ann", time.Hour)
		code(t, err, "command.settled")
		eventually(t, "the end of the lease", func() bool {
			queues, err := n.store.Backlog.Queues(t.Context())
			i := slices.IndexFunc(queues, func(q backend.Queue) bool { return q.Name == string(store.Commands) })
			return err == nil && i >= 0 && queues[i].Ready+queues[i].Leased == 0 && queues[i].Delayed == 1 // the attempt in an hour
		})
		n.rested(t)
		if got := c.count(); got != 1 {
			t.Errorf("performed %d times", got)
		}
		if _, err := n.rt.Operate(t.Context(), "i", engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, "i"); got != "5" {
			t.Errorf("output %s", got)
		}
	})
}

// between has something happen right after a command was read, once.
type between struct {
	backend.StreamReader
	mu   sync.Mutex
	then func()
}

func (b *between) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	rows, err := b.StreamReader.Stream(ctx, id, after, limit)
	b.happens()
	return rows, err
}

func (b *between) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	rows, err := b.StreamReader.Pending(ctx, id, limit)
	b.happens()
	return rows, err
}

func (b *between) happens() {
	b.mu.Lock()
	then := b.then
	b.then = nil
	b.mu.Unlock()
	if then != nil {
		then()
	}
}

// A call is sent now for who has seen the instance as it is, and for nobody else.
func TestRunNowOfACallIsOfAVersion(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		b := &between{}
		n := startSet(t, fresh(), func(c *runtime.Config) { b.StreamReader, c.Store.Streams = c.Store.Streams, b },
			func(ctx context.Context, _ json.RawMessage) (any, error) {
				if activity.Info(ctx).Target == engine.TargetEvent {
					return nil, nil
				}
				return nil, activity.RetryAfter(errors.New("away"), time.Hour)
			}, plainDoc)
		n.begin(t, "i", "t/plain", nil)
		n.waits(t, "i")
		row := n.until(t, "i", status("waiting"))
		b.mu.Lock()
		b.then = func() {
			if _, err := n.rt.Operate(t.Context(), "i", engine.Suspend, nil, "bob"); err != nil {
				t.Error(err)
			}
		}
		b.mu.Unlock()
		if _, err := n.rt.RunNow(t.Context(), "i", "", row.Version, "ann"); problem.CodeOf(err) != "instance.changed" {
			t.Errorf("it was suspended meanwhile, and is run: %v", err)
		}
		if types := n.types(t, "i"); types["CommandRetried"] > 0 {
			t.Errorf("%v", types)
		}
	})
}

// Who ends a command that was taken since they looked at it is told so, and says nothing of
// what they do not know.
func TestACommandIsEndedAsItIsNow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		begun, release, b := make(chan struct{}, 10), make(chan struct{}), &between{}
		var sent sync.Map
		effect := func(ctx context.Context, _ json.RawMessage) (any, error) {
			a := activity.Info(ctx)
			if a.Target == engine.TargetEvent {
				return nil, nil
			}
			if _, again := sent.LoadOrStore(a.Instance, true); !again {
				return nil, activity.RetryAfter(errors.New("away"), time.Hour)
			}
			begun <- struct{}{}
			<-release
			return nil, nil
		}
		place := fresh()
		other := living(t, place)
		n := startSet(t, place, func(c *runtime.Config) { b.StreamReader, c.Store.Streams = c.Store.Streams, b }, effect, plainDoc, tellDoc)
		said := func(id string, o ack.Outcome, then func(id string)) (engine.Disposition, error) {
			b.mu.Lock()
			b.then = func() { then(id) }
			b.mu.Unlock()
			return n.rt.SettleCommand(t.Context(), id, 2, ack.Ack{Outcome: o, Actor: "ann"})
		}
		bob := func(id string) {
			if _, err := n.rt.ClaimCommand(t.Context(), id, 2, "bob", time.Hour); err != nil {
				t.Error(err)
			}
		}
		for _, definition := range []string{"plain", "tell"} {
			for _, o := range []ack.Outcome{ack.Processed, ack.Failed} {
				id := definition + string(o)
				n.begin(t, id, "t/"+definition, nil)
				n.waits(t, id)
				if did, err := said(id, o, bob); problem.CodeOf(err) != "command.taken" {
					t.Errorf("%s: ended over bob, who has it since: %q, %v", id, did, err)
				}
			}
		}
		n.begin(t, "sent", "t/plain", nil)
		n.waits(t, "sent")
		did, err := said("sent", ack.Failed, func(id string) {
			if _, err := n.rt.RetryCommand(t.Context(), id, 2, "bob"); err != nil {
				t.Error(err)
			}
			<-begun
		})
		close(release)
		if row := n.row(t, "sent"); did != engine.Applied || err != nil || !row.Unknown {
			t.Errorf("failed while a node sends it: %q, %v, %+v", did, err, row)
		}
		n.begin(t, "late", "t/plain", nil)
		n.waits(t, "late")
		did, err = said("late", ack.Failed, func(id string) { // between the last look at it and the commit
			b.mu.Lock()
			defer b.mu.Unlock()
			b.then = func() {
				claim := store.Claim{InstanceID: id, Position: 2, Owner: other, Attempts: 2}
				if err := n.store.Writer.Commit(t.Context(), store.Change{Claims: []store.Claim{claim}}); err != nil {
					t.Error(err)
				}
			}
		})
		if row := n.row(t, "late"); did != engine.Applied || err != nil || !row.Unknown {
			t.Errorf("failed when a node has just begun to send it: %q, %v, %+v", did, err, row)
		}
	})
}

// Nor is what nobody has tried, because there was no place for it.
func TestWhatIsAnsweredIsNotBegun(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var asked atomic.Int64
		begun, release := make(chan struct{}), make(chan struct{})
		n := startSet(t, fresh(), func(c *runtime.Config) { c.Activities, c.Waiting = 1, 1 }, func(context.Context, json.RawMessage) (any, error) {
			if asked.Add(1) == 1 {
				close(begun)
				<-release
			}
			return 1, nil
		}, plainDoc)
		n.begin(t, "busy", "t/plain", nil)
		<-begun
		n.begin(t, "waits", "t/plain", nil) // the one that may
		n.begin(t, "i", "t/plain", nil)
		eventually(t, "the announcement of what has no place", func() bool {
			row := n.row(t, "i")
			return row.ClaimedBy == "" && row.Attempts == 0
		})
		if _, err := n.rt.Operate(t.Context(), "i", engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		n.settle(t, "i", engine.Buffered, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`5`), Actor: "ann"})
		close(release)
		n.output(t, "busy")
		n.output(t, "waits")
		n.unannounced(t)
		n.rested(t)
		if got := asked.Load(); got != 2 {
			t.Errorf("the outside was asked %d times, for two commands", got)
		}
		if _, err := n.rt.Operate(t.Context(), "i", engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, "i"); got != "5" {
			t.Errorf("output %s", got)
		}
	})
}

// Nor by a node in whose memory it waits for its place when that is said.
func TestWhatIsAnsweredWhileItWaitsIsNotPerformed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		entered, free := make(chan string, 4), make(chan struct{})
		n := startSet(t, fresh(), func(c *runtime.Config) { c.Activities = 1 }, func(_ context.Context, input json.RawMessage) (any, error) {
			entered <- string(input)
			<-free
			return 1, nil
		}, doc("waiting", `
  - call: {call: effect, with: {of: '${ .of }'}}
`))
		n.begin(t, "first", "t/waiting", json.RawMessage(`{"of":1}`))
		<-entered
		n.begin(t, "second", "t/waiting", json.RawMessage(`{"of":2}`))
		eventually(t, "the second waits", func() bool { return n.rt.WaitsFor("second", 2) != "" })
		if _, err := n.rt.Operate(t.Context(), "second", engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		n.settle(t, "second", engine.Buffered, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`5`), Actor: "ann"})
		n.begin(t, "third", "t/waiting", json.RawMessage(`{"of":3}`)) // behind it
		close(free)
		n.until(t, "third", status("completed"))
		if got := <-entered; got != `{"of":3}` {
			t.Errorf("%s was performed", got)
		}
		if _, err := n.rt.Operate(t.Context(), "second", engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, "second"); got != "5" {
			t.Errorf("output %s", got)
		}
		if len(entered) > 0 {
			t.Errorf("%s was performed, too", <-entered)
		}
	})
}

func TestACommandIsClaimedOutside(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), hourly(c), plainDoc)
		for _, id := range []string{"won", "lapsed", "again"} {
			n.begin(t, id, "t/plain", nil)
			n.waits(t, id)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for k := range 8 {
			wg.Go(func() {
				who := fmt.Sprint("worker-", k)
				row, err := n.rt.ClaimCommand(t.Context(), "won", 2, who, time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, who)
					if row.Key == "" || ack.Claimant(row.LastError, row.NextAttemptAt, time.Now()) != who {
						t.Errorf("%+v", row)
					}
				} else if problem.CodeOf(err) != "command.taken" {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%v have the command", won)
		}
		if _, err := n.rt.SettleCommand(t.Context(), "won", 2, ack.Ack{Outcome: ack.Processed, Actor: "somebody"}); problem.CodeOf(err) != "command.taken" {
			t.Errorf("ended by another: %v", err)
		}
		if _, err := n.rt.ClaimCommand(t.Context(), "won", 2, won[0], 2*time.Hour); err != nil {
			t.Errorf("for longer: %v", err)
		}
		n.settle(t, "won", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`5`), Actor: won[0]})
		if got := n.output(t, "won"); got != "5" {
			t.Errorf("output %s", got)
		}

		row, err := n.rt.ClaimCommand(t.Context(), "lapsed", 2, "ann", time.Second)
		if err != nil || !row.Unknown || row.Attempts != 1 {
			t.Fatalf("%+v, %v", row, err)
		}
		if _, err := n.rt.ClaimCommand(t.Context(), "again", 2, "ann", time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, "lapsed"); got != `"the answer of a delivery"` {
			t.Errorf("output %s", got)
		}
		if row, err := n.rt.RetryCommand(t.Context(), "again", 2, "olga"); err != nil || row.LastError != "function failed: away" {
			t.Errorf("%+v, %v", row, err)
		}
		eventually(t, "an attempt", func() bool { return c.count() >= 5 })
		n.rested(t)
		inputs, attempts := c.seen()
		if len(inputs) != 3 || len(attempts) < 5 {
			t.Errorf("keys %v, %d attempts", inputs, len(attempts))
		}
		for code, claim := range map[string]func() error{
			"a name":    func() error { _, err := n.rt.ClaimCommand(t.Context(), "again", 2, "", time.Minute); return err },
			"an eon":    func() error { _, err := n.rt.ClaimCommand(t.Context(), "again", 2, "ann", 1000*time.Hour); return err },
			"no moment": func() error { _, err := n.rt.ClaimCommand(t.Context(), "again", 2, "ann", 0); return err },
		} {
			if err := claim(); problem.CodeOf(err) != "command.invalid" {
				t.Errorf("%s: %v", code, err)
			}
		}
	})
}

// What nobody waits for, and what its consumer acknowledges, is ended the same way.
func TestEveryKindOfCommandIsEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), hourly(c), ackDoc, tellDoc)
		for _, id := range []string{"ack", "tell", "tell-failed"} {
			n.begin(t, id, "t/"+strings.TrimSuffix(id, "-failed"), nil)
			n.waits(t, id)
		}
		n.settle(t, "ack", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`3`), Actor: "ann"})
		if got := n.output(t, "ack"); got != "3" {
			t.Errorf("output %s", got)
		}
		n.settle(t, "tell", engine.Applied, ack.Ack{Outcome: ack.Processed, Actor: "ann"})
		n.settle(t, "tell-failed", engine.Applied, ack.Ack{Outcome: ack.Failed, Actor: "ann"})
		deadLetters, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		if err != nil || len(deadLetters.Items) != 1 || deadLetters.Items[0].InstanceID != "tell-failed" {
			t.Fatalf("%+v, %v", deadLetters.Items, err)
		}
		n.settle(t, "tell-failed", engine.Applied, ack.Ack{Outcome: ack.Processed, Actor: "ann"})
		for _, id := range []string{"ack", "tell", "tell-failed"} {
			if row := n.row(t, id); !*row.Processed {
				t.Errorf("%s: %+v", id, row)
			}
		}
	})
}

// TestTheEndOfACommandIsCutOff cuts the line at the commit that ends a command, or
// claims it: it is made once, and said so.
func TestTheEndOfACommandIsCutOff(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, made := range []bool{false, true} {
			c := &consumer{}
			u := &unsureOf{made: made, kind: func(c store.Change) bool { return len(c.Audit) > 0 }}
			n, err := open(t.Context(), fresh(), func(p backend.Parts) backend.Parts { u.Writer, p.Writer = p.Writer, u; return p }, hourly(c), plainDoc)
			if err != nil {
				t.Fatal(err)
			}
			n.begin(t, "i", "t/plain", nil)
			n.waits(t, "i")
			u.armed.Store(true)
			if _, err := n.rt.ClaimCommand(t.Context(), "i", 2, "ann", time.Hour); err != nil || u.armed.Load() {
				t.Errorf("made %t: %v", made, err)
			}
			u.armed.Store(true)
			n.settle(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`7`), Actor: "ann"})
			if got := n.output(t, "i"); got != "7" || u.armed.Load() {
				t.Errorf("made %t: output %s", made, got)
			}
			if types := n.types(t, "i"); types["CommandCompleted"] != 1 || types["TaskCompleted"] != 1 {
				t.Errorf("made %t: %v", made, types)
			}
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}
	})
}
