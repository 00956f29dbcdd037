package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// letter waits for the dead letter of an instance.
func (n *testNode) deadLetter(t *testing.T, instance string) projections.DeadLetter {
	t.Helper()
	var page backend.Page[projections.DeadLetter]
	eventually(t, "dead letter", func() bool {
		var err error
		page, err = n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{InstanceID: instance})
		return err == nil && len(page.Items) == 1
	})
	return page.Items[0]
}

// purged deletes what may be deleted, and returns how many instances that were.
func (n *testNode) purged(t *testing.T) int {
	t.Helper()
	count, err := n.store.Retention.Purge(t.Context(), time.Now().Add(time.Hour), 10)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func (n *testNode) discard(t *testing.T, id string) {
	t.Helper()
	if err := n.rt.Discard(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// TestDiscardGivesTheCommandUp: an open command keeps its instance, so that
// neither is lost to retention, until somebody gives it up.
func TestDiscardGivesTheCommandUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), func(context.Context, json.RawMessage) (any, error) {
			return nil, activity.Permanent(errors.New("gone"))
		}, emitDoc)
		n.begin(t, "i", "t/emit", nil)
		n.output(t, "i")
		deadLetter := n.deadLetter(t, "i")
		if got := n.purged(t); got != 0 {
			t.Fatalf("%d instances deleted, with the command that a dead letter is about", got)
		}
		n.discard(t, deadLetter.ID)
		if row := n.row(t, "i"); !*row.Processed || row.LastError == "" {
			t.Errorf("given up: %+v", row)
		}
		if err := n.rt.Discard(t.Context(), deadLetter.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("discarded twice: %v", err)
		}
		if got := n.purged(t); got != 1 {
			t.Errorf("%d instances deleted", got)
		}
	})
}

// TestDiscardLeavesWhatGoesOn: a dead letter may be about the past of its command.
func TestDiscardLeavesWhatGoesOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, tellDoc, ackDoc)
		discarded := func(instance, id string, body []byte) {
			deadLetter := projections.DeadLetter{ID: id, Queue: string(store.Commands), InstanceID: instance, Envelope: body, Reason: "r"}
			if err := n.store.Writer.Commit(t.Context(), store.Change{DeadLetter: &deadLetter}); err != nil {
				t.Fatal(err)
			}
			n.discard(t, id)
		}
		n.begin(t, "told", "t/tell", nil)
		discarded("told", "of what is delivered again", announced(t, n.delivered(t, "told", 1), time.Second)) // of an attempt before
		if row := n.row(t, "told"); *row.Processed || n.purged(t) != 0 {
			t.Errorf("delivered again, and given up: %+v", row)
		}

		n.begin(t, "awaited", "t/ack", nil)
		discarded("awaited", "of a wait", announced(t, n.delivered(t, "awaited", 1), 0))
		discarded("awaited", "of nothing", []byte("{"))
		n.ack(t, "awaited", engine.Applied, ack.Ack{Outcome: ack.Processed})
		n.output(t, "awaited")
	})
}

// announced is the message that announces a command, or that did so for an attempt before.
func announced(t *testing.T, row projections.Entry, before time.Duration) []byte {
	t.Helper()
	body, err := signal.ForCommand(row.InstanceID, row.Position, 1, time.Now(), row.NextAttemptAt.Add(-before)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}
