package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var (
	ackDoc = doc("ack", `
  - ship:
      call: acknowledged
      with: {call: effect, with: {order: '${ .order }'}, within: '${ .within // "PT1H" }'}
`)
	tellDoc = doc("tell", `
  - tell:
      call: acknowledged
      with: {call: effect, with: {order: '${ .order }'}, within: '${ .within // "PT1H" }', await: false}
`)
	plainDoc = doc("plain", `
  - call: {call: effect, with: {}}
`)
)

// consumer is the function "effect" as a consumer of acknowledged commands.
type consumer struct {
	mu       sync.Mutex
	attempts []activity.Attempt
	inputs   map[string]bool
	during   func(a activity.Attempt) error // while the delivery lasts; nil = nothing
	aborted  int                            // deliveries whose context ended
}

func (c *consumer) take(ctx context.Context, input json.RawMessage) (any, error) {
	a := activity.Info(ctx)
	if a.Target == engine.TargetEvent {
		return nil, nil
	}
	c.mu.Lock()
	if c.inputs == nil {
		c.inputs = map[string]bool{}
	}
	c.attempts, c.inputs[a.Key+" "+string(input)+" "+a.Ack] = append(c.attempts, a), true
	during := c.during
	c.mu.Unlock()
	var err error
	if during != nil {
		err = during(a)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		c.aborted++
	}
	return "the answer of a delivery", err
}

func (c *consumer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.attempts)
}

// seen returns what was delivered: distinct keys with their inputs, and every
// attempt.
func (c *consumer) seen() (inputs map[string]bool, attempts []activity.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.inputs), slices.Clone(c.attempts)
}

// row is the command of an instance at position 2.
func (n *testNode) row(t *testing.T, id string) projections.Entry {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 1, 1)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	return rows[0]
}

// delivered waits until a command has been delivered so often, and is nobody's.
func (n *testNode) delivered(t *testing.T, id string, times int) projections.Entry {
	t.Helper()
	var row projections.Entry
	eventually(t, "delivery", func() bool {
		row = n.row(t, id)
		return row.Deliveries >= times && row.ClaimedBy == "" && !row.DeliveredAt.IsZero()
	})
	return row
}

// rested waits until no attempt is under way.
func (n *testNode) rested(t *testing.T) {
	t.Helper()
	eventually(t, "end of attempts", func() bool { return n.counted(t, "aqueduct_commands_running")[""] == 0 })
}

func (n *testNode) ack(t *testing.T, id string, want engine.Disposition, a ack.Ack) {
	t.Helper()
	if got, err := n.rt.Acknowledge(t.Context(), id, 2, a); got != want || err != nil {
		t.Errorf("%s: %q, %v, want %q", a.Outcome, got, err, want)
	}
}

func TestDeliveredIsPerformedAgainUntilProcessed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, ackDoc)
		n.begin(t, "i", "t/ack", map[string]any{"order": 7, "within": "PT0.1S"})
		eventually(t, "three deliveries", func() bool { return c.count() >= 3 })
		row := n.delivered(t, "i", 3)
		if *row.Processed || row.Attempts != 0 || !strings.HasPrefix(row.LastError, "AckReminderProcessedPending: ") || row.NextAttemptAt.Sub(row.DeliveredAt) < 99*time.Millisecond {
			t.Errorf("row %+v", row)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`{"parcel":1}`), Actor: "shop"})
		if got := n.output(t, "i"); got != `{"parcel":1}` {
			t.Errorf("output %s", got)
		}
		for _, o := range []ack.Outcome{ack.Processed, ack.Failed, ack.Retry, ack.Delivered} {
			n.ack(t, "i", "duplicate", ack.Ack{Outcome: o})
		}
		n.rested(t)
		before := c.count()
		time.Sleep(300 * time.Millisecond) // what is announced comes to nothing
		inputs, attempts := c.seen()
		if len(inputs) != 1 || !inputs[n.key(t, "i", 2)+` {"order":7} /v1/instances/i/commands/2/ack`] || len(attempts) > before {
			t.Errorf("deliveries %v, %d then %d", inputs, before, len(attempts))
		}
		for i, a := range attempts {
			if a.Number != i+1 {
				t.Errorf("attempt %d says it is %d", i+1, a.Number)
			}
		}
		if acks, again := n.counted(t, "aqueduct_acknowledgements_total"), n.counted(t, "aqueduct_commands_redelivered_total"); fmt.Sprint(acks) != "map[duplicate:4 processed:1]" || again["effect"] != len(attempts)-1 {
			t.Errorf("counted %v and %v after %d deliveries", acks, again, len(attempts))
		}
		entries, err := n.store.Streams.Stream(t.Context(), "i", 0, 0)
		notes := map[string]int{}
		for _, e := range entries {
			if notes[e.Type]++; (e.Type == "TaskCompleted" || e.Type == "AckProcessed") && !strings.Contains(string(e.Metadata), `"actor":"shop"`) {
				t.Errorf("%s: %s", e.Type, e.Metadata)
			}
		}
		reminders := len(attempts) - 1
		want := map[string]int{
			"InstanceStarted": 1, "Call": 1, "AckProcessed": 1, "TaskCompleted": 1, "InstanceCompleted": 1, "AckRepeated": 1,
			"AckReminderProcessedPending": reminders, "EventEmitted": reminders + 2,
		}
		if err != nil || !maps.Equal(notes, want) {
			t.Errorf("%v, want %v, %v", notes, want, err)
		}
	})
}

// TestAckDuringItsDelivery has the consumer speak before its answer, however
// that ends.
func TestAckDuringItsDelivery(t *testing.T) {
	t.Parallel()
	refused := activity.Permanent(errors.New("refused"))
	outcomes := map[string]ack.Ack{
		"processed": {Outcome: ack.Processed, Output: json.RawMessage(`1`)},
		"failed":    {Outcome: ack.Failed, Error: &snapshot.Error{Title: "Sold out"}},
		"delivered": {Outcome: ack.Delivered},
		"retry":     {Outcome: ack.Retry, Delay: time.Hour},
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, ackDoc, tellDoc)
		ends := map[string]error{"answers": nil, "breaks": errors.New("broken"), "refuses": refused}
		c.during = func(a activity.Attempt) error {
			parts := strings.Split(a.Instance, "-")
			if did, err := n.rt.Acknowledge(context.Background(), a.Instance, 2, outcomes[parts[1]]); did != engine.Applied || err != nil {
				t.Errorf("%s: %s, %v", a.Instance, did, err)
			}
			return ends[parts[2]]
		}
		for _, definition := range []string{"ack", "tell"} {
			for outcome := range outcomes {
				for end := range ends {
					n.begin(t, definition+"-"+outcome+"-"+end, "t/"+definition, nil)
				}
			}
		}
		eventually(t, "deliveries", func() bool { return c.count() == 24 })
		eventually(t, "answers", func() bool {
			open, err := n.store.Streams.Pending(t.Context(), "", 0)
			return err == nil && !slices.ContainsFunc(open, func(e projections.Entry) bool { return e.ClaimedBy != "" })
		})
		if c.mu.Lock(); c.aborted > 0 {
			t.Errorf("%d deliveries were aborted", c.aborted)
		}
		c.mu.Unlock()
		n.stop() // and wait for what is under way
		eventually(t, "workers", func() bool { return len(n.done) == 1 })
		for end := range ends {
			for _, definition := range []string{"ack", "tell"} {
				if row := n.row(t, definition+"-processed-"+end); !*row.Processed || row.Deliveries != 0 {
					t.Errorf("processed: %+v", row)
				}
				if row := n.row(t, definition+"-delivered-"+end); *row.Processed || row.Deliveries != 1 || row.DeliveredAt.IsZero() || row.ClaimedBy != "" || row.Attempts != 0 {
					t.Errorf("delivered: %+v", row)
				}
				row := n.row(t, definition+"-retry-"+end)
				if *row.Processed || row.Deliveries != 1 || !row.DeliveredAt.IsZero() || row.ClaimedBy != "" || !strings.HasPrefix(row.LastError, "AckRetryPending: ") {
					t.Errorf("retry: %+v", row)
				}
			}
			n.until(t, "ack-processed-"+end, status("completed"))
			n.until(t, "ack-failed-"+end, status("faulted"))
			n.until(t, "ack-delivered-"+end, status("waiting"))
			if row := n.row(t, "tell-failed-"+end); *row.Processed || row.LastError != "AckGivenUp: Sold out: " || row.ClaimedBy != "" {
				t.Errorf("failed: %+v", row)
			}
		}
		deadLetters, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Limit: 100})
		if err != nil || len(deadLetters.Items) != 3 {
			t.Errorf("dead letters %+v, %v", deadLetters.Items, err)
		}
	})
}

func TestFailedIsAnErrorOrOneDeadLetter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, ackDoc, tellDoc)
		n.begin(t, "i", "t/ack", nil)
		n.begin(t, "told", "t/tell", map[string]any{"within": "PT0.3S"})
		n.output(t, "told")
		n.delivered(t, "i", 1)
		n.delivered(t, "told", 1)
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Detail: "no stock"}})
		n.until(t, "i", status("faulted"))
		s, err := n.store.Writer.Load(t.Context(), "i")
		if err != nil || s.Error.Type != engine.ErrorBase+"communication" || s.Error.Status != 500 || s.Error.Detail != "no stock" {
			t.Errorf("%+v, %v", s.Error, err)
		}
		n.ack(t, "told", engine.Applied, ack.Ack{Outcome: ack.Failed})
		n.ack(t, "told", "duplicate", ack.Ack{Outcome: ack.Failed})
		n.rested(t)
		before := c.count()
		time.Sleep(500 * time.Millisecond) // the reminder that was announced before comes to nothing
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		if err != nil || len(page.Items) != 1 || page.Items[0].Reason != "ack.failed" || page.Items[0].InstanceID != "told" || c.count() != before {
			t.Fatalf("%+v, %v, %d deliveries, then %d", page.Items, err, before, c.count())
		}
		if err := n.store.DeadLetters.Replay(t.Context(), page.Items[0].ID, 0, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "replay", func() bool { return c.count() > before })
		n.ack(t, "told", engine.Applied, ack.Ack{Outcome: ack.Processed})
		n.settled(t)
	})
}

func TestRetryAndDeliveredMoveTheNextDelivery(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, tellDoc)
		n.begin(t, "i", "t/tell", nil)
		n.delivered(t, "i", 1)
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry})
		eventually(t, "at once", func() bool { return c.count() == 2 })
		first := n.delivered(t, "i", 2)
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry, Delay: 50 * time.Millisecond})
		eventually(t, "after a while", func() bool { return c.count() == 3 })
		n.delivered(t, "i", 3)
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Delivered})
		if row := n.row(t, "i"); !row.NextAttemptAt.After(first.NextAttemptAt) || row.Deliveries != 3 || c.count() != 3 {
			t.Errorf("%+v", row)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`{}`)})
		n.settled(t)
	})
}

// TestUnacknowledgedIsGivenUp counts deliveries apart from failures: those are
// held to the performer's policy between two deliveries.
func TestUnacknowledgedIsGivenUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{during: func(a activity.Attempt) error {
			if a.Number%4 != 0 { // of 5 attempts
				return errors.New("away")
			}
			return nil
		}}
		n := start(t, fresh(), c.take, ackDoc, tellDoc)
		n.rt.Config.AckAge = 15 * time.Second // in which even a busy machine ends the first attempt
		n.begin(t, "i", "t/ack", map[string]any{"within": "PT0.05S"})
		n.begin(t, "told", "t/tell", map[string]any{"within": "PT0.05S"})
		n.until(t, "i", status("faulted"))
		s, err := n.store.Writer.Load(t.Context(), "i")
		if err != nil || s.Error.Type != engine.ErrorBase+"timeout" || s.Error.Status != 504 || s.Error.Title != "Not acknowledged" {
			t.Errorf("%+v, %v", s.Error, err)
		}
		var page backend.Page[projections.DeadLetter]
		eventually(t, "dead letter", func() bool {
			page, err = n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Reason: "ack.missing"})
			return err == nil && len(page.Items) == 1
		})
		if page.Items[0].InstanceID != "told" || n.row(t, "told").ClaimedBy != "" {
			t.Errorf("%+v", page.Items)
		}
		inputs, _ := c.seen()
		if row := n.row(t, "i"); !*row.Processed || row.Deliveries+row.Attempts < 2 || len(inputs) != 2 {
			t.Errorf("%+v, %v", row, inputs)
		}
		n.ack(t, "told", engine.Applied, ack.Ack{Outcome: ack.Processed}) // late, and still right
		if err := n.store.DeadLetters.Replay(t.Context(), page.Items[0].ID, 0, nil); err != nil {
			t.Fatal(err)
		}
		n.settled(t)
	})
}

// An acknowledgement by the wrong consumer changes nothing; twice and late ones are
// duplicates, of which the first is in the stream.
func TestAcksOfTheWrongConsumerTwiceAndLate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, ackDoc)
		n.begin(t, "i", "t/ack", nil)
		before := n.delivered(t, "i", 1)
		for _, outcome := range []ack.Outcome{ack.Processed, ack.Failed, ack.Delivered, ack.Retry} {
			_, err := n.rt.Acknowledge(t.Context(), "i", 2, ack.Ack{Outcome: outcome, Consumer: "billing"})
			code(t, err, "ack.wrong-consumer")
		}
		if row := n.row(t, "i"); !reflect.DeepEqual(row, before) || len(n.types(t, "i")) != 2 {
			t.Errorf("%+v, %v", row, n.types(t, "i"))
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed, Consumer: "ship"})
		n.until(t, "i", status("completed"))
		for range 3 {
			n.ack(t, "i", engine.Duplicate, ack.Ack{Outcome: ack.Processed, Consumer: "ship"})
		}
		n.ack(t, "i", engine.Duplicate, ack.Ack{Outcome: ack.Failed})
		e, err := n.store.Streams.Received(t.Context(), "i", "AckRepeated/2")
		if err != nil || e.Attempts != 3 || n.types(t, "i")["AckRepeated"] != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

func TestAckMeetsTheEndOfItsInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, ackDoc)
		for _, id := range []string{"cancelled", "suspended"} {
			n.begin(t, id, "t/ack", map[string]any{"within": "PT0.2S"})
			n.delivered(t, id, 1)
		}
		for id, op := range map[string]engine.Operation{"cancelled": engine.Cancel, "suspended": engine.Suspend} {
			if _, err := n.rt.Operate(t.Context(), id, op, nil, "olga"); err != nil {
				t.Fatal(err)
			}
		}
		n.ack(t, "cancelled", "duplicate", ack.Ack{Outcome: ack.Processed})
		n.ack(t, "suspended", engine.Buffered, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`5`)})
		n.ack(t, "suspended", "duplicate", ack.Ack{Outcome: ack.Failed})
		n.rested(t)
		before := c.count()
		time.Sleep(500 * time.Millisecond) // what is kept is not asked for again
		if c.count() > before+1 {          // one may have been under way
			t.Errorf("%d deliveries, then %d", before, c.count())
		}
		if _, err := n.rt.Operate(t.Context(), "suspended", engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, "suspended"); got != "5" {
			t.Errorf("output %s", got)
		}
	})
}

func TestAcksRace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, ackDoc, tellDoc)
		for i := range 10 {
			id := fmt.Sprint("i-", i)
			n.begin(t, id, []string{"t/ack", "t/tell"}[i%2], map[string]any{"within": "PT0.01S"})
			var wg sync.WaitGroup
			got := make(chan engine.Disposition, 8)
			for k := range 8 {
				wg.Go(func() {
					a := ack.Ack{Outcome: ack.Processed}
					if k%4 == 3 {
						a.Outcome = ack.Retry
					}
					did, err := n.rt.Acknowledge(t.Context(), id, 2, a)
					if err != nil {
						t.Error(err)
					}
					if a.Outcome == ack.Processed {
						got <- did
					}
				})
			}
			wg.Wait()
			close(got)
			applied := 0
			for did := range got {
				if did == engine.Applied {
					applied++
				}
			}
			if applied != 1 {
				t.Errorf("%s: %d acknowledgements were applied", id, applied)
			}
			n.until(t, id, status("completed"))
		}
		n.settled(t)
	})
}

// unsureOf cuts the line at the next commit of a kind, before it is made or
// after.
type unsureOf struct {
	store.Writer
	kind  func(c store.Change) bool
	armed atomic.Bool
	made  bool
}

func (u *unsureOf) Commit(ctx context.Context, c store.Change) error {
	if !u.kind(c) || !u.armed.CompareAndSwap(true, false) {
		return u.Writer.Commit(ctx, c)
	}
	cut := store.Unknown(errors.New("the line was cut"))
	if u.made {
		return errors.Join(cut, u.Writer.Commit(ctx, c))
	}
	return cut
}

// TestAckOfAnUnknownCommit cuts the line at the commits of an acknowledgement
// and of a delivery: it is made once, and said to be applied.
func TestAckOfAnUnknownCommit(t *testing.T) {
	t.Parallel()
	acks := []ack.Ack{
		{Outcome: ack.Processed}, {Outcome: ack.Failed}, {Outcome: ack.Delivered}, {Outcome: ack.Retry, Delay: time.Hour},
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, made := range []bool{false, true} {
			c := &consumer{}
			u := &unsureOf{made: made, kind: func(c store.Change) bool {
				return len(c.Rows.Settled) > 0 || len(c.Claims) > 0 && c.Claims[0].Owner == ""
			}}
			n, err := open(t.Context(), fresh(), func(p backend.Parts) backend.Parts { u.Writer, p.Writer = p.Writer, u; return p }, c.take, ackDoc, tellDoc)
			if err != nil {
				t.Fatal(err)
			}
			for _, definition := range []string{"ack", "tell"} {
				for _, a := range acks {
					id := definition + "-" + string(a.Outcome)
					u.armed.Store(true)
					n.begin(t, id, "t/"+definition, nil)
					if row := n.delivered(t, id, 1); row.Deliveries != 1 {
						t.Errorf("%s, made %t: %+v", id, made, row)
					}
					u.armed.Store(true)
					n.ack(t, id, engine.Applied, a)
					if row := n.row(t, id); u.armed.Load() || row.ClaimedBy != "" || *row.Processed != (a.Outcome == ack.Processed || id == "ack-failed") {
						t.Errorf("%s, made %t: %+v", id, made, row)
					}
				}
			}
			deadLetters, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
			if err != nil || len(deadLetters.Items) != 1 || c.count() != 2*len(acks) {
				t.Errorf("made %t: %d deliveries, dead letters %+v, %v", made, c.count(), deadLetters.Items, err)
			}
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAckProblems(t *testing.T) {
	t.Parallel()
	c := &consumer{during: func(activity.Attempt) error { return activity.Permanent(errors.New("away")) }}
	n := start(t, testdb.OnFile(t)(), c.take, plainDoc, tellDoc)
	n.begin(t, "plain", "t/plain", nil)
	n.begin(t, "i", "t/tell", nil)
	for _, x := range []struct {
		instance string
		position int64
		ack      ack.Ack
		code     string
	}{
		{"nobody", 2, ack.Ack{Outcome: ack.Processed}, "command.unknown"},
		{"i", 1, ack.Ack{Outcome: ack.Processed}, "command.unknown"},
		{"i", 9, ack.Ack{Outcome: ack.Processed}, "command.unknown"},
		{"i", -3, ack.Ack{Outcome: ack.Processed}, "command.unknown"},
		{"plain", 2, ack.Ack{Outcome: ack.Processed}, "ack.unexpected"},
		{"i", 2, ack.Ack{}, "ack.invalid"},
		{"i", 2, ack.Ack{Outcome: "done"}, "ack.invalid"},
		{"i", 2, ack.Ack{Outcome: ack.Retry, Output: json.RawMessage(`1`)}, "ack.invalid"},
		{"i", 2, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`{`)}, "ack.invalid"},
		{"i", 2, ack.Ack{Outcome: ack.Processed, Error: &snapshot.Error{}}, "ack.invalid"},
		{"i", 2, ack.Ack{Outcome: ack.Processed, Delay: 1}, "ack.invalid"},
		{"i", 2, ack.Ack{Outcome: ack.Retry, Delay: -1}, "ack.invalid"},
	} {
		if _, err := n.rt.Acknowledge(t.Context(), x.instance, x.position, x.ack); problem.CodeOf(err) != x.code {
			t.Errorf("%s/%d %+v: %v, want %s", x.instance, x.position, x.ack, err, x.code)
		}
	}
	// One that could never be delivered is a dead letter like an event, by its own name.
	eventually(t, "dead letter", func() bool {
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Reason: "command.undelivered"})
		return err == nil && len(page.Items) == 1 && page.Items[0].Attempts == 1
	})
}
