package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := problem.CodeOf(err); err == nil || got != code {
		t.Fatalf("got %v with code %s, want code %s", err, got, code)
	}
}

func TestCorruptFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	before := bytes.Repeat([]byte("this is no database"), 1000)
	if err := os.WriteFile(path, before, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
	wantCode(t, err, "store.corrupt")
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Fatal("the file was touched", err)
	}
}

// A value that the database never takes is told as on Oracle: it is the author's fault, not the database's.
func TestAValueThatIsNotTakenIsAProblem(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	c := must(conn.Open(path, "", Statements))
	defer c.Close()
	if err := c.Script("create table t (a integer primary key, b text not null check (length(b) < 3)) strict; insert into t values (1, 'x')"); err != nil {
		t.Fatal(err)
	}
	for values, code := range map[string]string{
		"2, null": "store.value", "2, 'long'": "store.value", "'x', 'y'": "store.value", "2, x'00'": "store.value", "1, 'x'": "store.exists",
	} {
		wantCode(t, conn.Explain(c.Script("insert into t values ("+values+")"), path), code)
	}
}

func TestNewerSchemaIsRefusedAndLeft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, "", Statements))
	if err := c.Script("pragma user_version = 99"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	before := must(os.ReadFile(path))
	_, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
	wantCode(t, err, "store.newer")
	_, _, err = migrateAt(path)
	wantCode(t, err, "store.newer")
	if !bytes.Equal(before, must(os.ReadFile(path))) {
		t.Fatal("the file was touched")
	}
	have, known, err := schema.Versions(must(conn.Open(path, "_query_only=1")), path)
	if have != 99 || known != latest(t) || err != nil {
		t.Fatal(have, known, err)
	}
}

// migrateAt is what Open does with the schema.
func migrateAt(path string) (from, to int, err error) {
	c, err := conn.Open(path, "")
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	return schema.Migrate(c, path)
}

// latest is the schema version of this program.
func latest(t *testing.T) int {
	t.Helper()
	return len(must(fs.Glob(os.DirFS("../embedded/schema"), "*.sql")))
}

func TestMigrateIsIdempotent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "with space ? # % ü.db")
	if from, to, err := migrateAt(path); from != 0 || to != latest(t) || err != nil {
		t.Fatal(from, to, err)
	}
	if from, to, err := migrateAt(path); from != latest(t) || to != latest(t) || err != nil {
		t.Fatal(from, to, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestMissingDirectoryIsUnreachable(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: filepath.Join(t.TempDir(), "none", "a.db")})
	wantCode(t, err, "store.unreachable")
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

func TestReadOnlyDiskIsRefused(t *testing.T) {
	dir := mount(t, "size=8m")
	path := filepath.Join(dir, "a.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot remount: ", err)
	}
	_, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
	wantCode(t, err, "store.read-only")
}

// A full disk refuses with a problem, loses nothing, and heals by itself.
func TestFullDiskIsAProblemAndHeals(t *testing.T) {
	dir := mount(t, "size=4m")
	s := open(t, filepath.Join(dir, "a.db"))
	ctx := context.Background()
	if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("m")}}}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	f := must(os.Create(ballast))
	for err == nil {
		_, err = f.Write(make([]byte, 1<<12))
	}
	f.Close()
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	big := store.Change{Snapshot: &snapshot.Snapshot{InstanceID: "a", Version: 1, Status: snapshot.Running,
		State: snapshot.State{Input: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}}}
	err = d.Commit(ctx, big)
	wantCode(t, err, "store.full")
	if errors.Is(err, store.ErrUnknown) {
		t.Fatal("nothing was committed, and the error leaves it open")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(ctx, big); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, "a"); err != nil {
		t.Fatal(err)
	}
}

// A write-ahead log that has filled the disk, for a reader kept it from being begun anew, is emptied when the reader
// has gone: no commit would do it, for none succeeds.
func TestFullLogHeals(t *testing.T) {
	dir := mount(t, "size=8m")
	s := open(t, filepath.Join(dir, "a.db"))
	ctx := t.Context()
	change := func(version int64) store.Change {
		return store.Change{Snapshot: &snapshot.Snapshot{InstanceID: "a", Version: version, Status: snapshot.Running,
			State: snapshot.State{Input: []byte(`"` + strings.Repeat("x", 64<<10) + `"`)}}}
	}
	version := int64(1)
	for ; version <= 20; version++ { // what follows finds its room in the database
		if err := s.Commit(ctx, change(version)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, filepath.Join(dir, "a.db"))
	reader, err := conn.Pool(filepath.Join(dir, "a.db"), "_query_only=1")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	tx := must(reader.BeginTx(ctx, nil))
	var n int
	if err := tx.QueryRowContext(ctx, "select count(*) from WF_NODES").Scan(&n); err != nil {
		t.Fatal(err)
	}
	for {
		if err = s.Commit(ctx, change(version)); err != nil {
			break
		}
		version++
	}
	wantCode(t, err, "store.full")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ {
		if err = s.Commit(ctx, change(version)); err == nil || try == 3 {
			break
		}
	}
	if err != nil {
		t.Fatalf("the log is full and stays full: %v", err)
	}
}

// What operators read of a runtime state is in its row.
func TestRuntimeStateColumns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	err := s.Commit(t.Context(), store.Change{Snapshot: &snapshot.Snapshot{InstanceID: "a", Version: 1, Status: snapshot.Waiting,
		Business: snapshot.BusinessReference{Key: "b"}, Error: &snapshot.Error{Type: "bad"},
		Branches: []*snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: "/do/0/ask"}}}},
		Waits:    []snapshot.Wait{{Kind: snapshot.WaitTask, Token: "tok", Pointer: "/do/0/ask", TaskID: "t-1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 9)
	err = s.db.QueryRow(`select RUNTIME_STATUS, SNAPSHOT_SCHEMA_VERSION, WAITING_KIND, WAITING_TOKEN, ACTIVE_TASK_ID, LAST_ERROR_CODE,
  json_extract(BUSINESS_REFERENCE, '$.key'), json_extract(RESUME_POINTER_JSON, '$.taskName'), RUNTIME_PROVIDER from WF_RUNTIME_STATES`).
		Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7], &got[8])
	if want := "waiting 1 Task tok t-1 bad b ask aqueduct"; err != nil || strings.Join(got, " ") != want {
		t.Fatalf("got %v, %v, want %s", got, err, want)
	}
}

// A commit whose outcome is unknown ends the delivery, and the message comes again.
func TestUnknownCommitRedelivers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("m")}}}); err != nil {
		t.Fatal(err)
	}
	held, err := s.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := held.(*delivery)
	var good *conn.Stmt
	err = d.finish(ctx, "commit", func(tx *tx) error {
		good = tx.w.c.Replace("commit", must(tx.w.c.Prepare("rollback to NOBODY")))
		return tx.change(d, &store.Change{})
	})
	if !errors.Is(err, store.ErrUnknown) {
		t.Fatal(err)
	}
	if err := d.Commit(ctx, store.Change{}); !errors.Is(err, store.ErrLost) {
		t.Fatal(err)
	}
	err = s.do(ctx, func(tx *tx) error {
		return tx.w.c.Replace("commit", good).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Receive(ctx, store.Signals, nil)
	if err != nil || string(again.Message().Body) != "m" || again.Message().Attempts != 0 {
		t.Fatal(again, err)
	}
	if err := again.Commit(ctx, store.Change{}); err != nil {
		t.Fatal(err)
	}
}

// Readers that take turns, of whom none reads for long, do not keep the log from
// being begun anew: there is always one in it.
func TestTheLogIsBegunAnewBesideReaders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	for range 3 {
		pool, err := conn.Pool(path, "_query_only=1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pool.Close() })
		readers.Go(func() {
			for ctx.Err() == nil {
				read(ctx, pool, 20*time.Millisecond)
			}
		})
	}
	snap := &snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running, State: snapshot.State{Input: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}}
	const bound = 4 * logStep
	for written := 0; written < 2*bound; written += 1 << 20 {
		snap.Version++
		if err := s.Commit(ctx, store.Change{Snapshot: snap}); err != nil {
			t.Fatal(err)
		}
		if log := must(os.Stat(path + "-wal")).Size(); log > bound+2*logStep { // on a busy machine a try or two may be in vain
			t.Fatalf("%d MiB were written, and the log has %d MiB", written>>20, log>>20)
		}
	}
}

// read holds a reading transaction for a while.
func read(ctx context.Context, pool *sql.DB, d time.Duration) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	var n int
	if err := tx.QueryRowContext(ctx, "select count(*) from WF_NODES").Scan(&n); err != nil {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
