package embedded

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, harness)
}

func harness(t *testing.T) storetest.Harness {
	path := filepath.Join(t.TempDir(), "aqueduct.db")
	return storetest.Harness{
		Open: func(ctx context.Context, node string) (backend.Store, error) {
			s, err := Open(ctx, sqlite.Options{Path: path, Node: node})
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Kill: func(s backend.Store) { s.(*Store).Abandon() },
		Damage: func(table, column, id string) error {
			c, err := conn.Open(path, "", sqlite.Statements)
			if err != nil {
				return err
			}
			defer c.Close()
			return damage(c, table, column, id)
		},
	}
}

// damage changes a byte behind the middle of a column, and leaves its type.
func damage(c *conn.Conn, table, column, id string) error {
	table = written(table)
	where := " where INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = '" + id + "')"
	if table == "WF_TASK_EVENTS" {
		where = " where TASK_NO in (select TASK_NO from WF_TASKS" + where + ")"
	}
	if of, ok := strings.CutPrefix(column, "INSTANCE_ID = "); ok {
		column = "INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = " + of + ")"
	}
	if strings.Contains(column, " = ") {
		return c.Script("update " + table + " set " + column + where)
	}
	kind, err := c.Text("select typeof(" + column + ") from " + table + where)
	if err != nil {
		return err
	}
	old, err := c.Text("select hex(" + column + ") from " + table + where)
	if err != nil {
		return err
	}
	raw, err := hex.DecodeString(old)
	if err != nil {
		return err
	}
	i := len(raw) / 2
	for i < len(raw)-1 && (raw[i] < 'a' || raw[i] > 'z') { // what is JSON stays JSON: an index reads it
		i++
	}
	raw[i] ^= 1
	return c.Script(fmt.Sprintf("update %s set %s = cast(x'%x' as %s)%s", table, column, raw, kind, where))
}

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// written names what statements write where they name the view of the snapshots.
func written(statement string) string {
	return strings.ReplaceAll(statement, "WF_RUNTIME_STATES", "WF_STATES")
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := problem.CodeOf(err); err == nil || got != code {
		t.Fatalf("got %v with code %s, want code %s", err, got, code)
	}
}

// crumb is the smallest first turn.
func crumb(id string) store.Change {
	return store.Change{Snapshot: &snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Running}}
}

// mount makes a small file system of its own.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
