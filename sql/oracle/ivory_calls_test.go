//go:build ivory

package oracle

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/signal"
)

// packageCall is a call of a public procedure or function, and the code that it is
// refused with; empty = it is not.
type packageCall struct {
	unit, args, code string
}

// Calls of the packages, with good and bad arguments. One after the other: later
// ones see what earlier ones have written.
var packageCalls = []packageCall{
	{"AQUEDUCT_API.NEW_ID", "", ""},

	{"AQUEDUCT_API.SIGNAL", `p_instance_id => 'i-1', p_type => 'paid', p_data => '{"amount":120,"of":"Ω"}', p_signal_id => 's-1', p_actor => 'ann "x" \ Ω'`, ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_waiting_token => 'w-1', p_signal_id => 's-token'", ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_due_at_utc => TIMESTAMP '2040-01-01 00:00:00', p_signal_id => 's-due'", ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_due_at_utc => TIMESTAMP '2140-01-01 00:00:00', p_signal_id => 's-distant'", ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_sender => 'till', p_sequence => 9223372036854775807, p_signal_id => 's-last'", ""},
	{"AQUEDUCT_API.SIGNAL", `p_instance_id => 'i-1', p_type => 'long', p_data => RPAD('"', 20000, 'x') || '"', p_signal_id => 's-long'`, ""},
	{"AQUEDUCT_API.SIGNAL", `p_instance_id => 'i-1', p_type => 'large', p_data => RPAD('"', 40000, 'x') || '"', p_signal_id => 's-large'`, ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'deep', p_data => RPAD('[', 60, '[') || RPAD(']', 60, ']'), p_signal_id => 's-deep'", ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => NULL, p_type => 'paid'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i 1', p_type => 'paid'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => '..', p_type => 'paid'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => RPAD('i', 129, 'i'), p_type => 'paid'", "20802"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => RPAD('t', 257, 't')", "20802"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_sender => 'till'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_sequence => 1", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_sender => 'till', p_sequence => 1.5", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_sender => 'till', p_sequence => 9223372036854775808", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_sender => 'till', p_sequence => 1, p_waiting_token => 'w-1'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_sender => 'till', p_sequence => 1, p_data => '1'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_data => NULL", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_data => '{'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_data => '1,2'", "20801"},
	{"AQUEDUCT_API.SIGNAL", `p_instance_id => 'i-1', p_type => 'paid', p_data => '{"a":1,"a":2}'`, "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_data => RPAD('[', 65, '[') || RPAD(']', 65, ']')", "20802"},
	{"AQUEDUCT_API.SIGNAL", `p_instance_id => 'i-1', p_type => 'paid', p_data => RPAD('"', 1048577, 'x') || '"'`, "20802"},

	{"AQUEDUCT_API.START_INSTANCE", `p_definition => 'shop/order', p_instance_id => 'i-new', p_input => '{"amount":120}', p_business_key => '4711',
      p_start_key => 'order-4711', p_version => '1', p_signal_type => 'go', p_signal_data => '[1]', p_signal_id => 's-go', p_sender => 'till', p_sequence => 1`, ""},
	{"AQUEDUCT_API.START_INSTANCE", "p_definition => 'shop/order'", ""},
	{"AQUEDUCT_API.START_INSTANCE", "p_definition => NULL", "20801"},
	{"AQUEDUCT_API.START_INSTANCE", "p_definition => 'shop/order', p_signal_id => 's-2'", "20801"},
	{"AQUEDUCT_API.START_INSTANCE", "p_definition => 'shop/order', p_business_key => RPAD('k', 257, 'k')", "20802"},
	{"AQUEDUCT_API.START_INSTANCE", "p_definition => 'shop/order', p_input => 'no'", "20801"},

	{"AQUEDUCT_API.TRIGGER_EVENT", `p_environment => 'shop', p_definition => 'loan', p_reference => 'L-1', p_event => 'submit', p_request_id => 'r-1',
      p_payload => '{"amount":120}'`, ""},
	{"AQUEDUCT_API.TRIGGER_EVENT", "p_environment => NULL, p_definition => 'loan', p_reference => 'L-1', p_event => 'submit'", "20801"},
	{"AQUEDUCT_API.TRIGGER_EVENT", "p_environment => 'shop', p_definition => NULL, p_reference => 'L-1', p_event => 'submit'", "20801"},
	{"AQUEDUCT_API.TRIGGER_EVENT", "p_environment => 'shop', p_definition => 'loan', p_reference => NULL, p_event => 'submit'", "20801"},
	{"AQUEDUCT_API.TRIGGER_EVENT", "p_environment => 'shop', p_definition => 'loan', p_reference => 'L-1', p_event => NULL", "20801"},
	{"AQUEDUCT_API.TRIGGER_EVENT", "p_environment => 'shop', p_definition => 'loan', p_reference => 'L-1', p_event => RPAD('e', 257, 'e')", "20802"},

	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_dedupe_key => 'order-1'", ""},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_dedupe_key => RPAD('k', 128, 'k')", ""}, // its signal id is a digest
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_dedupe_key => 'a b'", "20801"},
	{"AQUEDUCT_API.SIGNAL", "p_instance_id => 'i-1', p_type => 'paid', p_signal_id => 'key:K'", "20801"},

	{"AQUEDUCT_API.ACKNOWLEDGE", `p_instance_id => 'i-1', p_command => 6, p_outcome => 'processed', p_consumer => 'ship', p_output => '{"n":1}', p_signal_id => 's-ack'`, ""},
	{"AQUEDUCT_API.ACKNOWLEDGE", `p_instance_id => 'i-1', p_command => 6, p_outcome => 'failed', p_error => '{"title":"Sold out"}', p_signal_id => 's-ack-failed'`, ""},
	{"AQUEDUCT_API.ACKNOWLEDGE", "p_instance_id => 'i-1', p_command => 6, p_outcome => 'retry', p_delay_seconds => 90, p_actor => 'ann', p_signal_id => 's-ack-retry'", ""},
	{"AQUEDUCT_API.ACKNOWLEDGE", "p_instance_id => 'i-1', p_command => 6, p_outcome => 'processed', p_consumer => 'bill'", "20804"},
	{"AQUEDUCT_API.ACKNOWLEDGE", "p_instance_id => 'i-1', p_command => 5, p_outcome => 'processed'", "20804"},
	{"AQUEDUCT_API.ACKNOWLEDGE", "p_instance_id => 'i-1', p_command => 99, p_outcome => 'processed'", "20803"},
	{"AQUEDUCT_API.ACKNOWLEDGE", "p_instance_id => 'i-1', p_command => 6, p_outcome => 'done'", "20801"},

	{"AQUEDUCT_API.COMPLETE_TASK", `p_task_id => 't-1', p_user => 'ann', p_outcome => 'yes', p_data => '{"n":1}'`, ""},
	{"AQUEDUCT_API.COMPLETE_TASK", "p_task_id => RPAD('t', 128, 't'), p_user => 'ann', p_outcome => 'no'", ""}, // its signal id is a digest
	{"AQUEDUCT_API.COMPLETE_TASK", "p_task_id => 't-1', p_user => 'ann', p_outcome => 'maybe'", "20801"},
	{"AQUEDUCT_API.COMPLETE_TASK", "p_task_id => 't-1', p_user => 'bob', p_outcome => 'yes'", "20804"},
	{"AQUEDUCT_API.COMPLETE_TASK", "p_task_id => 't-over', p_user => 'ann'", "20804"},
	{"AQUEDUCT_API.COMPLETE_TASK", "p_task_id => 't-none', p_user => 'ann'", "20803"},
	{"AQUEDUCT_API.COMPLETE_TASK", "p_task_id => 't-1', p_user => NULL", "20801"},

	{"AQUEDUCT_ADMIN.REPLAY", "'d-signal', 'it is well again'", ""},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-due', 'it is well again'", ""},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-large', 'it is well again'", ""},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-empty', 'it is well again'", ""},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-claim', 'it is well again'", ""},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-nowhere', 'it is well again'", "20804"},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-none', 'it is well again'", "20803"},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-nowhere', NULL", "20801"},
	{"AQUEDUCT_ADMIN.REPLAY", "'d-nowhere', RPAD('r', 1001, 'r')", "20802"},

	{"AQUEDUCT_ADMIN.DISCARD", "'d-command', 'nobody waits'", ""},
	{"AQUEDUCT_ADMIN.DISCARD", "'d-acknowledged', 'nobody waits'", ""},
	{"AQUEDUCT_ADMIN.DISCARD", "'d-nowhere', 'nobody waits'", ""},
	{"AQUEDUCT_ADMIN.DISCARD", "'d-none', 'nobody waits'", "20803"},
	{"AQUEDUCT_ADMIN.DISCARD", "NULL, 'nobody waits'", "20801"},

	{"AQUEDUCT_ADMIN.SUSPEND", "'i-1', 'stock-taking'", ""},
	{"AQUEDUCT_ADMIN.SUSPEND", "'i-none', 'stock-taking'", "20803"},
	{"AQUEDUCT_ADMIN.SUSPEND", "'i-1', CHR(7) || 'stock-taking'", "20801"},
	{"AQUEDUCT_ADMIN.RESUME", "'i-1', 'counted'", ""},
	{"AQUEDUCT_ADMIN.RESUME", "'i-1', NULL", "20801"},
	{"AQUEDUCT_ADMIN.RETRY", "'i-1', 'the host is back', 'same'", ""},
	{"AQUEDUCT_ADMIN.RETRY", "'i-1', 'the host is back'", ""},
	{"AQUEDUCT_ADMIN.RETRY", "'i-1', 'the host is back', 'both'", "20801"},
	{"AQUEDUCT_ADMIN.CANCEL", "'i-1', 'nobody wants it'", ""},
	{"AQUEDUCT_ADMIN.CANCEL", "NULL, 'nobody wants it'", "20801"},
	{"AQUEDUCT_ADMIN.COMPENSATE", "'i-1', 'nobody wants it any more'", ""},
	{"AQUEDUCT_ADMIN.COMPENSATE", "'i-none', 'nobody wants it any more'", "20803"},

	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_instance_id => 'i-over'", ""},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_ended_before_utc => TIMESTAMP '2026-06-01 00:00:00', p_most => 10", ""},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_instance_id => 'i-1'", "20804"},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_instance_id => 'i-open'", "20804"},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_instance_id => 'i-none'", "20803"},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old'", "20801"},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_instance_id => 'i-1', p_ended_before_utc => TIMESTAMP '2026-06-01 00:00:00'", "20801"},
	{"AQUEDUCT_ADMIN.PURGE", "p_reason => 'old', p_ended_before_utc => TIMESTAMP '2026-06-01 00:00:00', p_most => 0", "20801"},

	{"AQUEDUCT_ADMIN.PURGE_TOKENS", "p_reason => 'old', p_over_before_utc => TIMESTAMP '2026-06-01 00:00:00'", ""},
	{"AQUEDUCT_ADMIN.PURGE_TOKENS", "'old', NULL", "20801"},
	{"AQUEDUCT_ADMIN.PURGE_POLICIES", "p_reason => 'old', p_replaced_before_utc => TIMESTAMP '2026-06-01 00:00:00', p_most => 10", ""},
	{"AQUEDUCT_ADMIN.PURGE_POLICIES", "'old', TIMESTAMP '2026-06-01 00:00:00', 10001", "20801"},
	{"AQUEDUCT_ADMIN.PURGE_AUDIT", "p_reason => 'old', p_before_utc => TIMESTAMP '2026-06-01 00:00:00'", "20804"}, // who has logged in is not the owner

	{"AQUEDUCT_API.ATTACH_ACTIVITY", `p_instance_id => 'i-1', p_activity_id => 'a-1', p_name => 'a call', p_status => 'open', p_data => '{"n":1}'`, ""},
	{"AQUEDUCT_API.ATTACH_ACTIVITY", "p_instance_id => 'i-1', p_activity_id => 'a-1', p_name => 'a call'", ""}, // again: it is there
	{"AQUEDUCT_API.ATTACH_ACTIVITY", "p_instance_id => 'i-none', p_activity_id => 'a-1', p_name => 'a call'", "20803"},
	{"AQUEDUCT_API.UPDATE_ACTIVITY", "p_instance_id => 'i-1', p_activity_id => 'a-1', p_version => 1, p_status => 'done'", ""},
	{"AQUEDUCT_API.UPDATE_ACTIVITY", "p_instance_id => 'i-1', p_activity_id => 'a-1', p_version => 1, p_status => 'done'", "20804"},
	{"AQUEDUCT_API.FREEZE_ACTIVITY", "p_instance_id => 'i-1', p_activity_id => 'a-1', p_version => 2", ""},
	{"AQUEDUCT_API.FREEZE_ACTIVITY", "p_instance_id => 'i-1', p_activity_id => 'a-2', p_version => 1", "20803"},
}

// ownersAlone is refused to every caller there: the server knows the one superuser who
// has logged in for all of them.
const ownersAlone = "AQUEDUCT_ADMIN.PURGE_AUDIT"

var (
	specification = regexp.MustCompile(`^CREATE OR REPLACE PACKAGE (AQUEDUCT_\w+)`)
	publicUnit    = regexp.MustCompile(`(?ms)^  (FUNCTION|PROCEDURE) (\w+)(.*?);$`)
	returns       = regexp.MustCompile(`RETURN (\w+)$`)
)

// publicUnits are the procedures and functions that the specifications of the
// packages declare, with what they return; nothing = a procedure.
func publicUnits(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, u := range allUnits(t) {
		of := specification.FindStringSubmatch(u.text)
		if of == nil {
			continue
		}
		for _, m := range publicUnit.FindAllStringSubmatch(u.text, -1) {
			kind := ""
			if r := returns.FindStringSubmatch(strings.TrimSpace(m[3])); r != nil {
				kind = r[1]
			}
			if (m[1] == "FUNCTION") != (kind != "") {
				t.Fatalf("%s, line %d: what does %s return?", u.script, u.line, m[2])
			}
			list[of[1]+"."+strings.ToUpper(m[2])] = kind
		}
	}
	return list
}

// calls executes packageCalls as the owner, whose rights the packages would have:
// every unit of them. It returns how many units there are. Each but NEW_ID is refused something, too.
func (s *ivory) calls() int {
	s.t.Helper()
	units := publicUnits(s.t)
	executed, refused := map[string]bool{}, map[string]bool{"AQUEDUCT_API.NEW_ID": true}
	for _, c := range packageCalls {
		kind, found := units[c.unit]
		if !found {
			s.t.Errorf("no package has %s", c.unit)
		}
		block := fmt.Sprintf("BEGIN AQUEDUCT.%s(%s); END;", c.unit, c.args)
		if kind != "" {
			if kind == "VARCHAR2" || kind == "RAW" {
				kind += "(200)"
			}
			block = fmt.Sprintf("DECLARE V %s; BEGIN V := AQUEDUCT.%s(%s); IF V IS NULL THEN RAISE EXCEPTION 'the result is null'; END IF; END;", kind, c.unit, c.args)
		}
		_, err := s.run(ivoryOwner, block)
		var e *ivoryError
		switch {
		case c.code == "" && err != nil:
			s.t.Errorf("%s: %v", block, err)
		case c.code != "" && (!errors.As(err, &e) || e.code != c.code || !strings.HasPrefix(e.text, "ORA-"+c.code+": AQUEDUCT: ")):
			s.t.Errorf("%s: %v, where ORA-%s was to be", block, err, c.code)
		case c.code == "":
			executed[c.unit] = true
		default:
			refused[c.unit] = true
		}
	}
	for unit := range units {
		if !executed[unit] && unit != ownersAlone || !refused[unit] {
			s.t.Errorf("%s: executed %t, refused %t", unit, executed[unit], refused[unit])
		}
	}
	return len(units)
}

// envelopes reads what the packages have sent as a node does, by signal id.
func (s *ivory) envelopes() map[string]signal.Envelope {
	s.t.Helper()
	const query = `SELECT ENCODE((CASE WHEN P.PAYLOAD_ID IS NULL THEN A.USER_DATA ELSE P.DATA END)::BYTEA, 'hex') FROM AQ$WF_%s_QTAB A
      LEFT JOIN WF_PAYLOADS P ON P.PAYLOAD_ID = A.CORR_ID`
	sent := map[string]signal.Envelope{}
	for _, queue := range []string{"SIGNAL", "SCHEDULE"} {
		for _, line := range strings.Split(s.one(ivoryOwner, fmt.Sprintf(query, queue)), "\n") {
			raw := unhex(s.t, line)
			if !strings.HasPrefix(string(raw), `{"signalId":`) {
				continue // a letter that is replayed is any bytes
			}
			e, err := signal.Decode(raw)
			if err != nil {
				s.t.Errorf("a node does not read %.200s: %v", raw, err)
				continue
			}
			sent[e.SignalID] = e
		}
	}
	return sent
}
