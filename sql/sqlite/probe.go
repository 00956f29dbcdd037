package sqlite

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"time"

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
	if err == nil && now.IsDir() {
		return nil
	}
	return moved(err, s.path)
}

// settledDir is how long after the last change of a folder its time says that
// nothing has changed since: file systems count in milliseconds, or worse.
const settledDir = 100 * time.Millisecond

// inPlace is same for the writer, which asks before every commit: what is moved,
// replaced or deleted changes the time of the folder that it is in.
func (w *writer) inPlace() error {
	dir, err := os.Lstat(w.dir)
	if err == nil && w.unmoved != nil && dir.ModTime().Equal(w.unmoved.ModTime()) && os.SameFile(dir, w.unmoved) {
		return nil
	}
	now := time.Now()
	w.unmoved = nil
	if err := w.s.same(); err != nil {
		return err
	}
	if err == nil && dir.IsDir() && now.Sub(dir.ModTime()) > settledDir {
		w.unmoved = dir
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
