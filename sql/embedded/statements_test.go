package embedded

import (
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// The hot statements search; they never scan a table, nor sort.
func TestHotStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	db := must(conn.Pool(path, "_query_only=1"))
	defer db.Close()
	cold := map[string]bool{
		"node_list": true, "node_members": true, "functions_declared": true, "node_number": true, "definition_versions": true, "meta_epoch": true, "meta_settings": true, // few rows
		"instance_select": true, "instance_ordered": true, "dead_letter_select": true, "inbox_select": true, "stream_select": true, "task_select": true, "task_events": true, // heads; see below
		"audit_select": true, "token_select": true, "activity_select": true, "dead_letter_edit_select": true, "moment_select": true, "history_ids": true, // so are these
		"task_next": true,                                                                 // walks the index of open tasks in its order, and lists within a row, as far as its limit
		"queues":    true, "gaps": true, "open_counts": true, "functions_unclaimed": true, // bounded counts over one index
		"state_all": true, "message_all": true, "definition_all": true, // of doctor, who reads everything
		"bulk_select": true, "dead_letter_reasons": true, "bulk_item_select": true, "bulk_instances": true, "bulk_dead_letters": true, // heads
		"bulk_counts": true, "bulk_kinds": true, // count the items of one plan, which are bounded
		"purge_edit_orphans": true,                              // of retention: operators have made few
		"purge_bulk_list":    true,                              // of retention, beside the writer
		"notice_next":        true,                              // the first in the order of the table
		"purge_tokens_list":  true, "purge_policies_list": true, // of retention, beside the writer
		"overdue_sent": true, // what is due in a queue, when a wait is overdue
		"begin":        true, "commit": true, "savepoint": true, "release": true, "rollback_to": true,
	}
	for _, file := range statementFiles() {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if cold[name] || strings.HasPrefix(name, "invariant_") { // they read everything
			continue
		}
		plan(t, db, name, conn.Statement(name, queries, sqlite.Statements))
	}
	for name, text := range map[string]string{
		"instance":      conn.Statement("instance_select", queries, sqlite.Statements) + " where INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = 'a')",
		"started":       conn.Statement("instance_select", queries, sqlite.Statements) + " where " + startedBy,
		"ordered":       conn.Statement("instance_ordered", queries, sqlite.Statements) + " where O.NAME = 'a' and O.VALUE_KEY >= x'64' and (O.VALUE_KEY > x'64' or O.VALUE_KEY = x'64' and O.INSTANCE_NO > 1) order by O.VALUE_KEY, O.INSTANCE_NO limit 5",
		"ordered-down":  conn.Statement("instance_ordered", queries, sqlite.Statements) + " where O.NAME = 'a' order by O.VALUE_KEY desc, O.INSTANCE_NO desc limit 5",
		"stream":        conn.Statement("stream_select", queries, sqlite.Statements) + " where R.INSTANCE_ID = 'a' and S.ENTRY_NO > (R.INSTANCE_NO << 24) + 1 and S.ENTRY_NO < (R.INSTANCE_NO + 1) << 24 order by S.ENTRY_NO limit 5",
		"task":          conn.Statement("task_select", queries, sqlite.Statements) + " where T.TASK_ID = 'a'",
		"task-instance": conn.Statement("task_select", queries, sqlite.Statements) + " where T.INSTANCE_NO = 1",
		"letter":        conn.Statement("dead_letter_select", queries, sqlite.Statements) + " where DEAD_LETTER_ID = 'a'",
		"letter-edits":  conn.Statement("dead_letter_edit_select", queries, sqlite.Statements) + " where DEAD_LETTER_ID = 'a' and EDIT_NO < 5 order by EDIT_NO desc limit 5",
		"token":         conn.Statement("token_select", queries, sqlite.Statements) + " where TOKEN_ID = 'a'",
		"tokens":        conn.Statement("token_select", queries, sqlite.Statements) + " where (CREATED_ON_UTC, TOKEN_ID) < (1, 'a') order by CREATED_ON_UTC desc, TOKEN_ID desc limit 5",
		"activity":      conn.Statement("activity_select", queries, sqlite.Statements) + " where R.INSTANCE_ID = 'a' and A.ACTIVITY_ID = 'a'",
		"activities":    conn.Statement("activity_select", queries, sqlite.Statements) + " where R.INSTANCE_ID = 'a' and (A.CREATED_ON_UTC, A.ACTIVITY_ID) > (1, 'a') order by A.CREATED_ON_UTC, A.ACTIVITY_ID limit 5",
		"audit":         conn.Statement("audit_select", queries, sqlite.Statements) + " where (OCCURRED_ON_UTC, AUDIT_ID) < (1, 'a') order by OCCURRED_ON_UTC desc, AUDIT_ID desc limit 5",
		"history":       conn.Statement("history_ids", queries, sqlite.Statements) + " where R.INSTANCE_ID > 'a' order by R.INSTANCE_ID limit 5",
		"inbox":         conn.Statement("inbox_select", queries, sqlite.Statements) + " where EVENT_TYPE = 'a' and EXPIRES_ON_UTC > 1 order by RECEIVED_ON_UTC, EVENT_KEY limit 5",
		"plan":          conn.Statement("bulk_select", queries) + " where PLAN_ID = 'a'",
		"plans":         conn.Statement("bulk_select", queries) + " where (CREATED_ON_UTC, PLAN_ID) < (1, 'a') order by CREATED_ON_UTC desc, PLAN_ID desc limit 5",
		"plan-items":    conn.Statement("bulk_item_select", queries) + " where PLAN_ID = 'a' and OUTCOME is null and ITEM_NO > 1 order by ITEM_NO limit 5",
		"plan-faulted":  conn.Statement("bulk_instances", queries) + " where WF_INSTANCES.STATUS = 'faulted' and WF_INSTANCES.ENDED_ON_UTC is null and WF_INSTANCES.INSTANCE_NO < 7 order by WF_INSTANCES.INSTANCE_NO desc limit 5",
		"plan-live":     conn.Statement("bulk_instances", queries) + " where WF_INSTANCES.DEFINITION = 'a' and WF_INSTANCES.DEFINITION_VERSION = '1' and WF_INSTANCES.ENDED_ON_UTC is null order by WF_INSTANCES.INSTANCE_NO desc limit 5",
		"inbox-behind":  conn.Statement("inbox_select", queries, sqlite.Statements) + " where EVENT_TYPE = 'a' and EXPIRES_ON_UTC > 1 and (RECEIVED_ON_UTC > 1 or RECEIVED_ON_UTC = 1 and EVENT_KEY > 'a') order by RECEIVED_ON_UTC, EVENT_KEY limit 5",
	} {
		plan(t, db, name, text)
	}
}

// A timeline sorts what it has found, and finds it by the business key or by the instance.
func TestTimelinesSearch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	db := must(conn.Pool(path, "_query_only=1"))
	defer db.Close()
	for _, where := range []string{"M.BUSINESS_KEY = ?", "M.INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)"} {
		text := conn.Statement("moment_select", queries) + " where " + where + " and (M.OCCURRED_ON_UTC, M.INSTANCE_ID, M.PLACE) > (?, ?, ?) order by M.OCCURRED_ON_UTC, M.INSTANCE_ID, M.PLACE limit 5"
		searched := 0
		for _, step := range planned(t, db, text) {
			// Q is the pointer of one entry, a row of no table.
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "CONSTANT") && step != "SCAN M" && step != "SCAN Q" {
				t.Errorf("%s: %s", where, step)
			}
			if strings.HasPrefix(step, "SEARCH") {
				searched++
			}
		}
		if searched < 6 {
			t.Errorf("%s: %d searches", where, searched)
		}
	}
}

// A list of commands reads those that are open, whatever their type, and nothing else.
func TestCommandsAreFoundAmongTheOpenOnes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	db := must(conn.Pool(path, "_query_only=1"))
	defer db.Close()
	for _, q := range []backend.CommandQuery{{}, {Type: "charge"}, {Type: "charge", InstanceID: "a", Before: time.Unix(1, 0), After: "3.a"}} {
		steps := planned(t, db, must(commandsOf(&q)).Text())
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN") && !strings.HasSuffix(step, "WF_STREAM_PENDING") {
				t.Errorf("%+v: %s", q, strings.Join(steps, "; "))
			}
		}
	}
}

// planned are the steps of the plan of a statement.
func planned(t *testing.T, db *sql.DB, text string) (list []string) {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	if strings.Contains(text, "?1") {
		args = make([]any, 4)
	}
	rows, err := db.Query("explain query plan "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c any
		var detail string
		if err := rows.Scan(&a, &b, &c, &detail); err != nil {
			t.Fatal(err)
		}
		if detail != "SCAN C VIRTUAL TABLE INDEX 1:" { // the cuts of one snapshot
			list = append(list, detail)
		}
	}
	return list
}

func plan(t *testing.T, db *sql.DB, name, text string) {
	t.Helper()
	steps := planned(t, db, text)
	for _, step := range steps {
		if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "CONSTANT") || strings.Contains(step, "TEMP B-TREE") {
			t.Errorf("%s: %s", name, strings.Join(steps, "; "))
		}
	}
}

// statementFiles are those of the statements of both rooms.
func statementFiles() []string {
	return append(must(fs.Glob(queries, "query/*.sql")), must(fs.Glob(sqlite.Statements, "query/*.sql"))...)
}

// Every file of query/ is a statement.
func TestEveryStatementPrepares(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	c := must(conn.Open(path, ""))
	defer c.Close()
	names := statementFiles()
	for _, file := range names {
		if _, err := c.Prepare(conn.Statement(strings.TrimSuffix(filepath.Base(file), ".sql"), queries, sqlite.Statements)); err != nil {
			t.Error(err)
		}
	}
	if len(names) < 50 {
		t.Fatal(fmt.Sprint("only ", len(names)))
	}
}
