package sqlite

import (
	"context"
	"encoding/binary"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// Probe implements store.Prober.
func (s *Store) Probe(ctx context.Context) error {
	err := s.place.Same()
	if err == nil {
		err = s.do(ctx, func(t *tx) error {
			_, _, err := t.exec("meta_probe", binary.BigEndian.AppendUint64(nil, uint64(t.now)))
			return err
		})
	}
	s.probing.Note(s.log, "sqlite: the database is not ready", s.path, err)
	return wrap("probe", conn.Explain(err, s.path))
}
