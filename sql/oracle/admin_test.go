package oracle

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// call runs a block of the operator's, in a transaction that they commit or not.
func (c control) call(t *testing.T, commit bool, block string, args ...any) error {
	t.Helper()
	tx, err := c.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("BEGIN DBMS_SESSION.SET_IDENTIFIER('ann@desk'); END;"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("BEGIN AQUEDUCT.AQUEDUCT_ADMIN."+block+"; END;", args...); err != nil || !commit {
		tx.Rollback()
		return err
	}
	return tx.Commit()
}

func (c control) dead(t *testing.T, id string, queue store.Queue, body []byte) {
	t.Helper()
	dead := &projections.DeadLetter{ID: id, Queue: string(queue), InstanceID: "i-1", Envelope: body, Reason: "test", DiedAt: c.node.clock.now()}
	if err := c.node.Commit(t.Context(), store.Change{DeadLetter: dead}); err != nil {
		t.Fatal(err)
	}
}

// audited is what the operator sees of what was done to an object.
func (c control) audited(t *testing.T, object string) string {
	t.Helper()
	const query = `select A.ACTION || '|' || A.INSTANCE_ID || '|' || A.USER_NAME || '|' || A.CLIENT_IDENTIFIER || '|' || A.REASON
from AQUEDUCT.WF_V_AUDIT A where A.OBJECT_ID = :1`
	var s string
	if err := c.db.QueryRow(query, object).Scan(&s); err != nil && err != sql.ErrNoRows {
		t.Fatal(err)
	}
	return s
}

// TestReplayBySQLSendsWhatTheAPISends: the bytes, due at once and without attempts,
// whatever they are and say.
func TestReplayBySQLSendsWhatTheAPISends(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	later := signal.Envelope{SignalID: "s-2", InstanceID: "i-1", RuntimeProvider: signal.Provider, Type: signal.TimerDue,
		OccurredAt: time.Now().UTC(), DueAt: time.Now().UTC().Add(time.Hour), Payload: []byte(`{}`)}
	due, err := later.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct {
		name  string
		queue store.Queue
		body  []byte
	}{
		{"small", store.Signals, envelopeOf(t, "s-1", "i-1", `{"n":"Ω"}`)},
		{"large", store.Signals, envelopeOf(t, "s-3", "i-1", `{"n":"`+strings.Repeat("Ω", 50_000)+`"}`)},
		{"of the size of a message", store.Signals, []byte(strings.Repeat("x", aq.MaxBytes))},
		{"too large by a byte", store.Signals, []byte(strings.Repeat("x", aq.MaxBytes+1))},
		{"with a time to come", store.Schedule, due},
		{"large with a time to come", store.Schedule, append(due[:len(due)-1:len(due)-1], `,"x":"`+strings.Repeat("x", aq.MaxBytes)+`"}`...)},
		{"no envelope", store.Signals, []byte("\x00\xff")},
		{"empty", store.Signals, []byte{}},
		{"like a reference", store.Signals, []byte(`{"claimCheck":{"id":"x","bytes":1}}`)},
	} {
		var got [2]store.Message
		for i, replay := range []func(id string) error{
			func(id string) error { return c.node.Parts().DeadLetters.Replay(t.Context(), id, 0, nil) },
			func(id string) error { return c.call(t, true, "REPLAY(:1, 'it is mended')", id) },
		} {
			id := strings.ReplaceAll(l.name, " ", "-")
			c.dead(t, id, l.queue, l.body)
			if err := replay(id); err != nil {
				t.Fatal(l.name, err)
			}
			d, err := c.node.Receive(t.Context(), l.queue, nil)
			if err != nil {
				t.Fatal(l.name, err)
			}
			got[i] = d.Message()
			if err := d.Commit(t.Context(), store.Change{}); err != nil {
				t.Fatal(err)
			}
			if n := payloads(t, c.node); n != 0 {
				t.Errorf("%s: %d payloads are left", l.name, n)
			}
			if i == 1 && c.audited(t, id) != "replay|i-1|"+operator+"|ann@desk|it is mended" {
				t.Errorf("%s: audited as %q", l.name, c.audited(t, id))
			}
		}
		a, s := got[0], got[1]
		if string(s.Body) != string(l.body) || s.Priority != a.Priority || s.Attempts != a.Attempts || !s.DueAt.Equal(a.DueAt) {
			t.Errorf("%s: by the API %+v, by SQL %+v", l.name, a, s)
		}
	}
}

// TestAdministrationIsTheCallers: what they roll back has not been.
func TestAdministrationIsTheCallers(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.ended(t, "i-9", nil)
	for _, block := range []string{"REPLAY('l-1', 'r')", "DISCARD('l-2', 'r')"} {
		c.dead(t, "l-1", store.Signals, envelopeOf(t, "s-1", "i-1", `{}`))
		c.dead(t, "l-2", store.Signals, envelopeOf(t, "s-2", "i-1", `{}`))
		if err := c.call(t, false, block); err != nil {
			t.Fatal(block, err)
		}
		if n, m := c.text(t, "select count(*) from AQUEDUCT.WF_V_LETTERS"), messages(t, c.node); n != "2" || m != 0 {
			t.Errorf("%s, rolled back: %s dead letters, %d messages", block, n, m)
		}
		for _, id := range []string{"l-1", "l-2"} {
			if err := c.call(t, true, "DISCARD(:1, 'r')", id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := c.purge(t, false, "p_instance_id => 'i-9'"); got != 1 {
		t.Errorf("%d purged", got)
	}
	if c.text(t, "select count(*) from AQUEDUCT.WF_V_INSTANCES where INSTANCE_ID = 'i-9'") != "1" {
		t.Error("rolled back, and purged")
	}
	if got := c.text(t, "select count(*) from AQUEDUCT.WF_V_AUDIT where ACTION <> 'discard'"); got != "0" {
		t.Errorf("%s were rolled back and are audited", got)
	}
}

func (c control) purge(t *testing.T, commit bool, args string) (n int) {
	t.Helper()
	tx, err := c.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("BEGIN :1 := AQUEDUCT.AQUEDUCT_ADMIN.PURGE('old', "+args+"); END;", sql.Out{Dest: &n}); err != nil {
		t.Fatal(err)
	}
	if !commit {
		tx.Rollback()
	} else if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return n
}

// ended makes an instance that has ended, or is as it is said.
func (c control) ended(t *testing.T, id string, change func(*store.Change)) {
	t.Helper()
	now := c.node.clock.now()
	open := false
	w := store.Change{
		Snapshot: &snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Completed, StartedAt: now, UpdatedAt: now},
		Rows: projections.Rows{
			Instance: &projections.Instance{ID: id, Definition: "d", DefVersion: "1", Status: "completed", Version: 1, StartedAt: now, UpdatedAt: now, EndedAt: now.Add(-time.Hour)},
			Stream:   []projections.Entry{{InstanceID: id, Position: 1, Kind: "event", Direction: "in", Type: "x", CreatedAt: now}},
			Tasks: []projections.Task{{ID: "task-" + id, InstanceID: id, Name: "n", Status: projections.TaskReady, CandidateUsers: `["ann"]`,
				CandidateGroups: "[]", ExcludedUsers: "[]", Outcomes: "[]", Token: "tok-" + id, Version: 1, CreatedAt: now}},
			Waits: []projections.Wait{{Token: "w-" + id, InstanceID: id, EventType: "paid", Spec: "s", CreatedAt: now}},
		},
	}
	if change != nil {
		change(&w)
		for i := range w.Rows.Stream {
			if w.Rows.Stream[i].Kind == "command" {
				w.Rows.Stream[i].Processed = &open
			}
		}
	}
	if err := c.node.Commit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// TestPurgeBySQLTakesWhatRetentionTakes: all of what has ended, and nothing else.
func TestPurgeBySQLTakesWhatRetentionTakes(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	for _, id := range []string{"old-1", "old-2", "old-3"} {
		c.ended(t, id, nil)
	}
	c.ended(t, "young", func(w *store.Change) { w.Rows.Instance.EndedAt = c.node.clock.now() })
	c.ended(t, "open", func(w *store.Change) {
		w.Rows.Stream[0].Kind, w.Rows.Stream[0].Data = "command", []byte(`{"target":"http"}`)
	})
	c.ended(t, "faulted", func(w *store.Change) { w.Rows.Instance.Status, w.Snapshot.Status = "faulted", snapshot.Faulted })
	const before = "p_ended_before_utc => SYS_EXTRACT_UTC(SYSTIMESTAMP) - NUMTODSINTERVAL(1800, 'SECOND')"
	if n := c.purge(t, true, before+", p_most => 2"); n != 2 {
		t.Errorf("%d of at most 2 were purged", n)
	}
	if n := c.purge(t, true, before); n != 1 {
		t.Errorf("%d were purged, one was left", n)
	}
	for table, want := range map[string]string{"WF_INSTANCES": "3", "WF_RUNTIME_STATES": "3", "WF_STREAM": "3", "WF_TASKS": "3", "WF_TASK_ACTORS": "3", "WF_WAITS": "3"} {
		var n string
		if err := c.open(t, c.owner).QueryRow("select count(*) from " + table).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %s rows are left, want %s, %v", table, n, want, err)
		}
	}
	if got := c.audited(t, "old-2"); got != "purge|old-2|"+operator+"||old" {
		t.Errorf("audited as %q", got)
	}
	if n := c.purge(t, true, "p_instance_id => 'young'"); n != 1 {
		t.Errorf("%d purged", n)
	}
}

// TestPurgeBySQLLooksAgain: what it found when it began may be gone meanwhile, and begun
// anew under the same id.
func TestPurgeBySQLLooksAgain(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.ended(t, "first", func(w *store.Change) { w.Rows.Instance.EndedAt = w.Rows.Instance.EndedAt.Add(-time.Hour) })
	c.ended(t, "anew", nil)
	// While the first one is deleted, the second is begun anew.
	const beside = `create function public.begin_anew() returns trigger language plpgsql as $$ begin
update aqueduct.wf_instances set status = 'waiting', ended_on_utc = null where instance_id = 'anew'; return old; end $$;
create trigger begin_anew after delete on aqueduct.wf_instances for each row when (old.instance_id = 'first') execute function public.begin_anew()`
	if _, err := c.d.Postgres(t.Context(), beside); err != nil {
		t.Fatal(err)
	}
	if n := c.purge(t, true, "p_ended_before_utc => SYS_EXTRACT_UTC(SYSTIMESTAMP)"); n != 1 {
		t.Errorf("%d were purged, one was over", n)
	}
	for _, table := range []string{"WF_INSTANCES", "WF_RUNTIME_STATES", "WF_STREAM", "WF_TASKS", "WF_WAITS"} {
		var n string
		if err := c.open(t, c.owner).QueryRow("select count(*) from " + table + " where INSTANCE_ID = 'anew'").Scan(&n); err != nil || n != "1" {
			t.Errorf("%s: %s rows of the instance that was begun anew, %v", table, n, err)
		}
	}
	if got := c.audited(t, "anew"); got != "" {
		t.Errorf("audited as %q", got)
	}
}

// TestPurgeBySQLKeepsEditsOfWhatWaits: a dead letter outlives its instance, and what was
// edited of it does, too.
func TestPurgeBySQLKeepsEditsOfWhatWaits(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.ended(t, "i-1", nil)
	c.dead(t, "l-waits", store.Signals, envelopeOf(t, "s-1", "i-1", `{}`))
	for _, id := range []string{"l-waits", "l-gone"} {
		edit := op{name: "dead_letter_edit_insert", args: []any{id, int64(1), "i-1", "original", stamp(c.node.clock.now()), "", "", []byte(nil)}}
		if err := runStatement(t.Context(), c.node, &edit); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.purge(t, true, "p_instance_id => 'i-1'"); n != 1 {
		t.Errorf("%d purged", n)
	}
	var left string
	err := c.open(t, c.owner).QueryRow("select count(*) || ' ' || min(E.DEAD_LETTER_ID) from WF_LETTER_EDITS E").Scan(&left)
	if err != nil || left != "1 l-waits" {
		t.Errorf("edits are left of %s, %v", left, err)
	}
}

// TestDiscardBySQLSettlesWhatNobodyPerforms: as the API does.
func TestDiscardBySQLSettlesWhatNobodyPerforms(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	next := time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC)
	for _, s := range []struct {
		id, data, claimed string
		due               time.Time
		settled           bool
	}{
		{"nobody", `{"target":"http","token":""}`, "", time.Time{}, true},
		{"awaited", `{"target":"http","token":"t"}`, "", time.Time{}, false},
		{"claimed", `{"target":"http","token":""}`, "n", time.Time{}, false},
		{"superseded", `{"target":"http","ack":5}`, "", next.Add(time.Second), false},
		{"last", `{"target":"http","ack":5}`, "", next, true},
		{"damaged", `{"tar`, "", time.Time{}, false},
	} {
		c.ended(t, s.id, func(w *store.Change) {
			e := &w.Rows.Stream[0]
			e.Kind, e.Data, e.ClaimedBy = "command", []byte(s.data), s.claimed
			if !s.due.IsZero() {
				e.NextAttemptAt = next
			}
		})
		body, err := signal.ForCommand(s.id, 1, 0, next, s.due).Encode()
		if err != nil {
			t.Fatal(err)
		}
		c.dead(t, "l-"+s.id, store.Commands, body)
		if err := c.call(t, true, "DISCARD(:1, 'nobody wants it')", "l-"+s.id); err != nil {
			t.Fatal(s.id, err)
		}
		want := map[bool]string{true: "discarded", false: "open"}[s.settled]
		if s.claimed != "" {
			want = "claimed"
		}
		if got := c.text(t, "select C.STATUS from AQUEDUCT.WF_V_COMMANDS C where C.INSTANCE_ID = :1", s.id); got != want {
			t.Errorf("%s: the command is %s, want %s", s.id, got, want)
		}
	}
	if n := c.text(t, "select count(*) from AQUEDUCT.WF_V_LETTERS"); n != "0" {
		t.Errorf("%s dead letters are left", n)
	}
}

// TestThePackageOfOperatorsRefuses: with the codes of the package of applications.
func TestThePackageOfOperatorsRefuses(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.ended(t, "faulted", func(w *store.Change) { w.Rows.Instance.Status, w.Snapshot.Status = "faulted", snapshot.Faulted })
	c.ended(t, "open", func(w *store.Change) {
		w.Rows.Stream[0].Kind, w.Rows.Stream[0].Data = "command", []byte(`{"target":"http"}`)
	})
	c.dead(t, "l-1", "nowhere", []byte("x"))
	const invalid, large, missing, impossible = 20801, 20802, 20803, 20804
	long := strings.Repeat("x", 1001)
	for _, r := range []struct {
		block string
		code  int
		text  string
	}{
		{"REPLAY(NULL, 'r')", invalid, "p_dead_letter_id is missing"},
		{"REPLAY('l-1', NULL)", invalid, "p_reason is missing"},
		{"REPLAY('l-1', '" + long + "')", large, "p_reason has more than 1000 bytes"},
		{"REPLAY('" + long + "', 'r')", large, "p_dead_letter_id has more than 128 bytes"},
		{"REPLAY('l-0', 'r')", missing, "dead letter l-0 does not exist"},
		{"REPLAY('l-1', 'r')", impossible, "dead letter l-1 is of no queue"},
		{"DISCARD('l-0', 'r')", missing, "dead letter l-0 does not exist"},
		{"DISCARD('l-1', NULL)", invalid, "p_reason is missing"},
	} {
		c.refused(t, c.call(t, true, r.block), r.block, r.code, r.text)
	}
	for _, r := range []struct {
		args string
		code int
		text string
	}{
		{"'r'", invalid, "p_instance_id is missing, or p_ended_before_utc"},
		{"NULL, 'i'", invalid, "p_reason is missing"},
		{"'r', 'i', SYS_EXTRACT_UTC(SYSTIMESTAMP)", invalid, "exclude each other"},
		{"'r', 'i', p_most => 0", invalid, "p_most is not a number from 1 to 10000"},
		{"'r', 'i', p_most => 10001", invalid, "p_most is not a number from 1 to 10000"},
		{"'r', 'nobody'", missing, "instance nobody does not exist"},
		{"'r', 'faulted'", impossible, "instance faulted is faulted"},
		{"'r', 'open'", impossible, "instance open has 1 open commands"},
	} {
		var n int
		_, err := c.db.ExecContext(context.WithoutCancel(t.Context()), "BEGIN :1 := AQUEDUCT.AQUEDUCT_ADMIN.PURGE("+r.args+"); END;", sql.Out{Dest: &n})
		c.refused(t, err, r.args, r.code, r.text)
	}
	for _, name := range []string{"PURGE_TOKENS", "PURGE_POLICIES"} {
		const moment = "SYS_EXTRACT_UTC(SYSTIMESTAMP)"
		for args, text := range map[string]string{
			"NULL, " + moment: "p_reason is missing", "'r', NULL": "_before_utc is missing",
			"'r', " + moment + ", 0": "p_most is not a number from 1 to 10000", "'r', " + moment + ", 10001": "p_most is not a number from 1 to 10000",
		} {
			var n int
			_, err := c.db.ExecContext(context.WithoutCancel(t.Context()), "BEGIN :1 := AQUEDUCT.AQUEDUCT_ADMIN."+name+"("+args+"); END;", sql.Out{Dest: &n})
			c.refused(t, err, name+args, invalid, text)
		}
	}
	if n := c.text(t, "select count(*) from AQUEDUCT.WF_V_AUDIT"); n != "0" {
		t.Errorf("%s refusals are audited", n)
	}
	const undeclared, unknown, noRight = 6550, 904, 1031
	c.refuses(t, c.application, "BEGIN AQUEDUCT.AQUEDUCT_ADMIN.REPLAY('l-1', 'r'); END;", undeclared, unknown, noRight)
	c.refuses(t, operator, "BEGIN AQUEDUCT.AQUEDUCT_ADMIN.NOTE('a', 'b', 'c', 'd'); END;", undeclared, unknown, noRight)
	c.refuses(t, operator, "delete from AQUEDUCT.WF_AUDIT", noRight, 942)
	c.refuses(t, c.runtime, "delete from AQUEDUCT.WF_AUDIT", noRight, 942)
	c.refuses(t, c.runtime, "update AQUEDUCT.WF_AUDIT set REASON = 'x'", noRight, 942)
	c.refuses(t, c.runtime, "delete from AQUEDUCT.WF_TOKENS", noRight, 942)
	c.refuses(t, c.runtime, "delete from AQUEDUCT.WF_DEFINITIONS", noRight, 942)
}

// TestTheOwnerAlonePurgesTheAudit: neither operators nor nodes, who may call all of the
// package; and what is deleted has a row that says so.
func TestTheOwnerAlonePurgesTheAudit(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.dead(t, "l-1", store.Signals, []byte("x"))
	if err := c.call(t, true, "DISCARD('l-1', 'r')"); err != nil {
		t.Fatal(err)
	}
	const block, impossible = "DECLARE N NUMBER; BEGIN N := AQUEDUCT.AQUEDUCT_ADMIN.PURGE_AUDIT('old', SYS_EXTRACT_UTC(SYSTIMESTAMP)); END;", 20804
	for _, user := range []string{operator, c.runtime} {
		c.refuses(t, user, block, impossible)
	}
	by := func(string) store.Audit { return store.Audit{Reason: "old"} }
	if _, err := c.node.Parts().Retention.PurgeKept(t.Context(), backend.KeptAudit, time.Now(), 10, by); problem.CodeOf(err) != "audit.append-only" {
		t.Errorf("a node that is not the owner: %v", err)
	}
	if n := c.text(t, "select count(*) from AQUEDUCT.WF_V_AUDIT"); n != "1" {
		t.Errorf("%s rows are left", n)
	}
	c.run(t, c.owner, block)
	if n, got := c.text(t, "select count(*) from AQUEDUCT.WF_V_AUDIT"), c.text(t, "select A.ACTION || '|' || A.USER_NAME || '|' || A.REASON from AQUEDUCT.WF_V_AUDIT A where A.OBJECT_ID = 'audit'"); n != "1" || got != "purge|"+c.owner+"|1 rows: old" {
		t.Errorf("%s rows, the purge is %q", n, got)
	}
}

func (c control) refused(t *testing.T, err error, what string, code int, text string) {
	t.Helper()
	if !slices.Contains(aq.Codes(err), code) || !strings.Contains(err.Error(), "AQUEDUCT: "+text) && !strings.Contains(err.Error(), text) {
		t.Errorf("%.80s: got %v, want %d, %s", what, err, code, text)
	}
}

// request asks for something by a function of the package that returns an id.
func (c control) request(t *testing.T, commit bool, call string) (id string, err error) {
	t.Helper()
	tx, err := c.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("BEGIN DBMS_SESSION.SET_IDENTIFIER('ann@desk'); END;"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("BEGIN :1 := AQUEDUCT.AQUEDUCT_ADMIN."+call+"; END;", sql.Out{Dest: &id}); err != nil || !commit {
		tx.Rollback()
		return id, err
	}
	return id, tx.Commit()
}

// verdict is what the operator reads of a request.
func (c control) verdict(t *testing.T, id string) string {
	t.Helper()
	return c.text(t, `select R.OPERATION || '|' || R.VERDICT || '|' || R.CODE || '|' || R.DETAIL || '|' || R.DECIDED_BY || '|' || R.USER_NAME || '|' || R.CLIENT_IDENTIFIER || '|' || R.REASON
from AQUEDUCT.WF_V_REQUESTS R where R.REQUEST_ID = :1`, id)
}

// TestARequestBySQLHasItsVerdict: it is sent when its operator commits, ahead of what
// waits, and what a node commits about it is the verdict, in that commit.
func TestARequestBySQLHasItsVerdict(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.furnish(t)
	c.ended(t, "i-2", func(w *store.Change) { w.Rows.Instance.Status = "waiting" })
	position := int64(10)
	if id, err := c.request(t, false, `SUSPEND('i-2', 'r')`); err != nil || c.text(t, "select count(*) from AQUEDUCT.WF_V_REQUESTS") != "0" {
		t.Errorf("rolled back: %s, %v", id, err)
	}
	for _, r := range []struct{ call, operation string }{
		{`SUSPEND('i-2', 'stock-taking "Ω"')`, "suspend"}, {`RESUME('i-2', 'stock-taking "Ω"')`, "resume"}, {`RETRY('i-2', 'stock-taking "Ω"')`, "retry"},
		{`RETRY('i-2', 'stock-taking "Ω"', 'same')`, "retry-same"}, {`RETRY('i-2', 'stock-taking "Ω"', p_effect => 'new')`, "retry-new"},
		{`CANCEL(p_instance_id => 'i-2', p_reason => 'stock-taking "Ω"')`, "cancel"},
	} {
		for refused, want := range map[bool]string{false: "done|||n", true: "refused|instance.closed|is Ω|n"} {
			id, err := c.request(t, true, r.call)
			if err != nil {
				t.Fatal(r.call, err)
			}
			const who = "|" + operator + `|ann@desk|stock-taking "Ω"`
			if got := c.verdict(t, id); got != r.operation+"|open|||"+who {
				t.Errorf("%s: %s", r.call, got)
			}
			d, err := c.node.Receive(t.Context(), store.Signals, nil)
			if err != nil {
				t.Fatal(err)
			}
			env, err := signal.Decode(d.Message().Body)
			if err != nil || env.SignalID != id || env.InstanceID != "i-2" || env.Type != signal.OperatorRequest || env.Headers[signal.HeaderActor] != operator ||
				string(env.Payload) != `{"operation":"`+r.operation+`","reason":"stock-taking \"Ω\""}` {
				t.Errorf("%s: %+v %s, %v", r.call, env, env.Payload, err)
			}
			position++
			change := store.Change{Rows: projections.Rows{Stream: []projections.Entry{{InstanceID: "i-2", Position: position, Kind: "event", SignalID: id}}}}
			if refused {
				change = store.Change{DeadLetter: &projections.DeadLetter{InstanceID: "i-2", Reason: "instance.closed", Detail: "is Ω", Node: "n"}}
			}
			if err := d.Commit(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if got := c.verdict(t, id); got != r.operation+"|"+want+who {
				t.Errorf("%s: %s, want %s", r.call, got, want)
			}
		}
	}
	const invalid, large, missing = 20801, 20802, 20803
	for _, r := range []struct {
		call string
		code int
		text string
	}{
		{"SUSPEND(NULL, 'r')", invalid, "p_instance_id is missing"},
		{"RESUME('i-2', NULL)", invalid, "p_reason is missing"},
		{"CANCEL('i-2', 'a'||CHR(10))", invalid, "p_reason holds a control character"},
		{"CANCEL('i-2', '" + strings.Repeat("x", 1001) + "')", large, "p_reason has more than 1000 bytes"},
		{"RETRY('nobody', 'r')", missing, "instance nobody does not exist"},
		{"RETRY('i-2', 'r', 'perhaps')", invalid, "p_effect is neither same nor new"},
	} {
		_, err := c.request(t, true, r.call)
		c.refused(t, err, r.call, r.code, r.text)
	}
	c.ended(t, "i-3", nil)
	if _, err := c.request(t, true, "CANCEL('i-3', 'r')"); err != nil {
		t.Fatal(err)
	}
	if n, err := c.node.Parts().Retention.Purge(t.Context(), time.Now(), 10); err != nil || n != 1 {
		t.Errorf("%d purged, %v", n, err)
	}
	if got := c.text(t, "select count(distinct R.INSTANCE_ID) from AQUEDUCT.WF_V_REQUESTS R"); got != "1" {
		t.Errorf("requests of %s instances, retention has left one", got)
	}
	c.run(t, c.owner, "update WF_INSTANCES set STATUS = 'completed' where INSTANCE_ID = 'i-2'")
	if n := c.purge(t, true, "p_instance_id => 'i-2'"); n != 1 || c.text(t, "select count(*) from AQUEDUCT.WF_V_REQUESTS") != "0" {
		t.Error("requests outlive their instance")
	}
}

// TestReplayBySQLSendsTheEdit: the newest, with the priority that the message had; another
// input of a command is a node's to send.
func TestReplayBySQLSendsTheEdit(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	body, mended := envelopeOf(t, "s-1", "i-1", `{}`), envelopeOf(t, "s-1", "i-1", `{"n":1}`)
	deadLetters := c.node.Parts().DeadLetters
	edit := func(id string, no int64, what string, body []byte) {
		t.Helper()
		e := backend.DeadLetterEdit{DeadLetterID: id, No: no, InstanceID: "i-1", What: what, At: c.node.clock.now(), By: "ann", Body: body}
		if err := deadLetters.EditDeadLetter(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	replayed := func(id string, want []byte, action string) {
		t.Helper()
		if err := c.call(t, true, "REPLAY(:1, 'it is mended')", id); err != nil {
			t.Fatal(err)
		}
		d, err := c.node.Receive(t.Context(), store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := d.Message(); string(m.Body) != string(want) || m.Priority != 3 {
			t.Errorf("%s: %q with priority %d", id, m.Body, m.Priority)
		}
		if err := d.Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(err)
		}
		if got := c.audited(t, id); !strings.HasPrefix(got, action+"|") {
			t.Errorf("%s: audited as %q", id, got)
		}
	}
	for _, id := range []string{"l-1", "l-2", "l-3"} {
		l := &projections.DeadLetter{ID: id, Queue: string(store.Signals), InstanceID: "i-1", Envelope: body, Reason: "test", DiedAt: c.node.clock.now(), Priority: 3}
		if err := c.node.Commit(t.Context(), store.Change{DeadLetter: l}); err != nil {
			t.Fatal(err)
		}
	}
	edit("l-1", 1, backend.EditEnvelope, mended)
	replayed("l-1", mended, "replay-edited")
	edit("l-2", 1, backend.EditEnvelope, mended)
	edit("l-2", 2, backend.EditOriginal, nil)
	replayed("l-2", body, "replay")
	edit("l-3", 1, backend.EditInput, []byte(`{"order":8}`))
	if err := c.call(t, true, "REPLAY('l-3', 'r')"); err == nil || !strings.Contains(err.Error(), "20804") {
		t.Errorf("another input is sent by SQL: %v", err)
	}
	if n := c.text(t, "select count(*) from AQUEDUCT.WF_V_LETTER_EDITS"); n != "7" {
		t.Errorf("%s edits", n)
	}
	if err := c.call(t, true, "DISCARD('l-3', 'r')"); err != nil {
		t.Fatal(err)
	}
	if n := c.text(t, "select count(*) from AQUEDUCT.WF_V_LETTER_EDITS where DEAD_LETTER_ID = 'l-3'"); n != "0" {
		t.Errorf("%s edits of what was discarded", n)
	}
}
