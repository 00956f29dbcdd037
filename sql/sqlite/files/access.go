// Package files is what the processes that share a database see of each other
// on the disk of their host: who may use its files, whose turn it is, who holds
// SQLite's write lock, and whether the files that are open are still in place.
package files

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Access says who may use the files of a database: the user of the node, or a
// group as well. Whoever can open a lock file can hold it.
type Access struct {
	file, dir fs.FileMode
	gid       int // -1 = as the system gives it
}

// AccessOf is the access for a group of the host, by name or number, and its
// members; "" = the user of the process alone.
func AccessOf(group string) (Access, error) {
	if group == "" {
		return Access{file: 0o600, dir: 0o700, gid: -1}, nil
	}
	id := group
	if g, err := user.LookupGroup(group); err == nil {
		id = g.Gid
	}
	gid, err := strconv.Atoi(id)
	if err != nil || gid < 0 {
		return Access{}, problem.New(problem.Invalid, "store.no-group", "there is no group %q on this host", group).
			WithHint("set store.group to the name or number of a group that the user of the node is in")
	}
	return Access{file: 0o660, dir: 0o770, gid: gid}, nil
}

// MakeFolder makes the folder of a database, for whoever may use its files. One
// that is there already is left as it is.
func MakeFolder(path, group string) error {
	a, err := AccessOf(group)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := a.makeFolder(path); err != nil {
		return problem.Wrap(errors.Unwrap(err), problem.Invalid, "store.unavailable", "the folder %s cannot be made", path)
	}
	return nil
}

// open opens a file, which it makes when it is missing.
func (a Access) open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, a.file)
	if err != nil {
		return nil, err
	}
	if err := a.apply(path, a.file); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// makeFolder makes a folder.
func (a Access) makeFolder(path string) error {
	if err := os.MkdirAll(path, a.dir); err != nil {
		return err
	}
	return a.apply(path, a.dir)
}

// own gives a file its group and mode.
func (a Access) own(path string) error { return a.apply(path, a.file) }

// apply gives a file its group and mode, whatever the process's mask. Those of
// another user are theirs to change.
func (a Access) apply(path string, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.gid >= 0 && groupOf(info) != a.gid {
		if err := os.Chown(path, -1, a.gid); err != nil && ours(info) {
			return problem.Wrap(err, problem.Invalid, "store.no-group", "%s cannot be given to the group %d", path, a.gid).
				WithHint("the user of the node must be in the group that store.group names")
		}
	}
	if info.Mode().Perm() == mode || !ours(info) {
		return nil
	}
	return os.Chmod(path, mode)
}

// Database makes the file of a database that is not there yet, and returns who
// may use what stands beside it: SQLite's files get the mode of that file. One
// that a group may write stays so when no group is told: a verb without the
// nodes' settings takes nothing away from them.
func (a Access) Database(path string) (Access, error) {
	if info, err := os.Stat(path); err == nil {
		if shared := info.Mode().Perm()&0o060 == 0o060; shared && a.gid < 0 {
			a = Access{file: 0o660, dir: 0o770, gid: groupOf(info)}
		}
		return a, nil // its mode is changed when it is known to be ours
	}
	// Made under another name: to close a file that SQLite has open would drop
	// the locks of this whole process (sqlite.org/howtocorrupt.html, 2.2).
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return a, err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Close(), a.apply(f.Name(), a.file)); err != nil {
		return a, err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return a, err
	}
	return a, nil
}

// Opened applies to an open database and what SQLite keeps beside it.
func (a Access) Opened(path string) error {
	for _, suffix := range Beside {
		if err := a.apply(path+suffix, a.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func groupOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// ours says whether this process may change who uses a file.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(st.Uid) == os.Geteuid())
}
