package sqlite

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Probe implements store.Prober. SQLite goes on writing to a file that has been
// moved or deleted, and what it writes is lost.
func (s *Store) Probe(ctx context.Context) error {
	err := s.same()
	if err == nil {
		err = s.do(ctx, func(t *tx) error {
			_, _, err := t.exec("meta_probe", binary.BigEndian.AppendUint64(nil, uint64(t.now)))
			return err
		})
	}
	s.probing.note(s.log, "sqlite: the database is not ready", s.path, err)
	return wrap("probe", explain(err, s.path))
}

// beside are what SQLite keeps beside a database: the log of what was committed
// last, and its index. They are there as long as a connection is.
var beside = []string{"", "-wal", "-shm"}

// identify notes which files are open.
func (s *Store) identify() error {
	for i, suffix := range beside {
		info, err := os.Stat(s.path + suffix)
		if err != nil {
			return moved(err, s.path+suffix)
		}
		s.files[i] = info
	}
	return nil
}

// same checks that the paths name the files that are open.
func (s *Store) same() error {
	for i, suffix := range beside {
		now, err := os.Stat(s.path + suffix)
		if err != nil || !os.SameFile(now, s.files[i]) {
			return moved(err, s.path+suffix)
		}
	}
	now, err := os.Stat(s.nodes.dir)
	if err != nil || !now.IsDir() {
		return moved(err, s.path)
	}
	if now, err = os.Stat(s.given); err != nil || !os.SameFile(now, s.files[0]) { // a link that leads elsewhere now
		return moved(err, s.given)
	}
	return nil
}

// How long after the last change of a folder its time says that nothing has
// changed since, that where the file system counts in seconds, or in two, and how
// long that is believed: a mount over one of the files changes no folder.
const trustAfter, trustCoarse, trustFor = 100 * time.Millisecond, 3 * time.Second, time.Second

// folder is the state of a folder: another has another inode, and what is made,
// moved, replaced or deleted in it sets its time of change, which nobody can set
// back, as copies and archives do with the time of modification.
type folder struct {
	dev, ino uint64
	changed  unix.Timespec
}

// inPlace is same for the writer, which asks before every commit, and looks at
// the folder alone as long as that has not changed.
func (w *writer) inPlace() error {
	var st unix.Stat_t
	now, err := time.Now(), unix.Lstat(w.dir, &st)
	dir := folder{uint64(st.Dev), st.Ino, st.Ctim} //nolint:unconvert // Dev is no uint64 everywhere
	if err == nil && w.unmoved == dir && now.Sub(w.looked) < trustFor {
		return nil
	}
	w.unmoved = folder{}
	if err := w.s.same(); err != nil {
		return err
	}
	after := w.trust
	if st.Ctim.Nsec == 0 {
		after = trustCoarse
	}
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && w.s.path == w.s.given && now.Sub(time.Unix(st.Ctim.Unix())) > after {
		w.unmoved, w.looked = dir, now
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
