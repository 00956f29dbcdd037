package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// TestAPlantedDifferenceIsFoundAndNamed changes rows of a live database, with checksums
// that are right or none, and has the instance made again after each.
func TestAPlantedDifferenceIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	document := doc("planted", "\n  - ask: {call: effect, with: {n: 1}}\n  - hear: {listen: {to: {one: {with: {type: paid}}}}}\n")
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, func(context.Context, json.RawMessage) (any, error) { return map[string]int{"n": 1}, nil }, document)
		n.begin(t, "i", "t/planted", map[string]any{"order": 7})
		n.until(t, "i", func(row projections.Instance) bool { return row.Position == "hear" })
		db, err := testdb.SQL(place)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		states, bind := "WF_STATES", [2]string{"?", "?"}
		if strings.HasPrefix(place, "user=") {
			states, bind = "WF_RUNTIME_STATES", [2]string{":1", ":2"}
		}
		if unverifiable, err := testdb.Replay(t.Context(), place, nil); err != nil || len(unverifiable) > 0 {
			t.Fatalf("nothing is planted: %v, %v", unverifiable, err)
		}
		named := func(what string) {
			t.Helper()
			if _, err := testdb.Replay(t.Context(), place, nil); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("planted at %s: %v", what, err)
			}
		}
		do := func(statement string, args ...any) {
			t.Helper()
			if r, err := db.ExecContext(t.Context(), statement, args...); err != nil {
				t.Fatalf("%s: %v", statement, err)
			} else if changed, err := r.RowsAffected(); err != nil || changed != 1 {
				t.Fatalf("%s: %d rows, %v", statement, changed, err)
			}
		}
		do("update WF_STREAM set TYPE = 'Other', CHECKSUM = null where POSITION = 2")
		named("i: different at 2, TYPE (engine ): stored Other, replayed Call")
		do("update WF_STREAM set TYPE = 'Call' where POSITION = 2")
		do("update WF_STREAM set CHECKSUM = 7 where POSITION = 3")
		named("i: different at 3 (engine ): entry 3 of instance i does not have its checksum")
		do("update WF_STREAM set CHECKSUM = null where POSITION = 3")

		var raw []byte
		if err := db.QueryRowContext(t.Context(), "select STATE_JSON from "+states).Scan(&raw); err != nil {
			t.Fatal(err)
		}
		store := func(raw []byte) {
			t.Helper()
			do(fmt.Sprintf("update %s set STATE_JSON = %s, STATE_CHECKSUM = %s", states, bind[0], bind[1]), raw, projections.Sum(raw))
		}
		for path, change := range map[string][2]string{
			"i: different at 3, snapshot/waiting/event": {`"event":"paid"`, `"event":"sold"`},
			"i: different at ":                          {`"order":7`, `"order":8`},
		} {
			changed := strings.Replace(string(raw), change[0], change[1], 1)
			if changed == string(raw) {
				t.Fatalf("%s is not in %s", change[0], raw)
			}
			store([]byte(changed))
			named(path)
		}
		do("update " + states + " set STATE_CHECKSUM = 7")
		named("the snapshot does not have its checksum")
		store(raw)
		if unverifiable, err := testdb.Replay(t.Context(), place, nil); err != nil || len(unverifiable) > 0 {
			t.Errorf("all is as it was: %v, %v", unverifiable, err)
		}
	})
}
