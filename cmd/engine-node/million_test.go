package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// Pages come as fast beside a million instances, of which one in 50 has an error, 100,000
// tasks and a stream of 100,000 entries as beside a thousand of each: within 100 ms, but on a
// machine that has no time for the few either. What is asked is one good answer of many, and
// the gate runs it alone and without the race detector.
func TestPagesBesideAMillion(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.db")
	_, c, base := runningOn(t, file)
	if _, _, err := c.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/ask", InstanceID: "i-1", BusinessKey: "one"}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	const within = 100 * time.Millisecond
	have := 0
	seed := func(instances, others int) {
		db, err := testdb.SQL(file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{
			`insert into WF_INSTANCES (INSTANCE_NO, INSTANCE_ID, DEFINITION, DEFINITION_VERSION, BUSINESS_KEY, STATUS, STATE, STATE_VERSION, STARTED_ON_UTC, UPDATED_ON_UTC, ERROR_TYPE, ERROR_DETAIL)
			 with recursive N(I) as (select ?1 + 1 union all select I + 1 from N where I < ?2)
			 select 1000000 + I, 'm-' || I, X.DEFINITION, X.DEFINITION_VERSION, 'k-' || I, case when I % 50 = 0 then 'faulted' else X.STATUS end, X.STATE, X.STATE_VERSION, X.STARTED_ON_UTC + I, X.UPDATED_ON_UTC + I,
			   case when I % 50 = 0 then 'urn:test:error' end, case when I % 50 = 0 then 'the credit bureau has answered 503 to loan ' || I end
			 from N, WF_INSTANCES X where X.INSTANCE_ID = 'i-1' and ?3 > 0`,
			`insert into WF_STREAM (ENTRY_NO, KIND, DIRECTION, TYPE, CREATED_ON_UTC, DATA, METADATA)
			 with recursive N(I) as (select ?1 + 1 union all select I + 1 from N where I < ?3)
			 select X.INSTANCE_NO * 16777216 + 1000 + I, 'event', 'in', 'Noted', X.STARTED_ON_UTC + I, '{"n":' || I || '}', '{}' from N, WF_INSTANCES X where X.INSTANCE_ID = 'i-1' and ?2 > 0`,
			`insert into WF_TASKS (TASK_NO, TASK_ID, INSTANCE_NO, DEFINITION, NAME, TITLE, STATUS, CANDIDATE_GROUPS, PRIORITY, TASK_VERSION, CREATED_ON_UTC)
			 with recursive N(I) as (select ?1 + 1 union all select I + 1 from N where I < ?3)
			 select 1000000 + I, 'm-' || I, X.INSTANCE_NO, X.DEFINITION, 'ask', 'Look', case when I % 3 = 0 then 'ready' else 'completed' end, '["g"]', 50, 1, X.STARTED_ON_UTC + I
			 from N, WF_INSTANCES X where X.INSTANCE_ID = 'i-1' and ?2 > 0`,
		} {
			if _, err := db.ExecContext(t.Context(), statement, have, instances, others); err != nil {
				t.Fatal(err, statement)
			}
		}
		have = others
	}
	best := func(path string) time.Duration {
		least := time.Hour
		for i := 0; i < 5 || i < 100 && least > within; i++ {
			begun := time.Now()
			answer, err := http.Get(base + "/console" + path)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(begun)
			page, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(page), "<h1>") {
				t.Fatalf("%s: %s %v %s", path, answer.Status, err, page)
			}
			least = min(least, took)
		}
		return least
	}
	paths := []string{
		"/", "/instances", "/instances?status=faulted", "/instances?definition=test%2Fask", "/instances?key=k-700", "/instances?text=nowhere", "/instances/i-1",
		"/instances/i-1?after=900", "/tasks", "/tasks?all=1", "/tasks?status=completed", "/dead-letters", "/definitions", "/queues",
	}
	few := map[string]time.Duration{}
	seed(1000, 1000)
	for _, path := range paths {
		few[path] = best(path)
	}
	seed(1_000_000, 100_000)
	for _, path := range paths {
		many := best(path)
		t.Logf("%-35s %8.1f ms beside a thousand, %8.1f ms beside a million", path, few[path].Seconds()*1e3, many.Seconds()*1e3)
		if many > within && many > 3*few[path] {
			t.Errorf("%s takes %s, and %s beside a thousand", path, many, few[path])
		}
	}
}
