package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A step that passes over an error by which SQLite has ended the transaction has failed:
// whatever came after would be there, also when its change is refused.
func TestAStepDoesNotOutliveItsTransaction(t *testing.T) {
	insert := func(ctx context.Context, tx steps.Tx, values string) error {
		_, err := tx.Run(ctx, "insert "+values, nil)
		return err
	}
	set := &steps.Set{}
	set.Register("f", func(ctx context.Context, tx steps.Tx, _ json.RawMessage) (any, error) {
		if err := insert(ctx, tx, "into SHOP values (7)"); err != nil {
			return nil, err
		}
		if err := insert(ctx, tx, "or rollback into SHOP values (1)"); err == nil {
			t.Error("the key is not taken")
		}
		if err := insert(ctx, tx, "into SHOP values (8)"); err == nil {
			t.Error("a statement was run without the transaction")
		}
		return "done", nil
	})
	path := filepath.Join(t.TempDir(), "a.db")
	s := must(Open(t.Context(), sqlite.Options{Path: path, Perform: Steps(set)}))
	defer s.Close()
	if err := s.MakeTables(t.Context(), "create table if not exists SHOP (ID integer primary key); insert into SHOP values (1)"); err != nil {
		t.Fatal(err)
	}
	r := must(conn.Open(path, ""))
	defer r.Close()
	version := func(v int64) *snapshot.Snapshot {
		return &snapshot.Snapshot{InstanceID: "a", Version: v, Status: snapshot.Running}
	}
	if err := s.Commit(t.Context(), store.Change{Snapshot: version(1)}); err != nil {
		t.Fatal(err)
	}
	for name, claims := range map[string][]store.Claim{"taken": nil, "refused": {{InstanceID: "a", Position: 5, Owner: "n"}}} {
		err := s.Commit(t.Context(), store.Change{Snapshot: version(2), Inside: func(do store.Perform) (store.Change, error) {
			_, failed, err := do("go/f", []byte("{}"))
			if failed == nil {
				t.Error("the task has no error")
			}
			return store.Change{Snapshot: version(2), Claims: claims}, err
		}})
		got := must(s.Load(t.Context(), "a"))
		if err == nil || errors.Is(err, store.ErrUnknown) || got.Version != 1 {
			t.Errorf("%s: %v; the instance is at version %d", name, err, got.Version)
		}
	}
	if n := must(r.Number("select count(*) from SHOP")); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// SQLite has whole numbers of 64 bits, and would round others.
func TestAWholeNumberIsNotRounded(t *testing.T) {
	t.Parallel()
	c := must(conn.Open(filepath.Join(t.TempDir(), "a.db"), ""))
	defer c.Close()
	if err := c.Script("create table SHOP (ID integer primary key); begin"); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[any]string{json.Number("9223372036854775808"): "64 bits", int64(9007199254740993): ""} {
		_, err := stepSession{c}.Run(t.Context(), "insert into SHOP values (:n)", map[string]any{"n": n})
		var f *steps.Failure
		if want == "" && err != nil || want != "" && (!errors.As(err, &f) || f.Status != 400 || !strings.Contains(f.Detail, want)) {
			t.Errorf("%v: %v", n, err)
		}
	}
	if n := must(c.Number("select ID from SHOP")); n != 9007199254740993 {
		t.Errorf("it is %d", n)
	}
}
