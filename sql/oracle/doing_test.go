package oracle

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// Who watches the sessions of the database sees which node works at which definition,
// and in which trace or at which task.
func TestSessionsSayWhatTheyWorkAt(t *testing.T) {
	t.Parallel()
	trace := strings.Repeat("ab", 16)
	whole := "00-" + trace + "-" + strings.Repeat("1", 16) + "-01"
	sessionsSay(t, Options{}, map[string]string{whole: trace, "": "/do/0/charge", "no trace": "/do/0/charge"})
	sessionsSay(t, Options{Traced: true}, map[string]string{whole: whole, "": "/do/0/charge"})
}

// sessionsSay expects the ACTION of turns by the traceparents of their instances.
func sessionsSay(t *testing.T, o Options, actions map[string]string) {
	t.Helper()
	d := standIn(t)
	o.DSN, o.Node = d.DSN(), "node O'Hara"
	s := opened(t, o)
	seen := `SYS_CONTEXT('USERENV','MODULE') || '|' || SYS_CONTEXT('USERENV','ACTION') || '|' || SYS_CONTEXT('USERENV','CLIENT_IDENTIFIER')`
	if _, err := s.db.ExecContext(t.Context(), `ALTER TABLE WF_INSTANCES ADD SEEN VARCHAR2(200) DEFAULT `+seen); err != nil {
		t.Fatal(err)
	}
	for traceparent, action := range actions {
		id, headers := "i"+traceparent, map[string]string{"traceparent": traceparent}
		c := storetest.Step(&snapshot.Snapshot{
			InstanceID: id, Status: snapshot.Running, Headers: headers, Definition: snapshot.Definition{Name: "order", Version: "1"},
		}, "n")
		c.Rows.Instance = &projections.Instance{ID: id, Definition: "order", DefVersion: "1", Status: "running", Position: "/do/0/charge", Version: 1, StartedAt: c.Runtime.ExecutedAt}
		err := s.Commit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := s.db.QueryRowContext(t.Context(), `SELECT SEEN FROM WF_INSTANCES WHERE INSTANCE_ID = :1`, id).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := "order|" + action + "|node O'Hara"; got != want {
			t.Errorf("%s: the sessions said %q, not %q", id, got, want)
		}
	}
}
