package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

func TestProbeCommits(t *testing.T) {
	t.Parallel()
	s, _ := openLogged(t, filepath.Join(t.TempDir(), "a.db"))
	before := s.Stats().Transactions
	if err := s.Probe(t.Context()); err != nil || s.Stats().Transactions != before+1 {
		t.Fatalf("%v, %d transactions", err, s.Stats().Transactions-before)
	}
}

// TestProbeFindsAFileThatIsNotOurs: SQLite goes on writing to a file that has no name any more.
func TestProbeFindsAFileThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(path string) error{
		"moved":    func(path string) error { return os.Rename(path, path+".old") },
		"deleted":  os.Remove,
		"replaced": func(path string) error { return replace(path) },
		"nodes":    func(path string) error { return os.Rename(path+"-nodes", path+"-gone") },
		"log":      func(path string) error { return os.Remove(path + "-wal") },
		"index":    func(path string) error { return os.Remove(path + "-shm") },
		"folder":   func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") },
		"copied": func(path string) error { // with its times, as backups do
			folder := filepath.Dir(path)
			old, err := os.Stat(folder)
			if err != nil {
				return err
			}
			if err := errors.Join(os.CopyFS(folder+".new", os.DirFS(folder)), os.Rename(folder, folder+".old"), os.Rename(folder+".new", folder)); err != nil {
				return err
			}
			return os.Chtimes(folder, old.ModTime(), old.ModTime())
		},
		"unpacked": func(path string) error { // into the folder, as archives are, with its time
			folder := filepath.Dir(path)
			old, err := os.Stat(folder)
			for _, file := range files.Beside {
				raw, e := os.ReadFile(path + file)
				err = errors.Join(err, e, os.Remove(path+file), os.WriteFile(path+file, raw, 0o600))
			}
			return errors.Join(err, os.Chtimes(folder, old.ModTime(), old.ModTime()))
		},
		"linked": func(link string) error {
			return errors.Join(os.WriteFile(link+".other", nil, 0o600), os.Remove(link), os.Symlink(link+".other", link))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "folder")
			path := filepath.Join(folder, "a.db")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			given := path
			if name == "linked" {
				given = filepath.Join(t.TempDir(), "b.db")
				if err := os.Symlink(path, given); err != nil {
					t.Fatal(err)
				}
			}
			s, log := openTrusting(t, given, 20*time.Millisecond)
			if err := s.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			send := store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("m")}}}
			// The folder alone is looked at when it has not changed for a time.
			for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
				if err := s.Commit(t.Context(), send); err != nil {
					t.Fatal(err)
				}
			}
			if name == "linked" {
				path = given
			}
			if err := away(path); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			// What would be told as committed would be gone with the file.
			if err := s.Commit(t.Context(), send); problem.CodeOf(err) != "store.moved" {
				t.Errorf("a commit is told %v", err)
			}
			for range 50 {
				if err := s.Probe(t.Context()); problem.CodeOf(err) != "store.moved" || problem.KindOf(err) != problem.Unavailable {
					t.Fatalf("told %v", err)
				}
			}
			if n := strings.Count(log.String(), "not ready"); n < 1 || n > 1+int(time.Since(begun)/time.Second) { // a second is the least pause
				t.Errorf("logged %d times:\n%s", n, log)
			}
		})
	}
}

// crumb is the smallest first turn.
func crumb(id string) store.Change {
	return store.Change{Snapshot: &snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Running}}
}

func replace(path string) error {
	if err := os.Rename(path, path+".old"); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// TestForeignDatabaseIsRefusedAndLeft: the file of another program is not
// touched, whether it says whose it is or not.
func TestForeignDatabaseIsRefusedAndLeft(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"with an id":    "pragma application_id = 42",
		"without an id": "create table ORDERS (ID integer)",
		"with both":     "create table WF_META (NAME text); pragma application_id = 42; pragma user_version = 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			c := must(conn.Open(path, "", Statements))
			if err := c.Script(script); err != nil {
				t.Fatal(err)
			}
			c.Close()
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			before := must(os.ReadFile(path))
			_, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
			wantCode(t, err, "store.foreign")
			_, _, err = migrateAt(path)
			wantCode(t, err, "store.foreign")
			if info := must(os.Stat(path)); !bytes.Equal(before, must(os.ReadFile(path))) || info.Mode().Perm() != 0o644 {
				t.Error("the file was touched")
			}
		})
	}
}

func TestOurDatabaseSaysSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	c := must(conn.Open(path, "", Statements))
	defer c.Close()
	if id, err := c.Number("pragma application_id"); err != nil || id != schema.ApplicationID {
		t.Errorf("%x, %v", id, err)
	}
}

// TestNoMigrationUnderALiveNode: a node of an older program would go on writing by the schema that it knows.
func TestNoMigrationUnderALiveNode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	c := must(conn.Open(path, "", Statements))
	defer c.Close()
	if err := c.Script(fmt.Sprintf("pragma user_version = %d", latest(t)-1)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path})
	wantCode(t, err, "store.in-use")
	_, _, err = migrateAt(path)
	wantCode(t, err, "store.in-use")
	if n := must(c.Number("pragma user_version")); int(n) != latest(t)-1 {
		t.Errorf("the schema has version %d", n)
	}
}

// TestNoNodeJoinsBehindAMigration: one that is starting while another program
// migrates does not go on by the schema that it has seen.
func TestNoNodeJoinsBehindAMigration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	c := must(conn.Open(path, "", Statements))
	defer c.Close()
	if err := c.Script(fmt.Sprintf("pragma user_version = %d", latest(t)+1)); err != nil {
		t.Fatal(err)
	}
	late := &Store{path: path, node: "late", now: time.Now, log: s.log, receivers: s.receivers, schema: schema.Tables{}} // it has seen the version before
	_, err := join(late, c, must(files.AccessOf("")))
	wantCode(t, err, "store.newer")
	if n := must(c.Number("select count(*) from WF_NODES where NODE = 'late'")); n != 0 {
		t.Errorf("%d rows of the node", n)
	}
	if n := must(files.Live(path)); n != 1 {
		t.Errorf("%d nodes live", n)
	}
}

// TestTroubleIsToldWithGrowingPauses fills the disk under receivers that wait,
// which used to claim, fail and claim again without a pause.
func TestTroubleIsToldWithGrowingPauses(t *testing.T) {
	dir := mount(t, "size=2m")
	s, log := openLogged(t, filepath.Join(dir, "a.db"))
	fill(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	got := make(chan error, 8)
	for range cap(got) {
		go func() {
			d, err := s.Receive(ctx, store.Signals, nil)
			if err == nil {
				err = d.Commit(context.Background(), store.Change{})
			}
			got <- err
		}()
	}
	attempts := 0
	for ctx.Err() == nil {
		if err := put(ctx, s, strings.Repeat("x", 100_000)); err == nil {
			t.Fatal("the disk was not full")
		}
		attempts++
	}
	for range cap(got) {
		<-got
	}
	if n := strings.Count(log.String(), "\n"); n > 10 || !strings.Contains(log.String(), "store.full") && !strings.Contains(log.String(), "is full") {
		t.Errorf("%d lines of %d attempts:\n%.2000s", n, attempts, log)
	}
	if err := s.Probe(t.Context()); problem.CodeOf(err) != "store.full" {
		t.Errorf("readiness told %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

// fill leaves no room on a file system.
func fill(t *testing.T, dir string) {
	t.Helper()
	f := must(os.Create(filepath.Join(dir, "ballast")))
	defer f.Close()
	var err error
	for err == nil {
		_, err = f.Write(make([]byte, 1<<12))
	}
	if err != nil && !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		t.Fatal(err)
	}
}

// A transaction that does not begin gives back nothing of the one before it: a worker may have those messages by now.
func TestATransactionThatDoesNotBeginGivesNothingBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s, _ := openLogged(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w := &writer{s: s}
	w.tx.w, w.tx.out.putBack = w, []*delivery{{}}
	j := &job{done: make(chan struct{})}
	if w.group(j); problem.CodeOf(j.err) != "store.moved" || len(w.suspects) != 0 {
		t.Errorf("%v, and %d messages are given back", j.err, len(w.suspects))
	}
}

// A copy that "vacuum into" has made has no write-ahead log, and a path may be a link to the file.
func TestCopiesAndLinksAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied, link := filepath.Join(dir, "a.db"), filepath.Join(dir, "copy.db"), filepath.Join(t.TempDir(), "link.db")
	s := open(t, path)
	if err := s.Commit(t.Context(), crumb("i")); err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, "", Statements))
	err := c.Script("vacuum into '" + copied + "'")
	if c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(copied, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{copied, link} {
		s := open(t, path)
		if _, err := s.Load(t.Context(), "i"); err != nil {
			t.Error(err)
		}
		if err := s.Commit(t.Context(), crumb(filepath.Base(path))); err != nil {
			t.Error(err)
		}
	}
	names, err := filepath.Glob(link + "*")
	if err != nil || len(names) != 1 {
		t.Errorf("beside the link: %v, %v", names, err)
	}
}
