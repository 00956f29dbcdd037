package oracle

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// control is an installation with an operator: a user with the role and nothing else.
type control struct {
	apart
	db   *sql.DB
	node *Store
}

const operator = "OPS"

func openControl(t *testing.T) control {
	t.Helper()
	a := installApart(t)
	if err := a.d.CreateUser(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	a.run(t, "app", "GRANT CREATE SESSION TO "+operator)
	a.run(t, a.owner, "GRANT AQUEDUCT_OPERATOR TO "+operator)
	return control{apart: a, db: a.open(t, operator), node: opened(t, Options{DSN: a.d.UserDSN(a.runtime), Schema: a.owner, Node: "n"})}
}

// envelope is a signal to an instance, as a node writes it.
func envelopeOf(t *testing.T, id, instance string, payload string) []byte {
	t.Helper()
	e := signal.Envelope{SignalID: id, InstanceID: instance, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal,
		OccurredAt: time.Now().UTC().Truncate(time.Microsecond), Payload: []byte(payload)}
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// furnish makes something of everything that the views show.
func (c control) furnish(t *testing.T) {
	t.Helper()
	now := c.node.clock.now()
	snap := snapshot.Snapshot{InstanceID: "i-1", Version: 1, Status: snapshot.Waiting, StartedAt: now, UpdatedAt: now,
		Waits: []snapshot.Wait{{Kind: snapshot.WaitTimer, Token: "t-timer", Pointer: "/do/0", Until: now.Add(time.Hour)}}}
	open, done := false, true
	command := func(position int64, processed *bool) projections.Entry {
		return projections.Entry{InstanceID: "i-1", Position: position, Kind: "command", Direction: "out", Type: "Command", CreatedAt: now,
			Processed: processed, Data: []byte(`{"target":"http","token":"","await":"any"}`), Key: "k"}
	}
	change := store.Change{
		Snapshot: &snap, Runtime: store.Runtime{Due: now.Add(time.Hour)},
		Rows: projections.Rows{
			Instance: &projections.Instance{ID: "i-1", Definition: "shop/order", DefVersion: "1.0.0", Status: "waiting", Version: 1, StartedAt: now, UpdatedAt: now},
			Stream:   append([]projections.Entry{command(1, &open), command(2, &done)}, storetest.Named("i-1", 3, now)...),
			Waits:    []projections.Wait{{Token: "t-event", InstanceID: "i-1", EventType: "paid", Spec: "shop/order /do/1", CreatedAt: now}},
			Tasks: []projections.Task{{ID: "task-1", InstanceID: "i-1", Name: "approve", Status: projections.TaskReady, CandidateUsers: "[]",
				CandidateGroups: "[]", ExcludedUsers: "[]", Outcomes: "[]", Token: "t-task", Version: 1, CreatedAt: now}},
		},
		Send: []store.Send{
			{Queue: store.Signals, Body: envelopeOf(t, "s-small", "i-1", `{"n":"Ω"}`)},
			{Queue: store.Signals, Body: envelopeOf(t, "s-large", "i-1", `{"n":"`+strings.Repeat("x", 100_000)+`"}`)},
			{Queue: store.Signals, Body: []byte("no json")},
			{Queue: store.Schedule, Body: envelopeOf(t, "s-later", "i-1", `{}`), Due: now.Add(time.Hour)},
		},
	}
	if err := c.node.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	for id, body := range map[string][]byte{"l-1": envelopeOf(t, "s-dead", "i-1", `{"n":1}`), "l-2": []byte("no json")} {
		dead := &projections.DeadLetter{ID: id, Queue: "signal", InstanceID: "i-1", Envelope: body, Reason: "message.expired", Detail: "gone", Node: "n", DiedAt: now}
		if err := c.node.Commit(t.Context(), store.Change{DeadLetter: dead}); err != nil {
			t.Fatal(err)
		}
	}
}

// text is the only value of a query of the operator's.
func (c control) text(t *testing.T, query string, args ...any) string {
	t.Helper()
	var s sql.NullString
	if err := c.db.QueryRowContext(t.Context(), query, args...).Scan(&s); err != nil {
		t.Fatal(query, err)
	}
	return s.String
}

// TestOperatorsReadTheViews: with the role and nothing else.
func TestOperatorsReadTheViews(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.furnish(t)
	for _, q := range []struct{ query, want string }{
		{"select count(*) from AQUEDUCT.WF_V_MESSAGES M where M.QUEUE_NAME <> 'dlq'", "4"},
		{"select count(*) from AQUEDUCT.WF_V_MESSAGES M where M.QUEUE_NAME = 'dlq' and M.INSTANCE_ID = 'i-1'", "2"}, // notices
		{"select M.INSTANCE_ID || ' ' || M.SIGNAL_TYPE || ' ' || M.QUEUE_NAME || ' ' || M.MSG_STATE from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's-small'", "i-1 ExternalSignal signal READY"},
		{"select JSON_VALUE(UTL_RAW.CAST_TO_RAW(M.ENVELOPE_JSON) FORMAT JSON, '$.payload.n') from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's-small'", "Ω"},
		{"select case when M.DUE_ON_UTC is null then 'at once' end from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's-small'", "at once"},
		{"select case when DBMS_LOB.GETLENGTH(M.ENVELOPE_JSON) > 100000 then 'whole' end from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's-large'", "whole"},
		{"select M.MSG_STATE || M.INSTANCE_ID from AQUEDUCT.WF_V_MESSAGES M where M.ENVELOPE_JSON is null", "READY"},
		{"select M.QUEUE_NAME || ' ' || M.MSG_STATE from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's-later'", "schedule WAIT"},
		{"select TO_CHAR(C.POSITION) || ' ' || C.TARGET from AQUEDUCT.WF_V_COMMANDS C where C.STATUS = 'open'", "1 http"},
		{"select TO_CHAR(C.POSITION) from AQUEDUCT.WF_V_COMMANDS C where C.STATUS = 'processed' and C.POSITION < 3", "2"},
		{"select C.NAME from AQUEDUCT.WF_V_COMMANDS C where C.POSITION = 6", "a/b"},
		{"select C.NAME from AQUEDUCT.WF_V_COMMANDS C where C.POSITION = 3", "told"},
		{"select C.AWAIT from AQUEDUCT.WF_V_COMMANDS C where C.STATUS = 'open'", "any"},
		{"select T.NAME from AQUEDUCT.WF_V_TIMELINE T where T.KIND <> 'task' and T.POSITION = 3", "told"},
		{"select T.NAME from AQUEDUCT.WF_V_TIMELINE T where T.KIND <> 'task' and T.POSITION = 4", "paid"},
		{"select T.NAME from AQUEDUCT.WF_V_TIMELINE T where T.KIND <> 'task' and T.POSITION = 5", "submit"},
		{"select T.NAME from AQUEDUCT.WF_V_TIMELINE T where T.KIND <> 'task' and T.POSITION = 6", "a/b"},
		{"select T.NAME from AQUEDUCT.WF_V_TIMELINE T where T.KIND <> 'task' and T.POSITION = 7", "ask"},
		{"select T.NAME from AQUEDUCT.WF_V_TIMELINE T where T.KIND <> 'task' and T.POSITION = 1", ""},
		{"select count(*) from AQUEDUCT.WF_V_WAITS W where W.INSTANCE_ID = 'i-1'", "3"},
		{"select W.EVENT_TYPE || ' ' || W.PLACE from AQUEDUCT.WF_V_WAITS W where W.KIND = 'Event'", "paid shop/order /do/1"},
		{"select W.TASK_ID from AQUEDUCT.WF_V_WAITS W where W.KIND = 'Task'", "task-1"},
		{"select L.SIGNAL_ID || ' ' || L.REASON from AQUEDUCT.WF_V_LETTERS L where L.DEAD_LETTER_ID = 'l-1'", "s-dead message.expired"},
		{"select count(*) from AQUEDUCT.WF_V_LETTERS L where L.ENVELOPE_JSON is null", "1"},
	} {
		if got := c.text(t, q.query); got != q.want {
			t.Errorf("%s: %q, want %q", q.query, got, q.want)
		}
	}
	if due := c.text(t, "select TO_CHAR(W.UNTIL_UTC, 'YYYY-MM-DD HH24:MI:SS') from AQUEDUCT.WF_V_WAITS W where W.KIND = 'Timer'"); !near(due, time.Hour) {
		t.Errorf("the timer is due %s", due)
	}
	if due := c.text(t, "select TO_CHAR(M.DUE_ON_UTC, 'YYYY-MM-DD HH24:MI:SS') from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's-later'"); !near(due, time.Hour) {
		t.Errorf("the message is due %s", due)
	}
	for _, user := range []string{operator, c.application} {
		for _, statement := range []string{"select count(*) from AQUEDUCT.WF_STREAM", "delete from AQUEDUCT.WF_DEAD_LETTERS", "delete from AQUEDUCT.WF_V_LETTERS"} {
			c.refuses(t, user, statement, 1031, 942)
		}
	}
	c.refuses(t, c.application, "select count(*) from AQUEDUCT.WF_V_MESSAGES", 1031, 942)
}

// near says whether a moment in UTC is so far from now, as near as a busy machine can tell
// it from another time zone.
func near(moment string, from time.Duration) bool {
	at, err := time.Parse(time.DateTime, moment)
	return err == nil && (time.Until(at)-from).Abs() < 15*time.Minute
}

// TestAnExpiredMessageSaysWhereItWas: and why the database has given it up.
func TestAnExpiredMessageSaysWhereItWas(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	ctx := context.WithoutCancel(t.Context())
	const send = `DECLARE
  v_options DBMS_AQ.ENQUEUE_OPTIONS_T;
  v_message DBMS_AQ.MESSAGE_PROPERTIES_T;
  v_id RAW(16);
BEGIN
  v_message.expiration := 0;
  DBMS_AQ.ENQUEUE(queue_name => 'AQUEDUCT.WF_SIGNAL_Q', enqueue_options => v_options, message_properties => v_message, payload => UTL_RAW.CAST_TO_RAW('{"signalId":"s"}'), msgid => v_id);
END;`
	if _, err := c.open(t, c.owner).ExecContext(ctx, send); err != nil {
		t.Fatal(err)
	}
	if _, err := c.d.Postgres(ctx, "select ocisim.aq_sweep(null)"); err != nil { // Oracle's queue monitor does it by itself
		t.Fatal(err)
	}
	got := c.text(t, "select M.QUEUE_NAME || ' ' || M.MSG_STATE || ' ' || M.ORIGINAL_QUEUE || ' ' || M.REASON from AQUEDUCT.WF_V_MESSAGES M where M.SIGNAL_ID = 's'")
	if want := "signal EXPIRED WF_SIGNAL_Q TIME_EXPIRATION"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheExamplesOfOperatorsRun: every statement of the page's section, in its order, by
// a user with the role.
func TestTheExamplesOfOperatorsRun(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.furnish(t)
	page, err := os.ReadFile("../../docs/oracle.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Operating it by SQL\n")
	if !ok {
		t.Fatal("the page has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for _, line := range strings.Split(section, "\n") {
		if code, is := strings.CutPrefix(line, "    "); is || line == "" {
			lines = append(lines, code)
		}
	}
	count := 0
	for _, statement := range examples(strings.Join(lines, "\n")) {
		user := operator
		if strings.HasPrefix(statement, "GRANT ") {
			user = c.owner
		}
		count++
		if _, job, ok := strings.Cut(statement, "job_action => '"); ok { // the stand-in keeps no jobs: what it would do is done
			job, _, _ = strings.Cut(job, "END;')")
			user, statement = c.owner, strings.ReplaceAll(job, "''", "'")+"END;"
		}
		c.run(t, user, strings.NewReplacer("order-4711", "i-1", "0197f0c2-7d1e-7cc2-8d1a-5f6d2f0f3a11", "l-2").Replace(statement))
	}
	if count < 12 {
		t.Errorf("only %d examples", count)
	}
	if got := c.text(t, "select count(distinct A.OBJECT_ID) from AQUEDUCT.WF_V_AUDIT A"); got != "3" {
		t.Errorf("the examples have done something to %s objects, not to two dead letters and an instance", got)
	}
}

// examples takes statements apart: SQL ends with a semicolon, PL/SQL with a slash.
func examples(text string) []string {
	var list, block []string
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch plsql := len(block) > 0 && (block[0] == "BEGIN" || block[0] == "DECLARE"); {
		case trimmed == "" && !plsql:
		case trimmed == "/":
			list, block = append(list, strings.Join(block, "\n")), nil
		case strings.HasSuffix(trimmed, ";") && !plsql:
			list, block = append(list, strings.TrimSuffix(strings.Join(append(block, line), "\n"), ";")), nil
		default:
			block = append(block, line)
		}
	}
	return list
}
