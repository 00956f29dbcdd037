package oracle

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// digests stands for the parsers: a source that is not its own digest is damaged.
func digests(r definition.Record) error {
	if string(r.Source) == r.Digest {
		return nil
	}
	return problem.New(problem.Internal, "definition.digest", "definition %s@%s is damaged", r.Name, r.Version)
}

// look checks an installation as its runtime user, and gives the findings by
// their check.
func (a apart) look(t *testing.T, user string) map[string]survey.Finding {
	t.Helper()
	byCheck := map[string]survey.Finding{}
	for _, f := range Check(t.Context(), CheckOptions{DSN: a.d.UserDSN(user), Schema: a.owner, Sessions: 30, Verify: digests}) {
		if _, twice := byCheck[f.Check]; twice {
			t.Errorf("%s is there twice", f.Check)
		}
		if f.Severity != survey.Good && f.Fix == "" {
			t.Errorf("nothing is said about how to fix %+v", f)
		}
		byCheck[f.Check] = f
	}
	return byCheck
}

// plant is a fault: how it comes, what is found then, and what takes it away.
type plant struct {
	check, found, fix    string
	severity             survey.Severity
	user, fault, restore string // statements; user "" = PostgreSQL itself
}

const (
	asSYS   = "app"
	asOwner = "AQUEDUCT"
)

var plants = []plant{
	{"queue-WF_SIGNAL_Q", "stopped (enqueue YES, dequeue NO)", "DBMS_AQADM.START_QUEUE('AQUEDUCT.WF_SIGNAL_Q')", survey.Wrong, asOwner,
		"BEGIN DBMS_AQADM.STOP_QUEUE('WF_SIGNAL_Q', enqueue => FALSE); END;", "BEGIN DBMS_AQADM.START_QUEUE('AQUEDUCT.WF_SIGNAL_Q'); END;"},
	{"queue-WF_SCHEDULE_Q", "max_retries 5, retry_delay 0, retention 60", "max_retries => 10000", survey.Wrong, asOwner,
		"BEGIN DBMS_AQADM.ALTER_QUEUE('WF_SCHEDULE_Q', max_retries => 5, retention_time => 60); END;",
		"BEGIN DBMS_AQADM.ALTER_QUEUE('WF_SCHEDULE_Q', max_retries => 10000, retention_time => 0); END;"},
	{"queue-AQ$_WF_COMMAND_QTAB_E", "not open for dequeuing", "enqueue => FALSE, dequeue => TRUE", survey.Wrong, asOwner,
		"BEGIN DBMS_AQADM.STOP_QUEUE('AQ$_WF_COMMAND_QTAB_E'); END;",
		"BEGIN DBMS_AQADM.START_QUEUE('AQ$_WF_COMMAND_QTAB_E', enqueue => FALSE, dequeue => TRUE); END;"},
	{"privileges-aqadm", "AQUEDUCT_RUN may execute DBMS_AQADM through AQUEDUCT_RUN", "REVOKE EXECUTE ON SYS.DBMS_AQADM FROM AQUEDUCT_RUN", survey.Wrong, asSYS,
		"GRANT EXECUTE ON SYS.DBMS_AQADM TO AQUEDUCT_RUN", "REVOKE EXECUTE ON SYS.DBMS_AQADM FROM AQUEDUCT_RUN"},
	{"privileges-roles", "AQUEDUCT_RUN has AQ_ADMINISTRATOR_ROLE", "REVOKE AQ_ADMINISTRATOR_ROLE FROM AQUEDUCT_RUN", survey.Wrong, asSYS,
		"GRANT AQ_ADMINISTRATOR_ROLE TO AQUEDUCT_RUN", "REVOKE AQ_ADMINISTRATOR_ROLE FROM AQUEDUCT_RUN"},
	{"privileges-system", "too wide: DROP ANY TABLE", "REVOKE DROP ANY TABLE FROM AQUEDUCT_RUN", survey.Wrong, asSYS,
		"GRANT DROP ANY TABLE TO AQUEDUCT_RUN", "REVOKE DROP ANY TABLE FROM AQUEDUCT_RUN"},
	{"privileges-system", "a node does not need CREATE TABLE", "REVOKE CREATE TABLE FROM AQUEDUCT_RUN", survey.Warning, asSYS,
		"GRANT CREATE TABLE TO AQUEDUCT_RUN", "REVOKE CREATE TABLE FROM AQUEDUCT_RUN"},
	{"privileges-objects", "owns 1 objects", "OWNER = 'AQUEDUCT_RUN'", survey.Warning, "",
		"CREATE TABLE aqueduct_run.mine (a int); ALTER TABLE aqueduct_run.mine OWNER TO aqueduct_run", "DROP TABLE aqueduct_run.mine"},
	{"grants", "missing: UPDATE on WF_RUNTIME_STATES", "GRANT UPDATE ON AQUEDUCT.WF_RUNTIME_STATES TO AQUEDUCT_RUN", survey.Wrong, asOwner,
		"REVOKE UPDATE ON WF_RUNTIME_STATES FROM AQUEDUCT_RUN", "GRANT UPDATE ON WF_RUNTIME_STATES TO AQUEDUCT_RUN"},
	{"grants", "missing: DEQUEUE on WF_COMMAND_Q", "GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'WF_COMMAND_Q', grantee => 'AQUEDUCT_RUN')", survey.Wrong, asOwner,
		"BEGIN DBMS_AQADM.REVOKE_QUEUE_PRIVILEGE('DEQUEUE', 'WF_COMMAND_Q', 'AQUEDUCT_RUN'); END;",
		"BEGIN DBMS_AQADM.GRANT_QUEUE_PRIVILEGE('DEQUEUE', 'WF_COMMAND_Q', 'AQUEDUCT_RUN'); END;"},
	{"grants-beyond", "a node does not need: UPDATE on WF_META", "REVOKE UPDATE ON AQUEDUCT.WF_META FROM AQUEDUCT_RUN", survey.Warning, asOwner,
		"GRANT UPDATE ON WF_META TO AQUEDUCT_RUN", "REVOKE UPDATE ON WF_META FROM AQUEDUCT_RUN"},
	{"schema-objects", "INDEX WF_TASKS_DUE", "10_tables.sql", survey.Wrong, asOwner, "DROP INDEX WF_TASKS_DUE", "CREATE INDEX WF_TASKS_DUE ON WF_TASKS ((CASE WHEN STATUS IN ('ready', 'reserved') THEN DUE_ON_UTC END))"},
	{"schema-objects", "VIEW WF_V_NODES", "50_grants.sql AQUEDUCT_RUN", survey.Wrong, asOwner,
		"REVOKE SELECT ON WF_V_NODES FROM AQUEDUCT_RUN", "GRANT SELECT ON WF_V_NODES TO AQUEDUCT_RUN"},
	{"schema-columns", "missing: WF_HOST_LOCKS.OWNER", "ALTER TABLE AQUEDUCT.WF_HOST_LOCKS ADD (OWNER VARCHAR2(128 CHAR) NOT NULL)", survey.Wrong, asOwner,
		"ALTER TABLE WF_HOST_LOCKS DROP COLUMN OWNER", "ALTER TABLE WF_HOST_LOCKS ADD (OWNER VARCHAR2(128 CHAR) NOT NULL)"},
	{"schema-invalid", "VIEW WF_V_TASKS", "ALTER VIEW AQUEDUCT.WF_V_TASKS COMPILE", survey.Wrong, "",
		"INSERT INTO ocisim.invalid VALUES ('aqueduct', 'wf_v_tasks')", "DELETE FROM ocisim.invalid"},
	{"schema-package", "cannot call the package AQUEDUCT_API", "GRANT EXECUTE ON AQUEDUCT_API TO AQUEDUCT_RUN", survey.Wrong, asOwner,
		"REVOKE EXECUTE ON AQUEDUCT_API FROM AQUEDUCT_RUN", "GRANT EXECUTE ON AQUEDUCT_API TO AQUEDUCT_RUN"},
	{"schema-version", "version 9, this program knows", "run the program", survey.Wrong, "",
		`UPDATE aqueduct.wf_meta SET value = '\x09' WHERE name = 'schema-version'`, `UPDATE aqueduct.wf_meta SET value = '\x02' WHERE name = 'schema-version'`},
	{"parameter-aq_tm_processes", "no timer comes", "ALTER SYSTEM RESET aq_tm_processes", survey.Wrong, "",
		"UPDATE ocisim.parameter SET value = '0', isdefault = 'FALSE' WHERE name = 'aq_tm_processes'", "UPDATE ocisim.parameter SET value = '1', isdefault = 'TRUE' WHERE name = 'aq_tm_processes'"},
	{"parameter-job_queue_processes", "job_queue_processes = 0", "ALTER SYSTEM SET job_queue_processes", survey.Warning, "",
		"UPDATE ocisim.parameter SET value = '0', isdefault = 'FALSE' WHERE name = 'job_queue_processes'", "UPDATE ocisim.parameter SET value = '20', isdefault = 'TRUE' WHERE name = 'job_queue_processes'"},
	{"parameter-cursor_sharing", "cursor_sharing = FORCE", "ALTER SYSTEM SET cursor_sharing = EXACT", survey.Warning, "",
		"UPDATE ocisim.parameter SET value = 'FORCE', isdefault = 'FALSE' WHERE name = 'cursor_sharing'", "UPDATE ocisim.parameter SET value = 'EXACT', isdefault = 'TRUE' WHERE name = 'cursor_sharing'"},
	{"session-nls", "NLS_COMP = LINGUISTIC, NLS_SORT = GERMAN", "unset NLS_SORT and NLS_COMP", survey.Wrong, "",
		"UPDATE ocisim.nls_parameter SET value = CASE parameter WHEN 'NLS_COMP' THEN 'LINGUISTIC' ELSE 'GERMAN' END WHERE parameter IN ('NLS_COMP', 'NLS_SORT')",
		"UPDATE ocisim.nls_parameter SET value = 'BINARY' WHERE parameter IN ('NLS_COMP', 'NLS_SORT')"},
	{"parameter-aq_tm_processes", "it could not be found out: ORA-01031", "GRANT SELECT ON SYS.V_$PARAMETER TO AQUEDUCT_RUN", survey.Warning, asSYS,
		"REVOKE SELECT ON SYS.V_$PARAMETER FROM AQUEDUCT_RUN", "GRANT SELECT ON SYS.V_$PARAMETER TO AQUEDUCT_RUN"},
	{"headroom", "it could not be found out", "GRANT SELECT ON SYS.V_$RESOURCE_LIMIT TO AQUEDUCT_RUN", survey.Warning, asSYS,
		"REVOKE SELECT ON SYS.V_$RESOURCE_LIMIT FROM AQUEDUCT_RUN", "GRANT SELECT ON SYS.V_$RESOURCE_LIMIT TO AQUEDUCT_RUN"},
	{"headroom-processes", "no room for the 30 sessions", "SET processes = 55", survey.Wrong, "",
		"UPDATE ocisim.parameter SET value = '25' WHERE name = 'processes'", "UPDATE ocisim.parameter SET value = '300' WHERE name = 'processes'"},
	{"database-charset", "WE8ISO8859P15", "AL32UTF8", survey.Wrong, "",
		"UPDATE ocisim.nls_parameter SET value = 'WE8ISO8859P15' WHERE parameter = 'NLS_CHARACTERSET'",
		"UPDATE ocisim.nls_parameter SET value = 'AL32UTF8' WHERE parameter = 'NLS_CHARACTERSET'"},
	{"clock-skew", "5s ahead of this host's, more than 2s", "NTP", survey.Warning, "", "UPDATE ocisim.clock SET ahead = '5s'", "UPDATE ocisim.clock SET ahead = '0'"},
	{"clock-skew", "-1m0s ahead of this host's, more than 15s", "NTP", survey.Wrong, "", "UPDATE ocisim.clock SET ahead = '-60s'", "UPDATE ocisim.clock SET ahead = '0'"},
	{"exception-queue-AQ$_WF_SIGNAL_QTAB_E", "1 messages", "start a node", survey.Warning, "",
		"SELECT set_config('search_path', 'aqueduct,ocisim,pg_catalog', false); SELECT ocisim.aq_enq('AQUEDUCT.WF_SIGNAL_Q', '\\x01', NULL, 5, 0, 0, NULL, NULL, 'x'); SELECT ocisim.aq_sweep(NULL)",
		"DELETE FROM ocisim.aq_msg"},
	{"subscribers-WF_DLQ_Q", "NODES is no subscriber", "ADD_SUBSCRIBER", survey.Warning, asOwner,
		"BEGIN DBMS_AQADM.REMOVE_SUBSCRIBER(queue_name => 'WF_DLQ_Q', subscriber => SYS.AQ$_AGENT('NODES', NULL, NULL)); END;",
		"BEGIN DBMS_AQADM.ADD_SUBSCRIBER(queue_name => 'WF_DLQ_Q', subscriber => SYS.AQ$_AGENT('NODES', NULL, NULL)); END;"},
	{"dead-letters", "1 dead letters", "engine-node dlq list", survey.Warning, asOwner,
		"INSERT INTO WF_DEAD_LETTERS (LETTER_NO, DEAD_LETTER_ID, QUEUE, REASON, ATTEMPTS, DIED_ON_UTC, ENVELOPE) VALUES (1, 'l', 'signal', 'r', 1, TIMESTAMP '2026-01-01 00:00:00', HEXTORAW('01'))",
		"DELETE FROM WF_DEAD_LETTERS"},
}

// Each fault is found, with its fix, and with nothing else; what is
// healthy is found to be so.
func TestExaminationFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	healthy := func(when string) {
		t.Helper()
		for check, f := range a.look(t, a.runtime) {
			if f.Severity != survey.Good {
				t.Errorf("%s: %s: %+v", when, check, f)
			}
		}
	}
	healthy("at first")
	for i, p := range plants {
		t.Run(fmt.Sprint(i, "-", p.check), func(t *testing.T) {
			a.plant(t, p.user, p.fault)
			found := a.look(t, a.runtime)
			f := found[p.check]
			if f.Severity != p.severity || !strings.Contains(f.Found, p.found) || !strings.Contains(f.Fix, p.fix) {
				t.Errorf("got %+v,\nwant %+v", f, p)
			}
			a.plant(t, p.user, p.restore)
		})
	}
	healthy("in the end")
}

// plant executes a statement, in the dialect of who executes it.
func (a apart) plant(t *testing.T, user, statement string) {
	t.Helper()
	if user != "" {
		a.run(t, user, statement)
		return
	}
	if _, err := a.d.Postgres(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// What the API and the nodes would refuse is an error of doctor: it reads every
// row, unless it is to be quick.
func TestExaminationReadsEveryRow(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	o := Options{DSN: a.d.UserDSN(a.runtime), Schema: a.owner, Node: "n"}
	s := opened(t, o)
	envelope := func(id, text string) []byte {
		body, err := signal.Envelope{SignalID: id, InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal,
			OccurredAt: time.Now(), Payload: []byte(`{"type":"` + text + `"}`)}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	snap := snapshot.Snapshot{InstanceID: "i", Status: snapshot.Waiting, Version: 1, Definition: snapshot.Definition{Name: "a/b", Version: "1", Digest: "d"},
		StartedAt: time.Now(), UpdatedAt: time.Now()}
	c := store.Change{Snapshot: &snap, Send: []store.Send{
		{Queue: store.Signals, Body: envelope("s", "whole")}, {Queue: store.Signals, Body: []byte("of an application")},
		{Queue: store.Schedule, Body: envelope("l", strings.Repeat("whole", 20_000)), Due: time.Now().Add(time.Hour)},
	}}
	c.Rows.Instance = &projections.Instance{ID: "i", Definition: "a/b", DefVersion: "1", Status: "waiting", Version: 1, StartedAt: snap.StartedAt, UpdatedAt: snap.UpdatedAt}
	c.Rows.Stream = []projections.Entry{{InstanceID: "i", Position: 1, Kind: "event", Type: "Said", Data: []byte(`{"a":"whole"}`)}}
	c.Rows.Tasks = []projections.Task{{ID: "t", InstanceID: "i", Title: "whole", Status: projections.TaskReady, Version: 1, CreatedAt: time.Now(), Assignee: "whole"}}
	c.Rows.TaskEvents = []projections.TaskEvent{{TaskID: "t", InstanceID: "i", Event: "created", Actor: "whole", At: time.Now()}}
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutDefinitions(t.Context(), []definition.Record{definition.Record{Name: "a/b", Version: "1", Digest: "whole", Source: []byte("whole"), Document: []byte("{}"), PublishedAt: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	for check, f := range a.look(t, a.runtime) {
		if f.Severity != survey.Good {
			t.Errorf("before the damage: %s: %+v", check, f)
		}
	}
	for _, at := range [][2]string{{"WF_RUNTIME_STATES", "STATE_JSON"}, {"WF_STREAM", "DATA"}, {"WF_TASKS", "ASSIGNEE"}} {
		o.Node = "n-" + at[0]
		if err := damage(o, at[0], at[1], "i"); err != nil {
			t.Fatal(at, err)
		}
	}
	a.plant(t, "", `UPDATE aqueduct.wf_payloads SET data = convert_to(replace(convert_from(data, 'UTF8'), 'whole', 'whale'), 'UTF8')`)
	a.plant(t, "", `UPDATE aqueduct.wf_task_events SET actor = 'whale'`)
	a.plant(t, "", `UPDATE aqueduct.wf_definitions SET source = 'whale'`)
	a.plant(t, "", `UPDATE ocisim.aq_msg SET payload = convert_to(replace(convert_from(payload, 'UTF8'), 'whole', 'whale'), 'UTF8')`)
	found := a.look(t, a.runtime)
	for check, says := range map[string]string{
		"checksums": "1 of 1 snapshots are damaged: instance i", "streams": "1 of 1 streams are damaged: entry 1 of instance i",
		"tasks": "1 of 1 tasks are damaged: task t of instance i", "task-events": "1 of 1 task-events are damaged: event created of task t",
		"messages":    "2 of 3 messages are damaged: message ",
		"definitions": "1 of 1 definitions are damaged: definition a/b@1",
	} {
		if f := found[check]; f.Severity != survey.Wrong || !strings.Contains(f.Found, says) {
			t.Errorf("%s: %+v", check, f)
		}
	}
	for _, f := range Check(t.Context(), CheckOptions{DSN: o.DSN, Schema: a.owner, Sessions: 30, Quick: true}) {
		if f.Severity == survey.Wrong {
			t.Errorf("quick: %+v", f)
		}
	}
}

// A node that runs as the owner is told so, and one that reaches nothing is
// told why.
func TestExaminationOfOthers(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	warned := []string{"grants", "privileges-aqadm", "parameter-aq_tm_processes", "parameter-job_queue_processes", "parameter-cursor_sharing", "headroom"} // he has no V$ views
	for check, f := range a.look(t, a.owner) {
		if (f.Severity == survey.Warning) != slices.Contains(warned, check) || f.Severity == survey.Wrong {
			t.Errorf("%+v", f)
		}
	}
	shop := a.look(t, a.application)
	for _, check := range []string{"schema-version", "schema-objects", "grants", "queue-WF_SIGNAL_Q"} {
		if shop[check].Severity != survey.Wrong {
			t.Errorf("an application as runtime user: %+v", shop[check])
		}
	}
	for _, dsn := range []string{"user=x password=y connectString=127.0.0.1:1/none libDir=" + a.d.LibDir(), "="} {
		list := Check(t.Context(), CheckOptions{DSN: dsn})
		if len(list) != 1 || list[0].Check != "connection" || list[0].Severity != survey.Wrong {
			t.Errorf("%q: %+v", dsn, list)
		}
	}
}

// What repeats a snapshot or a task is compared with it.
func TestExaminationComparesWhatIsDerived(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	s := opened(t, Options{DSN: a.d.UserDSN(a.runtime), Schema: a.owner, Node: "n"})
	change, err := storetest.Whole("i", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	change.Rows.Tasks[0].CandidateGroups = `["clerks"]`
	if err := s.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	for check, f := range a.look(t, a.runtime) {
		if f.Severity != survey.Good {
			t.Errorf("before: %s: %+v", check, f)
		}
	}
	strayed := append(slices.Clone(storetest.Strayed), []struct{ SQL, Check, Says string }{
		{"update WF_INSTANCES set STARTED_ON_UTC = STARTED_ON_UTC + NUMTODSINTERVAL(1, 'SECOND')", "instances", "says STARTED_ON_UTC "},
		{"update WF_WAITS set SPEC = 'x'", "waits", "is for go of x, its snapshot's is for go of t/whole@1#/do/2"},
		{"update WF_RUNTIME_STATES set STATE_VERSION = 0", "checksums", "instance i version 0: the snapshot is of i version 1"},
		{"delete from WF_TASK_ACTORS", "task-actors", "task i-task names G clerks, and no row does"},
		{"update WF_TASK_ACTORS set NAME = 'x'", "task-actors", "task i-task does not name G x"},
		{"update WF_TASK_ACTORS set KIND = 'X'", "task-actors", "task i-task does not name X clerks"},
	}...)
	db, err := sql.Open("godror", a.d.UserDSN(a.owner))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, c := range strayed {
		before := a.look(t, a.runtime)
		table := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(c.SQL, "update "), "delete from "))[0]
		for _, text := range []string{"create table KEPT as select * from " + table, c.SQL} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(text, err)
			}
		}
		found := a.look(t, a.runtime)
		if f := found[c.Check]; f.Severity != survey.Wrong || !strings.Contains(f.Found, c.Says) {
			t.Errorf("%s: %+v", c.SQL, f)
		}
		for _, text := range []string{"delete from " + table, "insert into " + table + " select * from KEPT", "drop table KEPT"} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(text, err)
			}
		}
		for check, f := range before {
			if f.Severity != survey.Good {
				t.Errorf("%s: before, %s: %+v", c.SQL, check, f)
			}
		}
	}
}
