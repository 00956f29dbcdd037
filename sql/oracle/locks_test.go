package oracle

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// swept are the statements whose rows are taken where they are free: the others are left
// for the next time. Every other is refused at once.
var swept = map[string]string{"node_sweep": "node_delete", "inflight_old": "inflight_delete", "inflight_clear": "inflight_delete", "payload_orphans": "payload_delete", "edit_orphans": "edit_orphan_delete"}

// unlocked are the statements that wait for locks, and why they may.
var unlocked = map[string]string{
	"meta_update":     "executed by migrate alone, as the owner, while no node runs",
	"inflight_delete": "by the ledger, which breaks it off after a second; all others take the row first",
	"node_lock":       "lock table wait 1: an operator's restore, who is told after some seconds",
}

// Law: each statement that changes rows which are there can take them without waiting,
// and nobody executes one without.
func TestEveryChangeOfARowIsBound(t *testing.T) {
	t.Parallel()
	change := regexp.MustCompile(`(?i)\b(update|delete|merge|lock table)\b`)
	bound := 0
	for name, st := range statements {
		word := strings.ToLower(change.FindString(regexp.MustCompile(`(?i)for update`).ReplaceAllString(st.text, "")))
		switch {
		case word == "", unlocked[name] != "" && st.lock == "":
			continue
		case st.lock == "":
			t.Errorf("%s: nothing takes its rows: locks.go knows no such statement", name)
			continue
		case !strings.HasSuffix(st.lock, "for update nowait"):
			t.Errorf("%s: its rows are waited for: %s", name, st.lock)
		case strings.Contains(st.text, "where") != strings.Contains(st.lock, "where"):
			t.Errorf("%s: other rows are locked than changed: %s", name, st.lock)
		}
		for _, bind := range bindsOf(st.lock) {
			if !slices.Contains(st.binds, bind) {
				t.Errorf("%s: its lock has the bind %s", name, bind)
			}
		}
		block, args, err := blockOf([]op{{name: name, args: make([]any, len(st.binds))}})
		if err != nil || len(args) != len(st.binds) || strings.Index(block, "for update nowait) LOOP NULL") != strings.Index(block, "for update") || strings.Count(block, ";") != 4 {
			t.Errorf("%s: %v\n%s", name, err, block)
		}
		bound++
	}
	if bound < 25 {
		t.Errorf("only %d", bound)
	}
	for _, name := range unboundTexts(t) {
		if unlocked[name] == "" {
			t.Errorf("%s is executed by its text, without the block that takes its rows: use exec, sweep, runStatement or a change", name)
		}
	}
}

// unboundTexts are the statements that change rows and whose texts somebody asks for:
// text is what goes to the database as it is.
func unboundTexts(t *testing.T) (found []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "text" && len(call.Args) == 1 {
				if name, ok := call.Args[0].(*ast.BasicLit); ok {
					if name, _ := strconv.Unquote(name.Value); statements[name].lock != "" {
						found = append(found, name)
					}
				}
			}
			return true
		})
	}
	return found
}

// The packages change rows in the sessions of others: who calls them is told of a
// lock after five seconds, or it is passed over.
func TestPackagesTakeTheirRowsWithABound(t *testing.T) {
	t.Parallel()
	verb := regexp.MustCompile(`(?i)\b(?:UPDATE|DELETE FROM) (WF_\w+)`)
	count := 0
	for _, script := range []string{"40_package", "45_admin"} {
		raw, err := scripts.ReadFile("schema/" + script + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range regexp.MustCompile(`(?m)^  (?:PROCEDURE|FUNCTION) `).Split(string(raw), -1) {
			for _, m := range verb.FindAllStringSubmatchIndex(sub, -1) {
				count++
				table := sub[m[2]:m[3]]
				taken := regexp.MustCompile(`(?s)FROM ` + table + `\b[^;]*?FOR UPDATE (?:WAIT \d|SKIP LOCKED)`)
				before := sub[:m[0]]
				if strings.Contains(before, " take(p_instance_id);") {
					_, before, _ = strings.Cut(string(raw), "PROCEDURE take(p_instance_id")
					before, _, _ = strings.Cut(before, "END take;")
				}
				if !taken.MatchString(before) {
					t.Errorf("%s: %s changes rows of %s that it has not taken", script, strings.Fields(sub)[0], table)
				}
			}
		}
	}
	if count < 11 {
		t.Errorf("only %d", count)
	}
}

// stranger locks rows as a person does who has not committed.
func stranger(t *testing.T, s *Store, statement string) (release func() error, err error) {
	t.Helper()
	tx, err := s.db.BeginTx(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(t.Context(), statement); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx.Rollback, nil
}

// everyRow is a store with a row in every table.
func everyRow(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{DSN: fresh(t), Node: "n", Wait: time.Second, Heartbeat: time.Hour, DeadAfter: 10 * time.Hour}) // it sweeps nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	snap := &snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running}
	c := storetest.Step(snap, "n")
	now := c.Runtime.ExecutedAt
	c.Rows.Instance = &projections.Instance{ID: "a", Definition: "d", Status: "waiting", Version: 1, StartedAt: now}
	c.Rows.Waits = []projections.Wait{{Token: "t", InstanceID: "a", EventType: "paid", Spec: "s", KeyHash: "00", CreatedAt: now}}
	c.Rows.Tasks = []projections.Task{{ID: "k", InstanceID: "a", Name: "n", Status: "ready", CandidateUsers: `["ann"]`, Version: 1, CreatedAt: now}}
	c.Rows.TaskEvents = []projections.TaskEvent{{TaskID: "k", InstanceID: "a", Event: "created", At: now}}
	c.Rows.Attributes = []projections.Attribute{{InstanceID: "a", Name: "job", Kind: "text", Key: []byte("s")}}
	c.DeadLetter = &projections.DeadLetter{ID: "l", Queue: "signal", InstanceID: "a", Reason: "r", DiedAt: now, EnqueuedAt: now, Envelope: []byte(`{}`)}
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	old := now.Add(-48 * time.Hour)
	for _, o := range []op{
		{name: "inbox_insert", args: []any{"e", "paid", stamp(old), stamp(old), []byte("{}")}},
		{name: "payload_insert", args: []any{"p", "a", stamp(old), []byte("{}")}},
		{name: "lock_insert", args: []any{"job", "n", 60.0}},
		{name: "node_insert", args: []any{"r", "gone", "v"}},
		{name: "inflight_insert", args: []any{"m", "r"}},
		{name: "activity_insert", args: []any{"a", "x", "n", "", int64(1), stamp(now), "", stamp(now), "", nil, []byte("{}")}},
		{name: "bulk_insert", args: []any{"b", "retry", "planned", int64(1), int64(0), "", stamp(now), "", stamp(now), []byte("{}")}},
		{name: "dead_letter_edit_insert", args: []any{"l", int64(1), "a", "original", stamp(now), "", "", []byte(nil)}},
		{name: "dead_letter_edit_insert", args: []any{"replayed", int64(1), "a", "original", stamp(now), "", "", []byte(nil)}},
		{name: "dead_letter_edit_insert", args: []any{"of-none", int64(1), "", "original", stamp(old), "", "", []byte(nil)}},
		{name: "token_insert", args: []any{"tk", "ann", "[]", "", stamp(old), "", stamp(now), nil, "", nil, []byte("h")}},
	} {
		if err := runStatement(t.Context(), s, &o); err != nil {
			t.Fatal(o.name, err)
		}
	}
	over := storetest.Step(&snapshot.Snapshot{InstanceID: "over", Status: snapshot.Completed}, "n")
	over.Rows.Stream = nil
	over.Rows.Instance = &projections.Instance{ID: "over", Definition: "e", Status: "completed", Version: 1, StartedAt: old, EndedAt: old}
	if err := s.Commit(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Parts().Bulk.SelectBulk(t.Context(), "b", backend.BulkSelection{Instances: &backend.InstanceQuery{}}, 5); err != nil {
		t.Fatal(err)
	}
	_, err = s.db.ExecContext(t.Context(), "insert into WF_REQUESTS (REQUEST_ID, INSTANCE_ID, OPERATION, ASKED_ON_UTC, VERDICT) values ('q', 'a', 'suspend', CAST(:1 AS TIMESTAMP(6)), 'open')", stamp(now))
	if err == nil {
		_, err = s.db.ExecContext(t.Context(), "update WF_NODES set BEAT_ON_UTC = CAST(:1 AS TIMESTAMP(6)) where RUN_ID = 'r'", stamp(old))
	}
	if err == nil {
		_, err = s.db.ExecContext(t.Context(), "update WF_INFLIGHT set ENTERED_ON_UTC = CAST(:1 AS TIMESTAMP(6)), RUN_ID = 'other'", stamp(old))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every statement meets the lock of a stranger on its row: it is refused at once, and says
// whose rows; what sweeps passes over it.
func TestNoStatementWaitsForALock(t *testing.T) {
	t.Parallel()
	s := everyRow(t)
	values := map[string]any{
		"INSTANCE_ID": "a", "POSITION": int64(2), "TASK_ID": "k", "WAITING_TOKEN": "t", "DEAD_LETTER_ID": "l", "PAYLOAD_ID": "p", "MESSAGE_ID": "m", "EVENT_KEY": "e", "EXPIRED_BEFORE": stamp(time.Now()),
		"TOKEN_ID": "tk", "NAME": "job", "OWNER": "n", "PRESENT_OWNER": "n", "REQUEST_ID": "q", "NODE": "gone", "RUN_ID": "r", "DEAD_SECONDS": 60.0, "AGE_SECONDS": 60.0,
		"ACTIVITY_ID": "x", "ACTIVITY_VERSION": int64(2), "KNOWN_EPOCH": planner{s}.ownEpoch(), "EDIT_NO": int64(1), "EDITED_BEFORE": stamp(time.Now()),
		"PLAN_ID": "b", "PLAN_VERSION": int64(2), "HAS_MORE": int64(0), "ITEM_NO": int64(1), "ITEMS_MAX": int64(0), "ITEMS_BELOW": int64(9),
		"SIGNAL_ID": "a/0/0", "ENDED_BEFORE": stamp(time.Now()), "EXPECTED_VERSION": int64(1), "TASK_VERSION": int64(1), "CLAIMED_BY": "n", "EXPECTED_OWNER": "n", "CREATED_BEFORE": stamp(time.Now()), "TTL_SECONDS": 60.0,
	}
	run := map[string]string{"stream_orphan": s.run, "inflight_delete": "other", "inflight_clear": "other"}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		st := statements[name]
		if st.lock == "" || name == "meta_update" {
			continue
		}
		table := tableNames.FindString(st.text)
		args := make([]any, len(st.binds))
		for i, bind := range st.binds {
			args[i] = values[bind]
			if of := run[name]; of != "" && (bind == "RUN_ID" || bind == "CLAIMED_RUN") {
				args[i] = of
			}
			if name == "purge_state" && bind == "INSTANCE_ID" {
				args[i] = "over"
			}
		}
		column := regexp.MustCompile(`[A-Z_]+`).FindString(columnsOf(t, table))
		release, err := stranger(t, s, fmt.Sprintf("update %s set %s = %s", table, column, column))
		if err != nil {
			t.Fatal(name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
		err = soon(ctx, func() error {
			if by := swept[name]; by != "" {
				n, err := sweep(ctx, s.db, name, by, args...)
				if n != 0 {
					t.Errorf("%s: %d rows are swept, which others have locked", name, n)
				}
				return err
			}
			n, err := s.exec(ctx, name, args...)
			if err == nil {
				t.Errorf("%s changes %d rows: the test has locked others", name, n)
				return err
			}
			return runStatement(ctx, s, &op{name: name, args: args})
		})
		cancel()
		if by := swept[name]; by != "" && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if by == "" && (problem.CodeOf(err) != "store.locked" || !strings.Contains(err.Error(), "rows of "+table) && joint[name] == "") {
			t.Errorf("%s: %v", name, err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
}

// columnsOf are the columns of a table, as its script has them.
func columnsOf(t *testing.T, name string) string {
	t.Helper()
	return slices.Sorted(maps.Keys(tables(t)[name]))[0]
}

// lockPatience is what a test waits for what waits for a lock, which nobody gives up
// meanwhile: it is only waited out where the store is wrong.
const lockPatience = 5 * time.Minute

// soon waits for f as long as ctx lets it.
func soon(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("it waits: %w", ctx.Err())
	}
}

// What services do in several statements: the row that somebody has locked is passed
// over, and the others are done.
func TestSweepsPassOverLocks(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	before := time.Now().Add(-time.Hour)
	const many = purgeBatch + 5
	for i := range many {
		id := fmt.Sprintf("i-%02d", i)
		c := storetest.Step(&snapshot.Snapshot{InstanceID: id, Status: snapshot.Completed}, "n")
		c.Rows.Stream = nil
		ended := before.Add(time.Duration(i-many) * time.Second)
		c.Rows.Instance = &projections.Instance{ID: id, Definition: "d", Status: "completed", Version: 1, StartedAt: ended, EndedAt: ended}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Parts().Inbox.KeepEvent(t.Context(), backend.Event{Key: id, Type: "paid", ReceivedAt: ended, ExpiresAt: ended, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, lock := range []string{"update WF_RUNTIME_STATES set STATE_VERSION = STATE_VERSION where INSTANCE_ID in ('i-00', 'i-02')", "update WF_INBOX set EVENT_TYPE = EVENT_TYPE where EVENT_KEY in ('i-01', 'i-07')"} {
		release, err := stranger(t, s, lock)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := release(); err != nil {
				t.Error(err)
			}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	if n, err := s.Parts().Retention.Purge(ctx, before, 1000); n != many-2 || err != nil {
		t.Errorf("%d instances of %d are purged, of which two are locked: %v", n, many, err)
	}
	if n, err := s.Parts().Inbox.PurgeEvents(ctx, before, 1000); n != many-2 || err != nil {
		t.Errorf("%d events of %d are purged, of which two are locked: %v", n, many, err)
	}
}

// What has ended no more since it was found is passed over, and the others are deleted:
// somebody else has deleted it, and it was begun anew under its id, or not.
func TestAPurgeLooksAgain(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n"})
	now := time.Now()
	for id, status := range map[string]snapshot.Status{"anew": snapshot.Running, "over": snapshot.Completed, "young": snapshot.Completed} {
		c := storetest.Step(&snapshot.Snapshot{InstanceID: id, Status: status}, "n")
		c.Rows.Instance = &projections.Instance{ID: id, Definition: "d", Status: "waiting", Version: 1, StartedAt: now}
		if status == snapshot.Completed {
			c.Rows.Instance.Status, c.Rows.Instance.EndedAt = "completed", map[string]time.Time{"over": now.Add(-time.Hour), "young": now}[id]
		}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	found := []endedRow{{"anew"}, {"over"}, {"gone"}, {"young"}}
	passed, err := passingOver(found, func(list []endedRow) error { return jobs{s}.purge(t.Context(), list, now.Add(-time.Minute)) })
	if want := []endedRow{{"anew"}, {"gone"}, {"young"}}; err != nil || !slices.Equal(passed, want) {
		t.Errorf("%v are passed over, not %v: %v", passed, want, err)
	}
	for _, table := range []string{"WF_RUNTIME_STATES", "WF_INSTANCES", "WF_STREAM"} {
		var left string
		err := s.db.QueryRowContext(t.Context(), "select count(distinct T.INSTANCE_ID) || ' ' || min(T.INSTANCE_ID) || ' ' || max(T.INSTANCE_ID) from "+table+" T").Scan(&left)
		if want := "2 anew young"; err != nil || left != want {
			t.Errorf("%s: %s are left, not %s: %v", table, left, want, err)
		}
	}
}

// A node says once which functions it has: a lock on its row, such as its heartbeat's, does
// not keep it from others for ever.
func TestAHeartbeatKeepsNoFunctionsSecret(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: fresh(t), Node: "n", Heartbeat: time.Hour, DeadAfter: 4 * time.Hour})
	for try := 1; ; try++ {
		release, err := stranger(t, s, "update WF_NODES set BEAT_ON_UTC = BEAT_ON_UTC")
		if err != nil {
			t.Fatal(err)
		}
		begun, released, held := time.Now(), make(chan error, 1), make(chan time.Duration, 1)
		time.AfterFunc(50*time.Millisecond, func() {
			err := release()
			held <- time.Since(begun)
			released <- err
		})
		err = s.Parts().Functions.Declare(t.Context(), []string{"pay"})
		if err, long := errors.Join(err, <-released), <-held > 300*time.Millisecond; err == nil {
			break
		} else if !long || try == 20 { // else a busy machine has held it for longer than anybody waits
			t.Fatal(err)
		}
	}
	if all, err := s.Parts().Functions.Declared(t.Context()); err != nil || !slices.Equal(all, []string{"pay"}) {
		t.Errorf("%q %v", all, err)
	}
}

// A node that is late, for the database or its own host stood still, is dead to the others:
// they perform what it has claimed. It does not take from itself what it performs.
func TestALateNodeDoesNotPerformItsCommandsTwice(t *testing.T) {
	t.Parallel()
	place := fresh(t)
	silent := func(node string) *Store { // no heartbeat comes
		s, err := Open(t.Context(), Options{DSN: place, Node: node, Wait: time.Second, Heartbeat: time.Hour, DeadAfter: 3 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	late, other := silent("late"), silent("other")
	c := storetest.Step(&snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running}, "late")
	if err := late.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := late.db.ExecContext(t.Context(), "update WF_NODES set BEAT_ON_UTC = CAST(:1 AS TIMESTAMP(6)) where NODE = 'late'", stamp(time.Now().Add(-24*time.Hour))); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		*Store
		want int
	}{{late, 0}, {other, 1}} {
		orphans, err := s.Parts().Nodes.Orphans(t.Context(), 10)
		if err != nil || orphans != s.want {
			t.Errorf("%s finds %d orphans, not %d: %v", s.Parts().Nodes.Node(), orphans, s.want, err)
		}
		dead, err := sweep(t.Context(), s.db, "node_sweep", "node_delete", s.o.DeadAfter.Seconds(), s.run)
		if err != nil || int(dead) != s.want {
			t.Errorf("%s finds %d nodes dead, not %d: %v", s.Parts().Nodes.Node(), dead, s.want, err)
		}
	}
}

// A caller is told at once whose rows are locked; when they are not any more, the same
// change is written. One of several blocks is all or nothing, too.
func TestACallerIsToldWhoseRowsAreLocked(t *testing.T) {
	t.Parallel()
	s := everyRow(t)
	next := func() store.Change {
		c := storetest.Step(&snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running, Version: 1, Position: 2}, "n")
		c.Rows.Instance = &projections.Instance{ID: "a", Definition: "d", Status: "waiting", Version: 2, StartedAt: c.Runtime.ExecutedAt}
		c.Rows.WaitsGone = []string{"t"}
		c.Rows.TaskEnds = []projections.TaskEnd{{ID: "k", Status: "completed", At: c.Runtime.ExecutedAt}}
		return c
	}
	for table, column := range map[string]string{"WF_WAITS": "EVENT_TYPE", "WF_TASKS": "NAME", "WF_STREAM": "KIND", "WF_INSTANCES": "STATE"} {
		release, err := stranger(t, s, fmt.Sprintf("update %s set %s = %s", table, column, column))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
		from := time.Now()
		err = soon(ctx, func() error { return s.Commit(ctx, next()) })
		cancel()
		if problem.CodeOf(err) != "store.locked" || !strings.Contains(err.Error(), table) {
			t.Errorf("%s is locked: after %s %v", table, time.Since(from), err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(t.Context(), next()); err != nil {
		t.Error(err)
	}
	release, err := stranger(t, s, "update WF_NODES set NODE = NODE where RUN_ID = 'r'")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	err = soon(ctx, func() error { _, _, err := s.Parts().Identity.Raise(ctx); return err })
	if problem.CodeOf(err) != "store.locked" {
		t.Errorf("restoring ends with %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}
