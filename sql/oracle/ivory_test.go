//go:build ivory

package oracle

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/signal"
)

// The third witness, beside the stand-in and the grammar: IvorySQL compiles and
// executes what Oracle is to. It is in no gate, for it is built from its source;
// see docs/oracle.md, which has the report of a run.

const (
	ivoryOwner   = "aqueduct"
	ivoryRuntime = "aqueduct_run"
)

var errNoRow = errors.New("no row")

func TestOnIvorySQL(t *testing.T) {
	home := os.Getenv("IVORYSQL_HOME")
	if home == "" {
		t.Fatal("IVORYSQL_HOME is not set: it names the folder of an installation of IvorySQL, with bin/initdb in it")
	}
	s := startIvory(t, home)
	version := s.one(ivoryAdmin, "SELECT VERSION() FROM DUAL")

	stubs, err := os.ReadFile("ivory/stubs.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range split("stubs.sql", string(stubs)) {
		if _, err := s.psql(ivoryAdmin, ivoryDatabase, u.text); err != nil {
			t.Fatalf("stubs.sql, line %d: %v", u.line, err)
		}
	}
	s.script(ivoryAdmin, "00_users.sql", strings.ToUpper(ivoryOwner), strings.ToUpper(ivoryRuntime), "USERS")
	s.script(ivoryOwner, "install.sql", strings.ToUpper(ivoryRuntime))
	s.script(ivoryOwner, "upgrade_2.sql", strings.ToUpper(ivoryRuntime)) // it may be run again
	if t.Failed() {
		t.FailNow()
	}
	installed := s.used
	for _, l := range lacks {
		_, err := s.rolledBack(ivoryAdmin, l.probe)
		var e *ivoryError
		if !errors.As(err, &e) || !strings.Contains(e.text, l.says) {
			t.Errorf("%s: IvorySQL says %v: is the entry needed?", l.what, err)
			continue
		}
		said, _, _ := strings.Cut(e.text, "\n")
		t.Logf("it lacks: %s (%s)", l.what, said)
	}

	for _, u := range optionalUnits(t) {
		if _, err := s.rolledBack(ivoryOwner, u.text); err == nil {
			t.Errorf("%s, line %d runs: it need not be left out", u.script, u.line)
		}
	}

	var r ran
	s.execute(0, &r)
	s.rows()
	s.spares()
	units := s.calls()
	s.effects()
	sent := s.checkSent()
	views := s.views()
	s.wholes()
	put := s.readings()
	ivoryValues["REQUEST_ID"] = "'" + s.one(ivoryOwner, "SELECT MAX(REQUEST_ID) FROM WF_REQUESTS") + "'"
	ivoryValues["request_refused.REQUEST_ID"] = "'" + s.one(ivoryOwner, "SELECT MIN(REQUEST_ID) FROM WF_REQUESTS") + "'"
	s.execute(1, &r)
	s.execute(2, &r)
	s.refusals()

	objects := s.one(ivoryOwner, objectCounts)
	s.script(ivoryOwner, "90_uninstall.sql")
	if left := s.one(ivoryOwner, "SELECT COUNT(*) FROM PG_CLASS C WHERE C.RELNAMESPACE = 'aqueduct'::PG_CATALOG.REGNAMESPACE"); left != "0" {
		t.Errorf("90_uninstall.sql leaves %s objects", left)
	}
	t.Logf("%s\nunits of scripts: %d to install, %d to uninstall\ntables, indexes, views, sequences: %s\n"+
		"units of packages: %d, calls: %d, envelopes read: %d\nviews with rows: %d\nstatements: %d, blocks of them: %d, readings: %d",
		version, installed, s.used-installed, objects, units, len(packageCalls), sent, views, r.statements, r.blocks, put)
}

const objectCounts = `SELECT COUNT(CASE C.RELKIND WHEN 'r' THEN 1 END) || ', ' || COUNT(CASE C.RELKIND WHEN 'i' THEN 1 END) || ', ' ||
  COUNT(CASE C.RELKIND WHEN 'v' THEN 1 END) || ', ' || COUNT(CASE C.RELKIND WHEN 'S' THEN 1 END)
  FROM PG_CLASS C WHERE C.RELNAMESPACE = 'aqueduct'::PG_CATALOG.REGNAMESPACE AND C.RELNAME NOT LIKE '%qtab%'`

// effects looks at what the packages have written: commands that were settled,
// instances that were purged and the one that stays, requests, audit and letters.
func (s *ivory) effects() {
	s.t.Helper()
	s.selects(map[string]string{
		"SELECT COUNT(*) FROM WF_STREAM WHERE INSTANCE_ID = 'i-1' AND POSITION IN (2, 3) AND PROCESSED = 1":                 "2",
		"SELECT COUNT(*) FROM WF_STREAM WHERE INSTANCE_ID = 'i-1' AND POSITION = 1 AND PROCESSED = 0":                       "1",
		"SELECT COUNT(*) FROM WF_INSTANCES WHERE INSTANCE_ID IN ('i-over', 'i-older')":                                      "0",
		"SELECT COUNT(*) FROM WF_RUNTIME_STATES WHERE INSTANCE_ID = 'i-open'":                                               "1",
		"SELECT COUNT(*) FROM WF_REQUESTS WHERE VERDICT = 'open'":                                                           "6",
		"SELECT COUNT(*) FROM WF_AUDIT WHERE ACTION IN ('replay', 'discard', 'purge')":                                      "10",
		"SELECT COUNT(*) FROM WF_DEAD_LETTERS WHERE DEAD_LETTER_ID <> 'd-1'":                                                "0",
		"SELECT COUNT(*) FROM AQ$WF_SCHEDULE_QTAB WHERE MSG_STATE = 'WAIT'":                                                 "2",
		"SELECT COUNT(*) FROM AQ$WF_SIGNAL_QTAB A JOIN WF_PAYLOADS P ON P.PAYLOAD_ID = A.CORR_ID WHERE LENGTH(P.DATA) > 35": "2",
		"SELECT COUNT(*) FROM AQ$WF_SIGNAL_QTAB WHERE CORR_ID = 'aqueduct1;0;;;;e' AND USER_DATA = HEXTORAW('00')":          "1",
		"SELECT COUNT(*) FROM AQ$WF_SIGNAL_QTAB WHERE MSG_PRIORITY = 1":                                                     "6",
	})
}

// checkSent looks at what the packages have sent, with the eyes of a node.
func (s *ivory) checkSent() int {
	s.t.Helper()
	sent := s.envelopes()
	for id, has := range map[string][]string{
		"s-1":     {`"data":{"amount":120,"of":"Ω"}`, `"type":"paid"`},
		"s-long":  {strings.Repeat("x", 19_999)},
		"s-large": {strings.Repeat("x", 39_999)},
		"s-due":   nil, "s-distant": nil, "s-last": nil, "s-deep": nil, "s-token": nil, "key:order-1": nil, signal.Keyed(strings.Repeat("k", 128)): nil,
		"s-ack": {`{"command":6,"outcome":"processed","consumer":"ship","output":{"n":1}}`}, "s-ack-retry": {`"delaySeconds":90}`}, "task-t-1": {`"outcome":"yes"`, `"completedBy":"ann"`},
	} {
		e, found := sent[id]
		if !found || e.InstanceID != "i-1" {
			s.t.Errorf("%s: %+v", id, e)
		}
		for _, text := range has {
			if !strings.Contains(string(e.Payload), text) {
				s.t.Errorf("%s: %.200q is not in %.200s", id, text, e.Payload)
			}
		}
	}
	if actor := sent["s-1"].Headers["actor"]; actor != `ann "x" \ Ω` {
		s.t.Errorf("the actor is %q", actor)
	}
	if e := sent["s-last"]; e.Sender != "till" || e.Sequence != 9223372036854775807 {
		s.t.Errorf("the sequence is %s %d", e.Sender, e.Sequence)
	}
	if e := sent["s-due"]; e.DueAt.Year() != 2040 {
		s.t.Errorf("it is due %s", e.DueAt)
	}
	return len(sent)
}

// views reads every view: each shows a row.
func (s *ivory) views() int {
	s.t.Helper()
	names := []string{}
	for _, u := range allUnits(s.t) {
		if m := createView.FindStringSubmatch(u.text); m != nil {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if out := s.one(ivoryRuntime, "SELECT * FROM "+name); out == "" {
			s.t.Errorf("%s shows no row", name)
		}
	}
	return len(names)
}
