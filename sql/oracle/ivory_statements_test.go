//go:build ivory

package oracle

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
)

// ivoryValues are what binds are given: of a bind of one statement, of a column of
// one table, or of every bind of the name. Others are given a value of the type of
// the column that has their name.
var ivoryValues = map[string]string{
	"state_carry.SINCE": longAfter, "token_insert.REVOKED_ON_UTC": "NULL", "token_insert.EXPIRES_ON_UTC": longAfter, "purge_attributes.INSTANCE_ID": "'i-other'", "policy_guard.NAME": "'policy:shop/order'", "policy_guard.ORDINAL": "1",
	"INSTANCE_ID": "'i-1'", "TASK_ID": "'t-1'", "POSITION": "1", "DEAD_LETTER_ID": "'d-1'", "MESSAGE_ID": "'m-1'", "RUN_ID": "'r-1'", "meta_update.VALUE": bytesOf("2"), "NODE": "'node-1'",
	"WAITING_TOKEN": "'w-1'", "EVENT_KEY": "'e-1'", "PAYLOAD_ID": "'p-1'", "STATE_VERSION": "1", "TASK_VERSION": "1", "EXPECTED_VERSION": "1", "KNOWN_EPOCH": bytesOf("12345678"), "EDITED_BEFORE": longAfter,
	"EXPECTED_OWNER": "NULL", "EXPECTED_NEXT": "NULL", "PRESENT_OWNER": "'x'", "OWNER": "'AQUEDUCT'", "GRANTEE": "'AQUEDUCT_RUN'", "WF_HOST_LOCKS.OWNER": "'x'",
	"ROWS_MAX": "10", "MAX_1": "10", "MAX_2": "10", "MAX_3": "10", "MAX_4": "10", "MAX_5": "10", "MAX_6": "10", "MAX_7": "10", "DEAD_SECONDS": "60", "TTL_SECONDS": "60", "AGE_SECONDS": "0",
	"ENDED_BEFORE": longAfter, "CREATED_BEFORE": longAfter, "EXPIRED_BEFORE": longAfter, "overdue_sent.DUE_ON_UTC": longAfter,
	"CLAIMED_BY": "'node-1'", "CLAIMED_RUN": "'r-1'", "stream_insert.CLAIMED_BY": "NULL", "stream_insert.CLAIMED_RUN": "NULL",
	"WF_STREAM.KIND": "'command'", "WF_STREAM.TYPE": "'Command'", "WF_STREAM.PROCESSED": "0", "WF_STREAM.DATA": bytesOf(`{"target":"http"}`),
	"WF_STREAM.PROCESSED_ON_UTC": "NULL", "WF_STREAM.DELIVERED_ON_UTC": "NULL", "WF_STREAM.NEXT_ATTEMPT_ON_UTC": "NULL",
	"WF_TASK_ACTORS.KIND": "'U'", "WF_TASKS.STATUS": "'reserved'", "WF_TASKS.ASSIGNEE": "'ann'", "WF_TASKS.OUTCOMES": `'["yes","no"]'`, "task_end.STATUS": "'completed'",
	"WF_RUNTIME_STATES.RUNTIME_STATUS": "'waiting'", "WF_RUNTIME_STATES.WAITING_KIND": "'Timer'", "WF_INSTANCES.STATUS": "'waiting'",
	"WF_RUNTIME_STATES.STATE_JSON": bytesOf(`{"businessReference":{"key":"k"},"resume":{"at":1},"error":{"type":"t"}}`),
	"WF_INSTANCES.ENDED_ON_UTC":    "NULL", "QUEUE": "'signal'", "EFFECT_KEY": "'aaaaaaaaaaaaaaaa/b/c/dddddddddddd'",
	"OVER_BEFORE": longAfter, "ITEMS_MAX": "5", "ITEMS_BELOW": "5", // of plans
	"DIED_BEFORE": longAfter, "AFTER_ID": "'!'", "activity_insert.FROZEN_ON_UTC": "NULL",
	// Rows of their own, for others have changed or deleted the first.
	"stream_orphan.POSITION": "4", "stream_settle.POSITION": "5", "task_end.TASK_VERSION": "NULL", "inflight_delete.MESSAGE_ID": "'m-2'",
	"inflight_delete.RUN_ID": "'r-2'", "inflight_forget.MESSAGE_ID": "'m-3'", "node_remove.NODE": "'node-2'", "node_remove.DEAD_SECONDS": "0",
	"node_sweep.DEAD_SECONDS": "0", "task_actors_delete.TASK_ID": "'t-other'", "wait_delete.WAITING_TOKEN": "'w-other'",
	"WF_DEAD_LETTERS.ENVELOPE": bytesOf(`{"signalId":"s","signalType":"T"}`), "SIGNAL_ID": "'s-1'",
	"OBJECT_NAME": "'AQUEDUCT_API'", "SYNONYM_NAME": "'X'",
}

const (
	longBefore = "TIMESTAMP '2026-01-02 03:04:05.678901'"
	longAfter  = "TIMESTAMP '2100-01-01 00:00:00'"
)

// bytesOf is a text as a literal of bytes.
func bytesOf(text string) string { return "HEXTORAW('" + hex.EncodeToString([]byte(text)) + "')" }

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

var tableOf = regexp.MustCompile(`\b(WF_(?:[A-UW-Z]|V[A-Z])\w*)`)

// value is what a bind of a statement is given.
func (s *ivory) value(name, bind string, given map[string]string) string {
	s.t.Helper()
	of := tableOf.FindString(statements[name].text)
	for _, values := range []map[string]string{given, ivoryValues} {
		for _, key := range []string{name + "." + bind, of + "." + bind, bind} {
			if v, ok := values[key]; ok {
				return v
			}
		}
	}
	kind := tables(s.t)[of][bind]
	switch word, _, _ := strings.Cut(kind, "("); word {
	case "VARCHAR2":
		return "'x'"
	case "NUMBER":
		return "1"
	case "TIMESTAMP":
		return longBefore
	case "BLOB", "RAW":
		return bytesOf("{}")
	}
	s.t.Fatalf("%s: what shall %s be given? %s has no such column (%q)", name, bind, of, kind)
	return ""
}

// filled is a statement with a literal for each bind, in the words of IvorySQL.
func (s *ivory) filled(name string, given map[string]string) string {
	s.t.Helper()
	return inTheirWords(eachBind(statements[name].text, func(bind string) string { return s.value(name, bind, given) }))
}

// insert executes a statement that inserts, with values of its own.
func (s *ivory) insert(name string, given map[string]string) {
	s.t.Helper()
	if n, err := s.changed(ivoryRuntime, s.filled(name, given)); err != nil || n != 1 {
		s.t.Errorf("%s: %d rows, %v", name, n, err)
	}
}

var tag = regexp.MustCompile(`(?:INSERT 0|UPDATE|DELETE) (\d+)$`)

// userOf is who executes a statement: a node, or who migrates.
func userOf(name string) string {
	if name == "meta_update" {
		return ivoryOwner
	}
	return ivoryRuntime
}

// changed executes a statement and returns how many rows it has changed.
func (s *ivory) changed(user, text string) (int, error) {
	out, err := s.run(user, text)
	if err != nil {
		return 0, err
	}
	m := tag.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("the server says %q", out)
	}
	return strconv.Atoi(m[1])
}

// rows are what the calls and the statements work at.
func (s *ivory) rows() {
	s.t.Helper()
	due := signal.Envelope{SignalID: "s-timer", InstanceID: "i-1", RuntimeProvider: signal.Provider, Type: signal.TimerDue,
		OccurredAt: time.Now().UTC(), DueAt: time.Now().UTC().Add(time.Hour), Payload: []byte(`{}`)}
	timer, err := due.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	command := func(position int) string {
		return bytesOf(fmt.Sprintf(`{"workflowInstanceId":"i-1","payload":{"command":%d}}`, position))
	}
	for id, of := range map[string][2]string{
		"signal": {"signal", bytesOf("[1]")}, "due": {"schedule", bytesOf(string(timer))}, "large": {"signal", bytesOf(strings.Repeat("x", 40_000))},
		"empty": {"signal", "EMPTY_BLOB()"}, "claim": {"signal", bytesOf(`{"claimCheck":{"id":"x","bytes":1}}`)}, "nowhere": {"elsewhere", bytesOf("[2]")},
		"command": {"command", command(2)}, "acknowledged": {"command", command(3)},
	} {
		if id == "empty" {
			of[1] = "HEXTORAW('')::BYTEA" // EMPTY_BLOB is not there
		}
		s.insert("dead_letter_insert", map[string]string{"DEAD_LETTER_ID": "'d-" + id + "'", "QUEUE": "'" + of[0] + "'", "ENVELOPE": of[1]})
	}
	s.insert("stream_insert", map[string]string{"POSITION": "2", "SIGNAL_ID": "'s-command'"})
	s.insert("stream_insert", map[string]string{"POSITION": "3", "SIGNAL_ID": "'s-acknowledged'", "DATA": bytesOf(`{"target":"http","ack":1}`)})
	for id, status := range map[string]string{"i-over": "completed", "i-older": "cancelled", "i-open": "completed"} {
		own := map[string]string{"INSTANCE_ID": "'" + id + "'", "RUNTIME_INSTANCE_ID": "'" + id + "'", "STATUS": "'" + status + "'", "RUNTIME_STATUS": "'" + status + "'",
			"ENDED_ON_UTC": longBefore, "START_DIGEST": bytesOf(id), "SIGNAL_ID": "'s-" + id + "'"}
		if id == "i-over" {
			own["ENDED_ON_UTC"] = longAfter
		}
		s.insert("instance_insert", own)
		s.insert("state_insert", own)
		if id == "i-open" {
			s.insert("stream_insert", own)
		}
	}
	s.insert("task_insert", map[string]string{"TASK_ID": "RPAD('t', 128, 't')"})
	s.insert("task_insert", map[string]string{"TASK_ID": "'t-over'", "STATUS": "'completed'"})
}

// spares are rows for statements that find the first ones changed or deleted.
func (s *ivory) spares() {
	s.t.Helper()
	acknowledged := map[string]string{"DATA": bytesOf(`{"target":"http","ptr":"/do/0/ship","ack":5}`)}
	for i, own := range []map[string]string{{"CLAIMED_BY": "'node-1'", "CLAIMED_RUN": "'r-1'"}, {}, acknowledged} {
		own["POSITION"], own["SIGNAL_ID"] = strconv.Itoa(4+i), fmt.Sprintf("'s-spare-%d'", i)
		s.insert("stream_insert", own)
	}
	for _, n := range []string{"2", "3", "4"} {
		s.insert("inflight_insert", map[string]string{"MESSAGE_ID": "'m-" + n + "'", "RUN_ID": "'r-" + n + "'"})
	}
	for _, n := range []string{"2", "3"} {
		s.insert("node_insert", map[string]string{"NODE": "'node-" + n + "'", "RUN_ID": "'r-" + n + "'"})
	}
	s.insert("payload_insert", map[string]string{"PAYLOAD_ID": "'p-2'"})
	for _, n := range []string{"1", "2", "9"} {
		text := "insert into WF_BULK_ITEMS (PLAN_ID, ITEM_NO, TARGET_ID, TARGET_VERSION) values ('x', " + n + ", 'i-1', 1)"
		if _, err := s.changed(ivoryRuntime, text); err != nil {
			s.t.Error(err)
		}
	}
	s.insert("task_actor_insert", map[string]string{"TASK_ID": "'t-other'"})
	s.insert("attribute_insert", map[string]string{"INSTANCE_ID": "'i-other'"})
	s.insert("wait_insert", map[string]string{"WAITING_TOKEN": "'w-other'", "INSTANCE_ID": "'i-other'"})
}

// kindOf says when a statement has its turn: rows are inserted first and deleted
// last.
func kindOf(name string) int {
	switch word, _, _ := strings.Cut(strings.ToLower(statements[name].text), " "); word {
	case "insert":
		return 0
	case "delete":
		return 2
	}
	return 1
}

// ran is how many statements were executed, and how many blocks of one.
type ran struct{ statements, blocks int }

// execute executes every statement of a kind, and before one that writes the block
// of it, which is rolled back: both find a row, or the block says so with its code.
func (s *ivory) execute(kind int, r *ran) {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if kindOf(name) != kind {
			continue
		}
		text := s.filled(name, nil)
		r.statements++
		word, _, _ := strings.Cut(strings.ToLower(text), " ")
		switch word {
		case "insert", "update", "delete":
			blockErr := s.block(name)
			n, err := s.changed(userOf(name), text)
			if err != nil {
				s.t.Errorf("%s: %v", name, err)
				continue
			}
			r.blocks++
			if n == 0 || blockErr != nil {
				s.t.Errorf("%s changes %d rows, its block says %v", name, n, blockErr)
			}
		case "lock", "savepoint", "rollback":
			if _, err := s.rolledBack(ivoryRuntime, append(savepoints(), text)...); err != nil {
				s.t.Errorf("%s: %v", name, err)
			}
		default:
			if _, err := s.run(ivoryRuntime, text); err != nil {
				s.t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// savepoints are the statements that set one, to which others go back.
func savepoints() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if strings.HasPrefix(text(name), "savepoint ") {
			list = append(list, text(name))
		}
	}
	return list
}

// readings executes what is put together from a file and what is asked for.
func (s *ivory) readings() int {
	s.t.Helper()
	list := readings(s.t)
	for _, r := range list {
		text := inTheirWords(eachBind(r.text, func(n string) string { return literalOf(s.t, r.args[atoi(s.t, n)-1].Value) }))
		if _, err := s.run(ivoryRuntime, text); err != nil {
			s.t.Errorf("%s: %v\n%s", r.name, err, text)
		}
	}
	return len(list)
}

// literalOf is a value as a literal. An empty text is null.
func literalOf(t *testing.T, value any) string {
	t.Helper()
	switch v := value.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case int, int64:
		return fmt.Sprint(v)
	case time.Time:
		return "TIMESTAMP '" + v.Format("2006-01-02 15:04:05.000000") + "'"
	case []byte:
		return bytesOf(string(v))
	}
	t.Fatalf("no literal of %T", value)
	return ""
}

// refusals executes the blocks of statements whose rows are gone: each is refused
// with the code that the store knows the statement by.
func (s *ivory) refusals() {
	s.t.Helper()
	for _, name := range []string{"dead_letter_delete", "inflight_delete", "payload_delete", "request_done", "state_update", "stream_claim", "stream_done", "task_edit", "task_end", "wait_delete"} {
		err := s.block(name)
		var e *ivoryError
		if want := fmt.Sprintf("ORA-%d: %s\n", blockCode, name); !errors.As(err, &e) || e.code != strconv.Itoa(blockCode) || !strings.HasPrefix(e.text+"\n", want) {
			s.t.Errorf("the block of %s finds no row and says %v", name, err)
		}
	}
}

// block executes the block of one statement, and rolls it back.
func (s *ivory) block(name string) error {
	s.t.Helper()
	st := statements[name]
	names := make([]any, len(st.binds)) // each bind is given its name: the block has them in an order of its own
	for i, bind := range st.binds {
		names[i] = bind
	}
	text, binds, err := blockOf([]op{{name: name, args: names, refuse: errNoRow}})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.rolledBack(userOf(name), inTheirWords(eachBind(text, func(n string) string { return s.value(name, binds[atoi(s.t, n)-1].(string), nil) })))
	return err
}

// wholes executes the blocks of two changes that commit: one deletes a row and sends
// a message, the other writes a dead letter and sends its notice.
func (s *ivory) wholes() {
	s.t.Helper()
	s.insert("wait_insert", map[string]string{"WAITING_TOKEN": "'w-whole'"})
	dead := []string{}
	for _, bind := range statements["dead_letter_insert"].binds {
		dead = append(dead, s.value("dead_letter_insert", bind, map[string]string{"DEAD_LETTER_ID": "'d-notice'"}))
	}
	values := map[string][]string{
		wholeBlock:    {"'w-whole'", "'aqueduct1'", "5", "0", "'AQUEDUCT.WF_COMMAND_Q'", bytesOf("{}")},
		blockOfNotice: append(dead, "'reason'", "5", "3600", "'AQUEDUCT.WF_DLQ_Q'", bytesOf("{}"), "NC"), // the result goes to a variable
	}
	executed := 0
	for _, p := range statementTexts(s.t) {
		given := values[p.Name]
		if given == nil {
			continue
		}
		executed++
		text := inTheirWords(eachBind(p.Text, func(n string) string { return given[atoi(s.t, n)-1] }))
		if _, err := s.run(ivoryRuntime, text); err != nil {
			s.t.Errorf("%s\n%v", text, err)
		}
	}
	if executed != len(values) {
		s.t.Errorf("%d blocks that commit", executed)
	}
	s.selects(map[string]string{
		"SELECT COUNT(*) FROM AQ$WF_COMMAND_QTAB":                                "1",
		"SELECT COUNT(*) FROM WF_WAITS WHERE WAITING_TOKEN = 'w-whole'":          "0",
		"SELECT COUNT(*) FROM AQ$WF_DLQ_QTAB WHERE CORR_ID = 'reason'":           "1",
		"SELECT COUNT(*) FROM WF_DEAD_LETTERS WHERE DEAD_LETTER_ID = 'd-notice'": "1",
	})
}

// selects checks what queries select.
func (s *ivory) selects(queries map[string]string) {
	s.t.Helper()
	for query, want := range queries {
		if got := s.one(ivoryOwner, query); got != want {
			s.t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
