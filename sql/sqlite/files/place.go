package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Beside are what SQLite keeps beside a database: the log of what was committed
// last, and its index. They are there as long as a connection is.
var Beside = []string{"", "-wal", "-shm"}

// Located is the absolute path of a database. A link that is the file itself is
// followed: SQLite keeps the log beside what it leads to.
func Located(path string) (string, error) {
	path, err := filepath.Abs(path)
	for range maxLinks {
		if err != nil {
			return "", err
		}
		target, noLink := os.Readlink(path)
		if noLink != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	return "", fmt.Errorf("%s: more than %d links lead to one another", path, maxLinks)
}

const maxLinks = 40 // as the kernel

// Place is where the files of a database are that a process has open. SQLite goes
// on writing to a file that has been moved or deleted, and what it writes is lost.
type Place struct {
	path, given, folder string
	files               []os.FileInfo // that are open, in the order of Beside

	unmoved state         // of the database's folder, when nothing in it had been moved; zero = that is to be looked at
	looked  time.Time     // when that was seen
	trust   time.Duration // trustAfter
}

// Identify notes which files are open: those of the database at a path, given is
// the link that it was asked for by, if it was, and a folder beside it.
// trust is for tests; 0 is what file systems need.
func Identify(path, given, folder string, trust time.Duration) (*Place, error) {
	p := &Place{path: path, given: given, folder: folder, trust: cmp.Or(trust, trustAfter)}
	for _, suffix := range Beside {
		info, err := os.Stat(path + suffix)
		if err != nil {
			return nil, moved(err, path+suffix)
		}
		p.files = append(p.files, info)
	}
	return p, nil
}

// Same checks that the paths name the files that are open. Its problem is
// store.moved.
func (p *Place) Same() error {
	for i, suffix := range Beside {
		now, err := os.Stat(p.path + suffix)
		if err != nil || !os.SameFile(now, p.files[i]) {
			return moved(err, p.path+suffix)
		}
	}
	now, err := os.Stat(p.folder)
	if err != nil || !now.IsDir() {
		return moved(err, p.path)
	}
	if now, err = os.Stat(p.given); err != nil || !os.SameFile(now, p.files[0]) { // a link that leads elsewhere now
		return moved(err, p.given)
	}
	return nil
}

// How long after the last change of a folder its time says that nothing has
// changed since, that where the file system counts in seconds, or in two, and how
// long that is believed: a mount over one of the files changes no folder.
const trustAfter, trustCoarse, trustFor = 100 * time.Millisecond, 3 * time.Second, time.Second

// state is that of a folder: another has another inode, and what is made,
// moved, replaced or deleted in it sets its time of change, which nobody can set
// back, as copies and archives do with the time of modification.
type state struct {
	dev, ino uint64
	changed  unix.Timespec
}

// StillSame is Same for one goroutine that asks before every commit: it looks
// at the folder alone as long as that has not changed.
func (p *Place) StillSame() error {
	var st unix.Stat_t
	now, err := time.Now(), unix.Lstat(filepath.Dir(p.path), &st)
	dir := state{uint64(st.Dev), st.Ino, st.Ctim} //nolint:unconvert // Dev is no uint64 everywhere
	if err == nil && p.unmoved == dir && now.Sub(p.looked) < trustFor {
		return nil
	}
	p.unmoved = state{}
	if err := p.Same(); err != nil {
		return err
	}
	after := p.trust
	if st.Ctim.Nsec == 0 {
		after = trustCoarse
	}
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && p.path == p.given && now.Sub(time.Unix(st.Ctim.Unix())) > after {
		p.unmoved, p.looked = dir, now
	}
	return nil
}

func moved(err error, path string) error {
	if err == nil {
		err = fs.ErrNotExist
	}
	return problem.Wrap(err, problem.Unavailable, "store.moved", "the database %s, which this node has open, was moved, replaced or deleted", path).
		WithHint("nothing is committed until it is back: stop the nodes on it, put the right file in place, start them")
}
