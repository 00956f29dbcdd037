package sqlite

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"

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

// same checks that the path names the files that are open.
func (s *Store) same() error {
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.file) {
		if now, err = os.Stat(s.nodes.dir); err == nil && now.IsDir() {
			return nil
		}
	}
	return moved(err, s.path)
}

func moved(err error, path string) error {
	if err == nil {
		err = fs.ErrNotExist
	}
	return problem.Wrap(err, problem.Unavailable, "store.moved", "the database %s, which this node has open, was moved, replaced or deleted", path).
		WithHint("what is committed now goes to the old file: stop the nodes on it, put the right file in place, start them")
}
