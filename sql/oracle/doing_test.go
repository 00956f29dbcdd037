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
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "node O'Hara"})
	seen := `SYS_CONTEXT('USERENV','MODULE') || '|' || SYS_CONTEXT('USERENV','ACTION') || '|' || SYS_CONTEXT('USERENV','CLIENT_IDENTIFIER')`
	if _, err := s.db.ExecContext(t.Context(), `ALTER TABLE WF_INSTANCES ADD SEEN VARCHAR2(200) DEFAULT `+seen); err != nil {
		t.Fatal(err)
	}
	trace := strings.Repeat("ab", 16)
	for id, k := range map[string]struct {
		headers map[string]string
		action  string
	}{
		"with-trace": {map[string]string{"traceparent": "00-" + trace + "-" + strings.Repeat("1", 16) + "-01"}, trace},
		"without":    {nil, "/do/0/charge"},
	} {
		c := storetest.Step(&snapshot.Snapshot{
			InstanceID: id, Status: snapshot.Running, Headers: k.headers, Definition: snapshot.Definition{Name: "order", Version: "1"},
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
		if want := "order|" + k.action + "|node O'Hara"; got != want {
			t.Errorf("%s: the sessions said %q, not %q", id, got, want)
		}
	}
}
