package embedded

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// broken says how invariants can be broken, beside storetest.Broken.
var broken = map[string][]string{
	"one-snapshot": {
		"update WF_STATES set STATE_VERSION = 2",
	},
	"stream-gapless": {
		"delete from WF_STREAM where POSITION = 2",
		"update WF_STREAM set ENTRY_NO = ENTRY_NO + 1 where POSITION = 4",
	},
	"closed-is-over": {closed, closed + "; delete from WF_TASKS; delete from WF_WAITS", closed + "; " + idle + "; delete from WF_TASKS", closed + "; " + idle + "; delete from WF_WAITS"},
	"command-state": {
		"update WF_STREAM set PROCESSED_ON_UTC = 1 where POSITION = 2",
		"update WF_STREAM set PROCESSED = 1, PROCESSED_ON_UTC = 1, CLAIMED_BY = (select max(NODE_NO) from WF_NODES) where POSITION = 2",
	},
	"task-history": {
		"update WF_TASKS set STATUS = 'completed', ENDED_ON_UTC = 1", "update WF_TASKS set ENDED_ON_UTC = 1",
	},
	"wait-has-source": {
		waits("Command") + "; update WF_STREAM set PROCESSED = 1, PROCESSED_ON_UTC = 1 where POSITION = 2", waits("Task") + "; update WF_TASKS set STATUS = 'completed'",
		waits("Event") + "; delete from WF_WAITS", waits("Task") + "; update WF_TASKS set WAITING_TOKEN = 'x'",
	},
	"timer-sent": {
		"delete from WF_MESSAGES where QUEUE = 'schedule'", "update WF_MESSAGES set PAYLOAD = cast('{}' as blob)", "update WF_MESSAGES set PAYLOAD = cast('no JSON' as blob)",
	},
	"child-known": {
		"update WF_STREAM set DATA = cast('{}' as blob) where POSITION = 3", "delete from WF_MESSAGES where QUEUE = 'signal'",
		"insert into WF_INSTANCES (INSTANCE_NO, INSTANCE_ID, STATUS, STATE_VERSION, PARENT_ID) values (99, 'a-child', 'completed', 1, 'a')",
	},
	"one-key": {
		"update WF_STREAM set DATA = (select DATA from WF_STREAM where POSITION = 2) where POSITION = 4",
		"update WF_STREAM set PROCESSED = 1, PROCESSED_ON_UTC = 1, DATA = cast(json_set(cast(DATA as text), '$.key', (select EFFECT_KEY from WF_V_STREAM where POSITION = 2)) as blob) where POSITION = 4",
		"insert into WF_STREAM (ENTRY_NO, KIND, PROCESSED, PROCESSED_ON_UTC, DATA) select (99 << 24) + 1, KIND, 1, 1, DATA from WF_STREAM where POSITION = 2",
	},
	"no-orphans": {
		"insert into WF_STATE_PIECES values (99 << 20, x'00')",
		"insert into WF_STATE_PIECES select INSTANCE_NO << 20, x'00' from WF_STATES",
		"insert into WF_STATE_PIECES select (INSTANCE_NO << 20) + 7, x'00' from WF_STATES; update WF_STATES set STATE_CUTS = '[[0,' || length(STATE_JSON) || ']]'",
	},
	"lease-owner": {
		"update WF_MESSAGES set STATE = 10", "update WF_MESSAGES set STATE = 10, LEASE_OWNER = 99", "update WF_MESSAGES set LEASE_OWNER = 1",
		"update WF_STREAM set CLAIMED_BY = 99 where POSITION = 2",
	},
}

const (
	closed = "update WF_STATES set STATE_JSON = cast(json_set(cast(STATE_JSON as text), '$.status', 'completed') as blob); update WF_INSTANCES set STATUS = 'completed'"
	idle   = "update WF_STATES set STATE_JSON = cast(json_remove(cast(STATE_JSON as text), '$.waiting', '$.waits') as blob)"
)

// waits is what makes another of the waits of storetest's instance the first.
func waits(kind string) string {
	token := map[string]string{"Command": "a-c", "Task": "a-p", "Event": "a-e"}[kind]
	return "update WF_STATES set STATE_JSON = cast(json_set(cast(STATE_JSON as text), '$.waiting.kind', '" + kind + "', '$.waiting.token', '" + token + "') as blob)"
}

// What came while an instance was suspended is with the instance: the message of
// a moment, and the end of a child.
func TestVerifyKnowsWhatIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	change, err := storetest.Whole("a", time.Now().UTC())
	if err == nil {
		err = s.Commit(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, "", sqlite.Statements))
	defer c.Close()
	const kept = `[{"signalId":"1","waitingToken":"a-t"},{"signalId":"2","waitingToken":"a-s"}]`
	for _, is := range []struct {
		text  string
		holds bool
	}{
		{"delete from WF_MESSAGES", false},
		{"update WF_STATES set STATE_JSON = cast(json_set(cast(STATE_JSON as text), '$.continuationBuffer', json('" + kept + "')) as blob)", true},
	} {
		if err := c.Script(is.text); err != nil {
			t.Fatal(err)
		}
		if list, err := Verify(t.Context(), path, 10); err != nil || (len(list) == 0) != is.holds {
			t.Errorf("%s: %v, %v", is.text, list, err)
		}
	}
}

// Every invariant finds what breaks it, and nothing where nothing is broken.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, i := range survey.Invariants {
		ways := slices.Concat(storetest.Broken[i.Name], broken[i.Name])
		if len(ways) == 0 {
			t.Errorf("nothing breaks %s", i.Name)
		}
		for _, text := range ways {
			t.Run(i.Name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "a.db")
				s := open(t, path)
				change, err := storetest.Whole("a", time.Now().UTC())
				if err == nil {
					err = s.Commit(t.Context(), change)
				}
				if err != nil {
					t.Fatal(err)
				}
				if list, err := Verify(t.Context(), path, 10); err != nil || len(list) > 0 {
					t.Fatalf("what is whole: %v, %v", list, err)
				}
				c := must(conn.Open(path, "", sqlite.Statements))
				defer c.Close()
				if err := c.Script(written(text)); err != nil {
					t.Fatal(err)
				}
				list, err := Verify(t.Context(), path, 10)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range list {
					if v.Invariant == i.Name {
						return
					}
				}
				t.Errorf("%s: found %v", text, list)
			})
		}
	}
}

// A row whose JSON is damaged is found, and stops nobody who reads the others: no view, no
// invariant.
func TestADamagedRowStopsNoReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	change, err := storetest.Whole("a", time.Now().UTC())
	if err == nil {
		err = s.Commit(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, "", queries))
	defer c.Close()
	damaged := 0
	for _, column := range strings.Fields(must(c.Text(`select group_concat(T.name || '.' || C.name, ' ') from sqlite_master T, pragma_table_info(T.name) C
		where T.type = 'table' and T.name like 'WF!_%' escape '!' and T.name <> 'WF_META'`))) {
		table, column, _ := strings.Cut(column, ".")
		isJSON := "json_valid(cast(" + column + " as text)) and substr(cast(" + column + " as text), 1, 1) in ('{', '[')"
		if must(c.Number("select count(*) from "+table+" where "+isJSON)) == 0 {
			continue
		}
		damaged++
		if err := c.Script("begin; update " + table + " set " + column + " = iif(typeof(" + column + ") = 'blob', cast('{\"a' as blob), '{\"a') where " + isJSON); err != nil {
			t.Fatal(err)
		}
		for _, view := range strings.Fields(must(c.Text("select group_concat(name, ' ') from sqlite_master where type = 'view'"))) {
			if err := c.Script("create temp table READ as select * from " + view + "; drop table temp.READ"); err != nil {
				t.Errorf("%s.%s is damaged: %s: %v", table, column, view, err)
			}
		}
		var list []survey.Violation
		for _, i := range survey.Invariants {
			if list, err = violations(t.Context(), c, i.Name, 10, list); err != nil {
				t.Errorf("%s.%s is damaged: %s: %v", table, column, i.Name, err)
			}
		}
		if found := slices.ContainsFunc(list, func(v survey.Violation) bool { return strings.Contains(v.Found, "no JSON") }); found != (column == "STATE_JSON") {
			t.Errorf("%s.%s is damaged: %v", table, column, list)
		}
		if err := c.Script("rollback"); err != nil {
			t.Fatal(err)
		}
	}
	if damaged < 5 {
		t.Errorf("%d columns with JSON", damaged)
	}
}
