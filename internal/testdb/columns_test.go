package testdb_test

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var (
	tableOf  = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n\)`)
	columnOf = regexp.MustCompile(`(?m)^  (\w+) (VARCHAR2|RAW)\((\d+)( CHAR)?\)`)
)

// columns are the columns of text and bytes of the larger database by table and
// name, with their width as a tag says it.
func columns(t *testing.T) map[string]string {
	t.Helper()
	script, err := os.ReadFile("../../sql/oracle/schema/10_tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, table := range tableOf.FindAllStringSubmatch(string(script), -1) {
		for _, c := range columnOf.FindAllStringSubmatch(table[2], -1) {
			width := c[3]
			if c[4] == "" {
				width += "B"
			}
			all[table[1]+"."+c[1]] = width
		}
	}
	if len(all) < 80 {
		t.Fatalf("only %d columns", len(all))
	}
	return all
}

// TestWidthsAreThoseOfTheColumns: what every store refuses beyond is what the
// narrowest database has.
func TestWidthsAreThoseOfTheColumns(t *testing.T) {
	t.Parallel()
	all := columns(t)
	for table, row := range map[string]any{
		"WF_INSTANCES": projections.Instance{}, "WF_STREAM": projections.Entry{}, "WF_TASKS": projections.Task{}, "WF_TASK_EVENTS": projections.TaskEvent{},
		"WF_WAITS": projections.Wait{}, "WF_ATTRIBUTES": projections.Attribute{}, "WF_DEAD_LETTERS": projections.DeadLetter{}, "WF_INBOX": backend.Event{},
		"WF_AUDIT": store.Audit{}, "WF_TOKENS": backend.Token{}, "WF_ACTIVITIES": backend.Activity{}, "WF_BULK_PLANS": backend.Bulk{}, "WF_BULK_ITEMS": backend.BulkItem{}, "WF_LETTER_EDITS": backend.DeadLetterEdit{},
	} {
		for column, width := range rows.Widths(reflect.TypeOf(row)) {
			if all[table+"."+column] != width {
				t.Errorf("%s.%s has width %s, what goes there %s", table, column, all[table+"."+column], width)
			}
			delete(all, table+"."+column)
		}
	}
	for of, tables := range map[reflect.Type]map[string]string{
		reflect.TypeFor[store.Definition](): {"Name": "WF_DEFINITIONS.NAME", "Version": "WF_DEFINITIONS.VERSION", "Title": "WF_DEFINITIONS.TITLE"},
		reflect.TypeFor[store.Runtime]():    {"LastSignalID": "WF_RUNTIME_STATES.LAST_SIGNAL_ID", "ExecutedBy": "WF_RUNTIME_STATES.LAST_EXECUTED_BY"},
		reflect.TypeFor[store.Claim]():      {"Owner": "WF_STREAM.CLAIMED_BY"},
		reflect.TypeFor[store.TaskEdit]():   {"Assignee": "WF_TASKS.ASSIGNEE", "Role": "WF_TASKS.ASSIGNED_AS"},
		reflect.TypeFor[store.Escalation](): {"CandidateUsers": "WF_TASKS.CANDIDATE_USERS", "CandidateGroups": "WF_TASKS.CANDIDATE_GROUPS"},
		reflect.TypeFor[projections.TaskEnd](): {
			"ID": "WF_TASKS.TASK_ID", "Status": "WF_TASKS.STATUS", "By": "WF_TASKS.ENDED_BY", "Outcome": "WF_TASKS.OUTCOME",
		},
	} {
		want := columns(t)
		for field, width := range rows.Widths(of) {
			if want[tables[field]] != width {
				t.Errorf("%s has width %s, %s.%s %s", tables[field], want[tables[field]], of, field, width)
			}
			delete(all, tables[field])
		}
	}
	for name := range elsewhere {
		delete(all, name)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Errorf("%s: nothing says how long a text it is given", name)
	}
}

// elsewhere are columns that no row has a field for: what bounds them, in bytes.
// What is shortened to fit has the width of its column.
var elsewhere = map[string]int{
	"WF_META.NAME": 32, "WF_META.VALUE": 64, // constants, and keys of 32 bytes
	"WF_NODES.RUN_ID": 36, "WF_NODES.NODE": 128, "WF_NODES.ENGINE_VERSION": 128,
	"WF_RUNTIME_STATES.INSTANCE_ID": signal.MaxIDBytes, "WF_RUNTIME_STATES.RUNTIME_INSTANCE_ID": signal.MaxIDBytes,
	"WF_RUNTIME_STATES.BUSINESS_KEY": signal.MaxKeyBytes, "WF_RUNTIME_STATES.WAITING_TOKEN": signal.MaxIDBytes,
	"WF_RUNTIME_STATES.RUNTIME_PROVIDER": len(signal.Provider), "WF_RUNTIME_STATES.RUNTIME_STATUS": 16, "WF_RUNTIME_STATES.WAITING_KIND": 16,
	"WF_RUNTIME_STATES.ACTIVE_TASK_ID": signal.MaxIDBytes, "WF_RUNTIME_STATES.LAST_ERROR_CODE": snapshot.MaxErrorType,
	"WF_DEFINITIONS.DIGEST": digest, "WF_DEFINITIONS.KIND": word,
	"WF_STREAM.LAST_ERROR": 4_000, "WF_DEAD_LETTERS.DETAIL": 4_000, // shortened
	// Left empty when they are longer: WF_V_STATES shows the whole.
	"WF_RUNTIME_STATES.BUSINESS_REFERENCE": 4_000, "WF_RUNTIME_STATES.RESUME_POINTER_JSON": 4_000, "WF_RUNTIME_STATES.LAST_ERROR_JSON": 4_000,
	"WF_STREAM.CLAIMED_RUN": 36, "WF_INFLIGHT.RUN_ID": 36, "WF_INFLIGHT.MESSAGE_ID": 36,
	"WF_TASK_ACTORS.TASK_ID": signal.MaxIDBytes, "WF_TASK_ACTORS.KIND": 1, "WF_TASK_ACTORS.NAME": humantask.MaxName,
	"WF_HOST_LOCKS.NAME": 32, "WF_HOST_LOCKS.OWNER": 128,
	"WF_PAYLOADS.PAYLOAD_ID": 36, "WF_PAYLOADS.INSTANCE_ID": signal.MaxIDBytes,
	"WF_INSTANCES.START_DIGEST": 32, "WF_ATTRIBUTES.VALUE_KEY": attribute.MaxKey,
	// Shortened by package audit, checked by AQUEDUCT_ADMIN, or names of the database.
	"WF_AUDIT.AUDIT_ID": 36, "WF_AUDIT.ACTION": word, "WF_AUDIT.OBJECT_ID": signal.MaxIDBytes, "WF_AUDIT.INSTANCE_ID": signal.MaxIDBytes,
	"WF_AUDIT.USER_NAME": 128, "WF_AUDIT.CLIENT_IDENTIFIER": 64, "WF_AUDIT.REASON": 1_000, "WF_AUDIT.KIND": 16, "WF_AUDIT.VIA": 16,
	"WF_AUDIT.RESULT": word, "WF_AUDIT.REQUEST_ID": 36,
	// Checked by package access.
	"WF_TOKENS.TOKEN_ID": 16, "WF_TOKENS.NAME": 128, "WF_TOKENS.ROLES": 1_000, "WF_TOKENS.MEMBER_OF": 4_000, "WF_TOKENS.HASH": 32,
	"WF_TOKENS.CREATED_BY": 128, "WF_TOKENS.REVOKED_BY": 128,
	// Of runtime/service, which shortens what others say.
	"WF_BULK_PLANS.PLAN_ID": 36, "WF_BULK_PLANS.OPERATION": 10, "WF_BULK_PLANS.STATUS": 8, "WF_BULK_PLANS.REASON": 1000, "WF_BULK_PLANS.CREATED_BY": 128, "WF_BULK_PLANS.RUN_BY": 128,
	"WF_BULK_ITEMS.PLAN_ID": 36, "WF_BULK_ITEMS.TARGET_ID": signal.MaxIDBytes, "WF_BULK_ITEMS.TARGET_KIND": snapshot.MaxErrorType, "WF_BULK_ITEMS.OUTCOME": 7,
	"WF_BULK_ITEMS.CODE": 128, "WF_BULK_ITEMS.DETAIL": 1000,
	// Checked by runtime/service and AQUEDUCT_API.
	"WF_ACTIVITIES.INSTANCE_ID": signal.MaxIDBytes, "WF_ACTIVITIES.ACTIVITY_ID": signal.MaxIDBytes, "WF_ACTIVITIES.NAME": 256, "WF_ACTIVITIES.STATUS": 64,
	"WF_ACTIVITIES.CREATED_BY": 128, "WF_ACTIVITIES.UPDATED_BY": 128,
	"WF_LETTER_EDITS.DEAD_LETTER_ID": signal.MaxIDBytes, "WF_LETTER_EDITS.INSTANCE_ID": signal.MaxIDBytes, "WF_LETTER_EDITS.WHAT": len(backend.EditEnvelope),
	"WF_LETTER_EDITS.EDITED_BY": 128, "WF_LETTER_EDITS.REASON": 1_000, // as the audit
	// Checked by AQUEDUCT_ADMIN.
	"WF_REQUESTS.REQUEST_ID": 64, "WF_REQUESTS.INSTANCE_ID": signal.MaxIDBytes, "WF_REQUESTS.OPERATION": 16, "WF_REQUESTS.VERDICT": 8,
	"WF_REQUESTS.CODE": word, "WF_REQUESTS.DETAIL": 4_000, "WF_REQUESTS.DECIDED_BY": 128,
}

// TestEveryColumnHoldsWhatFeedsIt: no limit of the engine is beyond the width of
// a column that it feeds, in the bytes of AL32UTF8.
func TestEveryColumnHoldsWhatFeedsIt(t *testing.T) {
	t.Parallel()
	all := columns(t)
	limits, counted := specified(t)
	maps.Copy(limits, elsewhere)
	maps.Copy(limits, feeders)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		limit, ok := limits[name]
		if !ok {
			t.Errorf("%s: what bounds the texts that it is given?", name)
			continue
		}
		number, bytes := strings.CutSuffix(all[name], "B")
		width, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if (characters[name] || counted[name]) && (bytes || 4*limit > 4_000) {
			t.Errorf("%s holds %s, and gets %d characters of up to 4 bytes", name, all[name], limit)
		}
		if limit > width {
			t.Errorf("%s holds %s, and gets up to %d", name, all[name], limit)
		}
		delete(limits, name)
	}
	for name := range limits {
		t.Errorf("there is no column %s", name)
	}
}

// specified are the limits of what a document says of a task, as its tags say them, in
// characters, and of what a start says of an instance, by the columns of the fields that
// have the same names.
func specified(t *testing.T) (limits map[string]int, characters map[string]bool) {
	t.Helper()
	limits, characters = map[string]int{}, map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[engine.Task]()) {
		if f.Tag.Get("json") == "-" {
			continue
		}
		row, ok := reflect.TypeFor[projections.Task]().FieldByName(f.Name)
		column := "WF_TASKS." + row.Tag.Get("db")
		most, err := strconv.Atoi(f.Tag.Get("max"))
		switch {
		case !ok:
			t.Errorf("no row has what a document says of a task in %s", f.Name)
		case f.Type.Kind() == reflect.String && err != nil:
			t.Errorf("the text %s of a task has no max: %v", f.Name, err)
		case f.Type.Kind() == reflect.String:
			limits[column], characters[column] = most, true
		case f.Type == reflect.TypeFor[[]string]():
			limits[column] = humantask.MaxNames
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[signal.Start]()) {
		if row, ok := reflect.TypeFor[projections.Instance]().FieldByName(f.Name); ok && f.Type.Kind() == reflect.String && row.Type == f.Type {
			limits["WF_INSTANCES."+row.Tag.Get("db")] = key
		}
	}
	if limits["WF_TASKS.TITLE"] != humantask.MaxTitle || limits["WF_TASKS.ASSIGNEE"] != humantask.MaxName {
		t.Errorf("a title has %d characters and an assignee %d, not as humantask.MaxTitle and MaxName say", limits["WF_TASKS.TITLE"], limits["WF_TASKS.ASSIGNEE"])
	}
	return limits, characters
}

// Limits that stand where a test cannot name them.
const (
	name   = 256   // of a task, a state, an event's type: maxName of definition/openworkflow
	place  = 3_000 // of a task: openworkflow.MaxPointer
	word   = 32    // constants of the program: states, kinds, codes
	node   = 128   // its name: config
	digest = 64    // SHA-256 in hex
	id     = signal.MaxIDBytes
	key    = signal.MaxKeyBytes
)

// characters are the columns whose limit counts characters.
var characters = map[string]bool{
	"WF_TASKS.ENDED_BY": true, "WF_TASKS.OUTCOME": true, "WF_TASKS.ASSIGNED_AS": true,
	"WF_ATTRIBUTES.VALUE": true, "WF_TASK_EVENTS.ACTOR": true, "WF_TASK_ACTORS.NAME": true,
}

// holder is what an escalation adds to a list of users, as JSON: each character
// of a name may be an escape of six bytes.
const holder = 6*humantask.MaxName + len(`,""`)

// feeders are the limits of the engine by the columns that they feed.
var feeders = map[string]int{
	"WF_RUNTIME_STATES.LAST_SIGNAL_ID": id, "WF_RUNTIME_STATES.LAST_EXECUTED_BY": node,
	"WF_INSTANCES.INSTANCE_ID": id, "WF_INSTANCES.DEFINITION_VERSION": key,
	"WF_INSTANCES.STATUS": word, "WF_INSTANCES.STATE": max(name, program.MaxInstance), "WF_INSTANCES.PARENT_ID": id,
	"WF_INSTANCES.CORRELATION_ID": signal.MaxHeaderSize, "WF_INSTANCES.ERROR_TYPE": snapshot.MaxErrorType,
	"WF_INSTANCES.ERROR_DETAIL": 1_000, // maxDetail of projections
	"WF_STREAM.INSTANCE_ID":     id, "WF_STREAM.KIND": len(engine.KindCommand), "WF_STREAM.DIRECTION": len(engine.Out), "WF_STREAM.TYPE": word, "WF_STREAM.SIGNAL_ID": id,
	"WF_STREAM.CLAIMED_BY": node, "WF_STREAM.EFFECT_KEY": max(engine.MaxKeyBytes, engine.MaxOwnKeyBytes),
	"WF_TASKS.TASK_ID": id, "WF_TASKS.INSTANCE_ID": id, "WF_TASKS.DEFINITION": key, "WF_TASKS.BUSINESS_KEY": key, "WF_TASKS.NAME": name,
	"WF_TASKS.STATUS":           len(projections.TaskCompleted),
	"WF_TASKS.CANDIDATE_USERS":  humantask.MaxNames + holder,
	"WF_TASKS.CANDIDATE_GROUPS": 2*humantask.MaxNames - 1, // with those that it is escalated to
	"WF_TASKS.WAITING_TOKEN":    id, "WF_TASKS.ENDED_BY": humantask.MaxName, "WF_TASKS.OUTCOME": humantask.MaxName, "WF_TASKS.ASSIGNED_AS": humantask.MaxName,
	"WF_TASK_EVENTS.TASK_ID": id, "WF_TASK_EVENTS.INSTANCE_ID": id, "WF_TASK_EVENTS.EVENT": len("reassigned"), "WF_TASK_EVENTS.ACTOR": humantask.MaxName,
	"WF_WAITS.WAITING_TOKEN": id, "WF_WAITS.INSTANCE_ID": id, "WF_WAITS.EVENT_TYPE": name, "WF_WAITS.KEY_HASH": digest / 2,
	"WF_ATTRIBUTES.INSTANCE_ID": id, "WF_ATTRIBUTES.NAME": attribute.MaxName, "WF_ATTRIBUTES.KIND": len(attribute.Decimal),
	"WF_ATTRIBUTES.VALUE": max(attribute.MaxText, len("-0.")+attribute.MaxExponent+attribute.MaxDigits), // characters
	"WF_WAITS.SPEC":       key + len("@") + key + len("#") + 2*len("9223372036854775807.") + place,
	"WF_DEFINITIONS.NAME": 2*63 + len("/"), "WF_DEFINITIONS.VERSION": name,
	"WF_DEFINITIONS.TITLE":           1_000,
	"WF_DEAD_LETTERS.DEAD_LETTER_ID": id, "WF_DEAD_LETTERS.QUEUE": len(store.Schedule), "WF_DEAD_LETTERS.INSTANCE_ID": id, "WF_DEAD_LETTERS.REASON": 64,
	"WF_DEAD_LETTERS.NODE": node,
	"WF_INBOX.EVENT_KEY":   len("ce-") + digest/2, "WF_INBOX.EVENT_TYPE": key, "WF_INBOX.RULE_HASH": digest / 2, "WF_INBOX.KEY_HASH": digest / 2,
}
