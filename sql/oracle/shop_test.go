package oracle

import (
	"context"
	"database/sql"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// shop is an application: a user with the role and a table of its own.
type shop struct {
	apart
	db   *sql.DB
	node *Store
}

func openShop(t *testing.T) shop {
	t.Helper()
	a := installApart(t)
	a.run(t, a.application, "CREATE TABLE ORDERS (ID NUMBER(10) NOT NULL)")
	dsn := a.d.UserDSN(a.runtime)
	return shop{apart: a, db: a.open(t, a.application), node: opened(t, Options{DSN: dsn, Schema: a.owner, Node: "n"})}
}

// order inserts a row and sends by the package, in one transaction that the
// application ends. It returns the id of the message.
func (s shop) order(t *testing.T, commit bool, call string, args ...any) (string, error) {
	t.Helper()
	tx, err := s.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO ORDERS (ID) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var id []byte
	_, err = tx.Exec("BEGIN :1 := AQUEDUCT.AQUEDUCT_API."+call+"; END;", append([]any{sql.Out{Dest: &id}}, args...)...)
	if err != nil || !commit {
		tx.Rollback()
		return hex.EncodeToString(id), err
	}
	return hex.EncodeToString(id), tx.Commit()
}

func (s shop) orders(t *testing.T) (n int) {
	t.Helper()
	if err := s.db.QueryRow("SELECT COUNT(*) FROM ORDERS").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// longTask is an id of as many bytes as one may have.
var longTask = strings.Repeat("t", signal.MaxIDBytes)

// longKey is a key of the application of as many bytes as one may have.
var longKey = strings.Repeat("k", signal.MaxIDBytes)

// longName is the name of a user or an outcome of as many characters, and bytes, as one
// may have: humantask.MaxName, which the columns of the tables hold.
var longName = strings.Repeat("𝔞", 256)

// withTask makes three tasks that somebody has claimed.
func (s shop) withTask(t *testing.T) {
	t.Helper()
	task := projections.Task{ID: "t-1", InstanceID: "i-1", Name: "approve", Status: projections.TaskReserved, Assignee: "ann",
		CandidateUsers: "[]", CandidateGroups: "[]", ExcludedUsers: "[]", Outcomes: projections.List([]string{"yes", "no", `R&D <"b">`}), Token: "tok", Version: 1, CreatedAt: s.node.clock.now()}
	longest := task
	longest.ID, longest.Token = longTask, "tok-2"
	named := task
	named.ID, named.Token, named.Assignee, named.Outcomes = "t-long", "tok-3", longName, projections.List([]string{longName})
	open := false
	command := projections.Entry{InstanceID: "i-1", Position: 2, Kind: "command", Direction: "out", Type: "Call", Processed: &open, CreatedAt: task.CreatedAt,
		Data: []byte(`{"target":"http","ptr":"/states/Paid/policies/0/billing","ack":5000}`), Metadata: []byte("{}")}
	plain := command
	plain.Position, plain.Data = 3, []byte(`{"target":"http","ptr":"/do/0/ship"}`)
	told := command
	told.Position, told.Data = 4, []byte(`{"target":"http","ptr":"/states/Paid/policies/0/billing","ack":-1}`)
	rows := projections.Rows{Tasks: []projections.Task{task, longest, named}, Stream: []projections.Entry{command, plain, told}}
	if err := s.node.Commit(t.Context(), store.Change{Rows: rows}); err != nil {
		t.Fatal(err)
	}
}

// What an application sends in its own transaction comes once if it commits,
// with the id that it was told; if it rolls back neither its row nor a message
// is there.
func TestAnApplicationSendsWithItsRow(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.withTask(t)
	for _, c := range []struct {
		name, call string
		kind       signal.Type
		args       []any
		payload    []string
	}{
		{"signal", "SIGNAL(p_instance_id => :2, p_type => :3, p_data => :4, p_actor => :5)", signal.ExternalSignal,
			[]any{"i-1", "paid", `{"amount":120,"name":"Ω \"x\""}`, "bob"}, []string{`"type":"paid"`, `"amount":120`, `Ω \"x\"`}},
		{"start_instance", "START_INSTANCE(p_definition => :2, p_instance_id => :3, p_input => :4, p_business_key => :5, p_start_key => :6)",
			signal.StartRequest, []any{"shop/order", "i-2", `[1,2]`, "4711", "k"},
			[]string{`"definition":"shop/order"`, `"businessKey":"4711"`, `"startKey":"k"`, `"input":[1,2]`}},
		{"start_instance with a signal", "START_INSTANCE(p_definition => :2, p_business_key => :3, p_start_key => :4, p_signal_type => :5, p_signal_data => :6, p_signal_id => :7, p_actor => :8)",
			signal.StartRequest, []any{"shop/order", "4711", "k", "paid", `{"n":"Ω"}`, "pay-1", "bob"},
			[]string{`"startKey":"k"`, `"input":null,"signal":{"id":"pay-1","type":"paid","data":{"n":"Ω"}}}`}},
		{"trigger_event", "TRIGGER_EVENT(p_environment => :2, p_definition => :3, p_reference => :4, p_event => :5, p_request_id => :6, p_payload => :7, p_actor => :8)",
			signal.StartRequest, []any{"shop", "loan", "L \"1\"", "submit", "r-1", `{"amount":1}`, "bob"},
			[]string{`"definition":"shop/loan"`, `"businessKey":"L \"1\""`, `"startKey":"lifecycle"`, `"signal":{"id":"r-1","type":"submit","data":{"amount":1}}}`}},
		{"signal in a sequence", "SIGNAL(p_instance_id => :2, p_type => :3, p_data => :4, p_sender => :5, p_sequence => :6)", signal.ExternalSignal,
			[]any{"i-1", "paid", `{"amount":1}`, `crm"1"`, int64(9223372036854775807)}, []string{`"type":"paid"`, `"amount":1`}},
		{"signal that only takes its number", "SIGNAL(p_instance_id => :2, p_sender => :3, p_sequence => :4)", signal.ExternalSignal,
			[]any{"i-1", "crm", 1}, []string{`{}`}},
		{"start_instance with a signal in a sequence", "START_INSTANCE(p_definition => :2, p_signal_type => :3, p_sender => :4, p_sequence => :5)",
			signal.StartRequest, []any{"shop/order", "paid", "crm", 1}, []string{`"type":"paid","data":null,"sender":"crm","sequence":1}}`}},
		{"trigger_event in a sequence", "TRIGGER_EVENT(p_environment => :2, p_definition => :3, p_reference => :4, p_event => :5, p_sender => :6, p_sequence => :7)",
			signal.StartRequest, []any{"shop", "loan", "L-1", "submit", "crm", 20}, []string{`"type":"submit","data":null,"sender":"crm","sequence":20}}`}},
		{"trigger_event that nobody acknowledges", "TRIGGER_EVENT(p_environment => :2, p_definition => :3, p_reference => :4, p_event => :5, p_ack_required => FALSE)",
			signal.StartRequest, []any{"shop", "loan", "L-1", "submit"}, []string{`"type":"submit","data":null,"ackRequired":false}}`}},
		{"signal by a key of the application", "SIGNAL(p_instance_id => :2, p_type => :3, p_signal_id => :4, p_dedupe_key => :5)", signal.ExternalSignal,
			[]any{"i-1", "paid", "s-1", "order-1"}, []string{`{"id":"key:order-1",`}},
		{"signal by a key that is too long for an id", "SIGNAL(p_instance_id => :2, p_type => :3, p_dedupe_key => :4)", signal.ExternalSignal,
			[]any{"i-1", "paid", longKey}, []string{`{"id":"` + signal.Keyed(longKey) + `",`}},
		{"start_instance with a signal by a key", "START_INSTANCE(p_definition => :2, p_signal_type => :3, p_dedupe_key => :4)", signal.StartRequest,
			[]any{"shop/order", "paid", longKey}, []string{`"signal":{"id":"` + signal.Keyed(longKey) + `",`}},
		{"trigger_event by a key", "TRIGGER_EVENT(p_environment => :2, p_definition => :3, p_reference => :4, p_event => :5, p_dedupe_key => :6)", signal.StartRequest,
			[]any{"shop", "loan", "L-1", "submit", "Ω-1"}, []string{`"signal":{"id":"key:Ω-1",`}},
		{"acknowledge", "ACKNOWLEDGE(p_instance_id => :2, p_command => :3, p_outcome => :4, p_consumer => :5, p_output => :6)", signal.AckRequest,
			[]any{"i-1", 2, "processed", "billing", `{"n":"Ω"}`}, []string{`{"command":2,"outcome":"processed","consumer":"billing","output":{"n":"Ω"}}`}},
		{"acknowledge what failed", "ACKNOWLEDGE(p_instance_id => :2, p_command => :3, p_outcome => :4, p_error => :5, p_dedupe_key => :6)", signal.AckRequest,
			[]any{"i-1", 2, "failed", `{"title":"Sold \"out\""}`, "k"}, []string{`{"command":2,"outcome":"failed","error":{"title":"Sold \"out\""}}`}},
		{"acknowledge for once more", "ACKNOWLEDGE(p_instance_id => :2, p_command => :3, p_outcome => :4, p_delay_seconds => :5)", signal.AckRequest,
			[]any{"i-1", 2, "retry", 90}, []string{`{"command":2,"outcome":"retry","delaySeconds":90}`}},
		{"complete_task", "COMPLETE_TASK(p_task_id => :2, p_user => :3, p_outcome => :4, p_data => :5)", signal.TaskCompleted,
			[]any{"t-1", "ann", "yes", `{"note":"fine"}`}, []string{`"outcome":"yes"`, `"note":"fine"`, `"completedBy":"ann"`, `"taskId":"t-1"`}},
		{"complete_task with signs that JSON may escape", "COMPLETE_TASK(p_task_id => :2, p_user => :3, p_outcome => :4)", signal.TaskCompleted,
			[]any{"t-1", "ann", `R&D <"b">`}, []string{`"outcome":"R&D <\"b\">"`}},
		{"complete_task of the longest id", "COMPLETE_TASK(p_task_id => :2, p_user => :3, p_outcome => :4)", signal.TaskCompleted,
			[]any{longTask, "ann", "no"}, []string{`"taskId":"` + longTask + `"`}},
		{"complete_task by the longest names", "COMPLETE_TASK(p_task_id => :2, p_user => :3, p_outcome => :4)", signal.TaskCompleted,
			[]any{"t-long", longName, longName}, []string{`"outcome":"` + longName + `"`, `"completedBy":"` + longName + `"`}},
		{"signal nested as deep as an envelope may be", "SIGNAL(p_instance_id => :2, p_type => :3, p_data => :4)", signal.ExternalSignal,
			[]any{"i-1", "paid", nested(signal.MaxDepth - 2)}, []string{nested(signal.MaxDepth - 2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.orders(t)
			if _, err := s.order(t, false, c.call, c.args...); err != nil {
				t.Fatal(err)
			}
			if n, m := s.orders(t), messages(t, s.node); n != before || m != 0 {
				t.Errorf("after a rollback: %d rows of %d, %d messages", n, before, m)
			}
			id, err := s.order(t, true, c.call, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			d, err := s.node.Receive(t.Context(), store.Signals, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d.Message().ID != id || len(id) != 32 {
				t.Errorf("message %s, the application was told %s", d.Message().ID, id)
			}
			e, err := signal.Decode(d.Message().Body)
			if err != nil || e.Type != c.kind {
				t.Fatal(e.Type, err)
			}
			who := strings.ToUpper(s.application)
			if want := `{"kind":"db","name":"` + who + `","groups":["db:` + who + `"]}`; string(e.Principal) != want {
				t.Errorf("sent by %s, want %s", e.Principal, want)
			}
			if task, ok := c.args[0].(string); ok && c.kind == signal.TaskCompleted && e.SignalID != signal.Bounded("task-"+task) {
				t.Errorf("signal %s, by the API it would have another id", e.SignalID)
			}
			if sequence, ok := c.args[len(c.args)-1].(int64); ok && (e.Sender != `crm"1"` || e.Sequence != sequence) {
				t.Errorf("%q %d", e.Sender, e.Sequence)
			}
			if _, err := signal.DecodeStart(e.Payload); c.kind == signal.StartRequest && err != nil {
				t.Error(err)
			}
			for _, part := range c.payload {
				if !strings.Contains(string(e.Payload), part) {
					t.Errorf("%s is not in %s", part, e.Payload)
				}
			}
			if err := d.Commit(t.Context(), store.Change{}); err != nil {
				t.Fatal(err)
			}
			if n, m := s.orders(t), messages(t, s.node); n != before+1 || m != 0 {
				t.Errorf("after a commit: %d rows of %d, %d messages", n, before+1, m)
			}
		})
	}
}

// nested is JSON of so many levels, with signs in a text that count for nothing.
func nested(levels int) string {
	return strings.Repeat(`{"a[{\"":[`, levels/2) + strings.Repeat("[", levels%2) + "1" + strings.Repeat("]", levels%2) + strings.Repeat("]}", levels/2)
}

// What is wrong with an argument is said at once, with a code.
func TestThePackageRefusesArguments(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.withTask(t)
	const invalid, large, missing, impossible = 20801, 20802, 20803, 20804
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		call string
		code int
		text string
	}{
		{"SIGNAL(NULL, 'paid')", invalid, "p_instance_id is missing"},
		{"SIGNAL('a b', 'paid')", invalid, "p_instance_id holds a space"},
		{"START_INSTANCE('shop/order', p_instance_id => '..')", invalid, "p_instance_id is a path, which no address can name"},
		{"SIGNAL('i', 'paid', p_signal_id => '.')", invalid, "p_signal_id is a path"},
		{"SIGNAL('i', NULL)", invalid, "p_type is missing"},
		{"SIGNAL('i', 'paid', '{')", invalid, "p_data is not JSON"},
		{"SIGNAL('i', 'paid', NULL)", invalid, "p_data is missing"},
		{"SIGNAL('i', 'paid', '1,2')", invalid, "p_data is not one JSON value"},
		{"SIGNAL('i', 'paid', '1],[2')", invalid, "p_data is not JSON"},
		{"SIGNAL('" + long + "', 'paid')", large, "p_instance_id has more than 128 bytes"},
		{"SIGNAL('i', '" + long + "')", large, "p_type has more than 256 bytes"},
		{"SIGNAL('i', 'paid', p_sender => 'crm')", invalid, "p_sequence is missing"},
		{"SIGNAL('i', 'paid', p_sequence => 1)", invalid, "p_sender is missing"},
		{"SIGNAL('i', 'paid', p_sender => 'c m', p_sequence => 1)", invalid, "p_sender holds a space"},
		{"SIGNAL('i', 'paid', p_sender => '" + long + "', p_sequence => 1)", large, "p_sender has more than 128 bytes"},
		{"SIGNAL('i', 'paid', p_sender => 'crm', p_sequence => 0)", invalid, "p_sequence is not a whole number from 1 to 9223372036854775807"},
		{"SIGNAL('i', 'paid', p_sender => 'crm', p_sequence => 1.5)", invalid, "p_sequence is not a whole number"},
		{"SIGNAL('i', 'paid', p_sender => 'crm', p_sequence => 9223372036854775808)", invalid, "p_sequence is not a whole number"},
		{"SIGNAL('i', 'paid', p_waiting_token => 't', p_sender => 'crm', p_sequence => 1)", invalid, "p_waiting_token and p_sequence exclude"},
		{"SIGNAL('i', p_data => '1', p_sender => 'crm', p_sequence => 1)", invalid, "p_data needs p_type"},
		{"START_INSTANCE('shop/order', p_sender => 'crm', p_sequence => 1)", invalid, "p_signal_type is missing"},
		{"START_INSTANCE('shop/order', p_signal_type => 't', p_sender => 'crm', p_sequence => -1)", invalid, "p_sequence is not a whole number"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', p_sequence => 1)", invalid, "p_sender is missing"},
		{"SIGNAL('i', 'paid', p_signal_id => 'a b')", invalid, "p_signal_id holds a space"},
		{"SIGNAL('i', 'paid', p_signal_id => '" + long + "')", large, "p_signal_id has more than 128 bytes"},
		{"SIGNAL('i', 'paid', p_waiting_token => '" + long + "')", large, "p_waiting_token has more than 128 bytes"},
		{"START_INSTANCE('d', p_instance_id => '" + long + "')", large, "p_instance_id has more than 128 bytes"},
		{"START_INSTANCE('d', p_signal_type => 't', p_signal_id => '" + long + "')", large, "p_signal_id has more than 128 bytes"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', p_request_id => '" + long + "')", large, "p_request_id has more than 128 bytes"},
		{"COMPLETE_TASK('" + long + "', 'ann')", large, "p_task_id has more than 128 bytes"},
		{"COMPLETE_TASK('t-long', '" + longName + "x')", large, "p_user has more than 256 characters"},
		{"COMPLETE_TASK('t-1', 'ann', '" + longName + "x')", large, "p_outcome has more than 256 characters"},
		{"SIGNAL('i', 'paid', '{\"a\":1,\"a\":2}')", invalid, "p_data has a key twice"},
		{"SIGNAL('i', 'paid', '[{\"b\":{\"\\u0061\":1,\"a\":2}}]')", invalid, "p_data has a key twice"},
		{"START_INSTANCE('d', p_input => '{\"a\":1,\"a\":1}')", invalid, "p_input has a key twice"},
		{"SIGNAL('i', 'paid', '" + nested(signal.MaxDepth-1) + "')", large, "the envelope is nested deeper than 64"},
		{"START_INSTANCE('d', p_input => '" + nested(100) + "')", large, "the envelope is nested deeper than 64"},
		{"COMPLETE_TASK('t-1', 'ann', 'yes', '" + nested(signal.MaxDepth) + "')", large, "the envelope is nested deeper than 64"},
		{"START_INSTANCE(NULL)", invalid, "p_definition is missing"},
		{"START_INSTANCE('shop/order', p_input => 'x')", invalid, "p_input is not JSON"},
		{"START_INSTANCE('shop/order', p_start_key => '" + long + "')", large, "p_start_key has more than 256 bytes"},
		{"START_INSTANCE('shop/order', p_signal_id => 's')", invalid, "p_signal_type is missing"},
		{"START_INSTANCE('shop/order', p_signal_type => 't', p_signal_id => 'a b')", invalid, "p_signal_id holds a space"},
		{"START_INSTANCE('shop/order', p_signal_type => 't', p_signal_data => '1},{')", invalid, "p_signal_data is not JSON"},
		{"START_INSTANCE('shop/order', p_signal_type => '" + long + "')", large, "p_signal_type has more than 256 bytes"},
		{"TRIGGER_EVENT(NULL, 'loan', 'L-1', 'submit')", invalid, "p_environment is missing"},
		{"TRIGGER_EVENT('shop', NULL, 'L-1', 'submit')", invalid, "p_definition is missing"},
		{"TRIGGER_EVENT('shop', 'loan', NULL, 'submit')", invalid, "p_reference is missing"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', NULL)", invalid, "p_event is missing"},
		{"TRIGGER_EVENT('shop', 'loan', '" + long + "', 'submit')", large, "p_reference has more than 256 bytes"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', 'a b')", invalid, "p_request_id holds a space"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', 'r', '{')", invalid, "p_payload is not JSON"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', p_input => 'x')", invalid, "p_input is not JSON"},
		{"SIGNAL('i', 'paid', p_signal_id => 'key:K')", invalid, "the id begins as those of dedupe keys do"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', 'key:K')", invalid, "the id begins as those of dedupe keys do"},
		{"SIGNAL('i', 'paid', p_dedupe_key => 'a b')", invalid, "p_dedupe_key holds a space"},
		{"SIGNAL('i', 'paid', p_dedupe_key => '" + long + "')", large, "p_dedupe_key has more than 128 bytes"},
		{"START_INSTANCE('shop/order', p_dedupe_key => 's')", invalid, "p_signal_type is missing"},
		{"TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', p_dedupe_key => '..')", invalid, "p_dedupe_key is a path"},
		{"ACKNOWLEDGE(NULL, 2, 'processed')", invalid, "p_instance_id is missing"},
		{"ACKNOWLEDGE('i-1', 1.5, 'processed')", invalid, "p_command is not the position of a command"},
		{"ACKNOWLEDGE('i-1', NULL, 'processed')", invalid, "p_command is not the position of a command"},
		{"ACKNOWLEDGE('i-1', 2, 'done')", invalid, "p_outcome is none of delivered, processed, failed, retry"},
		{"ACKNOWLEDGE('i-1', 2, NULL)", invalid, "p_outcome is none of"},
		{"ACKNOWLEDGE('i-1', 2, 'failed', p_output => '1')", invalid, "p_output is for processed alone"},
		{"ACKNOWLEDGE('i-1', 2, 'processed', p_output => '{')", invalid, "p_output is not JSON"},
		{"ACKNOWLEDGE('i-1', 2, 'processed', p_error => '{}')", invalid, "p_error is for failed alone"},
		{"ACKNOWLEDGE('i-1', 2, 'failed', p_error => '1')", invalid, "p_error is not a JSON object"},
		{"ACKNOWLEDGE('i-1', 2, 'delivered', p_delay_seconds => 1)", invalid, "p_delay_seconds is for retry alone"},
		{"ACKNOWLEDGE('i-1', 2, 'retry', p_delay_seconds => -1)", invalid, "p_delay_seconds is for retry alone, from 0 to 31536000"},
		{"ACKNOWLEDGE('i-1', 1, 'processed')", missing, "instance i-1 has no command 1"},
		{"ACKNOWLEDGE('nobody', 2, 'processed')", missing, "instance nobody has no command 2"},
		{"ACKNOWLEDGE('i-1', 3, 'processed')", impossible, "command 3 asks for no acknowledgement"},
		{"ACKNOWLEDGE('i-1', 4, 'processed')", impossible, "command 4 asks for no acknowledgement"},
		{"ACKNOWLEDGE('i-1', 2, 'processed', 'stock')", impossible, "command 2 is for billing, not for stock"},
		{"COMPLETE_TASK('nobody', 'ann')", missing, "task nobody does not exist"},
		{"COMPLETE_TASK('t-1', 'eve', 'yes')", impossible, "task t-1 is not claimed by eve"},
		{"COMPLETE_TASK('t-1', NULL, 'yes')", invalid, "p_user is missing"},
		{"COMPLETE_TASK('t-1', 'ann', 'perhaps')", invalid, "p_outcome is not one of"},
		{"COMPLETE_TASK('t-1', 'ann', 'yes', 'x')", invalid, "p_data is not JSON"},
	} {
		_, err := s.order(t, true, c.call)
		if !slices.Contains(aq.Codes(err), c.code) || !strings.Contains(err.Error(), "AQUEDUCT: "+c.text) {
			t.Errorf("%.80s: got %v, want %d, %s", c.call, err, c.code, c.text)
		}
	}
	if n, m := s.orders(t), messages(t, s.node); n != 0 || m != 0 {
		t.Errorf("%d rows, %d messages", n, m)
	}
}

// Data of any size up to the envelope's limit goes through the package: what
// no message can hold lies beside it, until a node has consumed it.
func TestThePackageSendsLargeData(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.withTask(t)
	text := func(n int) string { return `"` + strings.Repeat("Ω漢", n/5) + `"` } // n bytes, in far fewer characters
	for _, c := range []struct {
		name, call string
		args       []any
		size       int
	}{
		{"small", "SIGNAL('i-1', 'paid', :2)", []any{text(100)}, 0},
		{"of many characters", "SIGNAL('i-1', 'paid', :2)", []any{`"` + strings.Repeat("x", 30_000) + `"`}, 0},
		{"of many bytes", "SIGNAL('i-1', 'paid', :2)", []any{text(31_995)}, 1},
		{"large", "SIGNAL('i-1', 'paid', :2)", []any{text(1_000_000)}, 1},
		{"input", "START_INSTANCE('shop/order', 'i-2', :2)", []any{text(200_000)}, 1},
		{"first signal", "START_INSTANCE('shop/order', 'i-2', p_signal_type => 'paid', p_signal_data => :2)", []any{text(200_000)}, 1},
		{"payload", "TRIGGER_EVENT('shop', 'loan', 'L-1', 'submit', p_payload => :2)", []any{text(200_000)}, 1},
		{"output", "COMPLETE_TASK('t-1', 'ann', 'yes', :2)", []any{text(200_000)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.order(t, false, c.call, c.args...); err != nil {
				t.Fatal(err)
			}
			if n := payloads(t, s.node); n != 0 {
				t.Errorf("%d payloads after a rollback", n)
			}
			id, err := s.order(t, true, c.call, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if n := payloads(t, s.node); n != c.size {
				t.Errorf("%d payloads, want %d", n, c.size)
			}
			d, err := s.node.Receive(t.Context(), store.Signals, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := signal.Decode(d.Message().Body)
			if err != nil || d.Message().ID != id || !strings.Contains(string(e.Payload), c.args[0].(string)) {
				t.Errorf("%d bytes, %v", len(d.Message().Body), err)
			}
			if err := d.Commit(t.Context(), store.Change{}); err != nil {
				t.Fatal(err)
			}
			if n := payloads(t, s.node); n != 0 {
				t.Errorf("%d payloads in the end", n)
			}
		})
	}
	const large = 20802
	for _, data := range []string{text(1_200_000), `"` + strings.Repeat("x", 1<<20-100) + `"`, `"` + strings.Repeat("x", 2<<20) + `"`} {
		if _, err := s.order(t, true, "SIGNAL('i-1', 'paid', :2)", data); !slices.Contains(aq.Codes(err), large) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}
