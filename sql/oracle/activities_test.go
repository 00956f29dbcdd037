package oracle

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// An application notes things of an instance in its own transaction, under its own name;
// what it has noted is what the API shows.
func TestAnApplicationNotesActivitiesBySQL(t *testing.T) {
	dsn := fresh(t)
	db, err := sql.Open("godror", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := opened(t, Options{DSN: dsn, Node: "n"})
	ctx, all := t.Context(), s.Parts().Activities
	now := time.Now().UTC().Truncate(time.Microsecond)
	if err := s.Commit(ctx, store.Change{
		Snapshot: &snapshot.Snapshot{InstanceID: "i", Version: 1, Status: snapshot.Waiting, Definition: snapshot.Definition{Name: "d", Version: "1"}, StartedAt: now, UpdatedAt: now},
		Rows:     projections.Rows{Instance: &projections.Instance{ID: "i", Definition: "d", DefVersion: "1", Status: "waiting", Version: 1, StartedAt: now, UpdatedAt: now}},
	}); err != nil {
		t.Fatal(err)
	}
	call := func(text string, args ...any) (int64, error) {
		var version int64
		_, err := db.ExecContext(ctx, "BEGIN :1 := AQUEDUCT_API."+text+"; END;", append([]any{sql.Out{Dest: &version}}, args...)...)
		return version, err
	}
	done := func(want int64, text string, args ...any) {
		t.Helper()
		if got, err := call(text, args...); err != nil || got != want {
			t.Fatalf("%s: version %d, %v", text, got, err)
		}
	}
	const attach, update, freeze = "ATTACH_ACTIVITY(:2, :3, :4, :5, :6)", "UPDATE_ACTIVITY(:2, :3, :4, :5, :6)", "FREEZE_ACTIVITY(:2, :3, :4)"
	done(1, attach, "i", "x", "survey", "begun", `{"text":"Ω"}`)
	done(1, attach, "i", "x", "another", "", "1") // a repeat
	done(1, attach, "i", "none", "survey", "", " null ")
	large := `"` + strings.Repeat("x", backend.MaxActivityBytes-2) + `"`
	done(1, attach, "i", "large", "survey", "", large)
	got := sure(all.Activity(ctx, "i", "x"))
	if got.Name != "survey" || got.Status != "begun" || string(got.Data) != `{"text":"Ω"}` || got.CreatedBy == "" || got.CreatedBy != got.UpdatedBy || time.Since(got.CreatedAt).Abs() > 15*time.Minute {
		t.Fatalf("%+v", got)
	}
	if a := sure(all.Activity(ctx, "i", "large")); !bytes.Equal(a.Data, []byte(large)) {
		t.Fatalf("%d bytes", len(a.Data))
	}
	if a := sure(all.Activity(ctx, "i", "none")); a.Data != nil {
		t.Fatalf("%s", a.Data)
	}
	done(2, update, "i", "x", 1, "done", nil)
	if got = sure(all.Activity(ctx, "i", "x")); got.Status != "done" || string(got.Data) != `{"text":"Ω"}` || got.Version != 2 {
		t.Fatalf("%+v", got)
	}
	done(3, update, "i", "x", 2, nil, "null")
	done(4, freeze, "i", "x", 3)
	if got = sure(all.Activity(ctx, "i", "x")); got.Status != "done" || got.Data != nil || got.FrozenAt.IsZero() || got.Version != 4 {
		t.Fatalf("%+v", got)
	}
	for _, c := range []struct {
		text string
		args []any
		code int
		says string
	}{
		{attach, []any{"nobody", "x", "n", "", "1"}, 20803, "instance nobody does not exist"},
		{attach, []any{"i", "a b", "n", "", "1"}, 20801, "p_activity_id holds a space"},
		{attach, []any{"i", "y", "", "", "1"}, 20801, "p_name is missing"},
		{attach, []any{"i", "y", "n", "a\tb", "1"}, 20801, "p_status holds a control character"},
		{attach, []any{"i", "y", "n", "", "{"}, 20801, "p_data is not JSON"},
		{attach, []any{"i", "y", "n", strings.Repeat("s", 65), "1"}, 20802, "p_status has more than 64"},
		{attach, []any{"i", "y", "n", "", large + " "}, 20802, "p_data has more than 16384 bytes"},
		{update, []any{"i", "x", 4, "again", nil}, 20804, "is frozen since"},
		{freeze, []any{"i", "x", 4}, 20804, "is frozen since"},
		{update, []any{"i", "large", 2, "again", nil}, 20804, "has version 1, not 2"},
		{update, []any{"i", "y", 1, "again", nil}, 20803, "has no activity y"},
		{freeze, []any{"i", "large", sql.NullInt64{}}, 20801, "p_version is missing"},
	} {
		_, err := call(c.text, c.args...)
		if !slices.Contains(aq.Codes(err), c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %.60v: %v", c.text, c.args, err)
		}
	}
	var noted []string
	for _, a := range sure(s.Parts().Audit.Audit(ctx, backend.AuditQuery{InstanceID: "i"})).Items {
		if a.Kind != "database" || a.Via != "plsql" || a.User != got.CreatedBy {
			t.Errorf("%+v", a)
		}
		noted = append(noted, a.Action+" "+a.Target)
	}
	slices.Sort(noted)
	if want := "attach-activity large, attach-activity none, attach-activity x, freeze-activity x, update-activity x, update-activity x"; strings.Join(noted, ", ") != want {
		t.Error(noted)
	}

	// It is part of the caller's transaction.
	tx := sure(db.BeginTx(ctx, nil))
	if _, err := tx.ExecContext(ctx, "DECLARE V NUMBER; BEGIN V := AQUEDUCT_API.ATTACH_ACTIVITY('i', 'undone', 'n'); END;"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if p := sure(all.Activities(ctx, "i", "", 0)); len(p.Items) != 3 {
		t.Fatalf("%+v", p)
	}
}

// An application has attached an activity and not committed. Who attaches the same is told
// so soon, as often as they ask, and turns are written meanwhile.
func TestAnOpenAttachmentHoldsUpNobody(t *testing.T) {
	t.Parallel()
	dsn := fresh(t)
	db := sure(sql.Open("godror", dsn))
	defer db.Close()
	s := opened(t, Options{DSN: dsn, Node: "n"})
	if err := s.Commit(t.Context(), starting("i")); err != nil {
		t.Fatal(err)
	}
	tx := sure(db.BeginTx(t.Context(), nil))
	if _, err := tx.ExecContext(t.Context(), "DECLARE V NUMBER; BEGIN V := AQUEDUCT_API.ATTACH_ACTIVITY('i', 'act', 'n'); END;"); err != nil {
		t.Fatal(err)
	}
	patience := time.AfterFunc(lockPatience, func() { _ = tx.Rollback() }) // or nobody would ever answer
	attach := func() error {
		now := s.Now()
		return s.Parts().Activities.AttachActivity(t.Context(), backend.Activity{InstanceID: "i", ID: "act", Name: "n", Version: 1, CreatedAt: now, UpdatedAt: now}, store.Audit{ID: rand.Text(), At: now, Action: "attach-activity", Target: "act"})
	}
	var all sync.WaitGroup
	for range DefaultWriters {
		all.Go(func() {
			if err := attach(); problem.CodeOf(err) != "store.locked" || problem.KindOf(err) != problem.Unavailable {
				t.Error(err)
			}
		})
	}
	await.Until(t, "somebody who waits", func() (bool, any) { return len(s.attaching) > 0, nil })
	for i := range 3 {
		if err := s.Commit(t.Context(), starting(fmt.Sprint("other-", i))); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if !patience.Stop() {
		t.Fatal("nobody was told before the transaction ended")
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if err := attach(); err != nil {
		t.Error(err)
	}
}

// sure is a value that there must be.
func sure[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
