package oracle

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/store/storetest"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// broken says how invariants can be broken, beside storetest.Broken.
var broken = map[string][]string{
	"stream-gapless": {"update WF_STREAM set POSITION = 9 where POSITION = 4"},
	"closed-is-over": {closed, closed + "; delete from WF_TASKS; delete from WF_WAITS", closed + "; " + idle + "; delete from WF_TASKS", closed + "; " + idle + "; delete from WF_WAITS"},
	"wait-has-source": {
		waitsOf("Command") + "; update WF_STREAM set PROCESSED = 1 where POSITION = 2", waitsOf("Task") + "; update WF_TASKS set STATUS = 'completed'",
		waitsOf("Event") + "; delete from WF_WAITS", waitsOf("Task") + "; update WF_TASKS set WAITING_TOKEN = 'x'",
	},
	"timer-sent": {waitsOf("Timer") + "; update WF_RUNTIME_STATES set WAITING_TOKEN = 'x'"},
	"child-known": {
		waitsOf("SubWorkflow") + "; delete from WF_STREAM where POSITION = 3",
		waitsOf("SubWorkflow") + "; insert into WF_INSTANCES (INSTANCE_ID, STATUS, STATE_VERSION, STARTED_ON_UTC, PARENT_ID) values ('a-child', 'completed', 1, SYSTIMESTAMP, 'a')",
	},
	"one-key": {
		"update WF_STREAM set EFFECT_KEY = (select S.EFFECT_KEY from WF_STREAM S where S.POSITION = 2) where POSITION = 4",
		"update WF_STREAM set EFFECT_KEY = (select S.EFFECT_KEY from WF_STREAM S where S.POSITION = 2), PROCESSED = 1 where POSITION = 4",
		"update WF_STREAM set INSTANCE_ID = 'b', PROCESSED = 1, EFFECT_KEY = (select S.EFFECT_KEY from WF_STREAM S where S.POSITION = 2) where POSITION = 4",
	},
	"lease-owner": {"update WF_STREAM set CLAIMED_BY = 'n' where POSITION = 2", "update WF_STREAM set CLAIMED_RUN = 'n' where POSITION = 2"},
}

const (
	closed = "update WF_RUNTIME_STATES set RUNTIME_STATUS = 'completed'; update WF_INSTANCES set STATUS = 'completed'"
	idle   = "update WF_RUNTIME_STATES set WAITING_TOKEN = null"
)

// waitsOf is what makes another of the waits of storetest's instance the first.
func waitsOf(kind string) string {
	token := map[string]string{"Command": "a-c", "Task": "a-p", "Event": "a-e", "Timer": "a-t", "SubWorkflow": "a-s"}[kind]
	return "update WF_RUNTIME_STATES set WAITING_KIND = '" + kind + "', WAITING_TOKEN = '" + token + "'"
}

// Every invariant finds what breaks it, and nothing where nothing is broken.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	dsn := standIn(t).DSN()
	s := opened(t, Options{DSN: dsn, Node: "n"})
	change, err := storetest.Whole("a", time.Now().UTC())
	if err == nil {
		err = s.Commit(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := CheckOptions{DSN: dsn}
	if list, err := Verify(t.Context(), e, 10); err != nil || len(list) > 0 {
		t.Fatalf("what is whole: %v, %v", list, err)
	}
	db, err := sql.Open("godror", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, i := range survey.Invariants {
		ways := slices.Concat(storetest.Broken[i.Name], broken[i.Name])
		if len(ways) == 0 {
			t.Errorf("nothing breaks %s", i.Name)
		}
		for _, text := range ways {
			if !found(t, db, i.Name, text) {
				t.Errorf("%s: %s is not found", i.Name, text)
			}
		}
	}
}

// found breaks something, says whether the invariant sees it, and mends it.
func found(t *testing.T, db *sql.DB, invariant, breaks string) bool {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, part := range strings.Split(breaks, "; ") {
		if _, err := tx.Exec(part); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
	}
	list, err := violations(t.Context(), tx, invariant, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list) > 0
}
