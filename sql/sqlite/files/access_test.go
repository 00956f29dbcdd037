package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

// modes lists the files of a database and of its nodes, with who may use them.
func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	got := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		name := strings.TrimPrefix(path, dir+"/")
		name = strings.NewReplacer("1.node", "N.node", "1.wake", "N.wake").Replace(name)
		got[name] = info.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFilesAreOfTheirUserOrGroup: whoever can open a lock file can hold it.
func TestFilesAreOfTheirUserOrGroup(t *testing.T) {
	// The mask of the process is everybody's: no test beside this one.
	defer syscall.Umask(syscall.Umask(0))
	names := []string{"a.db", "a.db-wal", "a.db-shm", "a.db-nodes/gate", "a.db-nodes/main", "a.db-nodes/N.node", "a.db-nodes/N.wake"}
	gid := os.Getgid()
	for _, c := range []struct {
		name, group string
		mask        int
		before      fs.FileMode // of the database, 0 = it is not there
		file, dir   fs.FileMode
	}{
		{"new", "", 0, 0, 0o600, 0o700},
		{"open to all before", "", 0, 0o644, 0o600, 0o700},
		{"of a group", strconv.Itoa(gid), 0o077, 0, 0o660, 0o770},
		{"of a group that nobody tells", "", 0o077, 0o660, 0o660, 0o770},
	} {
		t.Run(c.name, func(t *testing.T) {
			syscall.Umask(c.mask)
			dir := filepath.Join(t.TempDir(), "data")
			if err := files.MakeFolder(dir, c.group); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != map[bool]fs.FileMode{true: 0o700, false: 0o770}[c.group == ""] {
				t.Errorf("the folder: %v, %v", info.Mode(), err)
			}
			path := filepath.Join(dir, "a.db")
			if c.before != 0 {
				if err := os.WriteFile(path, nil, c.before); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, c.before); err != nil {
					t.Fatal(err)
				}
			}
			s, err := sqlite.Open(t.Context(), sqlite.Options{Schema: schema.Tables{}, Path: path, Group: c.group})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
				t.Fatal(err)
			}
			got := modes(t, dir)
			for _, name := range names {
				if got[name] != c.file {
					t.Errorf("%s has mode %o, want %o", name, got[name], c.file)
				}
			}
			if got["a.db-nodes"] != c.dir || len(got) != len(names)+1 {
				t.Errorf("%v", got)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	_, err := sqlite.Open(t.Context(), sqlite.Options{Schema: schema.Tables{}, Path: filepath.Join(t.TempDir(), "a.db"), Group: "no-such-group"})
	if problem.CodeOf(err) != "store.no-group" {
		t.Errorf("an unknown group: %v", err)
	}
}
