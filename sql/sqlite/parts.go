package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"log/slog"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Path is where the database is, with links followed.
func (s *Store) Path() string { return s.path }

// Number is that of this node in the rows of the database.
func (s *Store) Number() int64 { return s.nodes.no }

// Log is the store's.
func (s *Store) Log() *slog.Logger { return s.log }

// Node implements backend.Nodes.
func (s *Store) Node() string { return s.node }

// PeerFailures implements backend.Nodes. Several failures may give one value.
func (s *Store) PeerFailures() <-chan struct{} { return s.failed }

// Orphans implements backend.Nodes. A node that was started again under the
// same name is another run: what the run before claimed is an orphan.
func (s *Store) Orphans(ctx context.Context, limit int) (int, error) {
	count := 0
	err := s.do(ctx, func(t *tx) error {
		count = 0
		rows, err := nodeRows(t.w.c)
		if err != nil {
			return err
		}
		for no := range rows {
			if no == s.nodes.no || count >= limit {
				continue
			}
			alive, f := s.nodes.Probe(no)
			if f != nil {
				f.Close() // a dead node's messages are returned by check
			}
			hangs := alive && s.nodes.Hangs(no)
			if alive && !hangs {
				continue
			}
			n, err := orphans(t, no, limit-count)
			if err != nil {
				return err
			}
			count += n
			if n == 0 && f == nil && !hangs {
				t.wrote = true
				if err := giveBack(t.w.c, no); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return count, wrap("orphans", err)
}

func orphans(t *tx, node int64, limit int) (int, error) {
	type command struct {
		entry    int64
		id       string
		attempts int64
	}
	var list []command
	err := t.w.c.Query("stream_orphans", 3, func(r []driver.Value) error {
		var c command
		c.entry, _ = r[0].(int64)
		c.id, _ = r[1].(string)
		c.attempts, _ = r[2].(int64)
		list = append(list, c)
		return nil
	}, node, int64(limit))
	if err != nil {
		return 0, err
	}
	now := conn.FromMicros(t.now)
	for _, c := range list {
		if err := t.guard(store.ErrTaken, "stream_orphan", c.entry, node); err != nil {
			return 0, err
		}
		body, err := signal.ForCommand(c.id, c.entry&(1<<PositionBits-1), int(c.attempts), now, time.Time{}).Encode()
		if err != nil {
			return 0, err
		}
		t.out.send(store.Send{Queue: store.Commands, Body: body})
	}
	return len(list), nil
}

// Now implements backend.Clock.
func (s *Store) Now() time.Time { return s.now() }

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
