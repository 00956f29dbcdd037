package embedded

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// The view says of entries what their authors call them.
func TestTheViewOfTheStreamHasNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	change, err := storetest.Whole("a", time.Now().UTC())
	if err != nil {
		t.Fatal(err)
	}
	change.Rows.Stream = append([]projections.Entry{{InstanceID: "a", Position: 1, Kind: "event", Type: "InstanceStarted", Direction: "in", CreatedAt: time.Now().UTC()}}, storetest.Named("a", 2, time.Now().UTC())...)
	if err := s.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, ""))
	defer c.Close()
	got, err := c.Text("select group_concat(NAME, ' ') from (select coalesce(NAME, '-') as NAME from WF_V_STREAM order by POSITION)")
	if err != nil || got != "- told paid submit a/b ask" {
		t.Errorf("names %s, %v", got, err)
	}
}
