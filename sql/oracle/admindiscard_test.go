package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// TestDiscardBySQLOfWhatWasSentAnew: a replay that was cut off has sent the command of a
// dead letter as it was edited. Both that and its edits stay, as for a node.
func TestDiscardBySQLOfWhatWasSentAnew(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	yes := true
	now := c.node.clock.now()
	for _, id := range []string{"l-anew", strings.Repeat("l", signal.MaxIDBytes)} { // the latter is digested
		instance := "i-" + id[:3]
		c.ended(t, instance, func(w *store.Change) { // the row of the command, and that of its edit
			w.Rows.Stream = append(w.Rows.Stream, projections.Entry{InstanceID: instance, Position: 2, Kind: "event", Direction: "in",
				Type: "CommandEdited", SignalID: signal.Bounded("edited/" + id), CreatedAt: now})
		})
		settle := store.Change{Rows: projections.Rows{Stream: []projections.Entry{{InstanceID: instance, Position: 3, Kind: "command", Direction: "out",
			Type: "x", Data: []byte(`{"target":"http"}`), Processed: &yes, CreatedAt: now}}}}
		if err := c.node.Commit(t.Context(), settle); err != nil {
			t.Fatal(err)
		}
		body, err := signal.ForCommand(instance, 3, 0, now, time.Time{}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		c.dead(t, id, store.Commands, body)
		edit := backend.DeadLetterEdit{DeadLetterID: id, No: 1, InstanceID: instance, What: backend.EditInput, At: now, By: "ann", Body: []byte(`{}`)}
		if err := c.node.Parts().DeadLetters.EditDeadLetter(t.Context(), edit); err != nil {
			t.Fatal(err)
		}
		const impossible = 20804
		c.refused(t, c.call(t, true, "DISCARD(:1, 'r')", id), id, impossible, "the command of dead letter "+id+" was sent anew")
		if n := c.text(t, "select count(*) from AQUEDUCT.WF_V_LETTER_EDITS where DEAD_LETTER_ID = :1", id); n != "2" {
			t.Errorf("%s: %s edits are left, want the original and the edit", id, n)
		}
		if got := c.audited(t, id); got != "" {
			t.Errorf("%s: audited as %q", id, got)
		}
	}
}
