package embedded

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// What an older program has written says when it is due, of all its waits, once it is
// migrated.
func TestMigrationSaysWhatIsDue(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := must(Open(t.Context(), sqlite.Options{Path: path}))
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	for id, status := range map[string]snapshot.Status{"deadline": snapshot.Waiting, "held": snapshot.Suspended, "next": snapshot.Running, "event": snapshot.Waiting} {
		n := &snapshot.Snapshot{InstanceID: id, Version: 1, Status: status, StartedAt: at, UpdatedAt: at.Add(-time.Hour), Waits: []snapshot.Wait{
			{Kind: snapshot.WaitEvent, Token: "e-" + id, Event: "go"},
		}}
		switch id {
		case "deadline", "held":
			n.Waits = append(n.Waits, snapshot.Wait{Kind: snapshot.WaitTimer, Token: "l", Until: at.Add(time.Hour)}, snapshot.Wait{Kind: snapshot.WaitTimeout, Token: "t", Until: at})
		case "next":
			n.Waits = []snapshot.Wait{{Kind: snapshot.WaitNext, Token: "n"}}
		}
		if err := s.Commit(t.Context(), store.Change{Snapshot: n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, ""))
	if err := c.Script("drop index WF_STATES_DUE; drop index WF_MESSAGES_LATER; drop trigger WF_DEAD_LETTERS_NOTICE; drop table WF_NOTICES; drop table WF_AUDIT; drop table WF_TOKENS; drop view WF_V_STATES; drop view WF_V_STREAM; drop view WF_V_WAITS; drop view WF_RUNTIME_STATES; drop view WF_DOCUMENTS; alter table WF_STATES drop column STATE_CUTS; drop table WF_STATE_PIECES; create view WF_RUNTIME_STATES as select 1; create view WF_V_WAITS as select 1; drop view WF_V_ATTRIBUTES; drop table WF_ATTRIBUTES; drop view WF_V_MOMENTS; drop view WF_V_ACTIVITIES; drop table WF_ACTIVITIES; drop index WF_INSTANCES_LIVE; drop index WF_INSTANCES_ERROR; drop index WF_INBOX_FILED; alter table WF_INBOX drop column RULE_HASH; alter table WF_INBOX drop column KEY_HASH; drop table WF_BULK_ITEMS; drop table WF_BULK_PLANS; drop table WF_LETTER_EDITS; alter table WF_STREAM drop column GIVEN_UP_ON_UTC; alter table WF_DEAD_LETTERS drop column PRIORITY; create view WF_V_STREAM as select 1; alter table WF_NODES drop column ENGINE_VERSION; alter table WF_NODES drop column FUNCTIONS; pragma user_version = 11"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	s = must(Open(t.Context(), sqlite.Options{Path: path}))
	defer s.Close()
	for before, want := range map[time.Time][]string{at: {"next"}, at.Add(time.Millisecond): {"next", "deadline"}, at.Add(24 * time.Hour): {"next", "deadline"}} {
		p, err := s.Parts().Overdue.Overdue(t.Context(), before, "", 10)
		if err != nil || !slices.Equal(p.Items, want) {
			t.Errorf("before %s: %v, %v", before, p.Items, err)
		}
	}
}
