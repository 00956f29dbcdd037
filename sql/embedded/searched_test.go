package embedded

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// A list looks for a text in the newest instances that have an error, and at no others; those
// without one do not count.
func TestATextIsLookedForInTheNewest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	c, err := conn.Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Script(fmt.Sprintf(`insert into WF_INSTANCES (INSTANCE_NO, INSTANCE_ID, DEFINITION, DEFINITION_VERSION, STATUS, STATE_VERSION, STARTED_ON_UTC, UPDATED_ON_UTC, ERROR_TYPE, ERROR_DETAIL)
		with recursive N(I) as (select 1 union all select I + 1 from N where I < %d)
		select I, 'i-' || I, 'd', '1', 'faulted', 1, I, I, case when I %% 2 = 0 then 'e' end, case when I %% 2 = 0 then 'it broke at ' || I || '.' end from N`, 2*backend.MaxSearched+10)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"at 10.": 0, "at 12.": 1, "at 40000.": 1, "at 11.": 0} {
		p, err := s.Parts().Instances.Instances(t.Context(), backend.InstanceQuery{Text: text})
		if err != nil || len(p.Items) != want {
			t.Errorf("%q: %d, want %d, %v", text, len(p.Items), want, err)
		}
	}
}
