package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// noteOf is what the last entry of a type says of a command.
func (n *testNode) noteOf(t *testing.T, id, entryType string) (note ack.Note) {
	t.Helper()
	l := n.entries(t, id, entryType)
	if err := json.Unmarshal(l[len(l)-1].Data, &note); err != nil {
		t.Fatal(err)
	}
	return note
}

func givenUp(row projections.Entry) bool { return strings.HasPrefix(row.LastError, "AckGivenUp: ") }

// isAnOperators holds a command that was given up to be claimed, tried again and failed by
// nobody.
func (n *testNode) isAnOperators(t *testing.T, id string, position int64) {
	t.Helper()
	_, claimed := n.rt.ClaimCommand(t.Context(), id, position, "press-7", time.Second)
	_, retried := n.rt.RetryCommand(t.Context(), id, position, "op")
	_, failed := n.rt.SettleCommand(t.Context(), id, position, ack.Ack{Outcome: ack.Failed, Actor: "op"})
	for _, err := range []error{claimed, retried, failed} {
		code(t, err, "command.given-up")
	}
}

// After failed, whose dead letter an operator has, a consumer changes nothing but by
// processed; a replay begins anew, with what was counted before.
func TestAfterFailedOnlyProcessedCounts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, tellDoc)
		n.begin(t, "i", "t/tell", nil)
		n.delivered(t, "i", 1)
		for times := 2; times <= 3; times++ {
			n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry})
			n.delivered(t, "i", times)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry, Delay: time.Hour})
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Title: "No"}})
		if note := n.noteOf(t, "i", "AckFailed"); note.Deliveries != 3 {
			t.Errorf("failed after %d deliveries", note.Deliveries)
		}
		unchanged := func(row projections.Entry) {
			t.Helper()
			for _, o := range []ack.Outcome{ack.Delivered, ack.Retry, ack.Failed, ack.Retry} {
				n.ack(t, "i", engine.Duplicate, ack.Ack{Outcome: o})
			}
			if got := n.row(t, "i"); !got.NextAttemptAt.Equal(row.NextAttemptAt) || got.LastError != row.LastError || got.ClaimedBy != "" {
				t.Errorf("%+v, before %+v", got, row)
			}
		}
		row := n.row(t, "i")
		if row.Deliveries != 3 || *row.Processed || row.LastError != "AckGivenUp: No: " || !givenUp(row) {
			t.Errorf("%+v", row)
		}
		unchanged(row)
		l := n.deadLetters(t, 1)
		if l[0].Reason != "ack.failed" || l[0].Attempts != 3 {
			t.Errorf("%+v", l[0])
		}
		if _, err := n.rt.Replay(t.Context(), l[0].ID); err != nil {
			t.Fatal(err)
		}
		if row = n.delivered(t, "i", 4); givenUp(row) || c.count() != 4 || !row.NextAttemptAt.After(time.Now()) {
			t.Errorf("replayed: %+v, %d", row, c.count())
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry, Delay: time.Hour})
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Failed})
		row = n.row(t, "i")
		unchanged(row)
		n.deadLetters(t, 1)
		n.isAnOperators(t, "i", 2)
		if l = n.deadLetters(t, 1); len(l) != 1 || c.count() != 4 {
			t.Errorf("%+v, %d deliveries", l, c.count())
		}
		unchanged(row)
		if _, err := n.rt.Replay(t.Context(), l[0].ID); err != nil {
			t.Fatal(err)
		}
		n.delivered(t, "i", 5)
		if _, err := n.rt.ClaimCommand(t.Context(), "i", 2, "press-7", time.Hour); err != nil { // as any that is open
			t.Error(err)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Failed})
		if l = n.deadLetters(t, 1); len(l) != 1 {
			t.Errorf("%+v", l)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Processed})
		n.settled(t)
		n.ack(t, "i", engine.Duplicate, ack.Ack{Outcome: ack.Processed})
	})
}

// Whatever a consumer asks for, its command is given up at its age: the next look is no
// later. A replay begins a new age.
func TestNoDelayOutlivesTheAge(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, tellDoc)
		age := 15 * time.Second // in which even a busy machine makes a few commits
		n.rt.Config.AckAge = age
		n.begin(t, "i", "t/tell", map[string]any{"within": "P2D"})
		row := n.delivered(t, "i", 1)
		if row.NextAttemptAt.After(row.DeliveredAt.Add(age)) { // it was claimed before
			t.Errorf("the next look is at %s, made at %s, delivered at %s", row.NextAttemptAt, row.CreatedAt, row.DeliveredAt)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry, Delay: ack.MaxDelay})
		var page backend.Page[projections.DeadLetter]
		given := func() {
			t.Helper()
			eventually(t, "it is given up", func() bool {
				var err error
				page, err = n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Reason: "ack.missing"})
				return err == nil && len(page.Items) == 1
			})
		}
		given()
		row = n.row(t, "i")
		if l := page.Items[0]; l.Attempts != 1 || !strings.Contains(l.Detail, "after 1 deliveries and 0 failed attempts") || row.Deliveries != 1 || !givenUp(row) {
			t.Errorf("%+v, %+v", l, row)
		}
		n.ack(t, "i", engine.Duplicate, ack.Ack{Outcome: ack.Retry})
		replayed := time.Now()
		if _, err := n.rt.Replay(t.Context(), page.Items[0].ID); err != nil {
			t.Fatal(err)
		}
		row = n.delivered(t, "i", 2)
		if left := row.NextAttemptAt.Sub(replayed); left < age-time.Second {
			t.Errorf("the new age ends %s after the replay", left)
		}
		n.ack(t, "i", engine.Applied, ack.Ack{Outcome: ack.Retry}) // which begins no age that is over
		n.delivered(t, "i", 3)
		before := time.Now()
		claimed, err := n.rt.ClaimCommand(t.Context(), "i", 2, "ann", time.Hour)
		if left := claimed.NextAttemptAt.Sub(before); err != nil || left < age/3 || claimed.NextAttemptAt.After(time.Now().Add(age)) {
			t.Errorf("a claim for an hour is for %s, %v", left, err)
		}
		given()
		code(t, func() error {
			_, err := n.rt.Acknowledge(t.Context(), "i", 2, ack.Ack{Outcome: ack.Retry, Delay: ack.MaxDelay + 1})
			return err
		}(), "ack.invalid")
	})
}

// A dead letter that is replayed waits for its place like any other, however old it is: it was given
// up at once where none was free.
func TestAnOldDeadLetterWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var ahead, refusals atomic.Int64
		refusals.Store(1)
		begun, release, sent := make(chan struct{}, 1), make(chan struct{}), make(chan string, 2)
		n := startSet(t, fresh(), func(c *runtime.Config) {
			c.Activities, c.Now = 1, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		}, func(ctx context.Context, _ json.RawMessage) (any, error) {
			switch {
			case activity.Info(ctx).Target != engine.TargetEvent:
				begun <- struct{}{}
				<-release
			case refusals.Add(-1) >= 0:
				return nil, activity.Permanent(errors.New("no such topic"))
			default:
				sent <- activity.Info(ctx).Instance
			}
			return nil, nil
		}, emitDoc, callDoc)
		n.begin(t, "emits", "t/emit", map[string]any{"order": 1})
		d := n.deadLetter(t, "emits")
		_, err := n.rt.SettleCommand(t.Context(), "emits", 2, ack.Ack{Outcome: ack.Failed, Actor: "op"})
		code(t, err, "command.given-up")
		n.deadLetter(t, "emits") // and no other
		ahead.Store(int64(2 * runtime.DefaultGiveUpAfter))
		n.begin(t, "busy", "t/call", nil)
		<-begun
		if _, err := n.rt.DeadLetters.Replay(t.Context(), d.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its wait", func() bool { return n.rt.WaitsFor("emits", 2) != "" })
		n.begin(t, "behind", "t/emit", map[string]any{"order": 2}) // it waits, too, and is not late either
		eventually(t, "another wait", func() bool { return n.rt.WaitsFor("behind", 2) != "" })
		close(release)
		if first, then := <-sent, <-sent; first == then {
			t.Errorf("%s was sent twice", first)
		}
	})
}
